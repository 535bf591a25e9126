"""The bare metal node's provisioning machine: 30 states, 93 rows, and the verbs clients may ask.

Read by usecases (through the one door), by the web for its legal verbs, by the docs and the
diagram. An event is what the machine fires; a verb is what a client asks for.
"""

from enum import StrEnum

from siderite.core.machine import KEEP
from siderite.core.machine import Kind
from siderite.core.machine import Machine
from siderite.core.machine import Row
from siderite.core.machine import State


class P(StrEnum):
    """The values that `provision_state` can take on the wire."""

    ENROLL = "enroll"
    VERIFYING = "verifying"
    MANAGEABLE = "manageable"
    AVAILABLE = "available"
    ACTIVE = "active"
    DEPLOYING = "deploying"
    DEPLOYWAIT = "wait call-back"
    DEPLOYFAIL = "deploy failed"
    DEPLOYHOLD = "deploy hold"
    DELETING = "deleting"
    CLEANING = "cleaning"
    CLEANWAIT = "clean wait"
    CLEANFAIL = "clean failed"
    CLEANHOLD = "clean hold"
    ERROR = "error"
    INSPECTING = "inspecting"
    INSPECTWAIT = "inspect wait"
    INSPECTFAIL = "inspect failed"
    ADOPTING = "adopting"
    ADOPTFAIL = "adopt failed"
    RESCUE = "rescue"
    RESCUING = "rescuing"
    RESCUEWAIT = "rescue wait"
    RESCUEFAIL = "rescue failed"
    UNRESCUING = "unrescuing"
    UNRESCUEFAIL = "unrescue failed"
    SERVICING = "servicing"
    SERVICEWAIT = "service wait"
    SERVICEFAIL = "service failed"
    SERVICEHOLD = "service hold"


class Event(StrEnum):
    """What the machine fires. The first group follows a client's verb, the second is internal."""

    MANAGE = "manage"
    PROVIDE = "provide"
    INSPECT = "inspect"
    CLEAN = "clean"
    ADOPT = "adopt"
    DEPLOY = "deploy"
    REBUILD = "rebuild"
    DELETE = "delete"
    RESCUE = "rescue"
    UNRESCUE = "unrescue"
    SERVICE = "service"
    ABORT = "abort"
    UNHOLD = "unhold"

    DONE = "done"
    FAIL = "fail"
    WAIT = "wait"
    RESUME = "resume"
    HOLD = "hold"


INTERNAL = frozenset({Event.DONE, Event.FAIL, Event.WAIT, Event.RESUME, Event.HOLD})
"""Never accepted from a client; neither is `clean` out of `deleting`."""

VERBS = {
    "active": Event.DEPLOY,
    "deploy": Event.DEPLOY,
    "rebuild": Event.REBUILD,
    "deleted": Event.DELETE,
    "undeploy": Event.DELETE,
    "manage": Event.MANAGE,
    "provide": Event.PROVIDE,
    "inspect": Event.INSPECT,
    "abort": Event.ABORT,
    "clean": Event.CLEAN,
    "adopt": Event.ADOPT,
    "rescue": Event.RESCUE,
    "unrescue": Event.UNRESCUE,
    "unhold": Event.UNHOLD,
    "service": Event.SERVICE,
}
"""What a client may write as `target` of states/provision, and the event that it fires."""

CALLBACK_S = 1800.0
"""How long a node in a wait state may be silent."""


def _stable(name: P, meaning: str) -> State:
    return State(name, Kind.STABLE, meaning=meaning)


def _active(name: P, target: P, work: str, deadline_s: float, meaning: str) -> State:
    return State(name, Kind.ACTIVE, target, work, deadline_s, meaning)


def _wait(name: P, target: P, meaning: str) -> State:
    return State(name, Kind.WAIT, target, None, CALLBACK_S, meaning)


def _failed(name: P, target: P, meaning: str) -> State:
    return State(name, Kind.FAILED, target, meaning=meaning)


def _hold(name: P, target: P, meaning: str) -> State:
    return State(name, Kind.HOLD, target, meaning=meaning)


_HOURS = 3600.0

STATES = (
    _stable(P.ENROLL, "known, but not yet shown to be manageable"),
    _active(P.VERIFYING, P.MANAGEABLE, "verify", 300, "credentials and power are being tried"),
    _stable(P.MANAGEABLE, "can be managed; not offered to users"),
    _stable(P.AVAILABLE, "cleaned and ready to be deployed"),
    _stable(P.ACTIVE, "carries a workload"),
    _active(P.DEPLOYING, P.ACTIVE, "deploy", 2 * _HOURS, "is being made ready for a workload"),
    _wait(P.DEPLOYWAIT, P.ACTIVE, "the deploy waits for the ramdisk to call back"),
    _failed(P.DEPLOYFAIL, P.ACTIVE, "the deploy failed; see last_error"),
    _hold(P.DEPLOYHOLD, P.ACTIVE, "the deploy is held for an outside decision"),
    _active(P.DELETING, P.AVAILABLE, "teardown", 1800, "the workload is being removed"),
    _active(P.CLEANING, P.AVAILABLE, "clean", 24 * _HOURS, "is being scrubbed"),
    _wait(P.CLEANWAIT, P.AVAILABLE, "cleaning waits for the ramdisk to call back"),
    _failed(P.CLEANFAIL, P.AVAILABLE, "cleaning failed or was aborted; see last_error"),
    _hold(P.CLEANHOLD, P.AVAILABLE, "cleaning is held for an outside decision"),
    _stable(P.ERROR, "removing the workload failed; see last_error"),
    _active(P.INSPECTING, P.MANAGEABLE, "inspect", 1800, "its hardware is being looked at"),
    _wait(P.INSPECTWAIT, P.MANAGEABLE, "inspection waits for the ramdisk to call back"),
    _failed(P.INSPECTFAIL, P.MANAGEABLE, "inspection failed or was aborted; see last_error"),
    _active(P.ADOPTING, P.ACTIVE, "adopt", 300, "a running workload is being taken over"),
    _failed(P.ADOPTFAIL, P.ACTIVE, "the take-over failed; see last_error"),
    _stable(P.RESCUE, "runs a rescue system in place of its workload"),
    _active(P.RESCUING, P.RESCUE, "rescue", 1800, "is being booted into the rescue system"),
    _wait(P.RESCUEWAIT, P.RESCUE, "the rescue waits for the ramdisk to call back"),
    _failed(P.RESCUEFAIL, P.RESCUE, "the rescue failed; see last_error"),
    _active(P.UNRESCUING, P.ACTIVE, "unrescue", 1800, "is going back to its workload"),
    _failed(P.UNRESCUEFAIL, P.ACTIVE, "going back to the workload failed; see last_error"),
    _active(P.SERVICING, P.ACTIVE, "service", 24 * _HOURS, "is being serviced, workload kept"),
    _wait(P.SERVICEWAIT, P.ACTIVE, "servicing waits for the ramdisk to call back"),
    _failed(P.SERVICEFAIL, P.ACTIVE, "servicing failed; see last_error"),
    _hold(P.SERVICEHOLD, P.ACTIVE, "servicing is held for an outside decision"),
)

NODE = Machine(
    "node",
    STATES,
    (
        #   from            event           to              target
        Row(P.ENROLL, Event.MANAGE, P.VERIFYING),
        Row(P.VERIFYING, Event.DONE, P.MANAGEABLE),
        Row(P.VERIFYING, Event.FAIL, P.ENROLL),
        Row(P.MANAGEABLE, Event.ADOPT, P.ADOPTING),
        Row(P.MANAGEABLE, Event.CLEAN, P.CLEANING, P.MANAGEABLE),
        Row(P.MANAGEABLE, Event.INSPECT, P.INSPECTING),
        Row(P.MANAGEABLE, Event.PROVIDE, P.CLEANING, P.AVAILABLE),
        Row(P.AVAILABLE, Event.DEPLOY, P.DEPLOYING),
        Row(P.AVAILABLE, Event.MANAGE, P.MANAGEABLE),
        # A manual clean keeps its own target, manageable, all the way.
        Row(P.CLEANING, Event.DONE, P.AVAILABLE),
        Row(P.CLEANING, Event.MANAGE, P.MANAGEABLE),
        Row(P.CLEANING, Event.WAIT, P.CLEANWAIT, KEEP),
        Row(P.CLEANING, Event.HOLD, P.CLEANHOLD, KEEP),
        Row(P.CLEANING, Event.FAIL, P.CLEANFAIL, KEEP),
        Row(P.CLEANWAIT, Event.RESUME, P.CLEANING, KEEP),
        Row(P.CLEANWAIT, Event.HOLD, P.CLEANHOLD, KEEP),
        Row(P.CLEANWAIT, Event.FAIL, P.CLEANFAIL, KEEP),
        Row(P.CLEANWAIT, Event.ABORT, P.CLEANFAIL, KEEP),
        Row(P.CLEANHOLD, Event.UNHOLD, P.CLEANWAIT, KEEP),
        Row(P.CLEANHOLD, Event.ABORT, P.CLEANFAIL, KEEP),
        Row(P.CLEANFAIL, Event.MANAGE, P.MANAGEABLE),
        Row(P.INSPECTING, Event.DONE, P.MANAGEABLE),
        Row(P.INSPECTING, Event.WAIT, P.INSPECTWAIT),
        Row(P.INSPECTING, Event.FAIL, P.INSPECTFAIL),
        Row(P.INSPECTWAIT, Event.RESUME, P.INSPECTING),
        Row(P.INSPECTWAIT, Event.DONE, P.MANAGEABLE),
        Row(P.INSPECTWAIT, Event.FAIL, P.INSPECTFAIL),
        Row(P.INSPECTWAIT, Event.ABORT, P.INSPECTFAIL),
        Row(P.INSPECTFAIL, Event.MANAGE, P.MANAGEABLE),
        Row(P.INSPECTFAIL, Event.INSPECT, P.INSPECTING),
        Row(P.ADOPTING, Event.DONE, P.ACTIVE),
        Row(P.ADOPTING, Event.FAIL, P.ADOPTFAIL),
        Row(P.ADOPTFAIL, Event.ADOPT, P.ADOPTING),
        Row(P.ADOPTFAIL, Event.MANAGE, P.MANAGEABLE),
        Row(P.DEPLOYING, Event.DONE, P.ACTIVE),
        Row(P.DEPLOYING, Event.WAIT, P.DEPLOYWAIT),
        Row(P.DEPLOYING, Event.HOLD, P.DEPLOYHOLD),
        Row(P.DEPLOYING, Event.FAIL, P.DEPLOYFAIL),
        Row(P.DEPLOYWAIT, Event.RESUME, P.DEPLOYING),
        Row(P.DEPLOYWAIT, Event.HOLD, P.DEPLOYHOLD),
        Row(P.DEPLOYWAIT, Event.FAIL, P.DEPLOYFAIL),
        Row(P.DEPLOYWAIT, Event.ABORT, P.DEPLOYFAIL),
        Row(P.DEPLOYWAIT, Event.DELETE, P.DELETING),
        Row(P.DEPLOYHOLD, Event.UNHOLD, P.DEPLOYWAIT),
        Row(P.DEPLOYHOLD, Event.ABORT, P.DEPLOYFAIL),
        Row(P.DEPLOYFAIL, Event.DEPLOY, P.DEPLOYING),
        Row(P.DEPLOYFAIL, Event.REBUILD, P.DEPLOYING),
        Row(P.DEPLOYFAIL, Event.DELETE, P.DELETING),
        Row(P.ACTIVE, Event.REBUILD, P.DEPLOYING),
        Row(P.ACTIVE, Event.DELETE, P.DELETING),
        Row(P.ACTIVE, Event.RESCUE, P.RESCUING),
        Row(P.ACTIVE, Event.SERVICE, P.SERVICING),
        Row(P.DELETING, Event.CLEAN, P.CLEANING, P.AVAILABLE),
        Row(P.DELETING, Event.FAIL, P.ERROR),
        Row(P.ERROR, Event.REBUILD, P.DEPLOYING),
        Row(P.ERROR, Event.DELETE, P.DELETING),
        Row(P.RESCUING, Event.DONE, P.RESCUE),
        Row(P.RESCUING, Event.WAIT, P.RESCUEWAIT),
        Row(P.RESCUING, Event.FAIL, P.RESCUEFAIL),
        Row(P.RESCUEWAIT, Event.RESUME, P.RESCUING),
        Row(P.RESCUEWAIT, Event.FAIL, P.RESCUEFAIL),
        Row(P.RESCUEWAIT, Event.ABORT, P.RESCUEFAIL),
        Row(P.RESCUEWAIT, Event.DELETE, P.DELETING),
        Row(P.RESCUE, Event.RESCUE, P.RESCUING),
        Row(P.RESCUE, Event.UNRESCUE, P.UNRESCUING),
        Row(P.RESCUE, Event.DELETE, P.DELETING),
        Row(P.RESCUEFAIL, Event.RESCUE, P.RESCUING),
        Row(P.RESCUEFAIL, Event.UNRESCUE, P.UNRESCUING),
        Row(P.RESCUEFAIL, Event.DELETE, P.DELETING),
        Row(P.UNRESCUING, Event.DONE, P.ACTIVE),
        Row(P.UNRESCUING, Event.FAIL, P.UNRESCUEFAIL),
        Row(P.UNRESCUEFAIL, Event.RESCUE, P.RESCUING),
        Row(P.UNRESCUEFAIL, Event.UNRESCUE, P.UNRESCUING),
        Row(P.UNRESCUEFAIL, Event.DELETE, P.DELETING),
        Row(P.SERVICING, Event.DONE, P.ACTIVE),
        Row(P.SERVICING, Event.WAIT, P.SERVICEWAIT),
        Row(P.SERVICING, Event.HOLD, P.SERVICEHOLD),
        Row(P.SERVICING, Event.FAIL, P.SERVICEFAIL),
        Row(P.SERVICEWAIT, Event.RESUME, P.SERVICING),
        Row(P.SERVICEWAIT, Event.HOLD, P.SERVICEHOLD),
        Row(P.SERVICEWAIT, Event.FAIL, P.SERVICEFAIL),
        Row(P.SERVICEWAIT, Event.ABORT, P.SERVICEFAIL),
        Row(P.SERVICEWAIT, Event.DELETE, P.DELETING),
        Row(P.SERVICEHOLD, Event.SERVICE, P.SERVICING),
        Row(P.SERVICEHOLD, Event.UNHOLD, P.SERVICEWAIT),
        Row(P.SERVICEHOLD, Event.FAIL, P.SERVICEFAIL),
        Row(P.SERVICEHOLD, Event.ABORT, P.SERVICEFAIL),
        Row(P.SERVICEFAIL, Event.SERVICE, P.SERVICING),
        Row(P.SERVICEFAIL, Event.RESCUE, P.RESCUING),
        Row(P.SERVICEFAIL, Event.WAIT, P.SERVICEWAIT),
        Row(P.SERVICEFAIL, Event.HOLD, P.SERVICEHOLD),
        Row(P.SERVICEFAIL, Event.ABORT, P.ACTIVE),
        Row(P.SERVICEFAIL, Event.DELETE, P.DELETING),
    ),
)


def legal_verbs(state: str) -> list[str]:
    """The verbs that a client may ask in this state, in the order of `VERBS`, without aliases."""
    events = {
        event for event in NODE.events(state) if event not in INTERNAL and state != P.DELETING
    }
    if state == P.CLEANING:
        events.discard(Event.MANAGE)  # how a manual clean ends; not a client's to ask
    return [v for v, e in VERBS.items() if e in events and v not in ("deploy", "undeploy")]


CHANGEABLE_WHILE_MOVING = frozenset({
    P.DEPLOYFAIL, P.INSPECTING, P.INSPECTFAIL, P.INSPECTWAIT, P.CLEANFAIL, P.ERROR, P.VERIFYING,
    P.ADOPTFAIL, P.RESCUEFAIL, P.UNRESCUEFAIL, P.SERVICEHOLD, P.SERVICEFAIL,
})  # fmt: skip
"""States with a target in which a node may still be changed."""
