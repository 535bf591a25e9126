"""`siderite node …`: physical machines, over HTTP."""

import argparse
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote
from urllib.parse import urlencode

from siderite.cli import show
from siderite.cli.cloud import Cloud
from siderite.cli.cloud import Refused
from siderite.cli.wait import Sight
from siderite.cli.wait import each
from siderite.cli.wait import until_over

_FIELDS = (
    "uuid", "name", "provision_state", "target_provision_state", "power_state", "maintenance",
    "fault", "owner", "provision_updated_at", "last_error",
)  # fmt: skip
_COLUMNS: tuple[show.Column, ...] = (
    ("name", lambda node: node["name"]),
    ("uuid", lambda node: node["uuid"]),
    ("state", lambda node: node["provision_state"]),
    ("target", lambda node: node["target_provision_state"]),
    ("power", lambda node: node["power_state"]),
    ("attention", lambda node: node["fault"] or ("maintenance" if node["maintenance"] else None)),
)
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


def _list(cloud: Cloud, said: argparse.Namespace) -> int:
    wanted = {"provision_state": said.state, "owner": said.owner, "fault": said.fault}
    query = {name: value for name, value in wanted.items() if value}
    if said.maintenance:
        query["maintenance"] = "true"
    nodes: list[dict[str, Any]] = []
    rest = urlencode({**query, "fields": ",".join(_FIELDS), "limit": 1000})
    while rest:
        page = cloud.baremetal("GET", f"/nodes?{rest}")
        nodes += page["nodes"]
        rest = page.get("next", "").partition("?")[2]
    for node in nodes:
        node.pop("links", None)
    show.rows(nodes, _COLUMNS, said.output, name="uuid")
    return 0


def _show(cloud: Cloud, said: argparse.Namespace) -> int:
    found, code = each(said.names, lambda name: cloud.baremetal("GET", address(name)))
    if found:
        show.details([node for _, node in found], said.output, name="uuid")
    return code


def _provision(cloud: Cloud, said: argparse.Namespace) -> int:
    body: dict[str, Any] = {"target": said.target}
    if said.steps:
        try:
            body[f"{said.target}_steps"] = json.loads(said.steps)
        except ValueError as why:
            raise Refused(f"--steps is not JSON: {why}") from why

    def ask(name: str) -> str:
        cloud.baremetal("PUT", address(name) + "/states/provision", body)
        return name

    return _carried_out(cloud, said, ask, lambda node: _provisioned(node, _ENDS.get(said.target)))


def _provisioned(node: dict[str, Any], end: str | None) -> Sight:
    state = node["provision_state"]
    is_failed = state.endswith("failed") or state == "error"
    is_over = is_failed or node["target_provision_state"] is None
    went_wrong = is_over and end is not None and state != end
    return Sight(state, is_over, (node["last_error"] or f"it is {state}") if went_wrong else None)


def _power(cloud: Cloud, said: argparse.Namespace) -> int:
    target, end = _POWER[said.target]

    def ask(name: str) -> str:
        cloud.baremetal("PUT", address(name) + "/states/power", {"target": target})
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


_VERBS = {
    "list": _list,
    "show": _show,
    "provision": _provision,
    "power": _power,
    "maintenance": _maintenance,
}
