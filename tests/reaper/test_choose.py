"""Who goes: as few as will do, the longest there, or anybody; and never one too many."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siderite.reaper import choose
from siderite.reaper.choose import STRATEGIES
from siderite.reaper.choose import Place
from siderite.reaper.choose import Room
from siderite.reaper.choose import Victim
from siderite.reaper.choose import chance
from siderite.reaper.choose import oldest
from siderite.reaper.choose import strict
from siderite.reaper.shown import comes
from siderite.reaper.shown import is_preemptible


def victim(name, vcpus, created="2026-01-01"):
    return Victim(name, name, Room(vcpus, vcpus * 512, vcpus), created)


def test_strict_takes_the_smallest_set_on_whichever_host_that_is():
    far = Place("far", Room(0, 0, 0), (victim("a", 1), victim("b", 1), victim("c", 2)))
    near = Place("near", Room(1, 512, 1), (victim("d", 2), victim("e", 8)))
    choice = strict(Room(3, 1536, 3), [far, near])
    assert (choice.node, [one.name for one in choice.victims]) == ("near", ["d"])


def test_oldest_takes_those_that_have_run_longest():
    place = Place("h", Room(0, 0, 0), (victim("new", 2, "2026-03-01"), victim("old", 2)))
    assert [one.name for one in oldest(Room(2, 1024, 2), [place]).victims] == ["old"]


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_nobody_goes_where_there_is_room_and_nothing_helps_where_there_is_too_little(strategy):
    choose = STRATEGIES[strategy]
    assert choose(Room(1, 512, 1), [Place("h", Room(4, 4096, 4), (victim("a", 1),))]).victims == ()
    assert choose(Room(9, 512, 1), [Place("h", Room(4, 4096, 4), (victim("a", 1),))]) is None
    assert choose(Room(1, 512, 1), []) is None


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_nobody_goes_if_one_of_several_hosts_has_room(strategy):
    full = [Place(f"f{n}", Room(0, 0, 0), (victim(f"v{n}", 2),)) for n in range(20)]
    there = [*full, Place("room", Room(2, 1024, 2), (victim("a", 1),)), *full]
    choice = STRATEGIES[strategy](Room(2, 1024, 2), there)
    assert (choice.node, choice.victims) == ("room", ())


def test_chance_goes_on_where_room_was_begun_to_be_made():
    full = [Place(f"f{n}", Room(0, 0, 0), (victim(f"v{n}", 2),)) for n in range(40)]
    begun = Place("begun", Room(1, 512, 1), (victim("a", 1),), is_begun=True)
    assert chance(Room(2, 1024, 2), [*full, begun]).node == "begun"
    assert (
        chance(Room(3, 1536, 3), [begun, Place("f", Room(0, 0, 0), (victim("v", 3),))]).node == "f"
    )


rooms = st.builds(Room, st.integers(0, 8), st.integers(0, 8), st.integers(0, 8))
victims = st.builds(Victim, st.uuids().map(str), st.just("v"), rooms, st.sampled_from("abc"))
places = st.builds(Place, st.uuids().map(str), rooms, st.lists(victims, max_size=18).map(tuple))


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
@given(need=rooms, there=st.lists(places, max_size=4))
def test_what_goes_is_enough_and_none_of_it_could_have_stayed(strategy, need, there):
    choice = STRATEGIES[strategy](need, there)
    if choice is None:
        for place in there:
            everything = place.free
            for one in place.victims:
                everything += one.room
            assert not everything.holds(need)
        return
    [place] = [one for one in there if one.node == choice.node]
    for left_out in (None, *choice.victims):
        room = place.free
        for one in choice.victims:
            if one is not left_out:
                room += one.room
        assert room.holds(need) is (left_out is None)


sizes = st.sampled_from([Room(1, 2, 1), Room(2, 1, 2), Room(2, 4, 1), Room(3, 3, 4), Room(0, 5, 0)])
few = st.builds(Victim, st.uuids().map(str), st.just("v"), sizes | rooms, st.sampled_from("abc"))


@given(need=rooms, free=rooms, there=st.lists(few, max_size=8))
def test_strict_is_as_small_as_any_set_that_suffices(need, free, there):
    """Every set is looked at; of those with the fewest servers, the one with the least memory."""
    place = Place("h", free, tuple(there))
    enough = [
        (count, sum(one.room.ram_mib for one in some))
        for count in range(len(there) + 1)
        for some in combinations(there, count)
        if sum((one.room for one in some), free).holds(need)
    ]
    choice = strict(need, [place])
    assert (choice is None) is (not enough)
    if choice is not None:
        memory = sum(one.room.ram_mib for one in choice.victims)
        assert (len(choice.victims), memory) == min(enough)


def test_strict_is_exact_on_a_crowded_host_too():
    """Forty with much memory and one processor each; one with what it takes."""
    many = [Victim(f"m{at}", f"m{at}", Room(1, 4096, 1), "a") for at in range(40)]
    one = Victim("one", "one", Room(6, 512, 6), "b")
    choice = strict(Room(6, 512, 6), [Place("h", Room(0, 0, 0), (*many, one))])
    assert [victim.name for victim in choice.victims] == ["one"]


def test_many_crowded_hosts_take_no_longer_than_a_few(monkeypatch):
    """Whoever is looked after meanwhile waits."""
    allowed = []

    class Counted(choose._Search):
        def __init__(self, need, sizes, looks):
            super().__init__(need, sizes, looks)
            allowed.append(looks)

    monkeypatch.setattr(choose, "_Search", Counted)
    places = [
        Place(f"h{n:02}", Room(0, 0, 0), tuple(victim(f"{n}-{i}", i + 1) for i in range(30)))
        for n in range(40)
    ]
    chosen = strict(Room(150, 150 * 512, 150), places)
    assert sum(allowed) <= choose.ALL_LOOKS
    assert (chosen.node, len(chosen.victims)) == ("h00", 6)


def test_of_several_that_are_alike_the_youngest_goes():
    place = Place("h", Room(0, 0, 0), (victim("old", 1), victim("new", 1, "2026-03-01")))
    assert [one.name for one in strict(Room(1, 512, 1), [place]).victims] == ["new"]


@pytest.mark.parametrize(
    ("why", "is_so"),
    [
        ("is cleaning, not available", True), ("is clean wait, not available", True),
        ("is deleting, not available", True), ("carries server 4711", True),
        ("carries server 4712", False), ("carries server", False),
        ("is clean failed, not available", False), ("is clean hold, not available", False),
        ("is manageable, not available", False), ("in maintenance", False),
    ],
)  # fmt: skip
def test_a_node_that_is_being_cleaned_comes_by_itself_and_one_that_failed_does_not(why, is_so):
    assert comes({"why_not": why}, ["4711"]) is is_so


def test_preemptible_is_what_its_flavor_its_metadata_or_its_project_says():
    plain = {"tenant_id": "p", "flavor": {"extra_specs": {}}, "metadata": {}}
    assert not is_preemptible(plain)
    assert is_preemptible({**plain, "flavor": {"extra_specs": {"preemptible": "True"}}})
    assert is_preemptible({**plain, "metadata": {"preemptible": "yes"}})
    assert is_preemptible(plain, {"p"})
    assert not is_preemptible(plain, {"q"})
