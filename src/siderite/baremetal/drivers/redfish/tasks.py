"""Tasks of Redfish BMCs: an order that takes its time is answered with the address of a monitor,
which says how that is going until it has ended.

By the standard the monitor answers 202 until then, and afterwards as the order would have been
answered. Many BMCs give the task itself there, with 200 from the start: its `TaskState` counts.
"""

from collections.abc import Mapping
from typing import Any

from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.contract import Task
from siderite.baremetal.drivers.contract import TaskEnd
from siderite.baremetal.drivers.contract import UnderWay
from siderite.baremetal.drivers.redfish.answers import SOONEST_S
from siderite.baremetal.drivers.redfish.answers import patience
from siderite.baremetal.drivers.redfish.errors import quoted
from siderite.baremetal.drivers.redfish.lines import Lines

_ACCEPTED = 202
_FAILED = frozenset({"Exception", "Killed", "Cancelled", "Interrupted"})
_ENDED = _FAILED | {"Completed"}
_LONGEST = 300


class RedfishTasks:
    """How it goes with what BMCs were told."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    async def ask(self, at: Endpoint, task: Task) -> UnderWay | TaskEnd:
        """How a task is going; Refused if it failed."""
        answer = await self._lines.page(at, task.doing, task.monitor)
        if answer is None:
            return TaskEnd.LOST
        told = _body(answer)
        said = told.get("TaskState")
        state = said if isinstance(said, str) else None
        if state in _FAILED or (state == "Completed" and told.get("TaskStatus") == "Critical"):
            raise Refused(at.bmc, task.doing, f"its task ended as {state}{_words(at, told)}")
        if state in _ENDED or (state is None and answer.status_code != _ACCEPTED):
            return TaskEnd.DONE
        shown = f" ({state[:_LONGEST]})" if state else ""
        return UnderWay(
            f"the BMC has a task for {task.doing}, which has not ended{shown}",
            patience(answer) or SOONEST_S,
            is_running=state in (None, "Running"),
        )


def _body(answer: Any) -> Mapping[str, Any]:
    try:
        told = answer.json() if answer.content else {}
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _words(at: Endpoint, told: Mapping[str, Any]) -> str:
    """What the task says of itself."""
    messages = told.get("Messages")
    said = [
        str(one["Message"])
        for one in (messages if isinstance(messages, list) else ())
        if isinstance(one, dict) and one.get("Message")
    ]
    return f": {quoted(at, ' '.join(said))}" if said else ""
