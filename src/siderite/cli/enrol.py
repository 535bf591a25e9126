"""`siderite node create` and `delete`: machines that come and go, over HTTP."""

import argparse
import contextlib
import sys
from typing import Any

from siderite.cli.cloud import Cloud
from siderite.cli.cloud import Refused
from siderite.cli.node import address
from siderite.cli.pairs import pairs
from siderite.cli.wait import each


def run(said: argparse.Namespace) -> int:
    """Do what the word says."""
    cloud = Cloud(said.data)
    return _create(cloud, said) if said.verb == "create" else _delete(cloud, said)


def _create(cloud: Cloud, said: argparse.Namespace) -> int:
    record: dict[str, Any] = {
        "name": said.name,
        "driver": said.driver,
        "driver_info": {
            name: sys.stdin.readline().rstrip("\n") if value == "-" else value
            for name, value in pairs(said.driver_info, "--driver-info").items()
        },
        "properties": pairs(said.property, "--property"),
    }
    if said.resource_class:
        record["resource_class"] = said.resource_class
    node = cloud.baremetal("POST", "/nodes", record)
    try:
        for mac in said.port or ():
            cloud.baremetal("POST", "/ports", {"node_uuid": node["uuid"], "address": mac})
    except Refused:
        # All of it or nothing: who mends the address says the same words again.
        with contextlib.suppress(Refused):
            cloud.baremetal("DELETE", address(node["uuid"]))
        raise
    print(node["uuid"])
    return 0


def _delete(cloud: Cloud, said: argparse.Namespace) -> int:
    return each(said.names, lambda name: cloud.baremetal("DELETE", address(name)))[1]
