"""A page that is asked for again shows what is so now, to each reader in its own way."""

import json
from typing import Any

import pytest

from siderite.compute.usecases.server import listing
from siderite.compute.web.server import pages
from siderite.compute.web.server.server_list import Ask
from siderite.core.store.table import Where
from tests.compute.cloud import Cloud

VERSIONS = (1, 79, 96, 104, "2.901")


def _page(cloud: Cloud, query: str = "", **how: Any) -> list[dict[str, Any]]:
    answer = cloud.ask("GET", f"/servers/detail?all_tenants=1{query}", **how)
    assert answer.status == 200, answer
    found: list[dict[str, Any]] = answer.json["servers"]
    return found


def _alone(cloud: Cloud, uuid: str, version: Any) -> dict[str, Any]:
    """A server as it is shown alone, but for what is only shown then."""
    shown = cloud.show(uuid, version=version)
    shown.pop("server_groups", None)
    return shown


def test_an_item_is_what_the_server_alone_is(both: Cloud) -> None:
    uuids = [both.boot() for _ in range(5)]
    for version in VERSIONS:
        for _ in range(2):
            page = {one["id"]: one for one in _page(both, version=version)}
            for uuid in uuids:
                assert page[uuid] == _alone(both, uuid, version)


def test_one_that_changed_is_shown_as_it_is_among_those_that_did_not(both: Cloud) -> None:
    uuids = [both.boot() for _ in range(6)]
    before = {one["id"]: one for one in _page(both)}
    both.ask("PUT", f"/servers/{uuids[2]}", {"server": {"name": "other"}})
    both.ask("DELETE", f"/servers/{uuids[4]}")
    both.wait(uuids[4], lambda seen: seen["status"] == "GONE")
    after = {one["id"]: one for one in _page(both)}
    assert after.pop(uuids[2])["name"] == "other"
    assert after == {k: v for k, v in before.items() if k not in (uuids[2], uuids[4])}


def test_how_a_host_is_shows_at_once(both: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    uuid = both.boot()
    assert {one["host_status"] for one in _page(both) if one["id"] == uuid} == {"UP"}

    async def down(ctx: Any) -> dict[str, str]:
        return dict.fromkeys(both.hosts, "DOWN")

    monkeypatch.setattr("siderite.compute.web.service._STATUSES_S", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(listing, "host_statuses", down)
        assert {one["host_status"] for one in _page(both) if one["id"] == uuid} == {"DOWN"}
    assert {one["host_status"] for one in _page(both) if one["id"] == uuid} == {"UP"}


def test_the_project_in_the_address_is_in_the_links(both: Cloud) -> None:
    _, token, project = both.app.person("member")
    uuid = both.boot(token=token)
    for prefix in ("/compute/v2.1", f"/compute/v2.1/{project}", "/compute/v2.1"):
        page = both.ask("GET", f"{prefix}/servers/detail", token=token).json["servers"]
        assert page[0]["links"][0]["href"].endswith(f"{prefix}/servers/{uuid}")


def test_only_so_much_is_kept(lite: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST", 3)
    uuids = [lite.boot() for _ in range(2)]
    kept, ctx = pages.Pages(), lite.app.app.program.compute.context
    for version in (1, 79, 96, 1, 96):
        ask = Ask(limit=2, where=[Where("deleted = 0")])
        rows, items = lite.app.run(kept.of(ctx, ask, (version, True, "/", "v2.1", None), {}))
        assert [row[0] for row in rows] == uuids[::-1]
        assert [json.loads(item)["id"] for item in items] == uuids[::-1]
        assert sum(len(shelf.items) for shelf in kept._shelves.values()) <= 3 + 2
