"""`siderite events tail` and `monitor`, as an operator runs them."""

import json
import signal
import subprocess
import time
from contextlib import contextmanager

import pytest

from tests.events.test_process import log_of
from tests.events.test_process import make_node
from tests.support.server import clean_environment
from tests.support.server import command
from tests.support.server import running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running_server(tmp_path_factory.mktemp("tail")) as server:
        for n in range(3):
            make_node(server, name=f"n{n}")
        yield server


def tail(server, *words):
    return [command("siderite"), "events", "tail", "--data", server.data, *words]


def once(server, *words):
    """Run it to the end of the log."""
    return subprocess.run(
        tail(server, "--no-follow", *words),
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@contextmanager
def following(server, *words):
    """It runs until the test is over."""
    process = subprocess.Popen(
        tail(server, *words),
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_log_is_printed_as_json_lines(server):
    done = once(server, "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line) for line in done.stdout.splitlines()] == log_of(server)


def test_text_has_a_line_per_event(server):
    event = log_of(server)[1]
    lines = once(server, "--after", "1").stdout.splitlines()
    assert lines[0].split()[0] == "2"
    told = ["INFO", event["event_type"], "node", event["resource"]["id"], "n0"]
    assert lines[0].split()[2:] == told
    assert len(lines) == len(log_of(server)) - 1


@pytest.fixture(scope="module")
def placeless(server):
    """A server that no host takes; its id."""
    nova = {**server.headers(), "OpenStack-API-Version": "compute 2.901"}
    host = {"host": {"name": "small", "uri": "simulated:"}}
    flavor = {"flavor": {"name": "huge", "vcpus": 1, "ram": 64, "disk": 2**20}}
    record = {"name": "disk", "disk_format": "raw", "container_format": "bare"}
    image = server.api.post("/image/v2/images", json=record, headers=server.headers()).json()["id"]
    octets = {**server.headers(), "Content-Type": "application/octet-stream"}
    server.api.put(f"/image/v2/images/{image}/file", content=b"x" * 512, headers=octets)
    server.api.post("/compute/v2.1/hosts", json=host, headers=nova).raise_for_status()
    made = server.api.post("/compute/v2.1/flavors", json=flavor, headers=nova).json()["flavor"]
    asked = {"name": "big", "flavorRef": made["id"], "imageRef": image, "networks": "none"}
    done = server.api.post("/compute/v2.1/servers", json={"server": asked}, headers=nova)
    return done.raise_for_status().json()["server"]["id"]


def in_short(server, what, uuid):
    """Wait until an event is told of; what its line says of it after whom it is about."""
    deadline = time.monotonic() + 60
    while not (lines := once(server, "--type", what, "--resource", uuid).stdout.splitlines()):
        assert time.monotonic() < deadline
    return lines[-1].partition(uuid)[2].strip()


def test_text_says_why_no_host_takes_a_server(server, placeless):
    refused = in_short(server, "scheduler.select_destinations.error", placeless)
    assert refused.startswith("small: ")
    failed = in_short(server, "compute_task.build_instances.error", placeless)
    assert failed.startswith("No valid host")


def test_text_says_what_became_of_the_power(server):
    uuid = make_node(server, name="powered")
    headers, states = server.headers("1.109"), f"/baremetal/v1/nodes/{uuid}/states"
    server.api.put(f"{states}/provision", json={"target": "manage"}, headers=headers)
    corrected = in_short(server, "baremetal.node.power_state_corrected.success", uuid)
    assert corrected == "powered  unknown → power off"
    asked = server.api.put(f"{states}/power", json={"target": "power on"}, headers=headers)
    assert asked.status_code == 202, asked.text
    assert in_short(server, "baremetal.node.power_set.start", uuid) == "powered  → power on"


def test_events_are_chosen_by_type_and_resource(server):
    uuid = log_of(server)[2]["resource"]["id"]
    done = once(server, "-o", "json", "--type", "*.create.end", "--resource", uuid)
    (event,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert (event["event_type"], event["seq"]) == ("baremetal.node.create.end", 4)


def test_what_nothing_is_called_is_not_found(server):
    done = once(server, "--resource", "nobody")
    assert (done.returncode, "no resource with the id or the name" in done.stderr) == (3, True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--after", "999999"), "beyond the end of the log"),
        (("--type", "weather.*"), "No event has a type like"),
    ],
)
def test_a_refusal_is_the_services_own_sentence(server, words, sentence):
    done = once(server, *words)
    assert done.returncode == 1
    assert sentence in done.stderr
    with following(server, *words) as process:
        assert process.wait(30) == 1


def test_without_a_service_it_says_what_to_do(tmp_path):
    words = [command("siderite"), "events", "tail", "--data", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "clouds.yaml" in done.stderr) == (1, True)


def test_following_goes_on_over_kills_and_ends_with_the_number(server):
    with following(server, "-o", "json") as process:
        seen = [json.loads(process.stdout.readline()) for _ in log_of(server)]
        for kill in (server.kill, server.stop):
            make_node(server)
            seen += [json.loads(process.stdout.readline()) for _ in range(2)]
            kill()
            server.start()
            make_node(server)
            seen += [json.loads(process.stdout.readline()) for _ in range(2)]
        assert seen == log_of(server)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stdout.read() == ""
        said = process.stderr.read().splitlines()
        assert said[-1] == f"siderite: go on with --after {len(seen)}"
        assert "trying again after" in said[0]


def test_it_ends_when_nobody_reads_what_it_prints(server):
    with following(server) as process:
        process.stdout.readline()
        process.stdout.close()
        make_node(server)
        assert process.wait(30) == 141
        assert process.stderr.read() == ""
        process.stdout = None


def monitored(server, *words):
    return subprocess.run(
        [command("siderite"), "events", "monitor", "--data", server.data, *words],
        env=clean_environment(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_the_monitor_counts_what_began_and_ended(server):
    newest = log_of(server)[-1]["seq"]
    deadline = time.monotonic() + 30
    while True:
        done = monitored(server, "-o", "json")
        assert (done.returncode, done.stderr) == (0, "")
        report = json.loads(done.stdout)
        if report["current_to"] >= newest:
            break
        assert time.monotonic() < deadline
    made = next(r for r in report["operations"] if r["operation"] == "baremetal.node.create")
    assert made["started"] == made["ended"] >= 3
    text = monitored(server).stdout
    assert "baremetal.node.create" in text
    assert f"current to event {report['current_to']}" in text


def test_the_monitor_ends_with_1_if_something_is_overdue(tmp_path):
    with running_server(tmp_path, options={"operation_overdue_s": "0"}) as server:
        server.script("all", latency_s={"*": 3600})
        uuid = make_node(server, name="slow")
        verb = f"/baremetal/v1/nodes/{uuid}/states/provision"
        reply = server.api.put(verb, json={"target": "manage"}, headers=server.headers("1.109"))
        assert reply.status_code == 202
        deadline = time.monotonic() + 30
        while (done := monitored(server)).returncode == 0:
            assert time.monotonic() < deadline
        assert done.returncode == 1
        assert f"overdue: baremetal.node.provision_set of node {uuid}" in done.stdout
        server.kill()  # told to stop, it would wait for the step
