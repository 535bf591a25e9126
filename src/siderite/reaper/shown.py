"""What the API shows of servers and hosts, as the reaper reads it: pure functions."""

import hashlib
from collections.abc import Collection
from typing import Any

from siderite.reaper.choose import Choice
from siderite.reaper.choose import Room

FULL, IN_USE, CARRIES = "without room", "in use", "not available: carries server"
"""How the refusals of hosts begin that would do if somebody went."""
SOON = tuple(f"not available: is {state}," for state in ("deleting", "cleaning", "clean wait"))
"""How the refusals of nodes begin that somebody has left, and that will do by themselves."""
LACKS = (FULL, IN_USE, CARRIES, *SOON)
NODE = Room(1, 0, 0)
"""Bare metal is given out whole."""
PREEMPTIBLE = "preemptible"


def mark_of(project: str) -> str:
    """What is written down with a server that goes: its owner need not know for whom."""
    return hashlib.sha256(project.encode()).hexdigest()[:16]


def is_preemptible(server: dict[str, Any], projects: Collection[str] = ()) -> bool:
    """By its project, its flavor's extra spec or its own metadata."""
    if server["tenant_id"] in projects:
        return True
    words = (
        server["flavor"].get("extra_specs", {}).get(PREEMPTIBLE, ""),
        server["metadata"].get(PREEMPTIBLE, ""),
    )
    return any(word.strip().lower() in ("true", "yes", "1") for word in words)


def is_bare_metal(server: dict[str, Any]) -> bool:
    """Whether it takes a node as a whole."""
    specs = server["flavor"]["extra_specs"].items()
    return any(
        key.startswith("resources:CUSTOM_") and value.strip() not in ("", "0")
        for key, value in specs
    )


def size_of(server: dict[str, Any], *, is_whole: bool) -> Room:
    """What a server takes: of bare metal, the node."""
    flavor = server["flavor"]
    if is_whole:
        return NODE
    swap = (flavor["swap"] + 1023) // 1024
    return Room(flavor["vcpus"], flavor["ram"], flavor["disk"] + flavor["ephemeral"] + swap)


def left(room: dict[str, dict[str, int]]) -> Room:
    """What of a host is not taken."""
    free = [room[what]["limit"] - room[what]["used"] for what in ("vcpus", "ram_mib", "disk_gib")]
    return Room(*free)


def room_of(kept: dict[str, Any]) -> Room:
    """What of a host is kept for a server."""
    return Room(kept["vcpus"], kept["ram_mib"], kept["disk_gib"])


def wanted(server: dict[str, Any]) -> frozenset[str]:
    """The hosts that would do for a server if somebody went, by what it was told last."""
    refusals: dict[str, str] = server.get("refusals") or {}
    return frozenset(node for node, why in refusals.items() if why.startswith(LACKS))


def carried_by(host: dict[str, Any]) -> str | None:
    """The server that keeps a node from being available."""
    why = f"not available: {host['why_not']}"
    return why.removeprefix(CARRIES).strip() if why.startswith(CARRIES) else None


def comes(host: dict[str, Any], leaving: Collection[str]) -> bool:
    """Whether a node that is not available will be so by itself, once these have left it."""
    carried = carried_by(host)
    if carried is not None:
        return carried in leaving
    return f"not available: {host['why_not']}".startswith(SOON)


def told(server: dict[str, Any], choice: Choice | None) -> str:
    """What would be done for it."""
    what = f"{server['name']} ({server['id']})"
    if choice is None:
        return f"{what}: no room can be freed, it would be given up"
    if not choice.victims:
        return f"{what}: fits on {choice.node} now, it would be built there"
    names = ", ".join(f"{victim.name} ({victim.uuid})" for victim in choice.victims)
    return f"{what}: would go to {choice.node} in the place of {names}"
