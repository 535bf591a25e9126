"""Hosts of an aggregate get images before servers need them."""

import pytest

from siderite.core.ids import new_uuid

PROGRESS = "aggregate.cache_images.progress"


@pytest.fixture
def row(both):
    """An aggregate of two hosts: its number, its UUID and their names."""
    names = [both.add_host(), both.add_host()]
    fields = {"name": f"row of {names[0]}"}
    made = both.ask("POST", "/os-aggregates", {"aggregate": fields}).json["aggregate"]
    for name in names:
        added = both.ask(
            "POST", f"/os-aggregates/{made['id']}/action", {"add_host": {"host": name}}
        )
        assert added.status == 200, added
    return made["id"], made["uuid"], names


def _ask(cloud, number, *images, **how):
    body = {"cache": [{"id": image} for image in images]}
    return cloud.ask("POST", f"/os-aggregates/{number}/images", body, **how)


def _work(cloud):
    sql = "SELECT reason FROM work WHERE kind = 'cache_image' ORDER BY machine"
    return [str(row[0]) for row in cloud.app.run(cloud.app.app.program.store.fetch(sql))]


def _told(cloud, uuid, times):
    """What became of images, when so much has been told."""
    while found := [data for kind, data in cloud.facts(uuid, PROGRESS) if kind == PROGRESS]:
        if len(found) >= times:
            return sorted(found, key=lambda data: data["index"])
    raise AssertionError(found)


def test_every_host_gets_every_image_and_what_it_boots(both, row):
    number, uuid, names = row
    kernel = both.make_image()
    image = both.make_image(kernel_id=kernel)
    assert _ask(both, number, image).status == 202
    told = _told(both, uuid, 4)
    pairs = [(data["host"], data["images_cached"]) for data in told]
    assert pairs == [(host, [one]) for host in names for one in (image, kernel)]
    assert [(data["index"], data["total"]) for data in told] == [(n, 4) for n in (1, 2, 3, 4)]
    assert "aggregate.cache_images.start" in [kind for kind, _ in both.facts(uuid)]
    assert _work(both) == []


def test_a_host_that_is_away_gets_it_later_and_one_that_cannot_says_so(both, row):
    number, uuid, (away, full) = row
    image = both.make_image()
    both.script(f"host:{away}", unreachable=True)
    both.script(f"host:{full}", fail={"fetch": "no space left"})
    assert _ask(both, number, image).status == 202
    [failed] = _told(both, uuid, 1)
    assert (failed["host"], failed["images_failed"]) == (full, [image])
    assert len(_work(both)) == 1
    both.script(f"host:{away}", unreachable=False)
    done, _ = _told(both, uuid, 2)
    assert (done["host"], done["images_cached"]) == (away, [image])


def test_what_cannot_be_is_refused_and_begins_nothing(both, row):
    number, _, _ = row
    image = both.make_image()
    path = f"/os-aggregates/{number}/images"
    bad = [{}, [], [image], [{"id": "x"}], [{"id": image, "x": 1}]]
    for body in [{}, {"cache": [{"id": image}], "x": 1}, *({"cache": one} for one in bad)]:
        assert both.ask("POST", path, body).status == 400, body
    twice = _ask(both, number, image, image)
    assert (twice.status, b"Duplicate images" in twice.body) == (400, True)
    missing = _ask(both, number, new_uuid())
    assert (missing.status, b"could not be found" in missing.body) == (400, True)
    assert _ask(both, 10**6, image).status == 404
    assert _ask(both, number, image, version=80).status == 404
    empty = both.ask("POST", "/os-aggregates", {"aggregate": {"name": f"empty {number}"}})
    assert _ask(both, empty.json["aggregate"]["id"], image).status == 409
    _, mia, _ = both.app.run(both.app.app.person("member"))
    assert _ask(both, number, image, token=mia).status == 403
    assert _work(both) == []
