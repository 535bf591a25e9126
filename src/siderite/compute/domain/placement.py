"""Where a server can go: candidates in, ranked places and a reason for each refusal out. Pure."""

from collections import Counter
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Protocol

import msgspec

from siderite.compute.domain.flavor import Flavor
from siderite.compute.domain.host import Amount
from siderite.compute.domain.host import Hypervisor
from siderite.compute.domain.spec_operators import meets


class Wanted(msgspec.Struct, frozen=True):
    """What a server needs of the place it goes to."""

    amount: Amount
    project: str
    resource_class: str | None = None
    required_traits: frozenset[str] = frozenset()
    forbidden_traits: frozenset[str] = frozenset()
    zone: str | None = None
    host: str | None = None
    node: str | None = None
    is_forced: bool = False
    """The host was named by an administrator: only its room counts."""
    driver: str | None = None
    """Only hosts of this driver: a server that has been made moves among its like."""
    conductor_group: str = ""
    """Where the server comes from: whoever moves it must reach both hosts."""
    avoid: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Hosts, and nodes of bare metal, not to go to, and why."""
    same_host: frozenset[str] | None = None
    different_host: frozenset[str] = frozenset()
    policy: str | None = None
    members: Mapping[str, int] = msgspec.field(default_factory=dict)
    """How many members of its group are on each host."""
    max_server_per_host: int = 1
    aggregate_specs: Mapping[str, str] = msgspec.field(default_factory=dict)


class Placement(msgspec.Struct, frozen=True):
    """The places that would do, best first, and why the others would not."""

    ranked: tuple[Hypervisor, ...]
    refusals: Mapping[str, str]
    resource_class: str | None = None
    """The class of bare metal node that was asked for."""

    @property
    def is_for_want_of_news(self) -> bool:
        """Whether there is none while hosts are taken for down: one of them might do."""
        return not self.ranked and _DOWN in self.refusals.values()

    @property
    def sentence(self) -> str:
        """What a user is told when there is no place."""
        if not self.refusals:
            return f"No valid host was found. {self._none()}"
        reasons = Counter(_kind_of(reason) for reason in self.refusals.values())
        told = ", ".join(f"{count} {kind}" for kind, count in sorted(reasons.items()))
        return f"No valid host was found. Of {len(self.refusals)} hosts: {told}."

    def _none(self) -> str:
        what = "none for virtual servers"
        if self.resource_class is not None:
            what = f"no node of a bare metal host has the resource class {self.resource_class}"
        return f"There is no host of the kind that this server needs: {what}."

    @property
    def examples(self) -> dict[str, str]:
        """Some refusals of each kind: for records and events, which are to stay readable."""
        return self.some(EXAMPLES)

    def some(self, most: int) -> dict[str, str]:
        """The refusals; where there are more than so many, some of each kind, of hosts from all
        over the list.
        """
        if len(self.refusals) <= most:
            return dict(self.refusals)
        kinds: dict[str, list[str]] = {}
        for node, reason in self.refusals.items():
            kinds.setdefault(_kind_of(reason), []).append(node)
        chosen: list[str] = []
        for at, nodes in enumerate(sorted(kinds.values(), key=len)):
            share = max(1, (most - len(chosen)) // (len(kinds) - at))
            chosen += _spread(nodes, share)
        return {node: self.refusals[node] for node in chosen}


EXAMPLES = 100
"""So many refusals are told one by one."""
MOST = 1000
"""And so many to whoever makes room, and must know of each host whether that would help."""


def _spread(nodes: Sequence[str], most: int) -> Sequence[str]:
    if len(nodes) <= most:
        return nodes
    return [nodes[at * len(nodes) // most] for at in range(most)]


def _kind_of(reason: str) -> str:
    return reason.split(":", maxsplit=1)[0]


class Located(Protocol):
    """Whatever aggregates say something of."""

    @property
    def zone(self) -> str: ...
    @property
    def aggregate_metadata(self) -> Mapping[str, frozenset[str]]: ...


RESERVED = "filter_tenant_id"
"""What says for which projects alone the hosts of an aggregate are."""
_DOWN = "down: it has not been heard of lately"

Check = Callable[[Wanted, Hypervisor], str | None]
_NOTHING = Amount(0, 0, 0)
_BESIDE = 10


def _enabled(wanted: Wanted, at: Hypervisor) -> str | None:
    if at.disabled:
        return f"disabled: {at.disabled_reason or 'no reason was given'}"
    if not at.is_available:
        return f"not available: {at.why_not or 'it says so itself'}"
    return None


def _named(wanted: Wanted, at: Hypervisor) -> str | None:
    if wanted.host is not None and at.host != wanted.host:
        return f"not the host that was asked for: {wanted.host}"
    if wanted.node is not None and wanted.node not in (at.node, at.uuid):
        return f"not the node that was asked for: {wanted.node}"
    return None


def _reach(wanted: Wanted, at: Hypervisor) -> str | None:
    if wanted.conductor_group and at.conductor_group not in ("", wanted.conductor_group):
        return f"in another conductor group than the server's host: {at.conductor_group}"
    return None


def _avoided(wanted: Wanted, at: Hypervisor) -> str | None:
    # Only of bare metal a node is named by itself; others may be called like another's host.
    by_node = None if at.resource_class is None else wanted.avoid.get(at.node)
    return wanted.avoid.get(at.host) or by_node


def _kind(wanted: Wanted, at: Hypervisor) -> str | None:
    if wanted.resource_class != at.resource_class:
        return f"of another resource class: {at.resource_class or 'virtual'}"
    if wanted.driver is not None and at.driver != wanted.driver:
        return f"of another driver: {at.driver}"
    return None


def _traits(wanted: Wanted, at: Hypervisor) -> str | None:
    missing = wanted.required_traits - at.traits
    if missing:
        return f"without a required trait: {', '.join(sorted(missing))}"
    there = wanted.forbidden_traits & at.traits
    if there:
        return f"with a forbidden trait: {', '.join(sorted(there))}"
    return None


def _zone(wanted: Wanted, at: Located) -> str | None:
    if wanted.zone is not None and at.zone != wanted.zone:
        return f"in another availability zone: {at.zone}"
    return None


def _aggregates(wanted: Wanted, at: Located) -> str | None:
    for key, wish in wanted.aggregate_specs.items():
        if not any(meets(value, wish) for value in at.aggregate_metadata.get(key, ())):
            return f"in no aggregate with what the flavor asks for: {key}={wish}"
    tenants = at.aggregate_metadata.get(RESERVED)
    if tenants is not None and wanted.project not in {
        project.strip() for text in tenants for project in text.split(",")
    }:
        return "reserved: for other projects"
    return None


def _hints(wanted: Wanted, at: Hypervisor) -> str | None:
    if wanted.same_host is not None and at.host not in wanted.same_host:
        return "not beside the servers that were named: same_host"
    if at.host in wanted.different_host:
        return "beside a server that was named: different_host"
    return None


def _group(wanted: Wanted, at: Hypervisor) -> str | None:
    if wanted.policy == "affinity" and wanted.members and at.host not in wanted.members:
        return "without the other members of its group: affinity"
    if (
        wanted.policy == "anti-affinity"
        and wanted.members.get(at.host, 0) >= wanted.max_server_per_host
    ):
        return "with other members of its group: anti-affinity"
    return None


def _room(wanted: Wanted, at: Hypervisor) -> str | None:
    if at.resource_class is not None:
        if at.servers:
            return "in use: by another server"
        return None if at.kept is None else "in use: kept for a server that waits"
    amount, kept = wanted.amount, at.kept or _NOTHING
    for what, used, more, limit, others in (
        ("vCPUs", at.vcpus_used, amount.vcpus, at.vcpus_limit, kept.vcpus),
        ("MiB of memory", at.ram_used, amount.ram_mib, at.ram_limit, kept.ram_mib),
        ("GiB of disk", at.disk_used, amount.disk_gib, at.disk_limit, kept.disk_gib),
    ):
        if used + others + more > limit:
            left = max(0, limit - used - others)
            why = f", {others} kept for servers that wait" if others else ""
            return f"without room: {more} {what} wanted, {left} of {limit} left{why}"
    return None


CHECKS: tuple[Check, ...] = (
    _named, _kind, _reach, _enabled, _avoided, _zone, _traits, _aggregates, _hints, _group, _room,
)  # fmt: skip
LOCAL: tuple[Callable[[Wanted, Located], str | None], ...] = (_zone, _aggregates)
"""Those that hold for all hosts of the same aggregates."""
_FORCED: tuple[Check, ...] = (_named, _kind, _avoided, _room)


def place(
    wanted: Wanted, candidates: Sequence[Hypervisor], *, now: float, patience_s: float
) -> Placement:
    """Rank the candidates that will do; say of the others why they will not."""
    checks = _FORCED if wanted.is_forced else CHECKS
    ranked, refusals = [], {}
    for at in candidates:
        reason = None if at.is_up(now, patience_s) else _DOWN
        for check in checks:
            reason = check(wanted, at) or reason
            if reason is not None:
                refusals[at.node] = reason
                break
        else:
            ranked.append((-weight(wanted, at), at.id, at))
    ranked.sort(key=lambda item: item[:2])
    return Placement(tuple(item[2] for item in ranked), refusals, wanted.resource_class)


def weight(wanted: Wanted, at: Hypervisor) -> float:
    """The more room, the better, and what is kept for others is none; soft group policies weigh
    more than room.
    """
    room, beside = _room_left(at), wanted.members.get(at.host, 0)
    if wanted.policy == "soft-affinity":
        return room + _BESIDE * beside
    if wanted.policy == "soft-anti-affinity":
        return room - _BESIDE * beside
    return room


def most(wanted: Wanted, at: Hypervisor) -> float:
    """What a host can weigh at the most that has no more room than this one."""
    if wanted.policy == "soft-affinity":
        return _room_left(at) + _BESIDE * max(wanted.members.values(), default=0)
    return _room_left(at)


def _room_left(at: Hypervisor) -> float:
    """From 0 to 3; the index `hypervisors_room` has the same without what is kept."""
    kept = at.kept or _NOTHING
    return sum(
        (limit - used) / limit
        for used, limit in (
            (at.vcpus_used + kept.vcpus, at.vcpus_limit),
            (at.ram_used + kept.ram_mib, at.ram_limit),
            (at.disk_used + kept.disk_gib, at.disk_limit),
        )
        if limit
    )


def traits_of(flavor: Flavor, value: str) -> frozenset[str]:
    """The traits that a flavor's extra specs call `required` or `forbidden`."""
    return frozenset(
        key.removeprefix("trait:")
        for key, said in flavor.extra_specs.items()
        if key.startswith("trait:") and said == value
    )


def aggregate_specs_of(flavor: Flavor) -> dict[str, str]:
    """What a flavor's extra specs ask of its host's aggregates."""
    scope = "aggregate_instance_extra_specs:"
    return {
        key.removeprefix(scope): value
        for key, value in flavor.extra_specs.items()
        if key.startswith(scope)
    }
