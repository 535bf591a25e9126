"""Siderite as a subject: `siderite up` on a data directory of its own, or on PostgreSQL; there also
as `siderite api` with so many `siderite worker`.
"""

import http.client
import json
import secrets
import sys
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from pathlib import Path

from bench import child
from bench import port
from bench.address import Address
from bench.child import Child
from bench.fleet import Fleet
from bench.subject import Running
from bench.subject import stock_by_api


class NoToken(Exception):
    """The identity service gave no token."""


@dataclass(frozen=True, slots=True)
class Siderite:
    """The program under test; every start goes on with the same data. Without `workers` it is one
    process.
    """

    place: Path
    db_url: str | None = None
    workers: int = 0
    password: str = field(default_factory=secrets.token_hex)

    @property
    def title(self) -> str:
        """What the table calls it."""
        return "siderite"

    def start(self) -> Running:
        """Start its processes, and get a token of its admin."""
        first, address = self._process("api" if self.workers else "up", "siderite")
        workers: list[Child] = []
        try:
            for number in range(self.workers):
                workers.append(self._process("worker", f"worker-{number}")[0])
            token = self._token(address)
        except BaseException:
            replace(first, others=tuple(workers)).stop()
            raise
        return Running(replace(address, token=token), replace(first, others=tuple(workers)))

    def _process(self, word: str, name: str) -> tuple[Child, Address]:
        address = Address("127.0.0.1", port.free(), "/baremetal")
        data = self.place / ("data" if name == "siderite" else name)
        command = [
            str(Path(sys.executable).with_name("siderite")),
            *(word, "--data", str(data)),
            *("--listen", f"{address.host}:{address.port}"),
            *(("--db", self.db_url) if self.db_url else ()),
        ]
        one_of_several = {
            "SIDERITE_HOST": name,
            "SIDERITE_SIMULATED_DB": str(self.place / "simulated.db"),
        }
        process = child.start(
            command,
            address,
            "/healthz",
            log=self.place / f"{name}.log",
            env={
                "SIDERITE_ADMIN_PASSWORD": self.password,
                "SIDERITE_LOG_LEVEL": "warning",  # as the peer's
                "SIDERITE_QUOTA_INSTANCES": "-1",
                "SIDERITE_QUOTA_CORES": "-1",
                "SIDERITE_QUOTA_RAM_MIB": "-1",
            }
            | (one_of_several if self.workers else {}),
        )
        return process, address

    def stock(self, running: Running, fleet: Fleet) -> None:
        """Put a fleet in through the API."""
        stock_by_api(running, fleet)

    def _token(self, address: Address) -> str:
        domain = {"name": "Default"}
        user = {"name": "admin", "password": self.password, "domain": domain}
        ask = {
            "auth": {
                "identity": {"methods": ["password"], "password": {"user": user}},
                "scope": {"project": {"name": "admin", "domain": domain}},
            }
        }
        connection = http.client.HTTPConnection(address.host, address.port, timeout=30)
        try:
            kind = {"Content-Type": "application/json"}
            connection.request("POST", "/identity/v3/auth/tokens", json.dumps(ask), kind)
            reply = connection.getresponse()
            body = reply.read()
        finally:
            connection.close()
        token = reply.getheader("X-Subject-Token")
        if token is None:
            raise NoToken(
                f"identity answered {reply.status}: {body[:500].decode(errors='replace')}"
            )
        return token
