"""The reference page of the server's machine, printed from its table."""

from siderite.cli.markdown import code
from siderite.cli.markdown import page
from siderite.cli.markdown import table
from siderite.compute.domain.server_machine import ACTIONS
from siderite.compute.domain.server_machine import KEEP
from siderite.compute.domain.server_machine import SERVER
from siderite.compute.domain.server_machine import Action
from siderite.compute.domain.server_machine import V
from siderite.compute.domain.server_machine import allowed_in
from siderite.compute.domain.status import STATUS


def server_states() -> str:
    """States, statuses and actions of a server."""
    states = ((code(vm), STATUS[vm][0], SERVER.states[vm].meaning, _special(vm)) for vm in V)
    return page(
        "The states of a server",
        f"A state is a vm_state, with a task_state while something is being done:"
        f" {len(SERVER.states)} states, {len(SERVER.rows)} rows. An action that has no row in a"
        " state is refused (409). Whatever is being done has a deadline: overdue, it fails, and the"
        " server shows why.",
        "## vm_state",
        table("vm_state | status | meaning | status while a task is under way", states),
        "## Actions",
        "Each is allowed in these states without a task. *Stays* means that the vm_state is the"
        " same afterwards. Every server can be deleted in every state, and reset by an"
        " administrator.",
        table("action | allowed in | tasks | ends in | lasts at most", map(_row, ACTIONS)),
        "## Hard reboot",
        "It may interrupt: " + ", ".join(code(one) for one in _interrupted()) + ".",
    )


def _special(vm: V) -> str:
    found = STATUS[vm][1]
    words = sorted(set(found.values()))
    return "; ".join(
        f"{word}: " + ", ".join(code(task) for task, name in found.items() if name == word)
        for word in words
    )


def _row(action: Action) -> tuple[str, ...]:
    end = "stays" if action.end == KEEP else code(action.end)
    if action.was_stopped:
        end += f" or {code(V.STOPPED)}, as before"
    return (
        action.event,
        ", ".join(code(vm) for vm in action.allowed),
        ", ".join(code(task) for task in action.tasks),
        end,
        f"{action.deadline_s / 60:g} min",
    )


def _interrupted() -> list[str]:
    return sorted(state for state in allowed_in("reboot_hard") if "/" in state)
