"""Which preemptible servers go, so that a PENDING one fits: pure functions."""

import random
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass

LOOKS = 50_000
"""So many sets of a host's servers are looked at for the smallest; then the largest go first."""
ALL_LOOKS, FEWEST_LOOKS = 250_000, 500
"""So many on all hosts together, and on each: nothing else is done meanwhile."""


@dataclass(frozen=True, slots=True)
class Room:
    """So much of a host."""

    vcpus: int
    ram_mib: int
    disk_gib: int

    def __add__(self, other: "Room") -> "Room":
        return Room(
            self.vcpus + other.vcpus, self.ram_mib + other.ram_mib, self.disk_gib + other.disk_gib
        )

    def __sub__(self, other: "Room") -> "Room":
        return Room(
            self.vcpus - other.vcpus, self.ram_mib - other.ram_mib, self.disk_gib - other.disk_gib
        )

    def holds(self, need: "Room") -> bool:
        """Whether there is enough of everything."""
        return (
            self.vcpus >= need.vcpus
            and self.ram_mib >= need.ram_mib
            and self.disk_gib >= need.disk_gib
        )


@dataclass(frozen=True, slots=True)
class Victim:
    """A server that may go."""

    uuid: str
    name: str
    room: Room
    created: str
    """Sorts by when it came."""


@dataclass(frozen=True, slots=True)
class Place:
    """A host that would do if it had room."""

    node: str
    free: Room
    victims: tuple[Victim, ...]
    going: tuple[str, ...] = ()
    """Servers that are being deleted: what they have counts as free."""
    is_kept: bool = False
    """Whether some of it is kept for others that wait, and may yet be left."""
    is_begun: bool = False
    """Whether room is being made there for this server: some may have gone already."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Where the server goes, and who goes for it: nobody, if there is room or will be soon."""

    node: str
    victims: tuple[Victim, ...]


Strategy = Callable[[Room, Sequence[Place]], Choice | None]


def _sum(free: Room, victims: Sequence[Victim]) -> Room:
    for victim in victims:
        free += victim.room
    return free


def _needed(need: Room, place: Place, order: Sequence[Victim]) -> tuple[Victim, ...] | None:
    """The first few of an order that make enough room, without those that were not needed."""
    chosen: list[Victim] = []
    for victim in order:
        if _sum(place.free, chosen).holds(need):
            break
        chosen.append(victim)
    if not _sum(place.free, chosen).holds(need):
        return None
    for victim in list(chosen):
        rest = [one for one in chosen if one is not victim]
        if _sum(place.free, rest).holds(need):
            chosen = rest
    return tuple(chosen)


def _size(victims: Sequence[Victim]) -> tuple[int, int, int, int]:
    """How much goes: the number of servers first."""
    room = _sum(Room(0, 0, 0), victims)
    return len(victims), room.ram_mib, room.vcpus, room.disk_gib


class _Looked(Exception):
    """It was looked for long enough."""


@dataclass(slots=True)
class _Search:
    """Sets of so many servers that suffice. Those of one size are as good as each other, so the
    youngest goes: it loses least.
    """

    need: Room
    sizes: list[list[Victim]]
    looks: int

    def sets(self, free: Room, count: int, at: int = 0) -> Iterator[tuple[Victim, ...]]:
        """Of servers of the sizes from here on."""
        self.looks -= 1
        if self.looks < 0:
            raise _Looked
        if count == 0:
            if free.holds(self.need):
                yield ()
            return
        if not self._can_suffice(free, count, at):
            return
        size = self.sizes[at]
        for some in range(min(count, len(size)), -1, -1):
            taken = size[:some]
            for rest in self.sets(_sum(free, taken), count - some, at + 1):
                yield (*taken, *rest)

    def _can_suffice(self, free: Room, count: int, at: int) -> bool:
        rooms = [size[0].room for size in self.sizes[at:]]
        if sum(len(size) for size in self.sizes[at:]) < count:
            return False
        most = Room(
            free.vcpus + count * max(room.vcpus for room in rooms),
            free.ram_mib + count * max(room.ram_mib for room in rooms),
            free.disk_gib + count * max(room.disk_gib for room in rooms),
        )
        return most.holds(self.need)


def _smallest(need: Room, place: Place, looks: int) -> tuple[Victim, ...] | None:
    if not _sum(place.free, place.victims).holds(need):
        return None
    sizes: dict[Room, list[Victim]] = {}
    for victim in sorted(place.victims, key=lambda one: (one.created, one.uuid), reverse=True):
        sizes.setdefault(victim.room, []).append(victim)
    search = _Search(need, list(sizes.values()), looks)
    try:
        for count in range(len(place.victims) + 1):
            enough = list(search.sets(place.free, count))
            if enough:
                return min(enough, key=_size)
    except _Looked:
        pass
    return _needed(need, place, sorted(place.victims, key=lambda one: -one.room.ram_mib))


def strict(need: Room, places: Sequence[Place]) -> Choice | None:
    """The smallest set that suffices, on whichever host that is."""
    looks = max(FEWEST_LOOKS, min(LOOKS, ALL_LOOKS // max(1, len(places))))
    chosen = [(place.node, _smallest(need, place, looks)) for place in places]
    found = [(node, some) for node, some in chosen if some is not None]
    if not found:
        return None
    node, victims = min(found, key=lambda one: (_size(one[1]), one[0]))
    return Choice(node, victims)


def oldest(need: Room, places: Sequence[Place]) -> Choice | None:
    """Those that have run longest go first."""
    found = []
    for place in places:
        by_age = sorted(place.victims, key=lambda one: (one.created, one.uuid))
        some = _needed(need, place, by_age)
        if some is not None:
            found.append((max((one.created for one in some), default=""), place.node, some))
    if not found:
        return None
    _, node, victims = min(found, key=lambda one: one[:2])
    return Choice(node, victims)


def chance(need: Room, places: Sequence[Place]) -> Choice | None:
    """Anybody, anywhere. But nobody goes if a host has room or soon will have; and where room was
    begun to be made, as by one that crashed, it goes on: those that went would have gone in vain.
    """
    shuffled = random.sample(list(places), len(places))
    shuffled.sort(key=lambda place: (not place.free.holds(need), not place.is_begun))
    for place in shuffled:
        some = _needed(need, place, random.sample(place.victims, len(place.victims)))
        if some is not None:
            return Choice(place.node, some)
    return None


STRATEGIES: dict[str, Strategy] = {"strict": strict, "oldest": oldest, "chance": chance}
