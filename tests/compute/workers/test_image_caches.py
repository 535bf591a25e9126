"""Hosts of an aggregate get images before servers need them."""

import time

import pytest

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Wait
from siderite.compute.drivers.simulated import driver
from siderite.compute.usecases.fleet import image_cache
from siderite.core.ids import new_uuid
from tests.compute.cloud import PATIENCE_S

START, PROGRESS, END = (f"aggregate.cache_images.{one}" for one in ("start", "progress", "end"))

_LEASED = "SELECT fence FROM work WHERE kind = 'cache_image'"


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
    sql = "SELECT reason FROM work WHERE kind = 'cache_image'"
    return [str(row[0]) for row in cloud.app.run(cloud.app.app.program.store.fetch(sql))]


def _until(is_so):
    deadline = time.monotonic() + PATIENCE_S
    while not (found := is_so()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def _told(cloud, uuid, last=END):
    """What was told of images on hosts, when this has been."""
    found = cloud.facts(uuid, last)
    return [(kind, data) for kind, data in found if kind in (START, PROGRESS, END)]


def test_every_host_gets_every_image_and_what_it_boots(both, row):
    number, uuid, names = row
    kernel = both.make_image()
    image = both.make_image(kernel_id=kernel, ramdisk_id="../no image")
    assert _ask(both, number, image).status == 202
    told = _told(both, uuid)
    assert [kind for kind, _ in told] == [START, PROGRESS, PROGRESS, END]
    for index, (name, (_, data)) in enumerate(zip(names, told[1:3], strict=True), start=1):
        assert (data["host"], data["images_cached"]) == (name, [image, kernel])
        assert (data["images_failed"], data["index"], data["total"]) == ([], index, 2)
    assert _work(both) == []


def test_a_host_that_is_away_gets_it_later_and_one_that_cannot_says_so(both, row):
    number, uuid, (away, full) = row
    image = both.make_image()
    both.script(f"host:{away}", unreachable=True)
    both.script(f"host:{full}", fail={"fetch": "no space left"})
    assert _ask(both, number, image).status == 202
    _, (_, failed) = _told(both, uuid, PROGRESS)
    assert (failed["host"], failed["images_failed"], failed["index"]) == (full, [image], 1)
    _until(lambda: any("does not answer" in reason for reason in _work(both)))
    both.script(f"host:{away}", unreachable=False)
    _, _, (_, done), _ = _told(both, uuid)
    assert (done["host"], done["images_cached"], done["index"]) == (away, [image], 2)


def test_what_is_not_there_in_time_is_told_and_ends(both, row, monkeypatch):
    number, uuid, names = row
    monkeypatch.setattr(image_cache, "PATIENCE_S", 0.0)
    image = both.make_image()
    assert _ask(both, number, image).status == 202
    _, *failed, _ = _told(both, uuid)
    assert [(data["host"], data["images_failed"]) for _, data in failed] == [
        (name, [image]) for name in names
    ]
    assert _work(both) == []


def test_the_work_is_kept_while_this_process_sends_an_image(both, row, monkeypatch):
    """Or another one would begin to send it too."""
    number, uuid, (first, _) = row
    asked, due = [], []

    async def called_off():
        raise AssertionError("nobody wants that")

    async def slow(part, at, image, token):
        asked.append((at.host, token))
        due.extend(await both.app.app.program.store.fetch(_LEASED))
        return Wait("it is being sent", 0.05, called_off) if len(asked) < 4 else Done()

    monkeypatch.setattr(driver._Simulated, "fetch", slow)
    assert _ask(both, number, both.make_image()).status == 202
    assert len(_told(both, uuid)) == 4
    assert set(asked[:4]) == {(first, asked[0][1])}
    assert len({fence for (fence,) in due[:4]}) == 1


def test_what_cannot_be_is_refused_and_begins_nothing(both, row):
    number, _, _ = row
    image = both.make_image()
    path = f"/os-aggregates/{number}/images"
    bad = [{}, [], [image], [{"id": "x"}], [{"id": image, "x": 1}]]
    bad.append([{"id": new_uuid()} for _ in range(101)])
    for body in [{}, {"cache": [{"id": image}], "x": 1}, *({"cache": one} for one in bad)]:
        assert both.ask("POST", path, body).status == 400, body
    twice = _ask(both, number, image, image)
    assert (twice.status, b"Duplicate images" in twice.body) == (400, True)
    missing = _ask(both, number, new_uuid())
    assert (missing.status, b"could not be found" in missing.body) == (400, True)
    assert _ask(both, 10**6, new_uuid()).status == 404
    assert _ask(both, number, image, version=80).status == 404
    empty = both.ask("POST", "/os-aggregates", {"aggregate": {"name": f"empty {number}"}})
    none = _ask(both, empty.json["aggregate"]["id"], image)
    assert (none.status, b"has no hosts" in none.body) == (400, True)
    _, mia, _ = both.app.run(both.app.app.person("member"))
    assert _ask(both, number, image, token=mia).status == 403
    assert _work(both) == []
