"""The reference page of payloads: one of each kind, made by the functions that announce them."""

from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

import msgspec

from siderite.cli.docs_events import announced
from siderite.cli.markdown import page
from siderite.compute.domain import facts
from siderite.compute.domain import record_facts
from siderite.compute.domain.aggregate import Aggregate
from siderite.compute.domain.host import Host
from siderite.compute.domain.keypair import Keypair
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_group import ServerGroup
from siderite.compute.domain.server_machine import V
from siderite.core import shape
from siderite.core.fact import Fact
from siderite.image.domain import facts as image_facts
from siderite.image.domain.image import Image

_TIMES = ("_at", "_up", "_beginning", "_ending", "created", "updated", "since", "until")
_ID = "1be26c0b-03f2-4d2e-ae87-c02d7f33c123"


def _of_servers() -> Iterator[Fact]:
    server: Any = shape.made_up(Server, bare=True, uuid=_ID, name="web", vm_state=V.ACTIVE)
    building = msgspec.structs.replace(server, vm_state=V.BUILDING, task_state="spawning")
    yield facts.phase("create", "end", server)
    yield facts.phase("power_off", "error", server, why="the host does not answer")
    yield facts.update(building, server)
    yield facts.shut_down(server, "clean", 2, 11.5)
    yield record_facts.keypair("create", shape.made_up(Keypair, bare=True))[1]
    rack: Any = shape.made_up(Aggregate, bare=True)
    yield record_facts.aggregate("create", rack, 1)[1]
    yield record_facts.cached(rack, 1, record_facts.Cached("lab1", [_ID], []), (1, 3))
    yield record_facts.server_group("create", shape.made_up(ServerGroup, bare=True), [_ID])
    yield record_facts.service(shape.made_up(Host, bare=True))


def page_of_payloads() -> str:
    """What events carry."""
    return page(
        "Payloads of events",
        "One event of each kind of payload, as it stands in the log under `payload`; which events"
        " there are is in [events](events.md). Words in angle brackets stand for texts.",
        "## Bare metal",
        *_samples(fact for fact, _ in announced()),
        "## Compute",
        *_samples(_of_servers()),
        "## Images",
        *_samples([image_facts.fact("create", shape.made_up(Image, bare=True))]),
    )


def _samples(found: Iterable[Fact]) -> Iterator[str]:
    seen = set()
    for fact in found:
        sent = msgspec.json.decode(fact.payload)
        kind = sent.get("ironic_object.name") or sent.get("nova_object.name") or fact.event_type
        if kind in seen:
            continue
        seen.add(kind)
        yield f"### `{fact.event_type}`"
        text = msgspec.json.format(msgspec.json.encode(_readable(sent)), indent=2).decode()
        yield f"```json\n{text}\n```"


def _readable(value: Any, key: str = "") -> Any:
    """Made-up texts as words that say what they stand for."""
    if isinstance(value, dict):
        return {name: _readable(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_readable(inner, key) for inner in value]
    is_text = isinstance(value, str) and value.startswith(shape.MOMENT[:19])
    return f"<{key}>" if is_text and not key.endswith(_TIMES) else value
