"""`--wait`: the client polls and reads states and errors by itself, at its own pace of 2 or 10 s.

So that the paces do not add up, all these commands are started at once, each for its own nodes.
"""

import json
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from dataclasses import field
from typing import Any

import pytest

from tests.clients.nodes import Nodes
from tests.clients.shell import Ran
from tests.clients.shell import Shell
from tests.support.server import Server

STEPS = json.dumps([{"interface": "raid", "step": "create_configuration"}])
UNKNOWN_STEPS = json.dumps([{"interface": "deploy", "step": "polish"}])


@dataclass(frozen=True, slots=True)
class Story:
    """A command with --wait, where its nodes start and where they end."""

    words: tuple[str, ...]
    begin: str
    end: str
    script: dict[str, Any] = field(default_factory=dict)
    complaint: str | None = None
    count: int = 1


STORIES = {
    "manage": Story(("manage",), "enroll", "manageable"),
    "provide": Story(("provide",), "manageable", "available"),
    "deploy": Story(("deploy",), "available", "active"),
    "rebuild": Story(("rebuild",), "active", "active"),
    "rescue": Story(("rescue", "--rescue-password", "a pass phrase"), "active", "rescue"),
    "unrescue": Story(("unrescue",), "rescue", "active"),
    "undeploy": Story(("undeploy",), "active", "available"),
    "clean": Story(("clean", "--clean-steps", STEPS), "manageable", "manageable"),
    "inspect": Story(("inspect",), "manageable", "manageable"),
    "adopt": Story(("adopt",), "manageable", "active"),
    "service": Story(("service", "--service-steps", STEPS), "active", "active"),
    "several nodes at once": Story(("provide",), "manageable", "available", count=3),
    "through clean wait": Story(
        ("provide",), "manageable", "available", {"ramdisk": True, "latency_s": {"*": 0.2}}
    ),
    "through wait call-back": Story(
        ("deploy",), "available", "active", {"ramdisk": True, "latency_s": {"*": 0.2}}
    ),
    "a deploy that fails": Story(
        ("deploy",), "available", "deploy failed", {"fail": {"deploy.write_image": "no disk"}},
        complaint="step deploy.write_image failed: no disk",
    ),
    "steps that nobody knows": Story(
        ("clean", "--clean-steps", UNKNOWN_STEPS), "manageable", "clean failed",
        complaint="the driver has no step deploy.polish; it has: bios.apply_configuration,",
    ),
    "a BMC that does not answer": Story(
        ("manage",), "enroll", "enroll", {"unreachable": True},
        complaint="failed to reach state manageable",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Told:
    """A story under way."""

    nodes: list[str]
    ran: Future[Ran]


@pytest.fixture(scope="module")
def told(server: Server, openstack: Shell) -> Iterator[tuple[Nodes, dict[str, Told]]]:
    """Every story, begun."""
    nodes = Nodes(server)
    with ThreadPoolExecutor(len(STORIES)) as threads:
        begun = {}
        for name, story in STORIES.items():
            uuids = [nodes.make(story.begin)["uuid"] for _ in range(story.count)]
            for uuid in uuids:
                server.script(f"node:{uuid}", **story.script)
            words = ("baremetal", "node", *story.words, *uuids, "--wait", "40")
            begun[name] = Told(uuids, threads.submit(openstack.run, *words))
        yield nodes, begun
    nodes.remove()


@pytest.mark.parametrize("name", STORIES)
def test_waiting_ends_as_the_work_does(told: tuple[Nodes, dict[str, Told]], name: str) -> None:
    nodes, begun = told
    story = STORIES[name]
    ran = begun[name].ran.result()
    shown = [nodes.show(uuid) for uuid in begun[name].nodes]
    assert {node["provision_state"] for node in shown} == {story.end}, str(ran)
    if story.complaint is None:
        assert ran.code == 0, str(ran)
        assert f"Waiting for provision state {story.end} on node(s)" in ran.out
        assert {node["last_error"] for node in shown} == {None}
    else:
        assert ran.code == 1, str(ran)
        assert story.complaint in ran.err
        assert all(node["last_error"] for node in shown)
