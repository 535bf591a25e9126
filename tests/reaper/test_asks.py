"""What the reaper asks for: of few nodes no more than what is on them."""

import asyncio
from typing import Any
from urllib.parse import parse_qs
from urllib.parse import urlsplit

from siderite.reaper import Api
from siderite.reaper import Refused
from siderite.reaper import asks

NODES = [f"node {number}/x" for number in range(40)]


class Small(Api):
    """A cloud with a server on each of its nodes, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        self.asked.append(path)
        query = parse_qs(urlsplit(path).query)
        if "marker" in query:
            return {"servers": [], "hypervisors": []}
        if path.startswith("/servers"):
            return {"servers": [_server(node) for node in query.get("node", NODES)]}
        pattern = query.get("hypervisor_hostname_pattern", [""])[0]
        found = [node for node in NODES if pattern in node]
        if not found:
            raise Refused(404, "none")
        return {"hypervisors": [{"id": node, "hypervisor_hostname": node} for node in found]}


def _server(node: str) -> dict[str, Any]:
    return {
        "id": f"on {node}", "created": "2026-11-16T03:04:05Z", "status": "ACTIVE",
        "OS-EXT-SRV-ATTR:hypervisor_hostname": node,
    }  # fmt: skip


def test_of_few_nodes_each_is_asked_about_and_nothing_else() -> None:
    async def story() -> None:
        api, nodes = Small(), {NODES[1], NODES[7], "gone"}
        there = await asks.there(api, nodes)
        hosts = await asks.hypervisors(api, nodes)
        assert {node: len(on_it) for node, on_it in there.items()} == dict.fromkeys(nodes, 1)
        assert [one["hypervisor_hostname"] for one in hosts] == [NODES[1], NODES[7]]
        assert all("node=" in path or "pattern=" in path for path in api.asked)

    asyncio.run(story())


def test_of_many_nodes_the_lists_are_read_once() -> None:
    async def story() -> None:
        api, nodes = Small(), set(NODES[: asks.FEW + 1])
        there = await asks.there(api, nodes)
        hosts = await asks.hypervisors(api, nodes)
        assert there.keys() == nodes == {one["hypervisor_hostname"] for one in hosts}
        assert len(api.asked) == 2

    asyncio.run(story())
