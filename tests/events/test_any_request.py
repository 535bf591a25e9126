"""Whatever is sent to whichever address of the event log: never a 500, and a refusal changes
nothing.
"""

import re
from contextlib import contextmanager

import hypothesis
import pytest
from hypothesis import HealthCheck
from hypothesis import given
from hypothesis import strategies as st

from siderite.core.store import Op
from siderite.events.service import ROUTES
from tests.baremetal.web import odd
from tests.events.log import NODE
from tests.support.examples import IS_SAME_EACH_TIME
from tests.support.examples import examples

repeatable = hypothesis.settings(
    max_examples=examples(20),
    derandomize=IS_SAME_EACH_TIME,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
KEPT = ("webhooks", "webhook_places", "webhook_deliveries", "event_followers", "events")
PATHS = [("/events" + route.path, route.method) for route in ROUTES]
WORDS = ("q", "type", "project", "resource", "after", "limit", "state", "before", "overdue", "name")
QUERY = st.lists(
    st.tuples(st.sampled_from(WORDS) | odd.WORDS, odd.WORDS | st.sampled_from(["*", "a*b", NODE])),
    max_size=3,
)
URLS = st.sampled_from(
    [
        "https://192.0.2.1/", "http://[::1]/", "http://[", "http://a:b", "//x", "http://%zz/",
        "https://192.0.2.1:0/", "http://1.2.3.4.5/", "http://\x00/", "http://xn--/", "http://.../",
    ]
)  # fmt: skip
HOOK = st.fixed_dictionaries(
    {},
    optional={
        "url": URLS | odd.TEXTS,
        **dict.fromkeys(("name", "type", "resource", "project", "secret"), odd.SCALARS),
        "enabled": odd.SCALARS,
        "after": odd.SCALARS,
        "bogus": odd.JSON,
    },
)


@pytest.fixture(autouse=True, scope="module")
def no_names():
    """Names are not looked up: what a resolver says of noise is not the question."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("siderite.core.guard.Guard._look_up", _look_up)
        yield


async def _look_up(guard, host):
    import ipaddress

    try:
        return [ipaddress.ip_address(host.strip("[]"))]
    except ValueError:
        raise OSError("no such name") from None


def footprint(app):
    store = app.app.program.store
    return {table: app.run(store.fetch(f"SELECT count(*) FROM {table}"))[0][0] for table in KEPT}


@contextmanager
def one_webhook(app):
    """A webhook for one example, and none after it."""
    made = app.ask("POST", "/events/v1/webhooks", {"url": "https://192.0.2.1/"})
    assert made.status == 201, made
    try:
        yield made.json["id"]
    finally:
        gone = ("webhooks", "webhook_places", "webhook_deliveries")
        app.run(app.app.program.store.commit([Op(f"DELETE FROM {table}") for table in gone]))


@repeatable
@given(data=st.data())
def test_no_request_is_a_server_error(one_fact, data):
    path, method = data.draw(st.sampled_from([p for p in PATHS if not p[0].endswith("/test")]))
    query = "&".join(f"{odd.escaped(k)}={odd.escaped(v)}" for k, v in data.draw(QUERY))
    body = data.draw(HOOK.map(odd.as_bytes) | odd.BODIES)
    with one_webhook(one_fact) as uuid:
        path = re.sub(r"\{\w+\}", lambda _: data.draw(st.just(uuid) | odd.SEGMENTS), path)
        before = footprint(one_fact)
        answer = one_fact.ask(method, f"{path}?{query}" if query else path, body)
        assert 200 <= answer.status < 500, answer
        if answer.status >= 400:
            assert set(answer.json["error"]) == {"code", "message"}
            assert footprint(one_fact) == before, answer


@pytest.mark.parametrize(
    "url", ["http://[::ffff:7f00:1]/", "http://[::]/", "http://127.0.0.1.:1/", "http://[fe80::1]/"]
)
def test_no_spelling_of_this_machine_is_taken(one_fact, url):
    answer = one_fact.ask("POST", "/events/v1/webhooks", {"url": url})
    with one_webhook(one_fact):
        assert answer.status in (201, 400), answer
    assert (answer.status == 201) == ("127.0.0.1." in url), "a name that nobody knows yet"
