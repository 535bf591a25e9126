"""Words for looking at things, bringing them in and out: images, hosts, events, all there is; and
the demo's stories.
"""

import argparse

from siderite.cli.words import data
from siderite.cli.words import form
from siderite.cli.words import name
from siderite.cli.words import seconds
from siderite.cli.words import table

_DEMO = """\
Stories with the simulated machines of `siderite up --demo`. They need the service running, and
read its address and password from clouds.yaml in the data directory.
"""
_FULL_CLOUD = """\
A host is filled with preemptible servers, and a paying one finds no room: it is PENDING. One round
of the reaper deletes no more than it must, and the paying one is ACTIVE. Cleans up after itself.
"""
_LOST_SIGNAL = """\
A server is stopped before its guest is up to hearing the signal, as when it still boots. The signal
is sent again, and the guest shuts down cleanly instead of losing power. Cleans up after itself.
"""
_IMAGE = """\
Images of the running service, whose address and password are read from clouds.yaml in the data
directory.
"""
_HOST = """\
Hosts that servers run on: of the running service, whose address and password are read from
clouds.yaml in the data directory.
"""
_EVENTS = """\
What has happened, from the event log of the running service, whose address and password are read
from clouds.yaml in the data directory.
"""
_TAIL = """\
Print the log, then each event as it comes, until Ctrl-C. After a lost connection it goes on where
it was.
"""
_EXPORT = """\
Write all that the running service knows as JSON lines: every project, image, node, port, server and
what belongs to them, as the API shows them, and the event log. Secrets are masked, and the data of
images is left out (`siderite backup` has both). Address and password are read from clouds.yaml in
the data directory.
"""
_MONITOR = """\
Per operation, how many began, ended, failed and are open, counted from the event log; and those
that have shown no progress for too long. Ends with 1 if there are any.
"""


def add(words: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Each of them."""
    _demo(words)
    _image(words)
    _host(words)
    _events(words)
    export = words.add_parser("export", help="everything as JSON lines", description=_EXPORT)
    export.add_argument("file", metavar="FILE", type=name, help="to write; - for standard output")
    export.add_argument("--no-events", action="store_true", help="without the event log")
    data(export)
    export.set_defaults(run="siderite.cli.export")


def _demo(words: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    demo = words.add_parser("demo", help="stories with simulated machines", description=_DEMO)
    data(demo)
    verbs = demo.add_subparsers(dest="verb", required=True, metavar="VERB")
    cut = verbs.add_parser("power-cut", help="a rack loses power, and its BMCs with it")
    cut.add_argument("rack", metavar="RACK", type=name)
    restore = verbs.add_parser("restore", help="the rack's BMCs answer again; machines stay off")
    restore.add_argument("rack", metavar="RACK", type=name)
    script = verbs.add_parser("script", help="set how machines behave (JSON, - for standard input)")
    script.add_argument("scope", metavar="SCOPE", type=name, help="all, rack:NAME or node:NAME")
    script.add_argument("script", metavar="JSON", help='such as \'{"fail": {"power": "broken"}}\'')
    verbs.add_parser("scripts", help="show the scripts in force")
    verbs.add_parser(
        "full-cloud",
        help="no room for a paying server: PENDING, the reaper, ACTIVE",
        description=_FULL_CLOUD,
    )
    lost = verbs.add_parser(
        "lost-signal", help="a guest misses the shutdown signal; it is sent again",
        description=_LOST_SIGNAL,
    )  # fmt: skip
    lost.add_argument(
        "--deaf-for", type=seconds, default=5.0, metavar="SECONDS",
        help="how long after its start the guest hears nothing (5)",
    )  # fmt: skip
    for one in verbs.choices.values():
        data(one, default=argparse.SUPPRESS)
    demo.set_defaults(run="siderite.cli.demo")


def _image(words: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    image = words.add_parser("image", help="images, and bringing them in", description=_IMAGE)
    verbs = image.add_subparsers(dest="verb", required=True, metavar="VERB")
    every = verbs.add_parser("list", help="all images that you may see")
    table(every)
    bring = verbs.add_parser(
        "import", help="make an image of a file of this machine, or of what an address has"
    )
    bring.add_argument("path", metavar="PATH", type=name, help="a file, or an http(s) address")
    bring.add_argument("--name", metavar="NAME", help="the image's name (that of the file)")
    bring.add_argument("--disk-format", metavar="FORM", help="such as qcow2 (what the file says)")
    bring.add_argument("--public", action="store_true", help="for all projects")
    bring.add_argument(
        "--property", action="append", metavar="NAME=VALUE", help="may be given again"
    )
    for one in (every, bring):
        data(one)
        one.set_defaults(run="siderite.cli.image")


def _host(words: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    host = words.add_parser("host", help="hosts that servers run on", description=_HOST)
    verbs = host.add_subparsers(dest="verb", required=True, metavar="VERB")
    add = verbs.add_parser("add", help="add a host, and see whether it can be used")
    add.add_argument("name", metavar="NAME", type=name)
    add.add_argument(
        "uri", metavar="URI", help="qemu:///system, qemu+ssh://…, baremetal:, https://…, simulated:"
    )
    add.add_argument(
        "--option", action="append", metavar="NAME=VALUE",
        help="such as keyfile=PATH, known_hosts=PATH, pkipath=PATH; may be given again",
    )  # fmt: skip
    change = verbs.add_parser("set", help="say whose workers act on a host")
    change.add_argument("name", metavar="NAME", type=name)
    for one, is_needed in ((add, False), (change, True)):
        one.add_argument(
            "--conductor-group", metavar="GROUP", required=is_needed,
            help="only workers with this among their worker_groups act on it; '' for any",
        )  # fmt: skip
    shown = verbs.add_parser("list", help="all hosts, and how they are")
    shown.add_argument("--long", action="store_true", help="how much of each is used, too")
    table(shown)
    for verb, what in (
        ("check", "ask a host now"),
        ("disable", "no new servers go there; those that are there stay"),
        ("enable", "servers may go there again"),
        ("remove", "forget a host without servers"),
    ):
        one = verbs.add_parser(verb, help=what)
        one.add_argument("name", metavar="NAME", type=name)
        if verb == "disable":
            one.add_argument("--reason", metavar="TEXT", help="why, for others to read")
    for one in verbs.choices.values():
        data(one)
        one.set_defaults(run="siderite.cli.host")


def _events(words: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    events = words.add_parser("events", help="read the event log", description=_EVENTS)
    verbs = events.add_subparsers(dest="verb", required=True, metavar="VERB")
    tail = verbs.add_parser("tail", help="print events as they come", description=_TAIL)
    begin = tail.add_mutually_exclusive_group()
    begin.add_argument("--after", type=int, default=0, metavar="N", help="only what came after (0)")
    begin.add_argument("--last", type=int, metavar="N", help="only the newest N, and what comes")
    tail.add_argument("--type", metavar="GLOB", help="only these, such as 'baremetal.node.*.error'")
    tail.add_argument(
        "--resource", metavar="RESOURCE", type=name,
        help="only what concerns it: its id or name",
    )  # fmt: skip
    tail.add_argument("--no-follow", action="store_true", help="end at the end of the log")
    form(tail, "text", "json")
    data(tail)
    tail.set_defaults(run="siderite.cli.events")
    monitor = verbs.add_parser("monitor", help="what began and has not ended", description=_MONITOR)
    form(monitor, "text", "json")
    data(monitor)
    monitor.set_defaults(run="siderite.cli.events_monitor")
