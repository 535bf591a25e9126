"""A program with hosts and servers on record, and short ways to ask the compute API."""

import itertools
from collections.abc import AsyncIterator
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import asynccontextmanager
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from siderite.compute import store
from siderite.compute.domain.flavor import Flavor
from siderite.compute.domain.host import Host
from siderite.compute.domain.server import Request
from siderite.compute.domain.server import Server
from siderite.compute.store import HOSTS
from siderite.compute.store import SERVERS
from siderite.core.ids import new_uuid
from siderite.core.store import Line
from siderite.core.store import Op
from siderite.core.store import Value
from siderite.core.times import iso
from tests.support.app import Answer
from tests.support.app import Application
from tests.support.app import running

_names = itertools.count(1)


class World:
    """The program, and its admin."""

    def __init__(self, app: Application) -> None:
        self.app = app

    async def ask(self, method: str, path: str, *body: Any, version: int = 1, **how: Any) -> Answer:
        """A request to the compute API; `version` is a minor number."""
        headers = {"openstack-api-version": f"compute 2.{version}"}
        return await self.app.ask(
            method, "/compute/v2.1" + path, *body, version=None, headers=headers, **how
        )

    async def get(self, path: str, version: int = 1, token: str | None = None) -> Any:
        """What is at an address."""
        answer = await self.ask("GET", path, version=version, token=token)
        assert answer.status == 200, answer
        return answer.json

    async def host(self, name: str | None = None, *, seen_ago: float = 0.0) -> Host:
        """A host with one hypervisor, as if it had been added and heard of."""
        now = self.app.program.door.clock()
        name = name or f"host{next(_names)}"
        host = Host(uuid=new_uuid(), created_at=iso(now), name=name, driver="simulated")
        offer = Op(
            "INSERT INTO hypervisors (uuid, host, node, type, version, address, cpu_info, traits,"
            " vcpus, ram_mib, disk_gib, vcpus_limit, ram_limit, disk_limit, servers_limit,"
            " is_available) VALUES (?, ?, ?, 'QEMU', 7002000, '10.0.0.1', '{\"arch\": \"x86_64\"}',"
            " '', 8, 16384, 100, 32, 16384, 100, 1000, 1)",
            (new_uuid(), name, name),
        )
        await self.app.program.store.commit([HOSTS.insert(host), offer])
        await self.app.program.store.commit([store.seen(name, now - seen_ago)])
        return host

    async def server(self, project: str, **fields: Any) -> Server:
        """A server on record."""
        now = self.app.program.door.clock()
        flavor = Flavor(
            uuid=new_uuid(), created_at=iso(now), flavorid="1", name="m1.tiny", vcpus=2,
            ram_mib=512, disk_gib=3,
        )  # fmt: skip
        made: dict[str, Any] = {
            "uuid": new_uuid(), "created_at": iso(now), "name": f"s{next(_names)}",
            "hostname": "s", "project_id": project, "user_id": "u", "vm_state": "active",
            "power_state": 1, "flavor": flavor, "request": Request(),
            "launched_at": iso(now - 7200), **fields,
        }  # fmt: skip
        server = Server(**made)
        taken = [store.take_address(port, server.uuid) for port in server.ports]
        await self.app.program.store.commit([SERVERS.insert(server), *taken])
        return server

    @contextmanager
    def asked(self) -> Iterator[list[tuple[str, Sequence[Value]]]]:
        """What the database is asked meanwhile."""
        store: Any = self.app.program.store
        fetch, heard = store.fetch, []

        async def listening(sql: str, args: Sequence[Value] = ()) -> Sequence[Line]:
            heard.append((sql, args))
            return await fetch(sql, args)

        store.fetch = listening
        try:
            yield heard
        finally:
            store.fetch = fetch


@asynccontextmanager
async def world(folder: Path, db: str = "", **options: Any) -> AsyncIterator[World]:
    """An installation, with its admin logged in."""
    async with running(folder, db, **options) as app:
        yield World(app)
