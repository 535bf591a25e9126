"""Sentences for owners say nothing of which host it is."""

import pytest

from siderite.compute.domain.discreet import discreet
from siderite.compute.domain.discreet import discreet_facts


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


def test_facts_say_which_server_it_is_and_not_where() -> None:
    metadata = {"host": "mine", "node": "mine"}
    why = {"nova_object.data": {"exception_message": "host wasp is full", "exception": "NoRoom"}}
    spec = {"nova_object.data": {"force_hosts": ["wasp"], "num_instances": 1}}
    said = {
        "nova_object.name": "InstanceActionPayload",
        "nova_object.data": {
            "uuid": "1", "host": "wasp", "node": "wasp", "host_name": "web-1", "fault": why,
            "metadata": metadata, "refusals": {"bee": "full"}, "request_spec": spec,
        },
    }  # fmt: skip
    told = discreet_facts(said)["nova_object.data"]
    assert told.pop("metadata") == metadata
    assert not any(name in str(told) for name in ("wasp", "bee"))
    assert (told["uuid"], told["host_name"], told["host"], told["refusals"]) == (
        "1",
        "web-1",
        None,
        {},
    )
    assert "its host is full" in str(told["fault"])
    assert "wasp" in str(said), "what is in the log stays as it is"
