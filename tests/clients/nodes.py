"""Nodes for tests: made and looked at through the plain API, so that only the client under test is
the client under test.
"""

import itertools
import time
from collections.abc import Callable
from typing import Any

from tests.support.server import Server

Connect = Callable[[str], Any]
"""Makes the client of an API version."""
DEADLINE_S = 20.0
NEWEST = "1.900"
_FAILED = (" failed", "error")
_numbers = itertools.count(1)

WAY = {
    "enroll": (),
    "manageable": ("manage",),
    "available": ("manage", "provide"),
    "active": ("manage", "provide", "active"),
    "rescue": ("manage", "provide", "active", "rescue"),
}
"""The verbs that lead a new node to a state."""
_LEADS_TO = {
    "manage": "manageable",
    "provide": "available",
    "active": "active",
    "rescue": "rescue",
}


class Nodes:
    """Makes nodes, looks at them and forgets them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._made: list[str] = []

    def name(self) -> str:
        """A name that no other node has; the node that gets it is removed after the test."""
        name = f"node-{next(_numbers)}"
        self._made.append(name)
        return name

    def make(self, state: str = "enroll", **fields: Any) -> dict[str, Any]:
        """A node in one of the states of WAY."""
        body = {"driver": "fake-hardware", "name": self.name(), **fields}
        node = self._ask("POST", "", body).json()
        for verb in WAY[state]:
            more = {"rescue_password": "a pass phrase"} if verb == "rescue" else {}
            self._ask("PUT", f"/{node['uuid']}/states/provision", {"target": verb, **more})
            node = self.until(node["uuid"], _LEADS_TO[verb])
        return node

    def show(self, ident: str) -> dict[str, Any]:
        """The node as it is now, with everything that there is to show."""
        node: dict[str, Any] = self._ask("GET", f"/{ident}").json()
        return node

    def until(self, ident: str, state: str) -> dict[str, Any]:
        """The node once it is in a provision state; a failed one ends the wait."""

        def there(node: dict[str, Any]) -> bool:
            now = node["provision_state"]
            stuck = now != state and now.endswith(_FAILED) and not node["target_power_state"]
            assert not stuck, f"{ident} is {now}, not {state}: {node['last_error']}"
            return bool(now == state)

        return self.until_seen(ident, there, f"is {state}")

    def until_power(self, ident: str, power: str) -> dict[str, Any]:
        """The node once its power is as wanted and nothing is under way."""
        return self.until_seen(
            ident,
            lambda node: (node["power_state"], node["target_power_state"]) == (power, None),
            f"has {power}",
        )

    def until_seen(
        self, ident: str, seen: Callable[[dict[str, Any]], bool], what: str
    ) -> dict[str, Any]:
        """The node once something can be seen of it."""
        deadline = time.monotonic() + DEADLINE_S
        node = self.show(ident)
        while not seen(node):
            assert time.monotonic() < deadline, (
                f"not within {DEADLINE_S:g} s: {ident} {what}\n{node}"
            )
            time.sleep(0.02)
            node = self.show(ident)
        return node

    def remove(self) -> None:
        """Forget every node that was made; in maintenance any state will do."""
        for name in reversed(self._made):  # children before their parents
            self._server.api.put(
                f"/baremetal/v1/nodes/{name}/maintenance", headers=self._server.headers(NEWEST)
            )
            self._server.api.patch(
                f"/baremetal/v1/nodes/{name}",
                headers=self._server.headers(NEWEST),
                json=[{"op": "replace", "path": "/protected", "value": False}],
            )
            gone = self._server.api.delete(
                f"/baremetal/v1/nodes/{name}", headers=self._server.headers(NEWEST)
            )
            assert gone.status_code in (204, 404), gone.text

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        address = f"/baremetal/v1/nodes{path}"
        reply = self._server.api.request(
            method, address, headers=self._server.headers(NEWEST), json=body
        )
        assert reply.status_code < 400, f"{method} {address}: {reply.text}"
        return reply
