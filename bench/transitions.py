"""The workload of the event log: transitions with their facts, against the same without.

In this process, so that nothing but the log is between the two: a request has a node verified, and
what a worker then does fails it, over and over. HTTP parsing and the work itself are left out,
which makes the log's share look larger, if anything.
"""

import asyncio
import base64
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from bench import load
from bench.figure import Figure
from bench.figure import Measured
from bench.figure import Unit
from bench.stage import Stage
from siderite import wiring
from siderite.baremetal.domain.node_machine import Event
from siderite.baremetal.store import NODES
from siderite.core.config import Config
from siderite.core.fact import Fact
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.transition import apply

_PASSWORD = "bench"
_SLICES = 10
"""Of a round: the two take turns so often that noise hits both."""
_NOTHING = Fact("", "", "", "", "")


def transitions(stage: Stage) -> Measured:
    """Transitions per second with their facts in the log; the limit is without."""
    return load.run(_transitions(stage))


async def _transitions(stage: Stage) -> Measured:
    plan = stage.plan
    data, db = str(stage.place / "transitions"), stage.scratch or ""
    config = Config(data=data, db=db, admin_password=_PASSWORD, log_level="warning")
    program = await wiring.build(config)
    try:
        uuids = [await _node(program) for _ in range(plan.writers)]
        slice_s = plan.seconds / _SLICES
        told, silent = [], []
        for n in range(plan.rounds * _SLICES + 1):
            aloud = await _rate(program, uuids, slice_s)
            with _silence():
                quiet = await _rate(program, uuids, slice_s)
            if n:  # statements are prepared by the first
                told.append(aloud)
                silent.append(quiet)
        return Measured(Figure(Unit.RATE, tuple(told)), Figure(Unit.RATE, tuple(silent)))
    finally:
        await program.close()


@contextmanager
def _silence() -> Iterator[None]:
    """Nothing is announced."""
    with (
        mock.patch("siderite.baremetal.domain.facts.provision_set", lambda *_: _NOTHING),
        mock.patch.object(Change, "tell", lambda *_: None),
    ):
        yield


async def _ask(program: Any, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """A request, without a socket."""
    basic = base64.b64encode(f"admin:{_PASSWORD}".encode())
    headers = [
        (b"authorization", b"Basic " + basic),
        (b"x-openstack-ironic-api-version", b"1.109"),
        (b"content-type", b"application/json"),
    ]
    scope = {
        "type": "http", "method": method, "path": path, "query_string": b"", "headers": headers,
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await program.app(scope, receive, send)
    return sent[0]["status"], sent[1]["body"]


async def _node(program: Any) -> str:
    body = b'{"driver": "fake-hardware"}'
    status, answer = await _ask(program, "POST", "/baremetal/v1/nodes", body)
    assert status == 201, answer
    return answer.partition(b'"uuid":"')[2][:36].decode()


async def _rate(program: Any, uuids: list[str], seconds: float) -> float:
    count = 0
    rules = program.baremetal.rules
    begin = time.perf_counter()

    async def loop(uuid: str) -> None:
        nonlocal count

        async def fail(change: Change) -> None:
            node = await NODES.get(program.store, uuid)
            assert node is not None
            apply(change, rules, node, Event.FAIL)

        path = f"/baremetal/v1/nodes/{uuid}/states/provision"
        while time.perf_counter() - begin < seconds:
            status, answer = await _ask(program, "PUT", path, b'{"target": "manage"}')
            assert status == 202, answer
            await program.door.attempt(Cause("req-bench"), uuid, fail)
            count += 2

    async with asyncio.TaskGroup() as group:
        for uuid in uuids:
            group.create_task(loop(uuid))
    return count / (time.perf_counter() - begin)
