"""Whatever is posted to the login address, the answer is 201 or a 4xx with a sentence."""

import asyncio
import copy
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from tests.identity.world import World
from tests.identity.world import by_password
from tests.identity.world import by_token
from tests.identity.world import world
from tests.support.examples import examples

_WORDS = st.sampled_from(
    ["auth", "identity", "methods", "password", "token", "user", "scope", "project", "domain", "id"]
)
_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | _WORDS
)
_JSON = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(_WORDS | st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)
_SCOPES: list[Any] = [
    None,
    "unscoped",
    {"system": {"all": True}},
    {"project": {"name": "admin", "domain": {"id": "default"}}},
    {"domain": {"name": "Default"}},
]


def _places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if here:
        yield here
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in inner:
            yield from _places(one, (*here, key))


@st.composite
def _nearly_right(draw: st.DrawFn) -> Any:
    scope = draw(st.sampled_from(_SCOPES))
    body = draw(st.sampled_from([by_password("admin", scope=scope), by_token("x", scope)]))
    body = copy.deepcopy(body)
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(list(_places(body)) or [("auth",)]))
        spot = body
        for key in way:
            spot = spot[key]
        if draw(st.booleans()) or not isinstance(spot, dict):
            spot[last] = draw(_JSON)
        else:
            spot.pop(last, None)
    return body


class Told:
    """A world that lives through all examples, on a loop of its own."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._world = world(url)
        self.here: World = self._runner.run(self._world.__aenter__())

    def post(self, content: bytes) -> tuple[int, Any]:
        """Status and body."""
        answer = self._runner.run(self.here.http.post("/v3/auth/tokens", content=content))
        return answer.status_code, answer.json()

    def close(self) -> None:
        """End the world."""
        self._runner.run(self._world.__aexit__(None, None, None))
        self._runner.close()


@pytest.fixture
def told(database_url: str) -> Iterator[Told]:
    """A world for all examples of a test."""
    made = Told(database_url)
    yield made
    made.close()


@pytest.fixture
def told_lite() -> Iterator[Told]:
    """The same on SQLite only: what is asked does not come as far as the database."""
    made = Told("sqlite://")
    yield made
    made.close()


def _check(status: int, body: Any) -> None:
    if status == 201:
        assert body["token"]["user"]
    else:
        assert 400 <= status < 500, body
        assert body["error"]["code"] == status
        assert body["error"]["message"].endswith(".")


_lasting = settings(
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@_lasting
@given(body=_nearly_right() | _JSON)
def test_odd_json_is_never_a_500(told: Told, body: Any) -> None:
    _check(*told.post(msgspec.json.encode(body)))


@_lasting
@given(content=st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_what_is_not_json_is_never_a_500(told_lite: Told, content: bytes) -> None:
    status, body = told_lite.post(content)
    assert 400 <= status < 500
    _check(status, body)


def test_deep_and_strange_texts_are_never_a_500(told: Told) -> None:
    for content in (
        b'{"auth":' * 1000,
        b"[" * 100_000,
        b'{"auth": "\\ud800"}',
        b'{"auth": {"identity": {"methods": ["password"], "password": {"user": {"id": "\\u0000",'
        b' "password": "x"}}}}}',
        b"\xff\xfe",
        b'{"auth": 1e999}',
        b"x" * 70_000,
    ):
        status, body = told.post(content)
        _check(status, body)
        assert status != 201
