"""Addresses that servers ask for, and the MAC addresses that go with them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from siderite.compute.domain.network import MOST_PORTS
from siderite.compute.domain.network import Network
from siderite.compute.usecases.fleet import addresses
from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud
from tests.support.app import Answer

NETWORKS = "four=user@10.9.0.0/26,six=user@fd00:9::/120"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """A cloud with a network of each kind."""
    folder: Path = tmp_path_factory.mktemp("data")
    with cloud(folder, networks=NETWORKS) as made:
        yield made


def ask(two: Cloud, network: str, address: str) -> Answer:
    """A server that wants this address."""
    wish = {
        "name": "s", "flavorRef": two.flavor, "imageRef": two.image,
        "networks": [{"uuid": network, "fixed_ip": address}],
    }  # fmt: skip
    return two.ask("POST", "/servers", {"server": wish})


@pytest.mark.parametrize(
    ("network", "address"),
    [
        ("four", "10.9.0.0"), ("four", "10.9.0.1"), ("four", "10.9.0.63"),
        ("six", "fd00:9::"), ("six", "fd00:9::1"),
    ],
)  # fmt: skip
def test_an_address_that_a_network_has_for_itself_is_no_servers(
    two: Cloud, network: str, address: str
) -> None:
    refused = ask(two, network, address)
    assert refused.status == 400, refused
    assert "own, or its gateway's; ask for another" in refused.json["badRequest"]["message"]


def test_an_address_is_taken_however_it_is_written(two: Cloud) -> None:
    made = ask(two, "six", "FD00:9:0::00fF")
    assert made.status == 202, made
    shown: dict[str, Any] = two.until(made.json["server"]["id"], "ACTIVE")
    assert shown["addresses"]["six"][0]["addr"] == "fd00:9::ff"
    for again in ("fd00:9::ff", "fd00:9:0:0::ff"):
        refused = ask(two, "six", again)
        assert refused.status == 400, refused
        assert "already in use" in refused.json["badRequest"]["message"]


def test_no_server_has_all_addresses_of_a_network(two: Cloud) -> None:
    wish = {"name": "s", "flavorRef": two.flavor, "imageRef": two.image}
    many = [{"uuid": "six"}] * MOST_PORTS
    refused = two.ask("POST", "/servers", {"server": {**wish, "networks": [*many, many[0]]}})
    assert refused.status == 403 and "at most 32" in refused.json["forbidden"]["message"], refused
    server = two.boot(networks=many)
    path = f"/servers/{server}/os-interface"
    one_more = two.ask("POST", path, {"interfaceAttachment": {"net_id": "four"}})
    assert one_more.status == 403 and "at most 32" in one_more.json["forbidden"]["message"]
    assert len(two.ask("GET", path).json["interfaceAttachments"]) == MOST_PORTS


def test_no_two_ports_of_a_network_have_one_mac_address() -> None:
    """With a MAC address by chance, about eight of so many would be of two."""
    network = Network("private", "bridge", "br0", "10.88.0.0/18")
    ctx: Any = None  # nothing is looked up for an address that is asked for

    async def macs() -> set[str]:
        wanted = [str(one) for one in network.range.hosts()][1:]
        made = [await addresses.new_port(ctx, network, one, None, 0) for one in wanted]
        assert len({port.id for port in made}) == len(wanted)
        return {port.mac for port in made}

    assert len(asyncio.run(macs())) == 2**14 - 3
