"""Siderite as a subject: `siderite up` on a data directory of its own, or on PostgreSQL."""

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
from bench.fleet import Fleet
from bench.subject import Running
from bench.subject import stock_by_api


class NoToken(Exception):
    """The identity service gave no token."""


@dataclass(frozen=True, slots=True)
class Siderite:
    """The program under test; every start goes on with the same data."""

    place: Path
    db_url: str | None = None
    password: str = field(default_factory=secrets.token_hex)

    @property
    def title(self) -> str:
        """What the table calls it."""
        return "siderite"

    def start(self) -> Running:
        """`siderite up`, and a token of its admin."""
        address = Address("127.0.0.1", port.free(), "/baremetal")
        command = [
            str(Path(sys.executable).with_name("siderite")),
            *("up", "--data", str(self.place / "data")),
            *("--listen", f"{address.host}:{address.port}"),
            *(("--db", self.db_url) if self.db_url else ()),
        ]
        process = child.start(
            command,
            address,
            "/healthz",
            log=self.place / "siderite.log",
            env={
                "SIDERITE_ADMIN_PASSWORD": self.password,
                "SIDERITE_LOG_LEVEL": "warning",  # as the peer's
                "SIDERITE_QUOTA_INSTANCES": "-1",
                "SIDERITE_QUOTA_CORES": "-1",
                "SIDERITE_QUOTA_RAM_MIB": "-1",
            },
        )
        try:
            return Running(replace(address, token=self._token(address)), process)
        except BaseException:
            process.stop()
            raise

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
