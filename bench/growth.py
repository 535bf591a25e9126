"""`--growth`: the same small questions to one service while its fleet grows.

Nodes are made at an old version of the API, at which they are available at once, and so are watched
from their first moment: the sweep that records their power for the first time is one of the curves.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from statistics import median

from bench import load
from bench.client import Client
from bench.curve import Curve
from bench.figure import Figure
from bench.figure import Unit
from bench.fleet import Fleet
from bench.load import Request
from bench.stage import Stage
from bench.subject import CouldNotStock

OLD = "1.10"
_PAGE = 1000
_MADE_AT_ONCE = 200
_SWEEP_PATIENCE_S = 1800.0
_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class Step:
    """A fleet that has grown to its size, and how long it took until the power of all was known:
    whoever asks meanwhile shares the processor with the sweep, so nothing else is measured then.
    """

    stage: Stage
    fleet: Fleet
    before: int
    swept_s: float


Measure = Callable[[Step], Figure]


def measure(
    stage: Stage, sizes: Sequence[int], only: Sequence[str]
) -> tuple[list[Curve], dict[str, str]]:
    """Curves over the sizes, smallest first; beside them, what broke."""
    measures = {name: one for name, one in CURVES.items() if name in only}
    curves = {name: Curve(name, one[0], one[1]) for name, one in measures.items()}
    problems: dict[str, str] = {}
    fleet = replace(stage.new_fleet(0), has_class=False)
    for size in sorted(set(sizes)):
        before, fleet, begin = fleet.size, replace(fleet, size=size), time.perf_counter()
        load.run(_all(stage, [fleet.create(number) for number in range(before, size)]))
        load.run(_until_swept(stage, before, fleet))
        step = Step(stage, fleet, before, time.perf_counter() - begin)
        for name, (title, _, how) in measures.items():
            try:
                curves[name].points[size] = figure = how(step)
            except Exception as why:
                if stage.child is not None and stage.child.process.poll() is not None:
                    raise
                problems[f"{name}, {size} nodes"] = f"{type(why).__name__}: {why}"
                continue
            print(f"{size} nodes: {title}: {figure}", file=sys.stderr)
    return list(curves.values()), problems


async def _all(stage: Stage, requests: list[Request]) -> float:
    """Send them all at the old version, by eight clients; requests per second."""
    old = replace(stage.address, version=OLD)
    tally = await load.all_of(old, requests, clients=stage.plan.writers)
    if tally.others:
        raise CouldNotStock(f"of {len(requests)} requests some were refused: {dict(tally.others)}")
    return tally.rate


def _sweep(step: Step) -> Figure:
    """New nodes a second whose power becomes known, from the moment the first is made."""
    return Figure(Unit.RATE, ((step.fleet.size - step.before) / step.swept_s,))


async def _until_swept(stage: Stage, first: int, fleet: Fleet) -> None:
    marker = f"&marker={fleet.uuid(first - 1)}" if first else ""
    left = fleet.size - first
    deadline = time.perf_counter() + _SWEEP_PATIENCE_S
    async with Client(stage.address) as client:
        while left:
            path = f"/v1/nodes?limit={min(_PAGE, left)}&fields=uuid,power_state{marker}"
            nodes = json.loads((await client.send("GET", path)).body)["nodes"]
            if all(node["power_state"] for node in nodes):
                left -= len(nodes)
                marker = f"&marker={nodes[-1]['uuid']}"
            elif time.perf_counter() > deadline:
                raise TimeoutError(f"{left} nodes were not swept")
            else:
                await asyncio.sleep(_PAUSE_S)


def _page(step: Step) -> Figure:
    return _timed(step.stage, [_filtered(step.fleet)], 30, median)


def _page_p99(step: Step) -> Figure:
    return _timed(step.stage, [_filtered(step.fleet)], 100, _p99)


def _get(step: Step) -> Figure:
    fleet = step.fleet
    some = range(0, fleet.size, max(1, fleet.size // 100))
    paths = [f"/v1/nodes/{fleet.uuid(number)}" for number in some]
    return _timed(step.stage, paths, 500, median)


def _filtered(fleet: Fleet) -> str:
    """A page with a filter, from the middle of a fleet that has more than two of them."""
    marker = f"&marker={fleet.uuid(fleet.size // 2)}" if fleet.size > 2 * _PAGE else ""
    return f"/v1/nodes/detail?limit={_PAGE}&provision_state=available{marker}"


def _tail(step: Step) -> Figure:
    newest = load.run(_newest(step.stage))
    path = f"/v1/events?after={max(0, newest - 1000)}&limit=1000"
    return _timed(step.stage, [path], 30, median, prefix="/events")


async def _newest(stage: Stage) -> int:
    """The number of the newest event: the last that one may ask for what is after it."""
    low, high = 0, 1
    async with Client(stage.address.root_of("/events")) as client:

        async def is_there(number: int) -> bool:
            return (await client.send("GET", f"/v1/events?after={number}&limit=1")).status == 200

        while await is_there(high):
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if await is_there(middle) else (low, middle)
    return low


def _create(step: Step) -> Figure:
    """A few nodes more, which are then removed: the fleet keeps its size."""
    stage = step.stage

    async def once() -> float:
        more = replace(stage.new_fleet(_MADE_AT_ONCE), has_class=False)
        rate = await _all(stage, more.creates())
        path = [f"/v1/nodes/{more.uuid(number)}" for number in range(more.size)]
        await load.all_of(
            stage.address, [Request("DELETE", one, b"", 204) for one in path], clients=1
        )
        return rate

    return Figure(Unit.RATE, tuple(load.run(once()) for _ in range(stage.plan.rounds)))


def _memory(step: Step) -> Figure:
    child = step.stage.child
    assert child is not None, "only a process of our own has memory that we can read"
    return Figure(Unit.MEMORY, (child.resident_mb(),))


def _start(step: Step) -> Figure:
    stage = step.stage
    return Figure(Unit.TIME, tuple(stage.restart() for _ in range(stage.plan.starts)))


def _p99(times: Sequence[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)]


def _timed(
    stage: Stage,
    paths: Sequence[str],
    count: int,
    fold: Callable[[Sequence[float]], float],
    prefix: str | None = None,
) -> Figure:
    """GET the paths in turn over one connection: a sample for each round of so many requests."""
    address = stage.address if prefix is None else stage.address.root_of(prefix)

    async def once() -> float:
        times = []
        async with Client(address) as client:
            for number in range(count):
                begin = time.perf_counter()
                reply = await client.send("GET", paths[number % len(paths)])
                times.append(time.perf_counter() - begin)
                assert reply.status == 200, reply.body[:300]
        return 1000 * fold(times)

    return Figure(Unit.MILLISECONDS, tuple(load.run(once()) for _ in range(stage.plan.rounds)))


#: Title, how many times worse it may get from a thousand nodes on, and how it is measured.
CURVES: dict[str, tuple[str, float | None, Measure]] = {
    "sweep": ("power sweep, nodes", 2, _sweep),
    "list": ("filtered page of 1000", 2, _page),
    "list-p99": ("the same, p99", 3, _page_p99),
    "get": ("GET one node", 1.5, _get),
    "create": ("create node, 8 clients", 2, _create),
    "tail": ("newest 1000 events", 2, _tail),
    "memory": ("resident memory", None, _memory),
    "start": ("start to first 200", None, _start),
}
