"""What bodies may hold: texts of all scripts, on one line; and what names nothing is said so."""

from typing import Any

import pytest

from tests.compute.cloud import Cloud


@pytest.mark.parametrize(
    ("key", "value", "status"),
    [
        ("name", "名前\N{IDEOGRAPHIC SPACE}太郎", 202),
        ("name", "a\N{NO-BREAK SPACE}b", 202),
        ("name", "a\N{LINE SEPARATOR}b", 400),
        ("name", "a\tb", 400),
        ("name", "a\N{IDEOGRAPHIC SPACE}", 400),
        ("description", "名前\N{IDEOGRAPHIC SPACE}太郎", 202),
        ("description", " ", 202),
        ("description", None, 202),
        ("description", "bell\a", 400),
        ("description", "two\nlines", 400),
        ("availability_zone", "nova:a:b:c", 400),
    ],
)
def test_texts_of_a_new_server_are_one_line(lite: Cloud, key: str, value: Any, status: int) -> None:
    server = {"name": "n", "flavorRef": lite.flavor, "imageRef": lite.image, "networks": "none"}
    answer = lite.ask("POST", "/servers", {"server": {**server, key: value}})
    assert answer.status == status, answer
    if status == 202:
        assert lite.show(answer.json["server"]["id"])[key] == value


@pytest.mark.parametrize(
    ("version", "asked", "status"),
    [
        (104, {"volumeId": "11111111-2222-4333-8444-555555555555"}, 404),
        (104, {"volumeId": "11111111-2222-4333-8444-555555555555", "device": "/dev/vdb"}, 404),
        (104, {"volumeId": "no uuid"}, 400),
        (104, {}, 400),
        (104, None, 400),
        (104, {"volumeId": "11111111-2222-4333-8444-555555555555", "nonsense": 1}, 400),
        (78, {"volumeId": "11111111-2222-4333-8444-555555555555", "delete_on_termination": True},
         400),
        (48, {"volumeId": "11111111-2222-4333-8444-555555555555", "tag": "a"}, 400),
    ],
)  # fmt: skip
def test_a_volume_is_asked_for_as_it_must_be_though_there_is_none(
    lite: Cloud, version: int, asked: Any, status: int
) -> None:
    uuid = lite.boot()
    path, body = f"/servers/{uuid}/os-volume_attachments", {"volumeAttachment": asked}
    assert lite.ask("POST", path, body, version=version).status == status


@pytest.mark.parametrize(
    ("path", "version", "status"),
    [
        ("/servers/{}/os-volume_attachments?limit=x", 1, 400),
        ("/servers/{}/os-volume_attachments?limit=1&offset=0", 1, 200),
        ("/servers/{}/os-volume_attachments?nonsense=1", 74, 200),
        ("/servers/{}/os-volume_attachments?nonsense=1", 75, 400),
        ("/os-migrations?instance_uuid=x", 58, 200),
        ("/os-migrations?instance_uuid=x", 59, 400),
        ("/os-migrations?instance_uuid={}", 59, 200),
    ],
)
def test_queries_of_attachments_and_migrations_are_checked(
    lite: Cloud, path: str, version: int, status: int
) -> None:
    answer = lite.ask("GET", path.format(lite.boot()), version=version)
    assert answer.status == status, answer


@pytest.mark.parametrize(
    ("key", "value", "status"),
    [
        ("rxtx_factor", 10**400, 400), ("rxtx_factor", 3.5e38, 400), ("rxtx_factor", 0, 400),
        ("rxtx_factor", True, 400), ("rxtx_factor", "1_0", 400), ("rxtx_factor", "9" * 400, 400),
        ("rxtx_factor", "nan", 400), ("rxtx_factor", "1.5", 200), ("rxtx_factor", 2, 200),
        ("id", 10**255, 400), ("id", True, 400), ("id", 10**254, 200),
    ],
    ids=lambda part: str(part)[:20],
)  # fmt: skip
def test_numbers_of_a_flavor_are_within_bounds(
    lite: Cloud, key: str, value: Any, status: int
) -> None:
    flavor = {"name": f"{key} {value}"[:255], "ram": 1, "vcpus": 1, "disk": 1, key: value}
    made = lite.ask("POST", "/flavors", {"flavor": flavor}, version=101)
    assert made.status == status, made
    if status == 200:
        assert type(value)(made.json["flavor"][key]) == value


SECRET = "open sesame?"


@pytest.mark.parametrize("key", ["adminPass", "user_data"])
@pytest.mark.parametrize("value", [SECRET * 5500, [SECRET], {"a": SECRET}])
def test_what_is_secret_is_not_shown_where_it_is_refused(lite: Cloud, key: str, value: Any) -> None:
    server = {"name": "n", "flavorRef": lite.flavor, "imageRef": lite.image, "networks": "none"}
    wrong = (
        ("/servers", {"server": {**server, key: value}}),
        ("/servers/x/action", {"rebuild": {"imageRef": lite.image, key: value}}),
        ("/servers/x/action", {"changePassword": {"adminPass": value}}),
        ("/servers/x/action", {"changePassword": SECRET}),
        ("/servers/x/action", {"rescue": {"adminPass": value}}),
    )
    for path, body in wrong:
        refused = lite.ask("POST", path, body)
        assert refused.status == 400, refused
        assert SECRET not in refused.body.decode(), refused
