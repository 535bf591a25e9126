"""Steps: the pieces that provisioning work is made of, and the job that goes through them.

A job is a list of steps and the place in it. It lives in the work row, so that a step that was
finished is not run again after a crash; `token` names one run of one step, so that a driver can
tell a repeat.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.secrets import mask

Json = dict[str, Any]


class Family(StrEnum):
    """The kinds of provisioning work, by the name of the work."""

    VERIFY = "verify"
    CLEAN = "clean"
    DEPLOY = "deploy"
    SERVICE = "service"
    INSPECT = "inspect"
    ADOPT = "adopt"
    RESCUE = "rescue"
    UNRESCUE = "unrescue"
    TEARDOWN = "teardown"


NOT_ON_CHILDREN = frozenset({"hold", "wait"})
"""Steps of the work itself: they cannot be for a node's children."""

RESERVED = frozenset({"power_on", "power_off", "reboot"}) | NOT_ON_CHILDREN
"""Steps that Siderite itself carries out, whatever the interface."""

POWER_STEPS = {
    "power_on": PowerTarget.ON,
    "power_off": PowerTarget.OFF,
    "reboot": PowerTarget.REBOOT,
}
"""What those of them that are about power bring a node to."""

OWN = "parent_step"
"""Where a node remembers the step that it runs for its parent."""

CHILD_STEPS = "child_steps"
"""Where a node remembers which of its children it has asked for a step."""

_TAKES: dict[str, tuple[str, ...]] = {
    "bios.apply_configuration": ("settings",),
    "bios.factory_reset": (),
    "firmware.update": ("settings",),
    "raid.create_configuration": (
        "create_root_volume", "create_nonroot_volumes", "delete_existing",
    ),
    "raid.delete_configuration": (),
    **dict.fromkeys(RESERVED, ()),
    "wait": ("seconds",),
}  # fmt: skip
"""The arguments of steps that do not run in a ramdisk; one with another does not what was meant."""

ORDER = ("vendor", "power", "management", "firmware", "deploy", "bios", "raid")
"""Ties of priority go by interface, in this order."""


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step."""

    interface: str
    step: str
    priority: int = 0
    args: Json = {}
    abortable: bool = False
    in_band: bool = False
    children: list[str] | None = None
    """None if it is for the node itself; else for its children, or those that are named."""
    switches: PowerTarget | None = None
    """The change of power that it begins with."""

    def shown(self) -> Json:
        """As `clean_step` and the like show it: without what is secret in its arguments."""
        shown: Json = {"interface": self.interface, "step": self.step, "priority": self.priority}
        if self.args:
            shown["args"] = mask(self.args)
        shown["abortable"] = self.abortable
        if self.children is not None:
            shown["execute_on_child_nodes"] = True
            shown["limit_child_node_execution"] = self.children
        return shown

    def switches_first(self, node: Node) -> PowerTarget | None:
        """The change of power that it begins with on this node."""
        target = POWER_STEPS.get(self.step, self.switches)
        if target is None or self.children is not None:
            return None
        return None if node.disable_power_off and target.leads_to is PowerState.OFF else target


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """A stop of the work at a hook, until somebody answers or time is up."""

    id: str
    """Names this stop."""
    hook: str
    name: str
    index: int
    """At which step."""
    since: float
    until: float
    on_deadline: str


class Job(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the work on a node stands."""

    op: str
    """Names this piece of work."""
    steps: list[Step] | None = None
    """None until the list is settled."""
    index: int = 0
    asked: list[Json] | None = None
    """The steps that the client asked for."""
    waiting: bool = False
    """The current step was begun and has not ended yet."""
    since: float = 0.0
    """When the current step began."""
    switching: PowerTarget | None = None
    """What the current step brings the node's power to: that it does so was announced."""
    abort: bool = False
    """Stop when the current step ends; it cannot be interrupted."""
    args: Json = {}
    hold: Hold | None = None
    """The hook that it is stopped at."""
    passed: list[str] = []
    """The hooks that let it go on, with the place where they did."""

    @property
    def token(self) -> str:
        """Names this run of the current step."""
        return f"{self.op}/{self.index}"

    @property
    def current(self) -> Step | None:
        """The step to run or running; None when all are done."""
        if self.steps is None or self.index >= len(self.steps):
            return None
        return self.steps[self.index]

    def released(self) -> "Job":
        """The job when its hold is over: that hook does not stop it here again."""
        if self.hold is None:
            return self
        passed = [*self.passed, f"{self.hold.hook}/{self.hold.index}"]
        return self.with_(hold=None, passed=passed)

    def with_(self, **changes: Any) -> "Job":
        """The job with these fields changed."""
        return msgspec.structs.replace(self, **changes)


_decode = msgspec.json.Decoder(Job).decode
_encode = msgspec.json.Encoder().encode


def job_text(job: Job) -> str:
    """The job as the work row keeps it."""
    return _encode(job).decode()


def job_of(text: str) -> Job:
    """The job that a work row keeps."""
    return _decode(text)


def in_order(steps: list[Step]) -> list[Step]:
    """Those with a priority, highest first; ties by interface."""
    wanted = [step for step in steps if step.priority > 0]
    rank = {name: n for n, name in enumerate(ORDER)}
    return sorted(wanted, key=lambda s: (-s.priority, rank.get(s.interface, len(rank)), s.step))


class UnknownStep(msgspec.Struct, frozen=True):
    """A step was asked for that the driver does not have."""

    step: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        known = ", ".join(self.known) or "none"
        return f"the driver has no step {self.step}; it has: {known}"


class UnknownArgument(msgspec.Struct, frozen=True):
    """A step was asked for with an argument that it does not take."""

    step: str
    argument: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        known = ", ".join(self.known) or "none"
        return f"step {self.step} has no argument {self.argument[:80]!r}; it takes: {known}"


def unexpected(wish: Json) -> UnknownArgument | None:
    """The argument, if any, that a step as a client writes it does not take."""
    name = f"{wish['interface']}.{wish['step']}"
    takes = _TAKES.get(wish["step"] if wish["step"] in RESERVED else name)
    extra = sorted(set(wish.get("args") or {}) - set(takes)) if takes is not None else []
    return UnknownArgument(name, extra[0], takes or ()) if extra else None


def asked_for(
    known: list[Step], asked: list[Json], *, merge: bool
) -> list[Step] | UnknownStep | UnknownArgument:
    """The list to run for what the client asked.

    Cleaning and servicing run exactly what was asked, in that order. A deploy merges it into the
    driver's own list by priority (`merge`); a step that both name takes the client's priority and
    arguments. What is for children is none of the driver's steps: theirs may be another.
    """
    by_name = {(step.interface, step.step): step for step in known}
    chosen: list[Step] = []
    for wish in asked:
        key = (wish["interface"], wish["step"])
        children = on_children(wish)
        own = by_name.get(key) if children is None else Step(*key)
        if own is None and wish["step"] not in RESERVED:
            return UnknownStep(".".join(key), tuple(sorted(".".join(k) for k in by_name)))
        odd = unexpected(wish)
        if odd is not None:
            return odd
        own = own or Step(*key, abortable=True)
        chosen.append(
            msgspec.structs.replace(
                own,
                args=wish.get("args") or {},
                priority=wish.get("priority", own.priority),
                children=children,
            )
        )
    if not merge:
        return chosen
    named = {(step.interface, step.step) for step in chosen}
    return in_order([s for s in known if (s.interface, s.step) not in named] + chosen)


def on_children(wish: Json) -> list[str] | None:
    """Which children of the node a step as a client writes it is for (all, if none is named); None
    if it is for the node itself.
    """
    if not wish.get("execute_on_child_nodes"):
        return None
    return [uuid.lower() for uuid in wish.get("limit_child_node_execution") or ()]


def serves_its_parent(info: Mapping[str, Any]) -> bool:
    """Whether a node with this memory runs a step for its parent just now."""
    own = info.get(OWN)
    return own is not None and not own.get("ended")
