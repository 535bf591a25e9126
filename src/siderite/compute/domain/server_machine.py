"""The server's machine: vm_state × task_state as one table, made from a list of actions.

A state is `active`, or with a task `active/powering-off`. What a client may ask for is an `Action`;
each makes rows from every vm_state it is allowed in, through its tasks, to where it ends. On top,
every state can be deleted and reset. Read by usecases (through the one door), docs and tests.
"""

from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise

import msgspec

from siderite.core.machine import Kind
from siderite.core.machine import Machine
from siderite.core.machine import Row
from siderite.core.machine import State


class V(StrEnum):
    """The values of `OS-EXT-STS:vm_state`."""

    ACTIVE = "active"
    BUILDING = "building"
    PENDING = "pending"
    PAUSED = "paused"
    SUSPENDED = "suspended"
    STOPPED = "stopped"
    RESCUED = "rescued"
    RESIZED = "resized"
    SOFT_DELETED = "soft-delete"
    DELETED = "deleted"
    ERROR = "error"
    SHELVED = "shelved"
    SHELVED_OFFLOADED = "shelved_offloaded"


class Event(StrEnum):
    """What the machine fires beside the actions' own names."""

    NEXT = "next"  # the next task of the same action
    DONE = "done"
    DONE_STOPPED = "done_stopped"  # the same, of a server that was stopped before
    FAIL = "fail"  # it could not be done; the server is as it was
    FAIL_STOPPED = "fail_stopped"  # the same, but its guest was shut down for it
    BREAK = "break"  # it failed half-way: error
    DONE_SHELVED = "done_shelved"  # of one that was shelved before
    RESCHEDULE = "reschedule"
    PEND = "pend"
    HURRY = "hurry"  # what is under way shall end sooner: a soft shutdown, a live migration
    OFFLOAD = "offload"
    POWERED_ON = "powered_on"  # by other hands than ours
    POWERED_OFF = "powered_off"
    DELETE = "delete"
    SOFT_DELETE = "soft_delete"
    RESET_ACTIVE = "reset_active"
    RESET_ERROR = "reset_error"


KEEP = "(keep)"
_LIVE = (V.ACTIVE, V.STOPPED, V.PAUSED, V.SUSPENDED)
_MINUTE = 60.0
_HOUR = 3600.0


class Action(msgspec.Struct, frozen=True):
    """What can be asked of a server.

    `tasks` are gone through in order; `end` is the vm_state afterwards, or KEEP. `also` are tasks
    of which it may interrupt the work. `clean` says that it begins with a shutdown that a hard
    request can hurry.
    """

    event: str
    allowed: tuple[V, ...]
    tasks: tuple[str, ...]
    end: str
    deadline_s: float
    also: tuple[str, ...] = ()
    clean: bool = False
    can_hurry: bool = False
    """Whether something else of it than a shutdown can be hurried."""
    was_stopped: bool = False
    """Whether it can also end in stopped, by the event done_stopped."""


_ANY_LIVE_REBOOT = (
    "rebooting", "rebooting_hard", "resuming", "unpausing", "pausing", "suspending",
)  # fmt: skip
_WAIT_FOR_THE_HOST = (
    "powering-on", "powering-off", "rebooting", "rebooting_hard", "pausing", "suspending",
    "rescuing", "updating_password", "image_snapshot_pending", "image_backup", "image_uploading",
    "shelving", "shelving_image_uploading", "rebuilding", "rebuild_spawning", "resize_prep",
    "resize_migrating", "resize_finish", "migrating",
)  # fmt: skip
"""What cannot go on once the host is down."""

ACTIONS = (
    Action("start", (V.STOPPED,), ("powering-on",), V.ACTIVE, 10 * _MINUTE),
    Action("stop", (V.ACTIVE, V.ERROR), ("powering-off",), V.STOPPED, 10 * _MINUTE, clean=True),
    Action("force_stop", (V.PAUSED, V.STOPPED, V.SUSPENDED, V.RESCUED), ("powering-off",),
           V.STOPPED, 10 * _MINUTE, clean=True),
    Action("reboot", (V.ACTIVE,), ("rebooting",), V.ACTIVE, 10 * _MINUTE),
    Action("reboot_hard", (*_LIVE, V.ERROR), ("rebooting_hard",), V.ACTIVE, 10 * _MINUTE,
           also=_ANY_LIVE_REBOOT),
    Action("pause", (V.ACTIVE,), ("pausing",), V.PAUSED, 10 * _MINUTE),
    Action("unpause", (V.PAUSED,), ("unpausing",), V.ACTIVE, 10 * _MINUTE),
    Action("suspend", (V.ACTIVE,), ("suspending",), V.SUSPENDED, 30 * _MINUTE),
    Action("resume", (V.SUSPENDED,), ("resuming",), V.ACTIVE, 30 * _MINUTE),
    Action("rescue", (V.ACTIVE, V.STOPPED, V.ERROR), ("rescuing",), V.RESCUED, 30 * _MINUTE,
           clean=True),
    Action("unrescue", (V.RESCUED,), ("unrescuing",), V.ACTIVE, 30 * _MINUTE),
    Action("rebuild", (V.ACTIVE, V.STOPPED, V.ERROR), ("rebuilding", "rebuild_spawning"),
           V.ACTIVE, _HOUR, clean=True, was_stopped=True),
    Action("evacuate", (V.ACTIVE, V.STOPPED, V.ERROR), ("rebuilding", "rebuild_spawning"),
           V.ACTIVE, _HOUR, also=_WAIT_FOR_THE_HOST, was_stopped=True),
    Action("resize", (V.ACTIVE, V.STOPPED), ("resize_prep", "resize_migrating", "resize_finish"),
           V.RESIZED, 2 * _HOUR, clean=True),
    Action("confirm_resize", (V.RESIZED,), ("resize_confirming",), V.ACTIVE, 30 * _MINUTE,
           was_stopped=True),
    Action("revert_resize", (V.RESIZED,), ("resize_reverting",), V.ACTIVE, 2 * _HOUR,
           was_stopped=True),
    Action("live_migrate", (V.ACTIVE, V.PAUSED), ("migrating",), KEEP, 2 * _HOUR,
           can_hurry=True),
    Action("create_image", _LIVE, ("image_snapshot_pending", "image_uploading"), KEEP, 2 * _HOUR),
    Action("create_backup", _LIVE, ("image_backup", "image_uploading"), KEEP, 2 * _HOUR),
    Action("shelve", _LIVE, ("shelving", "shelving_image_uploading"), V.SHELVED, 2 * _HOUR,
           clean=True),
    Action("shelve_offload", (V.SHELVED,), ("shelving_offloading",), V.SHELVED_OFFLOADED,
           30 * _MINUTE),
    Action("unshelve", (V.SHELVED, V.SHELVED_OFFLOADED, V.ERROR), ("unshelving", "spawning"),
           V.ACTIVE, _HOUR),
    Action("change_password", (V.ACTIVE,), ("updating_password",), V.ACTIVE, 10 * _MINUTE),
    Action("restore", (V.SOFT_DELETED,), ("restoring",), V.ACTIVE, 10 * _MINUTE),
)  # fmt: skip
BY_EVENT = {action.event: action for action in ACTIONS}
CLEAN_TASKS = frozenset(
    {"shelving_offloading"} | {action.tasks[0] for action in ACTIONS if action.clean}
)
"""In these a guest may be given time to shut down."""

BUILD_S = _HOUR
DELETE_S = 24 * _HOUR
_MEANING = {
    V.ACTIVE: "runs, or should",
    V.BUILDING: "is being placed and made",
    V.PENDING: "no host has room: waits for an outside decision",
    V.PAUSED: "its processors are stopped, its memory stays",
    V.SUSPENDED: "its memory is on disk",
    V.STOPPED: "is off",
    V.RESCUED: "runs a rescue system",
    V.RESIZED: "has its new size or host; confirm or revert",
    V.SOFT_DELETED: "is off, and can be restored for a while",
    V.DELETED: "is gone",
    V.ERROR: "something went wrong; see its fault",
    V.SHELVED: "is off, with its disk stored as an image",
    V.SHELVED_OFFLOADED: "is stored as an image only, and takes no host",
}


def joined(vm_state: str, task_state: str | None) -> str:
    """The state's name in the table."""
    return vm_state if task_state is None else f"{vm_state}/{task_state}"


def parted(name: str) -> tuple[str, str | None]:
    """vm_state and task_state of a name."""
    vm_state, slash, task_state = name.partition("/")
    return vm_state, task_state if slash else None


class _Table:
    """Collects states and rows; the same may be said twice."""

    def __init__(self) -> None:
        self.states: dict[str, State] = {}
        self.rows: dict[tuple[str, str], Row] = {}

    def resting(self, vm: V) -> None:
        kind = Kind.FAILED if vm is V.ERROR else Kind.STABLE
        self.states[vm] = State(vm, kind, meaning=_MEANING[vm])

    def busy(self, vm: str, task: str, deadline_s: float) -> str:
        name = joined(vm, task)
        known = self.states.get(name)
        if known is None or (known.deadline_s or 0.0) < deadline_s:
            self.states[name] = State(name, Kind.ACTIVE, deadline_s=deadline_s)
        return name

    def row(self, state: str, event: str, to: str) -> None:
        self.rows.setdefault((state, event), Row(state, event, to))

    def machine(self) -> Machine:
        return Machine("server", tuple(self.states.values()), tuple(self.rows.values()))


def _add(table: _Table, action: Action) -> None:
    for vm in action.allowed:
        names = [table.busy(vm, task, action.deadline_s) for task in action.tasks]
        table.row(vm, action.event, names[0])
        for before, after in pairwise(names):
            table.row(before, Event.NEXT, after)
        end = vm if action.end == KEEP else action.end
        if action.was_stopped and vm is V.STOPPED:
            end = V.STOPPED
        table.row(names[-1], Event.DONE, end)
        if action.was_stopped:
            table.row(names[-1], Event.DONE_STOPPED, V.STOPPED)
        for name in names:
            table.row(name, Event.FAIL, vm)
            if action.clean or action.event == "reboot":
                table.row(name, Event.FAIL_STOPPED, V.STOPPED)
        if action.clean or action.can_hurry:
            table.row(names[0], Event.HURRY, names[0])


def _interruptions(table: _Table) -> None:
    for action in ACTIONS:
        for name in list(table.states):
            vm, task = parted(name)
            if task in action.also and vm in action.allowed:
                table.row(name, action.event, joined(vm, action.tasks[0]))


def _building(table: _Table) -> None:
    placing = table.busy(V.BUILDING, "scheduling", BUILD_S)
    spawning = table.busy(V.BUILDING, "spawning", BUILD_S)
    table.row(placing, Event.NEXT, spawning)
    table.row(placing, Event.PEND, V.PENDING)
    table.row(spawning, Event.RESCHEDULE, placing)
    table.row(spawning, Event.DONE, V.ACTIVE)
    table.row(placing, Event.FAIL, V.ERROR)
    table.row(spawning, Event.FAIL, V.ERROR)
    table.row(V.PENDING, "rebuild", placing)


def _shelving(table: _Table) -> None:
    """A server that was shelved is offloaded at once, or stays as it is for a while; one that was
    deleted meanwhile is restored as that.
    """
    offloading = joined(V.SHELVED, "shelving_offloading")
    for vm in _LIVE:
        table.row(joined(vm, "shelving_image_uploading"), Event.OFFLOAD, offloading)
    restoring = joined(V.SOFT_DELETED, "restoring")
    table.row(restoring, Event.DONE_SHELVED, V.SHELVED)
    table.row(restoring, Event.OFFLOAD, V.SHELVED_OFFLOADED)


def _by_other_hands(table: _Table) -> None:
    """The machine was switched, and the record follows."""
    table.row(V.STOPPED, Event.POWERED_ON, V.ACTIVE)
    for vm in (V.ACTIVE, V.PAUSED):
        table.row(vm, Event.POWERED_OFF, V.STOPPED)


def _for_all(table: _Table) -> None:
    for name in list(table.states):
        vm, task = parted(name)
        if vm == V.DELETED:
            continue
        if task != "deleting":
            if vm != V.PENDING:  # it was never made: there is nothing that could be active
                table.row(name, Event.RESET_ACTIVE, V.ACTIVE)
            table.row(name, Event.RESET_ERROR, V.ERROR)
            if task is not None:
                table.row(name, Event.BREAK, V.ERROR)
            if vm not in (V.BUILDING, V.PENDING, V.SOFT_DELETED):
                gone = table.busy(vm, "soft-deleting", DELETE_S)
                table.row(name, Event.SOFT_DELETE, gone)
        table.row(name, Event.DELETE, table.busy(vm, "deleting", DELETE_S))
    for name in list(table.states):
        vm, task = parted(name)
        if task == "deleting":
            table.row(name, Event.DELETE, name)
            table.row(name, Event.DONE, V.DELETED)
            table.row(name, Event.FAIL, V.ERROR)
            table.row(name, Event.BREAK, V.ERROR)
            # Of one not made yet, whoever gives it up must not undo its owner's wish.
            if vm not in (V.PENDING, V.BUILDING):
                table.row(name, Event.RESET_ERROR, V.ERROR)
                table.row(name, Event.RESET_ACTIVE, V.ACTIVE)
        if task == "soft-deleting":
            table.row(name, Event.DONE, V.SOFT_DELETED)
            table.row(name, Event.FAIL, vm)
            table.row(name, Event.BREAK, V.ERROR)
            table.row(name, Event.DELETE, joined(vm, "deleting"))
            table.row(name, Event.RESET_ERROR, V.ERROR)
            table.row(name, Event.RESET_ACTIVE, V.ACTIVE)


def _made() -> Machine:
    table = _Table()
    for vm in V:
        table.resting(vm)
    _building(table)
    for action in ACTIONS:
        _add(table, action)
    _interruptions(table)
    _shelving(table)
    _by_other_hands(table)
    _for_all(table)
    return table.machine()


SERVER = _made()


def allowed_in(event: str) -> Iterator[str]:
    """The states in which an event is legal."""
    return (row.state for row in SERVER if row.event == event)
