"""Which hosts come into question for a server by their names alone, known before any is looked at;
and when the best of some nodes is the best of all. Pure.
"""

from collections.abc import Sequence
from collections.abc import Set

import msgspec
from msgspec.structs import replace

from siderite.compute.domain.aggregate import NOWHERE
from siderite.compute.domain.aggregate import Atlas
from siderite.compute.domain.aggregate import Place
from siderite.compute.domain.host import Hypervisor
from siderite.compute.domain.placement import LOCAL
from siderite.compute.domain.placement import Placement
from siderite.compute.domain.placement import Wanted
from siderite.compute.domain.placement import most
from siderite.compute.domain.placement import weight

_FEW = 64


class Names(msgspec.Struct, frozen=True):
    """Hosts that come into question: these only, unless that is None, and not those."""

    only: Set[str] | None
    but: Set[str] = frozenset()

    @property
    def are_few(self) -> bool:
        """Whether each of these hosts may be looked up by itself."""
        return self.only is not None and len(self.only) <= _FEW

    @property
    def at_a_glance(self) -> "Names":
        """The same without what takes long to tell: more hosts may meet it."""
        if self.only is not None:
            return self if self.are_few else Names(None)
        return self if len(self.but) <= _FEW else Names(None)


def names(wanted: Wanted, atlas: Atlas) -> Names:
    """The hosts that come into question. Each that is left out would be refused."""
    only: list[Set[str]] = [] if wanted.host is None else [{wanted.host}]
    but = set(wanted.avoid)
    if not wanted.is_forced:
        if wanted.same_host is not None:
            only.append(wanted.same_host)
        if wanted.policy == "affinity" and wanted.members:
            only.append(wanted.members.keys())
        if wanted.policy == "anti-affinity":
            most_there = wanted.max_server_per_host
            but |= {host for host, there in wanted.members.items() if there >= most_there}
        but |= wanted.different_host
        if _suits(wanted, NOWHERE):
            but.update(*(at.hosts for at in atlas.places if not _suits(wanted, at)))
        else:
            suitable = [at.hosts for at in atlas.places if _suits(wanted, at)]
            only.append(frozenset().union(*suitable))
    if not only:
        return Names(None, but)
    only.sort(key=len)
    return Names(frozenset(only[0]).intersection(*only[1:]) - but)


def _suits(wanted: Wanted, place: Place) -> bool:
    return all(check(wanted, place) is None for check in LOCAL)


def by_preference(wanted: Wanted) -> Sequence[Wanted]:
    """What to look for one after another: a soft policy is a hard one until there is no such place.
    Of one that wants to be alone, what comes after that is not here: all places are weighed.
    """
    members = frozenset(wanted.members)
    if not members or wanted.is_forced:
        return (wanted,)
    if wanted.policy == "soft-affinity":
        beside = members if wanted.same_host is None else members & wanted.same_host
        return replace(wanted, same_host=beside), replace(wanted, policy=None)
    if wanted.policy == "soft-anti-affinity":
        return (replace(wanted, different_host=wanted.different_host | members),)
    return (wanted,)


def is_settled(
    wanted: Wanted, found: Sequence[Hypervisor], limit: int, placement: Placement, enough: int
) -> bool:
    """Whether no other node is a better place than what came of these, the roomiest, of which no
    more than `limit` were looked for.
    """
    if len(found) < limit:
        return True
    if len(placement.ranked) < enough:
        return False
    return weight(wanted, placement.ranked[0]) >= most(wanted, found[-1])
