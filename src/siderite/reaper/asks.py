"""What the reaper asks of the compute API again and again, in its own words."""

from collections.abc import Collection
from typing import Any
from urllib.parse import quote

from siderite.reaper.api import Api
from siderite.reaper.api import Refused

INVALID, NOT_FOUND = 400, 404
FEW = 20
"""So many nodes are asked about one by one; of more, the lists of everything are read."""
IN_ORDER = "/servers/detail?all_tenants=1&sort_key=created_at&sort_dir=asc"
"""Servers in the order they came; what they show of it is only the second."""


async def care(api: Api, server: str, asked: dict[str, Any]) -> None:
    """Take a PENDING server into care. An older API, as there is one while a service is upgraded
    process by process, keeps no room on a node and refuses to hear of one: it is not told then.
    """
    action, node = "siderite-claimPending", asked.get("node")
    try:
        await api.act(server, action, asked)
    except Refused as why:
        if why.status != INVALID or node is None or await hypervisor(api, node) is None:
            raise
        await api.act(server, action, {key: asked[key] for key in asked if key != "node"})


async def hypervisor(api: Api, node: str) -> dict[str, Any] | None:
    """A hypervisor by its name, if there still is one."""
    return next(iter(await _named(api, node)), None)


async def hypervisors(api: Api, nodes: Collection[str]) -> list[dict[str, Any]]:
    """Those of these names that there are."""
    if len(nodes) <= FEW:
        return [one for node in sorted(nodes) for one in await _named(api, node)]
    found = await api.pages("/os-hypervisors/detail?", "hypervisors")
    return [one for one in found if one["hypervisor_hostname"] in nodes]


async def _named(api: Api, node: str) -> list[dict[str, Any]]:
    path = f"/os-hypervisors/detail?hypervisor_hostname_pattern={quote(node, safe='')}"
    try:
        found = (await api.ask("GET", path))["hypervisors"]
    except Refused as why:
        if why.status != NOT_FOUND:
            raise
        return []
    return [one for one in found if one["hypervisor_hostname"] == node]


async def there(api: Api, nodes: Collection[str]) -> dict[str, list[dict[str, Any]]]:
    """The servers on each of these nodes, in the order they came."""
    paths = [IN_ORDER]
    if len(nodes) <= FEW:
        paths = [f"{IN_ORDER}&node={quote(node, safe='')}" for node in sorted(nodes)]
    found: dict[str, list[dict[str, Any]]] = {node: [] for node in nodes}
    for path in paths:
        for number, one in enumerate(await api.pages(path, "servers")):
            one["came"] = f"{one['created']} {number:09}"
            node = one["OS-EXT-SRV-ATTR:hypervisor_hostname"]
            if node in found and one["status"] != "DELETED":
                found[node].append(one)
    return found
