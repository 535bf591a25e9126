"""Words for nodes and servers: nouns, then verbs."""

import argparse
from collections.abc import Mapping

from siderite.cli.words import count
from siderite.cli.words import data
from siderite.cli.words import form
from siderite.cli.words import name
from siderite.cli.words import table
from siderite.cli.words import waiting

_NODE = """\
Nodes of the service that clouds.yaml names. Nodes go by name or UUID, and most verbs take many.
"""
_TIMELINE = """\
All that happened to a node: when, what, from where to where, why, who asked, and in which request.
"""
_SERVER = """\
Servers of the service that clouds.yaml names. Servers go by name or UUID, and most verbs take many.
"""
_PENDING = """\
Servers that found no host and wait for somebody to make room, such as `siderite reaper`.
"""
_COMPLETION = """\
Print completion for a shell: bash reads it with `eval "$(siderite completion bash)"`, zsh with the
same and `zsh`, fish with `siderite completion fish | source`.
"""
PROVISION_VERBS = {
    "manage": "try its BMC and bring it under control",
    "provide": "clean it and offer it",
    "inspect": "find out what it is made of",
    "adopt": "take it over as it runs",
    "active": "deploy it",
    "rebuild": "deploy it again",
    "deleted": "undeploy it, then clean it",
    "rescue": "boot a rescue system",
    "unrescue": "boot its own system again",
    "abort": "stop what is under way",
    "clean": "run cleaning steps",
    "service": "run steps while it is in use",
    "unhold": "go on with what is held",
}
POWER_TARGETS = ("on", "off", "reboot", "soft-off", "soft-reboot")
POWER_POLICIES = {
    "hardware": "the record follows the machine",
    "record": "the machine is put back",
    "observe": "neither is touched",
    "default": "what the configuration says",
}
SERVER_VERBS = {
    "start": "switch on",
    "stop": "shut down and switch off",
    "reboot": "restart",
    "pause": "stop the processors, keep the memory",
    "unpause": "let the processors run again",
    "suspend": "write the memory to disk",
    "resume": "from suspend",
    "rescue": "boot a rescue system",
    "unrescue": "boot its own disk again",
    "resize": "another flavor; confirm or revert afterwards",
    "confirm": "keep the new size or host",
    "revert": "go back to the old size or host",
    "shelve": "store it as an image and free its host",
    "unshelve": "bring it back",
    "migrate": "to another host; confirm or revert afterwards",
    "delete": "for good",
}
HARD_VERBS = ("stop", "rescue", "resize", "shelve", "migrate", "reboot")


def add(words: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Each of them."""
    _node(words)
    _server(words)
    pending = words.add_parser("pending", help="servers without a host", description=_PENDING)
    verbs = pending.add_subparsers(dest="verb", required=True, metavar="VERB")
    every = verbs.add_parser("list", help="who waits, since when, until when, and why")
    data(every)
    table(every)
    every.set_defaults(run="siderite.cli.pending")
    completion = words.add_parser("completion", help="for your shell", description=_COMPLETION)
    completion.add_argument(
        "shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish"
    )
    completion.set_defaults(run="siderite.cli.completion")


def _node(words: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    node = words.add_parser("node", help="physical machines", description=_NODE)
    verbs = node.add_subparsers(dest="verb", required=True, metavar="VERB")
    every = verbs.add_parser("list", help="all nodes, or those that match")
    every.add_argument("--state", metavar="STATE", help="only in this provision state")
    every.add_argument("--name", metavar="REGEX", help="only of such a name: ^r01-")
    every.add_argument("--resource-class", metavar="CLASS", help="only of this resource class")
    every.add_argument("--driver", metavar="DRIVER", help="only with this driver")
    every.add_argument("--conductor-group", metavar="GROUP", help="only of this conductor group")
    every.add_argument("--owner", metavar="PROJECT", help="only of this owner: its name or id")
    every.add_argument("--fault", metavar="FAULT", help="only with this fault: power failure …")
    every.add_argument("--maintenance", action="store_true", help="only those in maintenance")
    every.add_argument(
        "--attention", action="store_true",
        help="only those that need somebody: failed, in maintenance, power unknown or in dispute",
    )  # fmt: skip
    every.add_argument("--long", action="store_true", help="class, driver, owner and more, too")
    table(every)
    show = verbs.add_parser("show", help="everything about them")
    _names(show, "NODE")
    form(show, "table", "json", "yaml", "name")
    _comes_and_goes(verbs)
    provision = verbs.add_parser("provision", help="move them through their states")
    provision.add_argument(
        "target", metavar="VERB", choices=PROVISION_VERBS, help=_explained(PROVISION_VERBS)
    )
    _names(provision, "NODE")
    provision.add_argument("--steps", metavar="JSON", help="for clean and service: the steps")
    provision.add_argument(
        "--rescue-password", metavar="TEXT",
        help="for rescue: what to log in with there; - reads it from standard input",
    )  # fmt: skip
    waiting(provision)
    power = verbs.add_parser("power", help="switch them")
    power.add_argument(
        "target", metavar="TARGET", choices=POWER_TARGETS, help=", ".join(POWER_TARGETS)
    )
    _names(power, "NODE")
    waiting(power)
    maintenance = verbs.add_parser("maintenance", help="leave them alone for a while, or no longer")
    maintenance.add_argument("target", metavar="SWITCH", choices=("on", "off"), help="on or off")
    _names(maintenance, "NODE")
    maintenance.add_argument("--reason", metavar="TEXT", help="why, for others to read")
    policy = verbs.add_parser("power-policy", help="who is right about their power")
    policy.add_argument(
        "target", metavar="POLICY", choices=POWER_POLICIES,
        help=_explained(POWER_POLICIES),
    )  # fmt: skip
    _names(policy, "NODE")
    for one in (every, show, provision, power, maintenance, policy):
        data(one)
        one.set_defaults(run="siderite.cli.node")
    timeline = verbs.add_parser("timeline", help="all that happened to it", description=_TIMELINE)
    timeline.add_argument("name", metavar="NODE", type=name, help="its name or UUID")
    timeline.add_argument("--limit", type=count, metavar="N", help="only the last N (all)")
    form(timeline, "text", "json")
    data(timeline)
    timeline.set_defaults(run="siderite.cli.timeline")


def _comes_and_goes(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    create = verbs.add_parser("create", help="enrol one; `provision manage` then tries its BMC")
    create.add_argument("name", metavar="NAME", type=name, help="what to call it")
    create.add_argument(
        "--driver", metavar="DRIVER", required=True, help="redfish, ipmi or fake-hardware"
    )
    for flag, what in (
        ("--driver-info", "how to reach its BMC: redfish_address=https://10.0.0.7 …; the value - is"
         " a line of standard input, for a password"),
        ("--property", "what it has: cpu_arch=x86_64 …"),
    ):  # fmt: skip
        create.add_argument(
            flag, action="append", metavar="NAME=VALUE", help=f"{what}; may be given again"
        )
    create.add_argument(
        "--port", action="append", metavar="MAC", help="a network card's; may be given again"
    )
    create.add_argument("--resource-class", metavar="CLASS", help="what flavors ask for it by")
    delete = verbs.add_parser("delete", help="forget them; one that is in use only in maintenance")
    _names(delete, "NODE")
    for one in (create, delete):
        data(one)
        one.set_defaults(run="siderite.cli.enrol")


def _server(words: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    server = words.add_parser("server", help="servers", description=_SERVER)
    verbs = server.add_subparsers(dest="verb", required=True, metavar="VERB")
    every = verbs.add_parser("list", help="the project's servers, or those that match")
    every.add_argument("--all-projects", action="store_true", help="of every project")
    every.add_argument("--project", metavar="PROJECT", help="only of this: its name or id")
    every.add_argument("--status", metavar="STATUS", help="only in this status")
    every.add_argument("--name", metavar="REGEX", help="only of such a name: ^web-[0-9]+$")
    every.add_argument("--ip", metavar="REGEX", help="only with such an address")
    every.add_argument("--host", metavar="HOST", help="only on this host")
    every.add_argument("--long", action="store_true", help="project, image and more, too")
    table(every)
    show = verbs.add_parser("show", help="everything about them")
    _names(show, "SERVER")
    table(show)
    create = verbs.add_parser("create", help="new ones, one per name")
    create.add_argument("names", metavar="NAME", type=name, nargs="+", help="what to call them")
    create.add_argument("--flavor", metavar="FLAVOR", required=True, help="its name or id")
    create.add_argument("--image", metavar="IMAGE", required=True, help="its name or id")
    create.add_argument("--key-name", metavar="NAME", help="a key pair to log in with (none)")
    create.add_argument(
        "--network", action="append", metavar="NETWORK",
        help="its name or id, or none; may be given again (the first that there is)",
    )  # fmt: skip
    create.add_argument("--user-data", metavar="FILE", help="what cloud-init is to do there")
    create.add_argument("--zone", metavar="ZONE", help="availability zone (any)")
    create.add_argument(
        "--property", action="append", metavar="NAME=VALUE", help="metadata; may be given again"
    )
    waiting(create)
    for one in (every, show, create):
        data(one)
        one.set_defaults(run="siderite.cli.server")
    for verb, what in SERVER_VERBS.items():
        _server_verb(verbs.add_parser(verb, help=what), verb)


def _server_verb(command: argparse.ArgumentParser, verb: str) -> None:
    _names(command, "SERVER")
    if verb == "resize":
        command.add_argument("--flavor", metavar="FLAVOR", required=True, help="its name or id")
    if verb == "migrate":
        command.add_argument("--host", metavar="HOST", help="where to (the scheduler's choice)")
    if verb in HARD_VERBS:
        spelt = ("--hard-shutdown", "--hard") if verb == "reboot" else ("--hard-shutdown",)
        command.add_argument(
            *spelt, dest="hard", action="store_true",
            help="switch off at once: the guest gets no time to shut down",
        )  # fmt: skip
    waiting(command)
    data(command)
    command.set_defaults(run="siderite.cli.server")


def _explained(words: Mapping[str, str]) -> str:
    return "; ".join(f"{word}: {what}" for word, what in words.items())


def _names(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument("names", metavar=what, type=name, nargs="+", help="names or UUIDs")
