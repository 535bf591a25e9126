"""The program with its compute half, simulated hosts, and a small client of it."""

import asyncio
import itertools
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from siderite.compute.drivers.simulated.scripts import Script
from siderite.compute.usecases.fleet import hosts
from tests.support.app import Answer
from tests.support.app import Standing
from tests.support.app import standing

LATEST = "2.104"
PATIENCE_S = 30.0
_NOTHING: Any = object()
_names = itertools.count(1)


class Cloud:
    """Asks the compute API, as admin unless a token is given."""

    def __init__(self, app: Standing) -> None:
        self.app = app
        self.flavor = ""
        self.image = ""
        self.hosts: list[str] = []

    @property
    def guests(self) -> Any:
        """The simulated guests."""
        return self.app.app.program.compute.guests

    def ask(
        self,
        method: str,
        path: str,
        body: Any = _NOTHING,
        *,
        version: str | int | None = LATEST,
        token: str | None = None,
    ) -> Answer:
        """One request to /compute/v2.1/…; `version` may be its minor number."""
        headers = {}
        if version is not None:
            text = f"2.{version}" if isinstance(version, int) else version
            headers["openstack-api-version"] = f"compute {text}"
        words = {} if body is _NOTHING else {"body": body}
        where = path if path.startswith("/compute") else "/compute/v2.1" + path
        return self.app.ask(method, where, **words, version=None, token=token, headers=headers)

    # Hosts, flavors and images

    def make_image(self, **fields: Any) -> str:
        """The id of a new, small image that everybody may use."""
        body = {
            "name": f"image-{next(_names)}", "disk_format": "raw", "container_format": "bare",
            "visibility": "public", **fields,
        }  # fmt: skip
        made = self.app.ask("POST", "/image/v2/images", body, version=None)
        assert made.status == 201, made
        ident = str(made.json["id"])
        octets = {"content-type": "application/octet-stream"}
        put = self.app.ask(
            "PUT", f"/image/v2/images/{ident}/file", b"boot" * 128, version=None, headers=octets
        )
        assert put.status == 204, put
        return ident

    def add_host(self, name: str | None = None, **options: Any) -> str:
        """A simulated host that is up; sizes as options."""
        named = name or f"host-{next(_names)}"
        compute = self.app.app.program.compute
        text = {key: str(value) for key, value in options.items()}
        made = self.app.run(hosts.add(compute.context, named, "simulated", "", text))
        assert self.app.run(compute.watch.ask(made)) is None
        self.hosts.append(named)
        return named

    def make_flavor(self, **fields: Any) -> str:
        """The id of a new flavor."""
        name = f"flavor-{next(_names)}"
        body = {"name": name, "ram": 512, "vcpus": 1, "disk": 1, **fields}
        answer = self.ask("POST", "/flavors", {"flavor": body})
        assert answer.status == 200, answer
        return str(answer.json["flavor"]["id"])

    def script(self, scope: str, **script: Any) -> None:
        """How simulated hosts and guests behave."""
        self.guests.scripts.set(scope, Script(**script))

    # Servers

    def create(self, *, token: str | None = None, hints: Any = None, **fields: Any) -> str:
        """The id of a new server, just asked for."""
        body = {
            "name": f"server-{next(_names)}", "flavorRef": self.flavor, "imageRef": self.image,
            "networks": "auto", **fields,
        }  # fmt: skip
        document: dict[str, Any] = {"server": body}
        if hints is not None:
            document["os:scheduler_hints"] = hints
        answer = self.ask("POST", "/servers", document, token=token)
        assert answer.status == 202, answer
        return str(answer.json["server"]["id"])

    def show(self, uuid: str, *, version: str | int = LATEST) -> dict[str, Any]:
        """A server as administrators see it."""
        answer = self.ask("GET", f"/servers/{uuid}", version=version)
        assert answer.status == 200, answer
        shown: dict[str, Any] = answer.json["server"]
        return shown

    def wait(self, uuid: str, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The server, as soon as it is so."""
        seen: list[dict[str, Any]] = []

        async def look() -> None:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    headers = {"openstack-api-version": "compute 2.901"}
                    answer = await self.app.app.ask(
                        "GET", f"/compute/v2.1/servers/{uuid}", version=None, headers=headers
                    )
                    seen[:] = [answer.json.get("server", {"status": "GONE"})]
                    if is_so(seen[0]):
                        return
                    await asyncio.sleep(0.01)

        try:
            self.app.run(look())
        except TimeoutError:
            raise AssertionError(f"it stays {seen}") from None
        return seen[0]

    def until(self, uuid: str, status: str) -> dict[str, Any]:
        """The server, once it has this status and no task."""
        return self.wait(
            uuid,
            lambda seen: seen["status"] == status and seen.get("OS-EXT-STS:task_state") is None,
        )

    def settled(self, uuid: str) -> dict[str, Any]:
        """The server, once nothing is being done to it."""
        return self.wait(uuid, lambda seen: seen.get("OS-EXT-STS:task_state") is None)

    def boot(self, **fields: Any) -> str:
        """The id of a server that runs."""
        uuid = self.create(**fields)
        self.until(uuid, "ACTIVE")
        return uuid

    def act(self, uuid: str, action: str, value: Any = None, **how: Any) -> Answer:
        """Ask something of a server."""
        return self.ask("POST", f"/servers/{uuid}/action", {action: value}, **how)

    def actions(self, uuid: str) -> list[dict[str, Any]]:
        """What was done to a server, newest first, with events."""
        answer = self.ask("GET", f"/servers/{uuid}/os-instance-actions")
        assert answer.status == 200, answer
        return [
            self.ask("GET", f"/servers/{uuid}/os-instance-actions/{one['request_id']}").json[
                "instanceAction"
            ]
            for one in answer.json["instanceActions"]
        ]

    def facts(self, uuid: str, last: str | None = None) -> list[tuple[str, dict[str, Any]]]:
        """What was announced of a server: event type and the payload's data, once this one is in
        the log (PostgreSQL gives facts their place a moment after their commit).
        """
        found: list[tuple[str, dict[str, Any]]] = []

        async def look() -> None:
            async with asyncio.timeout(PATIENCE_S):
                while not found or last not in (None, *(kind for kind, _ in found)):
                    path = f"/events/v1/events?resource={uuid}&limit=1000"
                    answer = await self.app.app.ask("GET", path, version=None)
                    found[:] = [
                        (one["event_type"], one["payload"]["nova_object.data"])
                        for one in answer.json["events"]
                    ]
                    await asyncio.sleep(0.01)

        self.app.run(look())
        return found

    def claimed(self) -> list[tuple[Any, ...]]:
        """Per host: vCPUs, MiB, GiB and servers that are claimed."""
        sql = "SELECT node, vcpus_used, ram_used, disk_used, servers FROM hypervisors ORDER BY node"
        return [tuple(row) for row in self.app.run(self.app.app.program.store.fetch(sql))]


@contextmanager
def cloud(data: Path, db: str = "", *, hosts: int = 2, **options: Any) -> Iterator[Cloud]:
    """A cloud on a database of its own, with some hosts and a small flavor."""
    plenty = {"quota_instances": -1, "quota_cores": -1, "quota_ram_mib": -1}
    with standing(data, db, work=True, **{**plenty, **options}) as app:
        made = Cloud(app)
        for _ in range(hosts):
            made.add_host()
        made.flavor = made.make_flavor()
        made.image = made.make_image()
        yield made
