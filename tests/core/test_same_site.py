"""What a browser sends for the page of another site, as browsers send it."""

import base64
from collections.abc import Iterator

import pytest

from tests.baremetal.web.expect import refused
from tests.support.app import PASSWORD
from tests.support.app import URL
from tests.support.app import Answer
from tests.support.app import Standing
from tests.support.app import call
from tests.support.app import standing

KNOWN = "Basic " + base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
"""What a browser sends by itself once its user has logged in."""
NODES, IMAGES = "/baremetal/v1/nodes", "/image/v2/images"
BODIES = {NODES: b'{"driver": "fake-hardware"}', IMAGES: b'{"name": "x="}'}
STRANGE: list[dict[str, str]] = [
    {"sec-fetch-site": "cross-site", "origin": "http://evil.example"},
    {"sec-fetch-site": "same-site", "origin": "http://blog.test"},
    {"origin": "http://evil.example"},
    {"origin": "http://cloud.test.evil.example"},
    {"origin": "null"},
    {"origin": "http://[::"},
]
OURS: list[dict[str, str]] = [
    {},
    {"sec-fetch-site": "same-origin", "origin": URL},
    {"sec-fetch-site": "none"},
    {"origin": URL},
]


def asked(app: Standing, method: str, path: str, headers: dict[str, str]) -> Answer:
    """What the request of a browser is answered; without a token, that no page knows."""
    sent = {"host": "cloud.test", "content-type": "text/plain", **headers}
    pairs = [(name.encode(), text.encode()) for name, text in sent.items()]
    body = BODIES[path] if method == "POST" else b""
    return app.run(call(app.app.program.app, method, path, pairs, body))


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    with standing(tmp_path_factory.mktemp("asked")) as made:
        yield made


@pytest.fixture(scope="module")
def unasked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    with standing(tmp_path_factory.mktemp("unasked"), baremetal_auth="none") as made:
        yield made


@pytest.mark.parametrize("headers", STRANGE, ids=str)
@pytest.mark.parametrize("path", BODIES)
def test_a_page_of_another_site_changes_nothing_by_the_password_that_a_browser_knows(
    app: Standing, path: str, headers: dict[str, str]
) -> None:
    refused(asked(app, "POST", path, {"authorization": KNOWN, **headers}), 403)
    assert asked(app, "GET", path, {"authorization": KNOWN, **headers}).status == 200


@pytest.mark.parametrize("headers", OURS, ids=str)
def test_who_asks_with_a_password_and_is_no_such_page_is_served(
    app: Standing, headers: dict[str, str]
) -> None:
    for path in BODIES:
        assert asked(app, "POST", path, {"authorization": KNOWN, **headers}).status == 201


def test_a_token_is_good_wherever_the_page_is_from(app: Standing) -> None:
    headers = {"x-auth-token": app.app.token, **STRANGE[0]}
    assert asked(app, "POST", IMAGES, headers).status == 201


@pytest.mark.parametrize("headers", STRANGE, ids=str)
def test_a_page_of_another_site_changes_nothing_where_nobody_is_asked_who_he_is(
    unasked: Standing, headers: dict[str, str]
) -> None:
    refused(asked(unasked, "POST", NODES, headers), 403)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8770", "127.0.0.1.evil.example"])
def test_a_name_that_somebody_points_at_this_machine_opens_nothing(
    unasked: Standing, host: str
) -> None:
    headers = {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}
    refused(asked(unasked, "POST", NODES, headers), 403)
    refused(asked(unasked, "GET", NODES, headers), 403)


@pytest.mark.parametrize("host", ["127.0.0.1:8770", "[::1]:8770", "localhost:8770", "CLOUD.test"])
def test_our_own_names_open_what_asks_for_no_credential(unasked: Standing, host: str) -> None:
    assert asked(unasked, "GET", NODES, {"host": host}).status == 200
    assert asked(unasked, "POST", NODES, {"host": host}).status == 201


def test_a_ramdisk_asks_by_whatever_name_it_was_told(unasked: Standing) -> None:
    path = "/baremetal/v1/lookup?addresses=52:54:00:12:34:56"
    refused(asked(unasked, "GET", path, {"host": "boot.example"}), 404)
