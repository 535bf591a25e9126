"""Hypervisor nodes by the room that they have: the index `hypervisors_room` holds those that may
take a server, the emptiest of each kind first, so that a place is found without a look at all.
"""

from collections.abc import Sequence

import msgspec

from siderite.compute.domain.host import Hypervisor
from siderite.compute.domain.narrowing import Names
from siderite.compute.domain.placement import Wanted
from siderite.compute.store import hypervisors
from siderite.core.store import Store
from siderite.core.store import Value
from siderite.core.store.table import Where

_ROOM = " + ".join(
    f"COALESCE(CAST(v.{what}_limit - v.{what}_used AS DOUBLE PRECISION)"
    f" / NULLIF(v.{what}_limit, 0), 0)"
    for what in ("vcpus", "ram", "disk")
)
_KIND = "COALESCE(v.resource_class, '')"
_LISTED = {
    "sqlite": "SELECT value FROM json_each(?)",
    "postgresql": "SELECT json_array_elements_text(CAST(? AS json))",
}


async def roomiest(
    store: Store, wanted: Wanted, names: Names, *, heard_since: float, limit: int
) -> list[Hypervisor]:
    """The emptiest nodes among those that may do, as far as their columns tell; none that would do
    is passed over.
    """
    if names.only is not None and not names.only:
        return []
    is_direct = wanted.node is not None or names.are_few
    kind, room = _KIND, f"({_ROOM})"
    if is_direct:  # the few are found by their names: neither is what the index has
        kind, room = f"{_KIND} || ''", f"({_ROOM}) + 0"
    where = [
        Where(f"{kind} = ?", (wanted.resource_class or "",)),
        Where("v.servers < v.servers_limit"),
        Where("h.forced_down = 0 AND h.seen_at >= ?", (heard_since,)),
        *_conditions(wanted),
        *_named(wanted, names, store.dialect),
    ]
    return await hypervisors(
        store,
        " AND ".join(one.sql for one in where),
        [arg for one in where for arg in one.args],
        order=f"{room} DESC, v.id",
        limit=limit,
    )


def _conditions(wanted: Wanted) -> list[Where]:
    found = []
    if wanted.resource_class is None:
        amount = wanted.amount
        found.append(
            Where(
                "v.vcpus_used + ? <= v.vcpus_limit AND v.ram_used + ? <= v.ram_limit"
                " AND v.disk_used + ? <= v.disk_limit",
                (amount.vcpus, amount.ram_mib, amount.disk_gib),
            )
        )
    if wanted.driver is not None:
        found.append(Where("h.driver = ?", (wanted.driver,)))
    if wanted.is_forced:
        return found
    found.append(Where("v.is_available = 1 AND h.disabled = 0"))
    if wanted.conductor_group:
        found.append(Where("h.conductor_group IN ('', ?)", (wanted.conductor_group,)))
    for trait in sorted(wanted.required_traits):
        like = "% " + trait.replace("!", "!!").replace("%", "!%").replace("_", "!_") + " %"
        found.append(Where("' ' || v.traits || ' ' LIKE ? ESCAPE '!'", (like,)))
    return found


def _named(wanted: Wanted, names: Names, dialect: str) -> list[Where]:
    found = []
    if wanted.node is not None:
        found.append(Where("(v.node = ? OR v.uuid = ?)", (wanted.node, wanted.node)))
    if names.only is not None and names.are_few:
        some = _padded(sorted(names.only))
        found.append(Where(f"v.host IN ({', '.join('?' * len(some))})", some))
    elif names.only is not None:
        found.append(_listed(names.only, "TRUE", dialect))
    elif names.but:
        found.append(_listed(names.but, "FALSE", dialect))
    return found


def _listed(some: object, truth: str, dialect: str) -> Where:
    """A long list is one argument. What is asked in this way is asked of each node in its turn."""
    return Where(
        f"(v.host IN ({_LISTED[dialect]})) IS {truth}", (msgspec.json.encode(some).decode(),)
    )


def _padded(some: Sequence[str]) -> tuple[Value, ...]:
    """The same names, some of them more often: so that there are few statements, not one for each
    number of them.
    """
    size = 1
    while size < len(some):
        size *= 2
    return (*some, *[some[-1]] * (size - len(some)))
