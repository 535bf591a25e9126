"""The list of all imports: whose they are, filtered, in order and in pages."""

from pathlib import Path
from typing import Any

import pytest

from siderite.image import importing
from tests.image.mirror import mirroring
from tests.image.test_imports import begun
from tests.image.test_imports import run
from tests.image.test_imports import until
from tests.image.world import World

BRIEF = {
    "id", "type", "status", "image_id", "owner", "user_id", "request_id", "created_at",
    "updated_at", "expires_at", "self", "schema",
}  # fmt: skip


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for that need not be."""
    monkeypatch.setattr(importing, "AGAIN_S", (0.0,))
    monkeypatch.setattr(importing, "WAIT_S", 0.05)


async def _page(here: World, query: str = "", token: str | None = None) -> dict[str, Any]:
    answer = await here.ask("GET", f"/v2/tasks{query}", token=token)
    assert answer.status == 200, answer
    return dict(answer.json)


async def _images(here: World, query: str = "", token: str | None = None) -> list[str]:
    return [one["image_id"] for one in (await _page(here, query, token))["tasks"]]


async def _all(here: World, query: str) -> list[str]:
    """From page to page, as the links say."""
    page = await _page(here, query)
    found = page["tasks"]
    while "next" in page:
        page = (await here.ask("GET", page["next"])).json
        found = [*found, *page["tasks"]]
    return [one["image_id"] for one in found]


def test_imports_are_listed_to_those_whose_images_they_are_of(
    tmp_path: Path, database_url: str
) -> None:
    async def story(here: World, mirror: Any) -> None:
        _, mine, _ = await here.app.person("member")
        _, other, _ = await here.app.person("member")
        good = await begun(here, mirror.at("/good", b"data"), mine)
        await until(here, good, "active")
        bad = await begun(here, mirror.at("/good", b"data").replace("/good", "/none"))
        await until(here, bad, "queued")
        last = await begun(here, mirror.at("/good", b"data"), other)
        await until(here, last, "active")
        assert await _images(here) == [last, bad, good]
        assert await _images(here, "?sort_dir=asc&sort_key=created_at") == [good, bad, last]
        assert await _images(here, "?status=failure") == [bad]
        assert await _images(here, "?status=success&type=api_image_import") == [last, good]
        assert await _images(here, "?type=import") == []
        assert await _images(here, token=mine) == [good]
        (shown,) = (await _page(here, token=mine))["tasks"]
        assert set(shown) == BRIEF
        for way, order in (("desc", [last, bad, good]), ("asc", [good, bad, last])):
            assert await _all(here, f"?limit=1&sort_dir={way}") == order
        assert (await _page(here, "?limit=0"))["tasks"] == []
        theirs = (await _page(here, token=other))["tasks"][0]["id"]
        for odd in ("status=odd", "type=odd", "limit=-1", "sort_key=odd", "sort_dir=odd",
                    "marker=odd", f"marker={theirs}"):  # fmt: skip
            answer = await here.ask("GET", f"/v2/tasks?{odd}", token=mine)
            assert answer.status == 400, odd
        schema = (await here.ask("GET", "/v2/schemas/tasks")).json
        assert set(await _page(here, "?limit=1")) == set(schema["properties"])

    with mirroring() as mirror:
        run(tmp_path, mirror, story, database_url)
