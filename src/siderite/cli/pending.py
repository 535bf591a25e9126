"""`siderite pending list`: servers that wait for room, over HTTP."""

import argparse

from siderite.cli import show
from siderite.cli.cloud import Cloud
from siderite.cli.cloud import Forbidden
from siderite.cli.server import every

_COLUMNS: tuple[show.Column, ...] = (
    ("name", lambda server: server["name"]),
    ("id", lambda server: server["id"]),
    ("project", lambda server: server["tenant_id"]),
    ("since", lambda server: server["created"]),
    ("until", lambda server: server.get("deadline")),
    ("why", lambda server: server.get("wait_reason") or (server.get("fault") or {}).get("message")),
)


def run(said: argparse.Namespace) -> int:
    """Print them, oldest first: those of all projects, or for who may not see these, the own."""
    cloud = Cloud(said.data)
    query = {"status": "PENDING", "sort_key": "created_at", "sort_dir": "asc"}
    try:
        servers = every(cloud, {**query, "all_tenants": "1"})
    except Forbidden:
        servers = every(cloud, query)
    show.rows(servers, _COLUMNS, said.output, name="id")
    return 0
