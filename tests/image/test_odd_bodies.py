"""Bodies that make no sense: a sentence, never a crash, and nothing is changed."""

import asyncio
import json
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.image.world import PATCH
from tests.image.world import World
from tests.image.world import world
from tests.support.examples import examples

ODD: list[Any] = [
    None, 1, -1, 1.5, True, "", "x" * 300, [], {}, [None], {"a": 1}, 2**40, "\ud800", "%", "naïve",
]  # fmt: skip
FIELDS = (
    "id", "name", "visibility", "protected", "os_hidden", "owner", "container_format",
    "disk_format", "min_disk", "min_ram", "tags", "status", "size", "self", "custom", "",
)  # fmt: skip


@pytest.fixture
def here(tmp_path: Path) -> Any:
    """A world that plain functions can ask."""
    with asyncio.Runner() as runner:
        context = world(tmp_path)
        made = runner.run(context.__aenter__())
        yield runner.run, made
        runner.run(context.__aexit__(None, None, None))


def _text(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_odd_values_are_refused_or_kept_as_they_are(here: Any) -> None:
    run, world_ = here
    image = run(world_.make())["id"]

    async def walk(asked: World) -> None:
        for name in FIELDS:
            for value in ODD:
                made = await asked.ask("POST", "/v2/images", _text({name: value}))
                assert made.status in (201, 400, 403), (name, value, made)
                for op in ("add", "replace", "remove"):
                    document = [{"op": op, "path": f"/{name}", "value": value}]
                    answer = await asked.ask(
                        "PATCH", f"/v2/images/{image}", _text(document),
                        headers={"content-type": PATCH},
                    )  # fmt: skip
                    assert answer.status in (200, 400, 403, 409), (op, name, value, answer)
                    if answer.status != 200:
                        assert answer.sentence
                    await asked.patch(image, {"op": "replace", "path": "/owner", "value": "o"})

    run(walk(world_))


@pytest.mark.parametrize(
    ("document", "status"),
    [
        ({}, 400),
        ([1], 400),
        ([{"op": "copy", "path": "/a"}], 400),
        ([{"op": "add", "path": "/a"}], 400),
        ([{"op": "add", "path": "/a/b", "value": "x"}], 400),
        ([{"op": "add", "path": "/locations", "value": []}], 403),
        ([{"op": "remove", "path": "/name"}], 403),
        ([{"op": "replace", "path": "/none", "value": "x"}], 409),
        ([{"op": "remove", "path": "/none"}], 409),
        ([{"op": "add", "path": "/a", "value": 1}], 400),
        ([], 200),
    ],
)
def test_patches_that_make_no_sense(here: Any, document: Any, status: int) -> None:
    run, world_ = here
    image = run(world_.make())["id"]
    headers = {"content-type": PATCH}
    answer = run(world_.ask("PATCH", f"/v2/images/{image}", _text(document), headers=headers))
    assert answer.status == status, answer


def test_a_patch_needs_its_media_type(here: Any) -> None:
    run, world_ = here
    image = run(world_.make())["id"]
    assert run(world_.ask("PATCH", f"/v2/images/{image}", [])).status == 415


def test_odd_paths_and_methods_are_refused(here: Any) -> None:
    run, world_ = here
    image = run(world_.make())["id"]
    for method, path, status in (
        ("GET", "/v2/images/not-a-uuid", 404),
        ("GET", f"/v2/images/{image.upper()}", 200),
        ("GET", f"/v2/images/{image}x", 404),
        ("POST", f"/v2/images/{image}", 405),
        ("GET", "/v1/images", 404),
        ("PUT", f"/v2/images/{image}/tags/{'x' * 256}", 400),
        ("PUT", f"/v2/images/{image}/tags/%E2%98%83", 204),
        ("POST", f"/v2/images/{image}/members", 400),
        ("POST", f"/v2/images/{image}/import", 400),
        ("GET", "/v2/tasks/none", 404),
    ):
        assert run(world_.ask(method, path)).status == status, (method, path)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@hypothesis.given(
    body=_JSON | st.dictionaries(st.sampled_from(FIELDS), _JSON),
    way=st.sampled_from(("", "/members", "/import")),
)
@hypothesis.settings(
    max_examples=examples(50),
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
def test_any_json_is_answered(here: Any, body: Any, way: str) -> None:
    run, world_ = here
    if not hasattr(world_, "image"):
        world_.image = run(world_.make())["id"]
    path = f"/v2/images/{world_.image}{way}" if way else "/v2/images"
    answer = run(world_.ask("POST", path, _text(body)))
    assert answer.status in (200, 201, 400, 403, 409), answer


def test_properties_do_not_pile_up(here: Any) -> None:
    run, world_ = here
    image = run(world_.make())["id"]
    ops = [{"op": "add", "path": f"/p{n}", "value": "x" * 65_000} for n in range(5)]
    assert run(world_.patch(image, *ops[:4])).status == 200
    assert run(world_.patch(image, ops[4])).status == 400
    assert "p4" not in run(world_.show(image))
    assert run(world_.patch(image, {"op": "remove", "path": "/p0"}, ops[4])).status == 200
