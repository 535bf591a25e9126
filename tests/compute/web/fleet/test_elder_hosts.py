"""Hosts by their elder addresses, for clients of before 2.43."""

from collections.abc import Iterator

import pytest

from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud

PATHS = ("/os-hosts", "/os-hosts/h1", "/os-hosts/h1/reboot")


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with cloud(tmp_path_factory.mktemp("data"), hosts=0) as made:
        made.add_host("h1")
        yield made


def test_hosts_are_listed_by_zone(one: Cloud) -> None:
    listed = {"host_name": "h1", "service": "compute", "zone": "nova"}
    assert one.ask("GET", "/os-hosts", version=1).json == {"hosts": [listed]}
    assert one.ask("GET", "/os-hosts?zone=nova", version=1).json == {"hosts": [listed]}
    assert one.ask("GET", "/os-hosts?zone=", version=1).json == {"hosts": [listed]}
    assert one.ask("GET", "/os-hosts?zone=east", version=1).json == {"hosts": []}


def test_a_host_shows_what_it_has_and_who_uses_it(one: Cloud) -> None:
    _, token, project = one.app.person("member")
    one.boot(token=token, flavorRef=one.make_flavor(vcpus=2, ram=256, disk=3))
    answer = one.ask("GET", "/os-hosts/h1", version=42)
    assert answer.status == 200, answer
    lines = {line["resource"]["project"]: line["resource"] for line in answer.json["host"]}
    assert list(lines) == ["(total)", "(used_now)", "(used_max)", project]
    claimed = {"host": "h1", "cpu": 2, "memory_mb": 256, "disk_gb": 3}
    for name in ("(used_now)", "(used_max)", project):
        assert lines[name] == {**claimed, "project": name}
    assert lines["(total)"]["cpu"] > 2


def test_a_host_is_enabled_and_disabled(one: Cloud) -> None:
    def service() -> str:
        (found,) = one.ask("GET", "/os-services").json["services"]
        return str(found["status"])

    for word in ("disable", "enable"):
        answer = one.ask("PUT", "/os-hosts/h1", {"status": word}, version=1)
        assert (answer.status, answer.json) == (200, {"host": "h1", "status": f"{word}d"})
        assert service() == f"{word}d"
    for body, status in (
        ({}, 400), ({"status": "off"}, 400), ({"status": None}, 400), ({"odd": 1}, 400),
        ({"maintenance_mode": "enable"}, 501),
        ({"status": "disable", "maintenance_mode": "enable"}, 501),
    ):  # fmt: skip
        assert one.ask("PUT", "/os-hosts/h1", body, version=1).status == status, body
    assert service() == "enabled"
    assert one.ask("PUT", "/os-hosts/none", {"status": "enable"}, version=1).status == 404


def test_they_are_for_administrators_and_gone_from_2_43_on(one: Cloud) -> None:
    _, token, _ = one.app.person("member")
    for path in PATHS:
        assert one.ask("GET", path, version=42, token=token).status == 403
        assert one.ask("GET", path, version=42).status == (501 if "reboot" in path else 200)
        assert one.ask("GET", path, version=43).status == 404
    assert one.ask("PUT", "/os-hosts/h1", {"status": "disable"}, version=43).status == 404
    assert one.ask("GET", "/os-hosts/none", version=1).status == 404
