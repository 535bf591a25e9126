"""Addresses that servers ask for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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
