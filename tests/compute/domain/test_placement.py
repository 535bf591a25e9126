"""Placing: who may take a server, who is best, and why the others may not."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from siderite.compute.domain.host import Amount
from siderite.compute.domain.host import Hypervisor
from siderite.compute.domain.placement import MOST
from siderite.compute.domain.placement import Wanted
from siderite.compute.domain.placement import place

NOW = 1000.0
NONE = Amount(0, 0, 0)
SMALL = Wanted(Amount(1, 512, 1), "p")


def _host(name: str, **fields: Any) -> Hypervisor:
    made = Hypervisor(
        id=int(name.strip("abcdefgh") or 1), uuid=name, host=name, node=name, type="simulated",
        version=1, address="", cpu_info="{}", resource_class=None, traits=frozenset(), vcpus=8,
        ram_mib=8192, disk_gib=100, vcpus_limit=32, ram_limit=8192, disk_limit=100, vcpus_used=0,
        ram_used=0, disk_used=0, servers=0, is_available=True, why_not=None, driver="simulated",
        disabled=False, disabled_reason=None, forced_down=False, seen_at=NOW,
    )  # fmt: skip
    return msgspec.structs.replace(made, **fields)


def _chosen(wanted: Wanted, *hosts: Hypervisor) -> list[str]:
    return [at.host for at in place(wanted, hosts, now=NOW, patience_s=60).ranked]


def test_what_is_kept_for_others_makes_a_host_no_emptier_one() -> None:
    kept = Amount(4, 6144, 50)
    assert _chosen(SMALL, _host("h1", kept=kept), _host("h2", ram_used=4096)) == ["h2", "h1"]


def test_a_host_is_not_avoided_because_its_node_is_called_like_another_host() -> None:
    avoids = replace(SMALL, avoid={"h1": "tried before"})
    assert _chosen(avoids, _host("h1"), _host("h2", node="h1")) == ["h2"]
    whole = replace(avoids, resource_class="CUSTOM_GOLD", avoid={"g1": "tried before"})
    gold = {"host": "h1", "resource_class": "CUSTOM_GOLD"}
    ranked = place(whole, [_host("g1", **gold), _host("g2", **gold)], now=NOW, patience_s=60).ranked
    assert [at.node for at in ranked] == ["g2"]


def test_the_emptiest_host_is_best() -> None:
    assert _chosen(SMALL, _host("h1", ram_used=4096), _host("h2"), _host("h3", ram_used=100)) == [
        "h2", "h3", "h1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "wanted", "reason"),
    [
        ({"disabled": True, "disabled_reason": "fan"}, {}, "disabled: fan"),
        ({"forced_down": True}, {}, "down"),
        ({"seen_at": 0.0}, {}, "down"),
        ({"is_available": False, "why_not": "maintenance"}, {}, "not available: maintenance"),
        ({"vcpus_used": 32}, {}, "without room: 1 vCPUs wanted, 0 of 32 left"),
        ({"ram_used": 8000}, {}, "without room: 512 MiB of memory wanted, 192 of 8192 left"),
        ({"disk_used": 100}, {}, "without room: 1 GiB of disk wanted, 0 of 100 left"),
        ({}, {"zone": "z"}, "in another availability zone: nova"),
        ({}, {"host": "h9"}, "not the host that was asked for: h9"),
        ({}, {"node": "n9"}, "not the node that was asked for: n9"),
        ({}, {"avoid": {"h1": "tried before"}}, "tried before"),
        ({}, {"driver": "libvirt"}, "of another driver: simulated"),
        ({}, {"resource_class": "CUSTOM_GOLD"}, "of another resource class: virtual"),
        ({}, {"required_traits": frozenset({"T"})}, "without a required trait: T"),
        ({"traits": frozenset({"T"})}, {"forbidden_traits": frozenset({"T"})}, "with a forbidden"),
        ({}, {"same_host": frozenset({"h2"})}, "not beside"),
        ({}, {"different_host": frozenset({"h1"})}, "beside a server"),
        ({}, {"policy": "affinity", "members": {"h2": 1}}, "without the other members"),
        ({}, {"policy": "anti-affinity", "members": {"h1": 1}}, "with other members"),
        ({}, {"aggregate_specs": {"ssd": "true"}}, "in no aggregate"),
        ({"aggregate_metadata": {"filter_tenant_id": frozenset({"q"})}}, {}, "reserved"),
        ({"resource_class": "CUSTOM_X", "servers": 1}, {"resource_class": "CUSTOM_X"}, "in use"),
        ({"resource_class": "CUSTOM_X", "kept": NONE}, {"resource_class": "CUSTOM_X"}, "in use"),
        ({"kept": Amount(32, 0, 0)}, {}, "without room: 1 vCPUs wanted, 0 of 32 left, 32 kept for"),
        ({"kept": Amount(0, 8000, 0)}, {}, "without room: 512 MiB of memory wanted, 192 of 8192"),
        ({"kept": Amount(0, 0, 99), "disk_used": 1}, {}, "without room: 1 GiB of disk wanted"),
    ],
)  # fmt: skip
def test_a_host_that_will_not_do_is_refused_with_its_reason(
    fields: dict[str, Any], wanted: dict[str, Any], reason: str
) -> None:
    found = place(replace(SMALL, **wanted), [_host("h1", **fields)], now=NOW, patience_s=60)
    assert found.ranked == ()
    assert found.refusals["h1"].startswith(reason)
    assert found.sentence.startswith("No valid host was found. Of 1 hosts: 1 ")


def test_a_flavor_asks_of_aggregates_with_operators() -> None:
    wish = replace(SMALL, aggregate_specs={"gbit": ">= 25", "disk": "<or> ssd <or> nvme"})
    fast = {"gbit": frozenset({"10", "100"}), "disk": frozenset({"nvme"})}
    slow = {**fast, "gbit": frozenset({"10"})}
    hosts = (_host("h1", aggregate_metadata=slow), _host("h2", aggregate_metadata=fast))
    assert _chosen(wish, *hosts) == ["h2"]


def test_a_forced_host_is_asked_for_room_only() -> None:
    forced = replace(SMALL, host="h1", is_forced=True, zone="elsewhere")
    assert _chosen(forced, _host("h1", disabled=True), _host("h2")) == ["h1"]
    assert _chosen(forced, _host("h1", ram_used=8192), _host("h2")) == []


def test_soft_policies_only_weigh() -> None:
    soft = replace(SMALL, policy="soft-affinity", members={"h1": 1})
    assert _chosen(soft, _host("h1", ram_used=4000), _host("h2")) == ["h1", "h2"]
    soft = replace(soft, policy="soft-anti-affinity")
    assert _chosen(soft, _host("h1"), _host("h2", ram_used=4000)) == ["h2", "h1"]


def test_a_member_of_an_affinity_group_without_others_goes_anywhere() -> None:
    assert _chosen(replace(SMALL, policy="affinity"), _host("h1")) == ["h1"]


def test_without_any_host_that_is_said() -> None:
    said = place(SMALL, [], now=NOW, patience_s=60).sentence
    assert "no host of the kind that this server needs: none for virtual servers" in said
    metal = replace(SMALL, resource_class="CUSTOM_GOLD")
    assert "has the resource class CUSTOM_GOLD" in place(metal, [], now=NOW, patience_s=60).sentence


def test_of_very_many_refusals_some_of_each_kind_are_told() -> None:
    hosts = [_host(f"h{number}", vcpus_used=32) for number in range(1, 301)]
    hosts += [_host(f"h{number}", disabled=True) for number in range(301, 304)]
    found = place(SMALL, hosts, now=NOW, patience_s=60)
    assert found.sentence.endswith("Of 303 hosts: 3 disabled, 300 without room.")
    assert len(found.examples) == 100
    assert {"h301", "h302", "h303"} <= found.examples.keys()
    assert found.examples.items() <= dict(found.refusals).items()
    few = place(SMALL, hosts[:100], now=NOW, patience_s=60)
    assert few.examples == few.refusals


def test_who_makes_room_is_told_of_hosts_from_all_over_a_large_cloud() -> None:
    hosts = [_host(f"h{number}", vcpus_used=32) for number in range(5000)]
    hosts += [_host(f"d{number}", disabled=True) for number in range(3000)]
    found = place(SMALL, hosts, now=NOW, patience_s=60)
    told = [int(node[1:]) for node in found.some(MOST) if node[0] == "h"]
    assert (len(found.some(MOST)), len(told)) == (MOST, MOST // 2)
    assert (told[0], told[-1]) == (0, 4990)
