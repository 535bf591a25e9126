"""`siderite node …`: physical machines, over HTTP."""

import argparse
import json
import re
import sys
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote
from urllib.parse import urlencode

from siderite.cli import show
from siderite.cli.cloud import Clash
from siderite.cli.cloud import Cloud
from siderite.cli.cloud import Missing
from siderite.cli.cloud import Refused
from siderite.cli.projects import project
from siderite.cli.wait import Sight
from siderite.cli.wait import each
from siderite.cli.wait import until_over

_FIELDS = (
    "uuid", "name", "provision_state", "target_provision_state", "power_state",
    "power_state_reason", "maintenance", "maintenance_reason", "fault", "owner",
    "provision_updated_at", "last_error", "wait_reason",
)  # fmt: skip
_AS_OFTEN = re.compile(r" \(\d+ readings in a row\)")


def _why(node: show.Record) -> str:
    """What there is to know at once about a node that does not just run."""
    held = f"maintenance: {node['maintenance_reason'] or 'no reason was given'}"
    error = node["last_error"]
    if not error and _has_failed(node["provision_state"]):
        error = "see its timeline"  # what was asked of it since has taken the error away
    said = [held if node["maintenance"] else None, error, node["fault"],
            node["power_state_reason"], node["wait_reason"]]  # fmt: skip
    # One may tell the other's: an outage is the reason of the maintenance and the last error too,
    # seen as often as it had been by then.
    bare = [_AS_OFTEN.sub("", text or "") for text in said]
    return "; ".join(
        text.removesuffix(".")
        for at, text in enumerate(said)
        if text and not any(bare[at] in other for other in bare[:at])
    )


_COLUMNS: tuple[show.Column, ...] = (
    ("name", lambda node: node["name"]),
    ("uuid", lambda node: node["uuid"]),
    ("state", lambda node: node["provision_state"]),
    ("target", lambda node: node["target_provision_state"]),
    ("power", lambda node: node["power_state"]),
    ("why", lambda node: _why(node) or None),
)
_LONG: tuple[show.Column, ...] = (
    ("class", lambda node: node["resource_class"]),
    ("driver", lambda node: node["driver"]),
    ("group", lambda node: node["conductor_group"] or None),
    ("owner", lambda node: node["owner"]),
    ("instance", lambda node: node["instance_uuid"]),
    ("since", lambda node: node["provision_updated_at"] or node["created_at"]),
)
_MORE_FIELDS = ("resource_class", "driver", "conductor_group", "instance_uuid", "created_at")
_STEPPED = ("clean", "service")
_STEPS = """'[{"interface": "deploy", "step": "erase_devices_metadata"}]'"""
_ENDS = {
    "manage": "manageable", "provide": "available", "inspect": "manageable", "adopt": "active",
    "active": "active", "rebuild": "active", "deleted": "available", "rescue": "rescue",
    "unrescue": "active", "clean": "manageable", "service": "active",
}  # fmt: skip
"""Where a verb leads when all goes well; the others may end anywhere."""
_POWER = {
    "on": ("power on", "power on"),
    "off": ("power off", "power off"),
    "reboot": ("rebooting", "power on"),
    "soft-off": ("soft power off", "power off"),
    "soft-reboot": ("soft rebooting", "power on"),
}
"""What is asked for, and what the power is then."""


def run(said: argparse.Namespace) -> int:
    """Do what the word says."""
    return _VERBS[said.verb](Cloud(said.data), said)


def address(name: str) -> str:
    """Of a node, by name or UUID."""
    return f"/nodes/{quote(name, safe='')}"


def every(cloud: Cloud, query: Mapping[str, str]) -> list[dict[str, Any]]:
    """All nodes that match, page after page; the fields have the UUID, by which it goes on after
    the last node that is there.
    """
    nodes: list[dict[str, Any]] = []
    whole = {**query, "limit": "1000"}
    while True:
        marker = {"marker": nodes[-1]["uuid"]} if nodes else {}
        try:
            page = cloud.baremetal("GET", f"/nodes?{urlencode({**whole, **marker})}")
        except Missing:
            if not nodes:
                raise
            nodes.pop()  # deleted meanwhile
            continue
        nodes += page["nodes"]
        if "next" not in page:
            break
    for node in nodes:
        node.pop("links", None)
    return nodes


def _list(cloud: Cloud, said: argparse.Namespace) -> int:
    named = _pattern(said.name) if said.name else None
    wanted = {
        "provision_state": said.state, "resource_class": said.resource_class, "fault": said.fault,
        "driver": said.driver, "conductor_group": said.conductor_group,
        "owner": said.owner and project(cloud, said.owner, is_known=False),
        "maintenance": "true" if said.maintenance else None,
    }  # fmt: skip
    query = {name: value for name, value in wanted.items() if value}
    fields = (*_FIELDS, *_MORE_FIELDS) if said.long else _FIELDS
    nodes = every(cloud, {**query, "fields": ",".join(fields)})
    if named:
        nodes = [node for node in nodes if named.search(node["name"] or "")]
    if said.attention:
        nodes = [node for node in nodes if _needs_somebody(node)]
    columns = (*_COLUMNS[:-1], *_LONG, _COLUMNS[-1]) if said.long else _COLUMNS
    show.rows(nodes, columns, said.output, name="uuid")
    return 0


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as why:
        raise Refused(f"--name is no regular expression: {why}.") from why


def _needs_somebody(node: show.Record) -> bool:
    """As on the console's first page: failed, held back, or of unknown power."""
    return bool(
        _has_failed(node["provision_state"])
        or (node["provision_state"] == "enroll" and node["last_error"])  # it was not verified
        or node["maintenance"]
        or node["fault"]
        or node["power_state_reason"]
    )


def _has_failed(state: str) -> bool:
    return state.endswith("failed") or state == "error"


def _show(cloud: Cloud, said: argparse.Namespace) -> int:
    found, code = each(said.names, lambda name: cloud.baremetal("GET", address(name)))
    if found:
        show.details([node for _, node in found], said.output, name="uuid")
    return code


def _provision(cloud: Cloud, said: argparse.Namespace) -> int:
    body: dict[str, Any] = {"target": said.target}
    if said.steps and said.target not in _STEPPED:
        raise Refused(f"--steps is for {' and '.join(_STEPPED)}, not for {said.target}.")
    if said.rescue_password and said.target != "rescue":
        raise Refused(f"--rescue-password is for rescue, not for {said.target}.")
    if said.steps:
        try:
            body[f"{said.target}_steps"] = json.loads(said.steps)
        except ValueError as why:
            raise Refused(f"--steps is not JSON: {why}. Give a list, such as {_STEPS}.") from why
    if said.target in _STEPPED and not said.steps:
        raise Refused(f"{said.target} needs --steps: a list, such as {_STEPS}.")
    if said.target == "rescue" and not said.rescue_password:
        raise Refused("rescue needs --rescue-password: a text to log in with, or - to read it.")
    if said.rescue_password:
        word = said.rescue_password
        body["rescue_password"] = sys.stdin.readline().rstrip("\n") if word == "-" else word

    def ask(name: str) -> str:
        _put(cloud, address(name) + "/states/provision", body)
        return name

    return _carried_out(cloud, said, ask, lambda node: _provisioned(node, _ENDS.get(said.target)))


def _put(cloud: Cloud, path: str, body: dict[str, Any]) -> None:
    try:
        cloud.baremetal("PUT", path, body)
    except Refused as why:
        # To Ironic's clients it is a 400 like any other; what is wrong is the node's state.
        if "while it is in state" in str(why):
            raise Clash(str(why)) from why
        raise


def _provisioned(node: dict[str, Any], end: str | None) -> Sight:
    state = node["provision_state"]
    is_over = _has_failed(state) or node["target_provision_state"] is None
    went_wrong = is_over and end is not None and state != end
    return Sight(state, is_over, (node["last_error"] or f"it is {state}") if went_wrong else None)


def _power(cloud: Cloud, said: argparse.Namespace) -> int:
    target, end = _POWER[said.target]

    def ask(name: str) -> str:
        _put(cloud, address(name) + "/states/power", {"target": target})
        return name

    def look(node: dict[str, Any]) -> Sight:
        is_over = node["target_power_state"] is None
        problem = None
        if is_over and node["power_state"] != end:
            problem = node["last_error"] or node["power_state_reason"] or "it did not come to that"
        return Sight(str(node["power_state"]), is_over, problem)

    return _carried_out(cloud, said, ask, look)


def _carried_out(
    cloud: Cloud,
    said: argparse.Namespace,
    ask: Callable[[str], str],
    look: Callable[[dict[str, Any]], Sight],
) -> int:
    asked, code = each(said.names, ask)
    if not said.wait or not asked:
        return code
    late = until_over(asked, lambda name: look(cloud.baremetal("GET", address(name))), said.timeout)
    return code or late


def _maintenance(cloud: Cloud, said: argparse.Namespace) -> int:
    method, body = ("PUT", {"reason": said.reason}) if said.target == "on" else ("DELETE", None)
    return each(
        said.names, lambda name: cloud.baremetal(method, address(name) + "/maintenance", body)
    )[1]


def _policy(cloud: Cloud, said: argparse.Namespace) -> int:
    value = None if said.target == "default" else said.target
    change = [{"op": "replace", "path": "/power_policy", "value": value}]
    return each(said.names, lambda name: cloud.baremetal("PATCH", address(name), change))[1]


_VERBS = {
    "list": _list,
    "show": _show,
    "provision": _provision,
    "power": _power,
    "maintenance": _maintenance,
    "power-policy": _policy,
}
