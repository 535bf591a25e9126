"""Sentences for owners say nothing of which host it is."""

import pytest

from siderite.compute.domain.discreet import discreet


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("host rack-1.example.org (qemu+ssh://me@10.0.0.5/system?x=/y): no room; make some.",
         "its host: no room; make some."),
        ("host rack1: sending image 7, 3 of 9 MiB", "its host: sending image 7, 3 of 9 MiB"),
        ("it does not run on host rack1.", "it does not run on its host."),
        ("No valid host was found. Of 4 hosts: 4 not the host that was asked for.",
         "No valid host was found. Of 4 hosts: 4 not the host that was asked for."),
        ("the state cannot be read: is the host reachable?",
         "the state cannot be read: is the host reachable?"),
        ("host wasp is busy with spawn", "its host is busy with spawn"),
    ],
)  # fmt: skip
def test_a_hosts_name_and_address_are_left_out(told: str, shown: str) -> None:
    assert discreet(told) == shown
