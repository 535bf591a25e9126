"""The reference page of events, printed from the functions that make the facts."""

from collections.abc import Iterator
from typing import Any

import msgspec

from siderite.baremetal.domain import facts
from siderite.baremetal.domain import hook_facts
from siderite.baremetal.domain import watch_facts
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.node_machine import Event
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.power_truth import Told
from siderite.baremetal.domain.record import Record
from siderite.baremetal.domain.steps import Hold
from siderite.baremetal.domain.steps import Job
from siderite.cli.markdown import code
from siderite.cli.markdown import page
from siderite.cli.markdown import table
from siderite.compute.domain.facts import EVENT_TYPES as COMPUTE_TYPES
from siderite.compute.domain.record_facts import EVENT_TYPES as RECORD_TYPES
from siderite.core.fact import Fact
from siderite.image.domain import facts as image_facts


def _sample(**changes: Any) -> Node:
    made = Node(
        uuid="1be26c0b-03f2-4d2e-ae87-c02d7f33c123", created_at="2026-01-01T09:00:00.000000+00:00",
        updated_at="2026-01-01T10:00:00.000000+00:00", name="r01-n01", driver="fake-hardware",
        driver_info={"rack": "r01", "password": "secret"}, provision_state=P.DEPLOYING,
        target_provision_state=P.ACTIVE, power_state="power off", conductor="host1",
        provision_updated_at="2026-01-01T10:00:00.000000+00:00", resource_class="baremetal",
    )  # fmt: skip
    return msgspec.structs.replace(made, **changes)


def announced() -> Iterator[tuple[Fact, str]]:
    """One fact of each type, and when it is announced."""
    node = _sample()
    for action in ("create", "update", "delete"):
        for status in ("start", "end", "error"):
            more = "; or by the service, of what no move tells" * (action == "update")
            yield facts.node_crud(action, status, node), f"a client's {action} of a node{more}"
    yield from _announced_of_others(node)
    for status in ("start", "end", "error"):
        yield facts.maintenance_set(status, node), "a user sets or clears maintenance"
    ends = {"start": "began", "end": "ended or is held", "error": "failed", "success": "goes on"}
    for status, text in ends.items():
        row = next(r for r in NODE if facts.provision_status(r.state, r.to, r.event) == status)
        before, after = _sample(provision_state=row.state), _sample(provision_state=row.to)
        yield facts.provision_set(before, after, row.event), f"the machine moved: work {text}"
    for status in ("start", "end", "error"):
        yield facts.power_set(status, node, "power on"), "a power change, asked for or by a step"
    for action, when in (
        ("console_set", "a console is switched on or off"),
        ("console_restore", "a console is started anew: the process that carried it is gone"),
    ):
        for status in ("start", "end", "error"):
            yield facts.console(action, status, node), when
    for status in ("start", "end"):
        yield facts.console("console_stop", status, node), "an instance ends, and its console"
    yield facts.power_corrected(node, None), "the record now says what the hardware says"
    matters = {
        Told.UNKNOWN: "the power cannot be read",
        Told.FAILURE: "it could not be read for long: maintenance",
        Told.CONFLICT: "machine and record differ, and both are left so",
    }
    for told, text in matters.items():
        for status in ("start", "end"):
            over = " no more" if status == "end" else ""
            yield watch_facts.matter(told, status, node, reason=None), f"{text}{over}"
    (fact,) = watch_facts.policy_set(_sample(power_policy="observe"))
    yield fact, "a user says who is right about a node's power; null: the option `power_policy`"
    hold = Hold(id="", hook="", name="", index=0, since=0, until=0, on_deadline="fail")
    held = {"start": "is held", "end": "goes on", "error": "fails", "success": "has more time"}
    for status, text in held.items():
        fact = hook_facts.hook(status, node, Job(op=""), hold, reason=None)
        yield fact, f"a node at a hook {text}"
    for status, text in (("end", "has taken"), ("error", "refused for good")):
        fact = watch_facts.power_update(
            status, node, server=node.uuid, tag="POWER_ON", code=200, reason=None
        )
        yield fact, f"a compute service {text} a change of power"


def _announced_of_others(node: Node) -> Iterator[tuple[Fact, str]]:
    for kind in facts.KINDS:
        fields = dict.fromkeys((*kind.fields, "created_at", "updated_at"))
        sample: Any = msgspec.defstruct("Sample", [*fields], bases=(Record,), kw_only=True)
        record = sample(**{**fields, "uuid": node.uuid, "created_at": node.created_at})
        for action in ("create", "update", "delete"):
            for status in ("start", "end", "error"):
                with_node = "node_uuid" in fields and action == "delete" and status != "error"
                article = "an" if kind.word[0] in "aeiou" else "a"
                when = (
                    f"a client's {action} of {article} {kind.word}" + " or of its node" * with_node
                )
                if (kind, action) == (facts.ALLOCATION, "update"):
                    when += "; or by the conductor, when a node was found or none was"
                if (kind, action) == (facts.PORT, "create"):
                    when += "; or by the conductor, of one that inspection found"
                yield facts.record_crud(kind, action, status, record, None), when


def page_of_events() -> str:
    """What is announced, and when."""
    rows = []
    for fact, when in announced():
        sent = msgspec.json.decode(fact.payload)
        kind = f"{sent['ironic_object.name']} {sent['ironic_object.version']}"
        rows.append((code(fact.event_type), fact.priority, fact.publisher, kind, when))
    before = _sample(provision_state=P.AVAILABLE, target_provision_state=None)
    sample = facts.provision_set(before, _sample(), Event.DEPLOY)
    text = msgspec.json.format(sample.payload.encode(), indent=2).decode()
    return page(
        "Events",
        "What the bare metal service announces: one row in the event log per fact, written in the"
        " commit that makes it true. Types and payloads are those of Ironic's versioned"
        " notifications. [Follow events](../how-to/follow-events.md) says how to read the log,"
        " [send notifications](../how-to/send-notifications.md) how to have it on RabbitMQ.",
        table("event type | priority | publisher | payload | when", rows),
        "[Payloads](payloads.md) has one of each kind. The publisher is followed by a dot and the"
        " host's name. Secrets are masked. This is the"
        f" payload of `{sample.event_type}` for a node that begins to be deployed:",
        f"```json\n{text}\n```",
        "## Compute",
        "Types and payloads are those of Nova's versioned notifications; `*` stands for the action"
        " or its phase.",
        table("event type", ((code(glob),) for glob in (*COMPUTE_TYPES, *RECORD_TYPES))),
        "## Images",
        "The payload is the image as the API shows it.",
        table("event type | when", _image_rows()),
    )


def _image_rows() -> Iterator[tuple[str, str]]:
    """What the image service announces."""
    for action, when in image_facts.ACTIONS.items():
        yield code(f"image.{action}"), when
