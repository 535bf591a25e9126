"""`siderite worker list`: who carries out work, over HTTP."""

import argparse

from siderite.cli import show
from siderite.cli.cloud import Cloud

_COLUMNS: tuple[show.Column, ...] = (
    ("name", lambda worker: worker["name"]),
    ("for", lambda worker: worker["for"]),
    ("group", lambda worker: worker["group"]),
    ("zone", lambda worker: worker["zone"]),
    ("state", lambda worker: worker["state"]),
    ("heard", lambda worker: worker["heard"]),
)


def run(said: argparse.Namespace) -> int:
    """Those of nodes and those of servers; 1 if one is down."""
    cloud = Cloud(said.data)
    nodes = [
        {
            "name": one["hostname"], "for": "nodes", "group": one["conductor_group"] or None,
            "zone": None,
            "state": "up" if one["alive"] else "down", "heard": one.get("updated_at"),
        }
        for one in cloud.baremetal("GET", "/conductors?detail=true")["conductors"]
    ]  # fmt: skip
    hosts = [
        {
            "name": one["host"], "for": "servers", "group": one["conductor_group"] or None,
            "zone": one["zone"],
            "state": one["state"], "heard": one["updated_at"] and f"{one['updated_at']}+00:00",
        }
        for one in cloud.compute("GET", "/os-services")["services"]
    ]  # fmt: skip
    every = nodes + hosts
    show.rows(every, _COLUMNS, said.output, name="name")
    return 1 if any(one["state"] != "up" for one in every) else 0
