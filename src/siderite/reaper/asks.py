"""What the reaper asks of the compute API again and again, in its own words."""

from typing import Any
from urllib.parse import quote

from siderite.reaper.api import Api
from siderite.reaper.api import Refused

INVALID, NOT_FOUND = 400, 404
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
    path = f"/os-hypervisors/detail?hypervisor_hostname_pattern={quote(node, safe='')}"
    try:
        found = (await api.ask("GET", path))["hypervisors"]
    except Refused as why:
        if why.status != NOT_FOUND:
            raise
        return None
    return next((one for one in found if one["hypervisor_hostname"] == node), None)


async def there(api: Api) -> dict[str, list[dict[str, Any]]]:
    """Servers by the host they are on."""
    found: dict[str, list[dict[str, Any]]] = {}
    for number, one in enumerate(await api.pages(IN_ORDER, "servers")):
        one["came"] = f"{number:09}"
        node = one["OS-EXT-SRV-ATTR:hypervisor_hostname"]
        if node is not None and one["status"] != "DELETED":
            found.setdefault(node, []).append(one)
    return found
