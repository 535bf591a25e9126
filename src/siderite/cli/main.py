"""The `siderite` command: which words there are. What a word does is imported when it is said."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from siderite import __version__

_UP = """\
Start the service: identity and bare metal on one port, with an embedded database unless --db says
otherwise. The first start makes an administrator and writes clouds.yaml into the data directory.
"""
_API = """\
Answer requests, on a PostgreSQL database (--db) that any number of such processes share. What they
are asked to do is carried out by `siderite worker` processes.
"""
_WORKER = """\
Carry out work, on a PostgreSQL database (--db) that any number of such processes share. With
--listen it answers /healthz and /metrics there. On SIGTERM it takes no more work, finishes the
steps under way and leaves the rest to others.
"""
_BACKUP = """\
Write the embedded database, as it is at one moment, with the images and clouds.yaml into an
archive. The service may run meanwhile. A PostgreSQL database is backed up with pg_dump.
"""
_RESTORE = """\
Put a backup into a new data directory, and check it.
"""
_COPY = """\
Copy everything from the embedded database into an empty PostgreSQL database, in one transaction.
The service must be stopped. The embedded database stays as it is.
"""
_REAPER = """\
Wait for servers that found no host (PENDING, with use_pending_state), delete preemptible servers in
their favour and have them built. Preemptible is what says so: a flavor with the extra spec
preemptible=true, or a server with that metadata. A client of the public API, like any other.
"""
_DEMO = """\
Stories with the simulated machines of `siderite up --demo`. They need the service running, and
read its address and password from clouds.yaml in the data directory.
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
_MONITOR = """\
Per operation, how many began, ended, failed and are open, counted from the event log; and those
that have shown no progress for too long. Ends with 2 if there are any.
"""


_NODE = """\
Nodes of the running service, whose address and password are read from clouds.yaml in the data
directory. For all else there is `openstack baremetal node`.
"""
_TIMELINE = """\
All that happened to a node: when, what, from where to where, why, who asked, and in which request.
"""


def parser() -> argparse.ArgumentParser:
    """Every word and flag."""
    top = argparse.ArgumentParser(
        prog="siderite", description="Runs servers, virtual and physical."
    )
    top.add_argument("--version", action="version", version=f"siderite {__version__}")
    words = top.add_subparsers(dest="word", required=True, metavar="COMMAND")

    up = words.add_parser("up", help="start the service", description=_UP)
    _options(up)
    up.add_argument("--demo", action="store_const", const=True, help="with a simulated fleet")
    up.add_argument("--demo-nodes", type=int, metavar="N", help="how many nodes it has (200)")
    up.set_defaults(run="siderite.cli.up")

    for word, what, text in (
        ("api", "answer requests; work is left to workers", _API),
        ("worker", "carry out work; requests are left to others", _WORKER),
    ):
        half = words.add_parser(word, help=what, description=text)
        _options(half)
        half.set_defaults(run="siderite.cli.up")

    _keeping(words)
    _reaper(words)

    config = words.add_parser("config", help="look at the configuration")
    verbs = config.add_subparsers(dest="verb", required=True, metavar="VERB")
    show = verbs.add_parser("show", help="every option, its value and where that came from")
    _options(show)
    show.set_defaults(run="siderite.cli.config")

    demo = words.add_parser("demo", help="stories with simulated machines", description=_DEMO)
    demo.add_argument("--data", metavar="DIR", help="data directory (./siderite-data)")
    verbs = demo.add_subparsers(dest="verb", required=True, metavar="VERB")
    cut = verbs.add_parser("power-cut", help="a rack loses power, and its BMCs with it")
    cut.add_argument("rack", metavar="RACK")
    restore = verbs.add_parser("restore", help="the rack's BMCs answer again; machines stay off")
    restore.add_argument("rack", metavar="RACK")
    script = verbs.add_parser("script", help="set how machines behave (JSON, - for standard input)")
    script.add_argument("scope", metavar="SCOPE", help="all, rack:NAME or node:UUID")
    script.add_argument("script", metavar="JSON", help='such as \'{"fail": {"power": "broken"}}\'')
    verbs.add_parser("scripts", help="show the scripts in force")
    demo.set_defaults(run="siderite.cli.demo")

    _image(words)
    _host(words)
    _node(words)

    events = words.add_parser("events", help="read the event log", description=_EVENTS)
    verbs = events.add_subparsers(dest="verb", required=True, metavar="VERB")
    tail = verbs.add_parser("tail", help="print events as they come", description=_TAIL)
    tail.add_argument("--after", type=int, default=0, metavar="N", help="only what came after (0)")
    tail.add_argument("--type", metavar="GLOB", help="only these, such as 'baremetal.node.*.error'")
    tail.add_argument("--resource", metavar="UUID", help="only what concerns this resource")
    tail.add_argument("--no-follow", action="store_true", help="end at the end of the log")
    tail.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", metavar="FORM",
        help="text (default), or json: one object per line",
    )  # fmt: skip
    tail.add_argument("--data", metavar="DIR", help="data directory (./siderite-data)")
    tail.set_defaults(run="siderite.cli.events")
    monitor = verbs.add_parser("monitor", help="what began and has not ended", description=_MONITOR)
    monitor.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", metavar="FORM",
        help="text (default), or json",
    )  # fmt: skip
    monitor.add_argument("--data", metavar="DIR", help="data directory (./siderite-data)")
    monitor.set_defaults(run="siderite.cli.events_monitor")
    return top


def _image(words: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    image = words.add_parser("image", help="bring in images", description=_IMAGE)
    verbs = image.add_subparsers(dest="verb", required=True, metavar="VERB")
    bring = verbs.add_parser("import", help="make an image of a file of this machine")
    bring.add_argument("path", metavar="PATH")
    bring.add_argument("--name", metavar="NAME", help="the image's name (that of the file)")
    bring.add_argument("--disk-format", metavar="FORM", help="such as qcow2 (what the file says)")
    bring.add_argument("--public", action="store_true", help="for all projects")
    bring.add_argument(
        "--property", action="append", metavar="NAME=VALUE", help="may be given again"
    )
    bring.add_argument("--data", metavar="DIR", help="data directory (./siderite-data)")
    bring.set_defaults(run="siderite.cli.image")


def _host(words: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    host = words.add_parser("host", help="hosts that servers run on", description=_HOST)
    verbs = host.add_subparsers(dest="verb", required=True, metavar="VERB")
    add = verbs.add_parser("add", help="add a host, and see whether it can be used")
    add.add_argument("name", metavar="NAME")
    add.add_argument(
        "uri", metavar="URI", help="qemu:///system, qemu+ssh://…, baremetal:, https://…, simulated:"
    )
    add.add_argument("--option", action="append", metavar="NAME=VALUE", help="may be given again")
    every = [add, verbs.add_parser("list", help="all hosts, and how they are")]
    for verb, what in (("check", "ask a host now"), ("remove", "forget a host without servers")):
        one = verbs.add_parser(verb, help=what)
        one.add_argument("name", metavar="NAME")
        every.append(one)
    for one in every:
        one.add_argument("--data", metavar="DIR", help="data directory (./siderite-data)")
        one.set_defaults(run="siderite.cli.host")


def _node(words: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    node = words.add_parser("node", help="look at a node", description=_NODE)
    verbs = node.add_subparsers(dest="verb", required=True, metavar="VERB")
    timeline = verbs.add_parser("timeline", help="all that happened to it", description=_TIMELINE)
    timeline.add_argument("name", metavar="NODE", help="its name or UUID")
    timeline.add_argument("--limit", type=int, metavar="N", help="only the last N (all)")
    timeline.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", metavar="FORM",
        help="text (default), or json: one object per line",
    )  # fmt: skip
    timeline.add_argument("--data", metavar="DIR", help="data directory (./siderite-data)")
    timeline.set_defaults(run="siderite.cli.node")


def _keeping(words: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Backup, restore, and the move to PostgreSQL."""
    backup = words.add_parser("backup", help="copy an embedded installation", description=_BACKUP)
    backup.add_argument("file", metavar="FILE", help="the archive to write (tar)")
    restore = words.add_parser("restore", help="put a backup back", description=_RESTORE)
    restore.add_argument("file", metavar="FILE", help="an archive that `siderite backup` wrote")
    for keep in (backup, restore):
        keep.add_argument("--config", metavar="FILE", help="configuration file (TOML)")
        keep.add_argument("--data", metavar="DIR", help="data directory (./siderite-data)")
        keep.set_defaults(run="siderite.cli.keep")
    database = words.add_parser("db", help="move to another database")
    verbs = database.add_subparsers(dest="verb", required=True, metavar="VERB")
    copy = verbs.add_parser("copy", help="from SQLite to PostgreSQL", description=_COPY)
    copy.add_argument("to", metavar="URL", help="an empty database: postgresql://user@host/name")
    copy.add_argument("--config", metavar="FILE", help="configuration file (TOML)")
    copy.add_argument("--data", metavar="DIR", help="data directory (./siderite-data)")
    copy.set_defaults(run="siderite.cli.keep")


def _reaper(words: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    reaper = words.add_parser("reaper", help="free room for PENDING servers", description=_REAPER)
    reaper.add_argument("--data", metavar="DIR", help="data directory with clouds.yaml")
    reaper.add_argument("--name", metavar="NAME", help="who it is, for others of its kind")
    reaper.add_argument(
        "--strategy", choices=("strict", "oldest", "chance"), default="strict", metavar="WORD",
        help="who goes: strict (the smallest set that suffices), oldest, or chance",
    )  # fmt: skip
    reaper.add_argument(
        "--limit", type=int, default=0, metavar="N",
        help="at most so many servers go for one project within an hour (0: any number)",
    )  # fmt: skip
    reaper.add_argument("--dry-run", action="store_true", help="only say what would be done")
    reaper.add_argument("--once", action="store_true", help="one round, then end")
    reaper.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning or error")
    reaper.set_defaults(run="siderite.cli.reaper")


def _options(words: argparse.ArgumentParser) -> None:
    words.add_argument("--config", metavar="FILE", help="configuration file (TOML)")
    words.add_argument("--data", metavar="DIR", help="data directory (./siderite-data)")
    words.add_argument("--listen", metavar="ADDRESS:PORT", help="listener (127.0.0.1:8770)")
    words.add_argument("--db", metavar="URL", help="postgresql://… (default: SQLite in --data)")
    words.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning or error")
    words.add_argument("--log-format", metavar="FORM", help="text or json")


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the words say; the exit code."""
    said = parser().parse_args(argv)
    try:
        code: int = import_module(said.run).run(said)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # What could not be printed must not be tried again at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return code


if __name__ == "__main__":
    sys.exit(main())
