"""Volume connectors and targets: they are changed while their node is off."""

from typing import Any

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.domain.volume import Connector
from siderite.baremetal.domain.volume import Target
from siderite.baremetal.store import CONNECTORS
from siderite.baremetal.store import TARGETS
from siderite.baremetal.usecases.beside.records import Check
from siderite.baremetal.usecases.beside.records import Found
from siderite.baremetal.usecases.beside.records import Records
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life.refusals import Switching
from siderite.baremetal.usecases.life.refusals import busy
from siderite.core.errors import IllegalVerb
from siderite.core.errors import SideriteError
from siderite.core.transition import Change


def _while_off(action: str) -> Check[Any]:
    """Refuse on a node that is not off, or that is about to start; one that is just going off is
    waited for, and busy if that takes long, so that clients try again by themselves.
    """

    async def check(
        ctx: Context, change: Change, found: Found[Any], changes: dict[str, Any]
    ) -> SideriteError | None:
        node = found.home
        if node.power_state == PowerState.OFF and node.target_power_state != PowerState.ON:
            return None
        if node.target_power_state == PowerState.OFF:
            return busy(node, f"is on its way to {node.target_power_state!r}", Switching)
        is_starting = node.power_state == PowerState.OFF
        state = PowerState.ON if is_starting else node.power_state or "unknown power"
        return IllegalVerb(
            f'The requested action "{action}" can not be performed on node "{node.uuid}" while it'
            f' is in state "{state}"; power it off, and wait until it is.'
        )

    return check


CONNECTOR_RECORDS = Records(
    kind=Connector,
    table=CONNECTORS,
    facts=facts.CONNECTOR,
    noun="volume connector",
    command="volume connector",
    of_node=True,
    unique={
        "connector_id": "A volume connector of type {0.type} with the identifier {0.connector_id}"
        " already exists; an identifier belongs to one connector only.",
    },
    may_update=_while_off("volume connector update"),
    may_remove=_while_off("volume connector deletion"),
)
TARGET_RECORDS = Records(
    kind=Target,
    table=TARGETS,
    facts=facts.TARGET,
    noun="volume target",
    command="volume target",
    of_node=True,
    unique={
        "boot_index": "A volume target with boot index {0.boot_index} on node {0.node_uuid} already"
        " exists; choose another boot_index.",
    },
    may_update=_while_off("volume target update"),
    may_remove=_while_off("volume target deletion"),
)
