"""The agent in a node's ramdisk looks its node up, tells that it is alive, and sends what it found.

Anybody can call these: what they cost is bounded, and a node in which no ramdisk is expected is not
there. Who was given a node's token is known by it from then on.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from urllib.parse import urlsplit

from siderite.baremetal.domain import agent
from siderite.baremetal.domain import details as known
from siderite.baremetal.domain.hardware import Found
from siderite.baremetal.domain.hardware import Json
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.secrets import MASK
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import job_of
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life import callback
from siderite.baremetal.usecases.node import details
from siderite.baremetal.usecases.node import find
from siderite.core import work
from siderite.core.errors import Busy
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.ids import new_secret
from siderite.core.machine import Kind
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who

MOST_ADDRESSES = 64
_QUIET_S = 2.0
"""A heartbeat that says nothing new is recorded at most this often."""
_BY_ADDRESS = (
    "SELECT DISTINCT nodes.uuid FROM ports JOIN nodes ON nodes.uuid = ports.node_uuid"
    " WHERE ports.address IN (%s) LIMIT 2"
)
_WAITS = {
    "sqlite": "SELECT 1 FROM nodes WHERE provision_state = ? LIMIT 1",
    "postgresql": "SELECT 1 FROM node_states WHERE state = ? LIMIT 1",
}
_RAMDISK = Who("", "ramdisk", None, None, frozenset({"service"}), system=True)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What the agent tells."""

    callback_url: str
    agent_token: str = field(repr=False)
    agent_version: str | None = None
    agent_verify_ca: str | None = None
    agent_status: str | None = None
    agent_status_message: str | None = None


def _missing() -> NotFound:
    """Always the same, so that nobody learns from it which nodes there are."""
    return NotFound("No node expects a ramdisk with this UUID or these MAC addresses.")


async def lookup(
    ctx: Context, uuid: str | None, addresses: Sequence[str], *, gives_token: bool
) -> tuple[Node, str | None]:
    """The node of a ramdisk, and its token: the real one once, a mask to whoever asks again."""
    found = uuid or await _by_address(ctx, addresses)

    async def decide(change: Change) -> tuple[Node, str | None]:
        node = await NODES.get(ctx.door.store, found) if found else None
        if node is None or node.provision_state not in agent.MAY_LOOK_UP:
            raise _missing()
        info, token = _given(node, gives_token=gives_token)
        if info is node.driver_internal_info:
            return node, token
        after = node.changed(change.now, {"driver_internal_info": info})
        change.put(NODES.swap(node, after))
        return after, token

    return await ctx.door.attempt(Cause(), found or "", decide)


def _given(node: Node, *, gives_token: bool) -> tuple[Mapping[str, object], str | None]:
    """What the node remembers after a ramdisk asked for its token, and what that is told."""
    info = node.driver_internal_info
    if agent.TOKEN in info:
        return info, MASK
    if not gives_token:
        return info, None
    token = new_secret()
    return {**info, agent.TOKEN: token}, token


async def _by_address(ctx: Context, addresses: Sequence[str]) -> str | None:
    macs = known.mac_addresses(addresses)
    if not macs:
        return None
    sql = _BY_ADDRESS % ", ".join("?" * len(macs))
    rows = await ctx.door.store.fetch(sql, macs)
    return str(rows[0][0]) if len(rows) == 1 else None


async def heartbeat(ctx: Context, ident: str, beat: Heartbeat) -> None:
    """Remember where the agent is, and have the work go on that waits for it."""

    async def decide(change: Change) -> tuple[Node, bool]:
        node = await _calling(ctx, ident)
        _check(ctx, node, beat)
        if node.target_power_state is not None:  # it may be the ramdisk that goes just now
            raise Busy(f"Node {node.uuid} is being switched; call again in a moment.")
        info = {**node.driver_internal_info, **_told(beat)}
        news = info != node.driver_internal_info
        last = str(info.get(agent.LAST, ""))
        if news or last < iso(change.now - _QUIET_S):
            info[agent.LAST] = iso(change.now)
            after = node.changed(change.now, {"driver_internal_info": info})
            change.put(NODES.swap(node, after))
        return node, news

    node, news = await ctx.door.attempt(Cause(), ident, decide)
    kind = NODE.states[node.provision_state].kind
    if kind is Kind.ACTIVE and not news:
        return  # its work looks for itself; the next call finds it waiting
    try:
        await callback.heartbeat(ctx, node.uuid)
    except Busy:
        if news:
            raise  # so that the agent calls again soon


async def _calling(ctx: Context, ident: str) -> Node:
    """The node whose ramdisk calls. One whose token nobody was given has none that could."""
    try:
        node = await find.node(ctx, ident, _RAMDISK)
    except NotFound:
        raise _missing() from None
    if agent.TOKEN not in node.driver_internal_info:
        raise _missing()
    return node


def _told(beat: Heartbeat) -> Json:
    said = {
        agent.URL: beat.callback_url,
        agent.VERSION: beat.agent_version,
        agent.VERIFY_CA: beat.agent_verify_ca,
        agent.STATUS: beat.agent_status,
        agent.STATUS_MESSAGE: beat.agent_status_message,
    }
    return {key: value for key, value in said.items() if value is not None}


def _check(ctx: Context, node: Node, beat: Heartbeat) -> None:
    info = node.driver_internal_info
    if not agent.is_right(beat.agent_token, info):
        raise Invalid(
            "The agent token is not the one that this node's ramdisk was given; look the node up"
            " (GET /v1/lookup) after each start of the ramdisk."
        )
    if info.get(agent.URL, beat.callback_url) != beat.callback_url:
        raise Invalid(
            "The callback_url is another than before; a ramdisk keeps it as long as it runs."
        )
    if urlsplit(beat.callback_url).scheme == "http" and ctx.settings.agent_require_tls:
        raise Invalid(
            "The callback_url must be https: the agent's token travels on it. Have the agent use"
            " TLS, or set agent_require_tls = false where the network is trusted."
        )


async def expect(ctx: Context, uuid: str | None) -> None:
    """Refuse what nobody waits for: a report is large, and nobody else is answered while one is
    read.
    """
    if uuid is not None:
        await _awaiting(ctx, uuid)
    elif not await ctx.door.store.fetch(_WAITS[ctx.door.store.dialect], (P.INSPECTWAIT.value,)):
        raise _missing()


async def inspected(
    ctx: Context, uuid: str | None, inventory: Json, plugin_data: Json, *, gives_token: bool
) -> tuple[Node, str | None]:
    """The ramdisk that an inspection waits for sends what it found: kept, and the work goes on."""
    macs = known.macs(inventory)[:MOST_ADDRESSES]
    node = await _awaiting(ctx, uuid or await _by_address(ctx, macs))
    await details.keep(
        ctx, node.uuid, Found(inventory=inventory, plugin_data=plugin_data, ports=macs)
    )

    async def decide(change: Change) -> tuple[Node, str | None]:
        fresh = await _awaiting(ctx, node.uuid)
        info, token = _given(fresh, gives_token=gives_token)
        changes = {
            "driver_internal_info": {**info, agent.INSPECTED: iso(change.now)},
            "properties": {**known.properties(inventory), **fresh.properties},
        }
        after = fresh.changed(change.now, changes)
        change.put(NODES.swap(fresh, after))
        return after, token

    answer = await ctx.door.attempt(Cause(), node.uuid, decide)
    await callback.heartbeat(ctx, node.uuid)
    return answer


async def _awaiting(ctx: Context, uuid: str | None) -> Node:
    """The node, if its inspection has booted a ramdisk and waits for it. The state alone does not
    say so: `inspect wait` is also where a hook holds an inspection, by a ramdisk or not.
    """
    node = await NODES.get(ctx.door.store, uuid) if uuid else None
    if node is None or node.provision_state != P.INSPECTWAIT:
        raise _missing()
    for item in await work.of_machine(ctx.door.store, node.uuid):
        if item.lane != ctx.rules.lane or item.kind != Family.INSPECT:
            continue
        job = job_of(item.job)
        if job.hold is None and job.waiting and job.current is not None and job.current.in_band:
            return node
    raise _missing()
