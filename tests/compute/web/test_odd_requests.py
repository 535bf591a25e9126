"""Odd requests: whatever a body or a query holds, the answer is never a server error."""

from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from siderite.compute.web.server.actions import ACTIONS
from siderite.compute.web.server.server_list import EVERYBODY
from siderite.compute.web.server.server_list import SORT
from tests.compute.cloud import Cloud
from tests.support.examples import IS_SAME_EACH_TIME
from tests.support.examples import examples

ODD: list[Any] = [
    None, True, 0, -1, 2**70, 1.5, "", " ", "x" * 300, "\u0000", "é\U0001f600", [], [None], [[]],
    {}, {"a": {}}, {"": ""}, ["x"] * 60, "../..", "%", "null", "-1", "1e9",
    "11111111-2222-4333-8444-555555555555",
]  # fmt: skip
KEYS = (
    "name", "flavorRef", "imageRef", "networks", "metadata", "key_name", "user_data",
    "config_drive", "availability_zone", "security_groups", "min_count", "max_count",
    "return_reservation_id", "block_device_mapping_v2", "block_device_mapping",
    "OS-DCF:diskConfig", "accessIPv4", "accessIPv6", "adminPass", "description", "tags",
    "trusted_image_certificates", "host", "hypervisor_hostname", "hostname", "nonsense",
)  # fmt: skip
INNER = (
    "server", "metadata", "meta", "tags", "interfaceAttachment", "remote_console",
    "volumeAttachment", "flavor", "extra_specs", "addTenantAccess", "events",
)  # fmt: skip
FEW = settings(
    max_examples=examples(20),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=IS_SAME_EACH_TIME,
)


@pytest.fixture(scope="module")
def victim(lite: Cloud) -> tuple[Cloud, str]:
    lite.make_flavor(id="victim")
    return lite, lite.boot()


@pytest.mark.parametrize("key", KEYS)
def test_no_field_of_a_new_server_is_too_odd(victim: tuple[Cloud, str], key: str) -> None:
    cloud, _ = victim
    sound = {"name": "n", "flavorRef": cloud.flavor, "imageRef": cloud.image, "networks": "none"}
    for value in ODD:
        if key == "max_count" and value == 2**70:
            continue
        answer = cloud.ask("POST", "/servers", {"server": {**sound, key: value}})
        assert answer.status < 500, (key, value, answer)
        if answer.status == 202 and "server" in answer.json:
            cloud.ask("DELETE", f"/servers/{answer.json['server']['id']}")


@pytest.mark.parametrize("value", ODD, ids=str)
def test_no_hint_and_no_body_is_too_odd(victim: tuple[Cloud, str], value: Any) -> None:
    cloud, uuid = victim
    sound = {"name": "n", "flavorRef": cloud.flavor, "imageRef": cloud.image, "networks": "none"}
    for body in (
        value,
        {"server": value},
        {"server": sound, "os:scheduler_hints": value},
        {"server": sound, "os:scheduler_hints": {"group": value}},
        {"server": sound, "os:scheduler_hints": {"same_host": value, "different_host": value}},
    ):
        answer = cloud.ask("POST", "/servers", body)
        assert answer.status < 500, (body, answer)
        if answer.status == 202:
            cloud.ask("DELETE", f"/servers/{answer.json['server']['id']}")
    for method, path in (
        ("PUT", f"/servers/{uuid}"), ("POST", f"/servers/{uuid}/metadata"),
        ("PUT", f"/servers/{uuid}/metadata/k"), ("PUT", f"/servers/{uuid}/tags"),
        ("POST", f"/servers/{uuid}/os-interface"), ("POST", f"/servers/{uuid}/remote-consoles"),
        ("POST", f"/servers/{uuid}/os-volume_attachments"), ("POST", "/flavors"),
        ("POST", f"/flavors/{cloud.flavor}/os-extra_specs"), ("PUT", "/flavors/victim"),
        ("POST", f"/flavors/{cloud.flavor}/action"), ("POST", "/os-server-external-events"),
    ):  # fmt: skip
        for body in (value, *({key: value} for key in INNER), {"events": [value]}):
            answer = cloud.ask(method, path, body)
            assert answer.status < 500, (method, path, body, answer)


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_no_value_of_an_action_is_too_odd(victim: tuple[Cloud, str], action: str) -> None:
    cloud, _ = victim
    uuid = cloud.boot()
    for version in (1, 44, 104, 901):
        for value in ODD:
            for odd in (value, {"adminPass": value, "name": value}, {"host": value}):
                answer = cloud.act(uuid, action, odd, version=version)
                assert answer.status < 500 or answer.status == 501, (action, odd, answer)
        cloud.act(uuid, "os-resetState", {"state": "active"})
        cloud.act(uuid, "unlock")


_QUERIES = sorted({*EVERYBODY, *SORT, "limit", "marker", "sort_key", "sort_dir", "all_tenants"})


@FEW
@given(
    pairs=st.lists(
        st.tuples(
            st.sampled_from(_QUERIES),
            st.one_of(st.text(max_size=20), st.sampled_from(["1", "true", "asc", "^a.*$", "%_!"])),
        ),
        max_size=4,
    ),
    version=st.sampled_from([1, 37, 75, 104, 901]),
)
def test_no_query_is_too_odd(
    victim: tuple[Cloud, str], pairs: list[tuple[str, str]], version: int
) -> None:
    cloud, _ = victim
    query = "&".join(f"{key}={quote(value.encode('utf-8', 'replace'))}" for key, value in pairs)
    for path in ("/servers", "/servers/detail", "/flavors/detail", "/os-migrations"):
        answer = cloud.ask("GET", f"{path}?{query}", version=version)
        assert answer.status < 500, (path, query, answer)


@pytest.mark.parametrize(
    "query",
    [
        "/servers?limit=²", "/servers?power_state=²",
        "/servers?progress=①", "/flavors?minRam=²",
        "/flavors/detail?minDisk=²", "/flavors?limit=٣",
        "/servers?changes-since=0001-01-01T00:00:00+10:00",
        "/servers?changes-before=9999-12-31T23:59:59-10:00",
        "/os-migrations?changes-since=9999-12-31T23:59:59-10:00",
        "/servers/{}/os-instance-actions?changes-since=0001-01-01T00:00:00+10:00",
        "/servers/{}/os-instance-actions?limit=²",
        "/os-simple-tenant-usage?end=0001-01-01",
    ],
)  # fmt: skip
def test_digits_of_other_kinds_and_moments_beyond_all_years_are_refused(
    victim: tuple[Cloud, str], query: str
) -> None:
    cloud, uuid = victim
    where = quote(query.format(uuid), safe="/?=&:")
    assert cloud.ask("GET", where).status == 400


def test_a_list_that_had_no_pages_takes_no_notice_of_their_size(victim: tuple[Cloud, str]) -> None:
    cloud, uuid = victim
    path = f"/servers/{uuid}/os-instance-actions?limit=-1"
    assert [cloud.ask("GET", path, version=one).status for one in (57, 58)] == [200, 400]


def test_what_was_used_is_told_of_the_first_days_of_all(victim: tuple[Cloud, str]) -> None:
    cloud, _ = victim
    assert cloud.ask("GET", "/os-simple-tenant-usage?end=0001-01-02").status == 200


def test_migrations_are_listed_whatever_number_a_flavor_has_as_its_id(lite: Cloud) -> None:
    uuid = lite.boot()
    flavor = lite.make_flavor(id="1" * 30)
    assert lite.act(uuid, "resize", {"flavorRef": flavor}).status == 202
    lite.until(uuid, "VERIFY_RESIZE")
    answer = lite.ask("GET", f"/os-migrations?instance_uuid={uuid}")
    assert answer.status == 200, answer
    (found,) = answer.json["migrations"]
    assert found["new_instance_type_id"] is None, "no client's integer holds it"
