"""`siderite demo …`: stories with the simulated machines, over HTTP."""

import argparse
import contextlib
import json
import sys
from urllib.parse import quote

from siderite.cli import stories
from siderite.cli.cloud import Cloud
from siderite.cli.cloud import Missing
from siderite.cli.cloud import Refused
from siderite.cli.node import address
from siderite.cli.node import every
from siderite.cli.server import UUID


def run(said: argparse.Namespace) -> int:
    """Tell the simulator what to do."""
    _VERBS[said.verb](Cloud(said.data), said)
    return 0


def _check_rack(cloud: Cloud, rack: str) -> None:
    """What is no rack's name is not taken for one."""
    nodes = every(cloud, {"driver": "fake-hardware", "fields": "driver_info,uuid"})
    racks = sorted(
        {str(node["driver_info"]["rack"]) for node in nodes if "rack" in node["driver_info"]}
    )
    if rack not in racks:
        known = f"there are {racks[0]} to {racks[-1]}" if racks else "no simulated node names one"
        raise Missing(f"there is no rack {rack}: {known}.")


def _power_cut(cloud: Cloud, said: argparse.Namespace) -> None:
    _check_rack(cloud, said.rack)
    _tell_bmcs(cloud, said.rack, unreachable=True)
    cloud.ask("POST", f"/simulator/v1/racks/{quote(said.rack, safe='')}/power-cut")
    print(f"Rack {said.rack} has no power: its machines are off and its BMCs do not answer.")
    print("In a minute or so their records say that the power is unknown, for nobody can tell.")
    print(f"`siderite demo restore {said.rack}` brings the BMCs back.")


def _restore(cloud: Cloud, said: argparse.Namespace) -> None:
    _check_rack(cloud, said.rack)
    _tell_bmcs(cloud, said.rack, unreachable=False)
    print(f"The BMCs of rack {said.rack} answer again. Machines that went off stay off until")
    print("somebody switches them on; within a minute their records say so.")


def _tell_bmcs(cloud: Cloud, rack: str, *, unreachable: bool) -> None:
    """Whether a rack's BMCs answer; what else its script says stays as it is."""
    answer, _ = cloud.ask("GET", "/simulator/v1/scripts")
    script = dict(answer["scripts"].get(f"rack:{rack}", {}))
    script.pop("unreachable", None)
    if unreachable:
        script["unreachable"] = True
    path = f"/simulator/v1/scripts/rack:{quote(rack, safe='')}"
    if script:
        cloud.ask("PUT", path, script)
    else:
        cloud.ask("DELETE", path)


def _script(cloud: Cloud, said: argparse.Namespace) -> None:
    text = sys.stdin.read() if said.script == "-" else said.script
    try:
        script = json.loads(text)
    except ValueError as why:
        raise Refused(f"the script is not JSON: {why}") from why
    kind, _, name = said.scope.partition(":")
    scope = f"node:{_uuid(cloud, name)}" if kind == "node" and name else said.scope
    path = f"/simulator/v1/scripts/{quote(scope, safe=':')}"
    if script == {}:
        cloud.ask("DELETE", path)
        print(f"There is no script for {said.scope} any more.")
        return
    cloud.ask("PUT", path, script)
    print(f"Machines of {said.scope} now follow the script.")
    if kind == "rack":
        with contextlib.suppress(Missing):
            _check_rack(cloud, name)
            return
        print(f"As yet there are none: no simulated node has the rack {name} in its driver_info.")


def _uuid(cloud: Cloud, name: str) -> str:
    """Of a node; that of one which is yet to come, or gone, is taken as it is."""
    return name if UUID.match(name) else str(cloud.baremetal("GET", address(name))["uuid"])


def _scripts(cloud: Cloud, said: argparse.Namespace) -> None:
    answer, _ = cloud.ask("GET", "/simulator/v1/scripts")
    print(json.dumps(answer["scripts"], indent=2))


_VERBS = {
    "power-cut": _power_cut,
    "restore": _restore,
    "script": _script,
    "scripts": _scripts,
    "full-cloud": stories.full_cloud,
    "lost-signal": stories.lost_signal,
}
