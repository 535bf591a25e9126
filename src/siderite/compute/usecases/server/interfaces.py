"""Network interfaces that come and go while a server lives."""

import msgspec

from siderite.compute import store as rows
from siderite.compute.domain import facts
from siderite.compute.domain.job import ActionEvent
from siderite.compute.domain.job import events_text
from siderite.compute.domain.network import Port
from siderite.compute.domain.network import check_ports
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import V
from siderite.compute.domain.talk import Talk
from siderite.compute.store import SERVERS
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.fleet import addresses
from siderite.compute.usecases.server import acting
from siderite.compute.usecases.server import find
from siderite.compute.usecases.server.kinds import Kind
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.store import Duplicate
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who

_ALLOWED = (V.ACTIVE, V.PAUSED, V.STOPPED)
_TRIES = 4
_EVENT = "compute_attach_interface"
_ATTACH = Kind("", "attach_interface", "", ability="interfaces")
_DETACH = Kind("", "detach_interface", "", ability="interfaces")


class Attach(msgspec.Struct, frozen=True):
    """What is asked for: a network by name or id, an address, a tag."""

    network: str | None
    address: str | None = None
    tag: str | None = None


def port_of(server: Server, ident: str) -> Port:
    """One of the server's ports."""
    for port in server.ports:
        if port.id == ident:
            return port
    raise NotFound(
        f"Port {ident[:80]} is not attached to instance {server.uuid}. `port list` shows what is."
    )


def _check(ctx: Context, server: Server, who: Who, kind: Kind) -> None:
    acting.check_lock(server, who)
    if server.vm_state not in _ALLOWED:
        raise acting.not_in_state(server, kind.action, _ALLOWED)
    if server.task_state is not None:
        raise acting.busy(server, kind.action)
    acting.check_place(ctx, server, kind)


async def attach(
    ctx: Context, uuid: str, wish: Attach, talk: Talk, *, who: Who, cause: Cause
) -> Port:
    """The record first, then the guest: a crash between leaves an interface that its next start
    brings, never an address that nobody has on record.
    """
    network = ctx.network(wish.network) if wish.network else next(iter(ctx.settings.networks), None)
    if network is None:
        name = wish.network or ""
        raise NotFound(f"Network {name[:80]} could not be found. `network list` shows all.")
    for attempt in range(_TRIES):
        port = await addresses.new_port(ctx, network, wish.address, wish.tag, attempt)

        async def decide(change: Change, port: Port = port) -> Server:
            before = await find.server(ctx, uuid, who)
            _check(ctx, before, who, _ATTACH)
            check_ports(len(before.ports) + 1)
            after = before.changed(change.now, {"ports": [*before.ports, port]})
            change.put(SERVERS.swap(before, after))
            change.put(rows.take_address(port, before.uuid))
            change.put(acting.note(change, before, "attach_interface", _EVENT))
            change.tell(facts.phase("interface_attach", "start", before))
            change.tell(facts.phase("interface_attach", "end", after))
            return after

        try:
            server = await ctx.door.attempt(cause, uuid, decide)
        except Duplicate:
            continue
        try:
            await talk.attach(server, port)
        except Conflict as why:
            await _withdraw(ctx, server.uuid, port, why.sentence, who=who, cause=cause)
            raise
        return port
    raise Invalid("No address is free on that network; try again, or ask for another.")


async def _withdraw(
    ctx: Context, uuid: str, port: Port, why: str, *, who: Who, cause: Cause
) -> None:
    """The host would not have it. (One that did not answer may have it: its record stays.)"""

    async def decide(change: Change) -> None:
        before = await find.server(ctx, uuid, who)
        ports = [one for one in before.ports if one.id != port.id]
        after = before.changed(change.now, {"ports": ports})
        change.put(SERVERS.swap(before, after))
        change.put(rows.give_address(port.network, port.address, before.uuid))
        at = iso(change.now)
        event = ActionEvent(_EVENT, at, at, "Error", before.host, why)
        change.put(
            rows.action_goes_on(
                uuid, cause.request_id or "", "attach_interface", at=at, message="Error",
                events=events_text([event]),
            )
        )  # fmt: skip
        # That it is attached was announced: now it is not any more.
        change.tell(facts.phase("interface_detach", "start", before))
        change.tell(facts.phase("interface_detach", "end", after))

    await ctx.door.attempt(cause, uuid, decide)


async def detach(
    ctx: Context, uuid: str, ident: str, talk: Talk, *, who: Who, cause: Cause
) -> None:
    """The guest first, then the record."""
    server = await find.server(ctx, uuid, who)
    port = port_of(server, ident)
    _check(ctx, server, who, _DETACH)
    await talk.detach(server, port)

    async def decide(change: Change) -> None:
        before = await find.server(ctx, uuid, who)
        port_of(before, ident)  # another may have been faster, and its address be in use again
        ports = [one for one in before.ports if one.id != ident]
        after = before.changed(change.now, {"ports": ports})
        change.put(SERVERS.swap(before, after))
        change.put(rows.give_address(port.network, port.address, before.uuid))
        change.put(acting.note(change, before, "detach_interface", "compute_detach_interface"))
        change.tell(facts.phase("interface_detach", "start", before))
        change.tell(facts.phase("interface_detach", "end", after))

    await ctx.door.attempt(cause, uuid, decide)
