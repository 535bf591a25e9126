"""Where hosts are by their aggregates."""

from siderite.compute.domain.aggregate import NOWHERE
from siderite.compute.domain.aggregate import Aggregate
from siderite.compute.domain.aggregate import Atlas


def _aggregate(name: str, *hosts: str, **metadata: str) -> Aggregate:
    return Aggregate(
        uuid=name, created_at="", name=name, metadata=dict(metadata), hosts=list(hosts)
    )


def test_a_host_has_what_all_its_aggregates_say() -> None:
    atlas = Atlas(
        [
            _aggregate("a", "h1", "h2", "h3", availability_zone="east", disk="fast"),
            _aggregate("b", "h2", "h3", disk="large"),
            _aggregate("c", "h4"),
        ]
    )
    place = atlas.place("h1")
    assert (place.zone, place.aggregate_metadata["disk"], place.hosts) == ("east", {"fast"}, {"h1"})
    place = atlas.place("h2")
    assert (place.zone, place.aggregate_metadata["disk"]) == ("east", {"fast", "large"})
    assert (atlas.place("h4").zone, atlas.place("h4").aggregate_metadata) == ("nova", {})
    assert atlas.place("h5") is NOWHERE


def test_hosts_of_the_same_aggregates_share_a_place() -> None:
    hosts = [f"h{number}" for number in range(2000)]
    atlas = Atlas([_aggregate("a", *hosts, availability_zone="east"), _aggregate("b", *hosts[:9])])
    assert sorted(len(place.hosts) for place in atlas.places) == [9, 1991]
    assert atlas.place("h10") is atlas.place("h1999")
    assert atlas.place("h0") is not atlas.place("h1999")
