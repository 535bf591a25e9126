"""A change of power that was announced while something was being done to the server: it may be an
echo of that, or news. Work of its own looks at the machine when that is done (`power_truth`).
"""

import msgspec

from siderite.compute.domain.power import Power
from siderite.compute.domain.server import Server
from siderite.core import work
from siderite.core.store import Op

KIND = "announced"
PATIENCE_S = 3600.0
"""For so long it is waited for the end of what is being done."""
SOON_S = 1.0
_LEADS_TO = {
    "powering-on": Power.RUNNING, "powering-off": Power.SHUTDOWN, "rebooting": None,
    "rebooting_hard": None, "rescuing": None, "unrescuing": None,
}  # fmt: skip
"""Tasks that are soon over, and the power that each brings by itself, if it is one alone."""


def may_be_news(server: Server, power: Power) -> bool:
    """Whether the machine may have another power than the record says, once the task is over."""
    task = server.task_state
    return task in _LEADS_TO and _LEADS_TO[task] is not power


def look_later(server: Server, tag: str, now: float) -> Op:
    """The work; what was announced last counts."""
    return work.add(
        server.uuid, KIND, KIND, job=msgspec.json.encode(tag).decode(), now=now,
        due=now + SOON_S, deadline=now + PATIENCE_S,
        reason=f"{tag} was announced: the machine is looked at once nothing is done to the server",
    )  # fmt: skip
