"""Servers: made, shown, changed and deleted."""

from typing import Any

import pytest

from tests.compute.cloud import Cloud


def test_a_server_is_made_and_becomes_active(both: Cloud) -> None:
    answer = both.ask(
        "POST",
        "/servers",
        {
            "server": {
                "name": "one", "flavorRef": both.flavor, "imageRef": both.image, "networks": "auto",
                "metadata": {"a": "b"}, "tags": ["t"],
            }
        },
    )  # fmt: skip
    assert answer.status == 202, answer
    made = answer.json["server"]
    assert set(made) == {"id", "links", "OS-DCF:diskConfig", "security_groups", "adminPass"}
    assert answer.headers["location"] == made["links"][0]["href"]
    seen = both.until(made["id"], "ACTIVE")
    assert seen["OS-EXT-STS:power_state"] == 1
    assert seen["OS-EXT-SRV-ATTR:host"] in both.hosts
    assert seen["metadata"] == {"a": "b"}
    assert len(seen["addresses"]["private"]) == 1
    (action,) = both.actions(made["id"])
    assert (action["action"], action["message"]) == ("create", None)
    assert action["request_id"] == answer.headers["x-compute-request-id"]
    assert [(e["event"], e["result"]) for e in action["events"]] == [
        ("compute__do_build_and_run_instance", "Success")
    ]


def test_the_kernel_and_the_ramdisk_that_a_server_boots_are_told(lite: Cloud) -> None:
    kernel, ramdisk = lite.make_image(), lite.make_image()
    uuid = lite.boot(imageRef=lite.make_image(kernel_id=kernel, ramdisk_id=ramdisk))
    seen = lite.show(uuid)
    shown = [seen[f"OS-EXT-SRV-ATTR:{what}"] for what in ("kernel_id", "ramdisk_id")]
    _, told = lite.facts(uuid, "instance.create.end")[-1]
    assert shown == [told["kernel_id"], told["ramdisk_id"]] == [kernel, ramdisk]
    plain = lite.show(lite.boot())
    assert plain["OS-EXT-SRV-ATTR:kernel_id"] == plain["OS-EXT-SRV-ATTR:ramdisk_id"] == ""


def test_a_server_is_stopped_and_started(both: Cloud) -> None:
    uuid = both.boot()
    assert both.act(uuid, "os-stop").status == 202
    assert both.until(uuid, "SHUTOFF")["OS-EXT-STS:power_state"] == 4
    assert both.act(uuid, "os-start").status == 202
    assert both.until(uuid, "ACTIVE")["OS-EXT-STS:power_state"] == 1
    assert [one["action"] for one in both.actions(uuid)] == ["start", "stop", "create"]


def test_a_deleted_server_is_gone_and_leaves_nothing(both: Cloud) -> None:
    before = both.claimed()
    uuid = both.boot()
    assert both.claimed() != before
    assert both.ask("DELETE", f"/servers/{uuid}").status == 204
    both.wait(uuid, lambda seen: seen["status"] == "GONE")
    assert both.claimed() == before
    assert both.guests.where(uuid) == []
    actions = both.ask("GET", f"/servers/{uuid}/os-instance-actions").json["instanceActions"]
    assert [one["action"] for one in actions] == ["delete", "create"]


@pytest.mark.parametrize(
    ("name", "hostname"),
    [
        ("A B_c", "a-b-c"), ("web.example", "web-example"), ("Ünïcode", "ncode"),
        ("日本", "server-{}"), ("!!!", "server-{}"), ("x" * 80, "x" * 63),
    ],
)  # fmt: skip
def test_a_host_name_is_made_of_the_name_or_is_one_of_its_own(
    lite: Cloud, name: str, hostname: str
) -> None:
    uuid = lite.create(name=name, networks="none")
    assert lite.show(uuid)["OS-EXT-SRV-ATTR:hostname"] == hostname.format(uuid)


@pytest.mark.parametrize(
    ("hostname", "label", "whole"),
    [
        ("web", 202, 202), ("web.a.example.org", 400, 202), ("a", 400, 202), ("a.b", 400, 202),
        ("x" * 63, 202, 202), ("x" * 64, 400, 400), ("a.-b.c", 400, 400), ("a..b", 400, 400),
        ("", 400, 400),
    ],
)  # fmt: skip
def test_a_host_name_is_a_label_and_from_2_94_on_any_domain_name(
    lite: Cloud, hostname: str, label: int, whole: int
) -> None:
    body = {"name": "n", "flavorRef": lite.flavor, "imageRef": lite.image, "networks": "none"}
    wish = {"server": {**body, "hostname": hostname}}
    made = [lite.ask("POST", "/servers", wish, version=version) for version in (93, 94)]
    assert [one.status for one in made] == [label, whole]
    if whole == 202:
        uuid = made[1].json["server"]["id"]
        assert lite.show(uuid)["OS-EXT-SRV-ATTR:hostname"] == hostname


def test_only_administrators_have_servers_of_flavors_without_a_disk(lite: Cloud) -> None:
    _, member, _ = lite.app.person("member")
    bare = {"flavorRef": lite.make_flavor(disk=0), "imageRef": lite.image, "networks": "none"}
    body = {"server": {"name": "n", **bare}}
    refused = lite.ask("POST", "/servers", body, token=member)
    assert refused.status == 403
    assert "zero disk" in refused.json["forbidden"]["message"]
    assert lite.ask("POST", "/servers", body).status == 202


def test_each_of_several_servers_has_a_name_that_can_be_its_own(lite: Cloud) -> None:
    fields: dict[str, Any] = {
        "flavorRef": lite.flavor, "imageRef": lite.image, "networks": "none",
    }  # fmt: skip

    def make(name: str, count: int) -> int:
        body = {"server": {**fields, "name": name, "max_count": count}}
        return lite.ask("POST", "/servers", body).status

    assert (make("n" * 254, 2), make("m" * 253, 2), make("o" * 255, 1)) == (400, 202, 202)
    assert make("p" * 253, 10) == 400
    for letter, count in (("m", 2), ("o", 1)):
        found = lite.ask("GET", f"/servers?name=^{letter * 9}").json["servers"]
        assert [len(one["name"]) for one in found] == [255] * count


def test_one_request_makes_so_many_servers_and_no_more(
    lite: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("siderite.compute.web.server.servers.MOST_AT_ONCE", 2)
    wish = {"name": "many", "flavorRef": lite.flavor, "imageRef": lite.image, "networks": "none"}
    few = {"server": {**wish, "min_count": 3, "max_count": 5}}
    refused = lite.ask("POST", "/servers", few)
    assert refused.status == 400 and "send several" in refused.body.decode()
    assert lite.ask("POST", "/servers", {"server": {**wish, "max_count": 2**31 - 1}}).status == 202
    found = lite.ask("GET", "/servers?name=^many").json["servers"]
    assert sorted(one["name"] for one in found) == ["many-1", "many-2"]
