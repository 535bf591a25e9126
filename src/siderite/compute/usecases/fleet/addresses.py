"""Addresses of servers on the networks that hosts offer."""

import ipaddress
from collections.abc import Collection

from siderite.compute import store as rows
from siderite.compute.domain.network import Network
from siderite.compute.domain.network import Port
from siderite.compute.domain.network import mac_of
from siderite.compute.usecases.context import Context
from siderite.core.errors import Invalid
from siderite.core.ids import new_uuid

_AT_ONCE = 6


async def new_port(
    ctx: Context,
    network: Network,
    address: str | None,
    tag: str | None,
    attempt: int,
    *,
    beside: Collection[str] = (),
) -> Port:
    """A port with an address that seems free; who takes it finds out (`Duplicate`), and comes back
    with the next attempt. `beside` are those that the same commit takes.
    """
    chance = new_uuid()
    if address is not None:
        return _port(network, _checked(network, address, attempt, beside), chance, tag)
    candidates = [network.candidate(chance, n) for n in range(_AT_ONCE)]
    used = {*await rows.taken(ctx.door.store, network.name, candidates), *beside}
    free = next((one for one in candidates if one not in used), None)
    if free is None:
        free = await _found(ctx, network, chance, beside)
    return _port(network, free, chance, tag)


def _port(network: Network, address: str, chance: str, tag: str | None) -> Port:
    ident = network.port_id(address, chance)
    return Port(ident, network.name, mac_of(ident), address, tag)


async def _found(ctx: Context, network: Network, chance: str, beside: Collection[str]) -> str:
    """A free address of a network that is nearly full: one more than are used must hold one."""
    used = {*await rows.all_taken(ctx.door.store, network.name), *beside}
    for n in range(min(len(used) + 1, network.size)):
        candidate = network.candidate(chance, n)
        if candidate not in used:
            return candidate
    raise Invalid(f"No fixed IP addresses available for network: {network.name} has none left.")


def _checked(network: Network, address: str, attempt: int, beside: Collection[str]) -> str:
    """The address in the one form that all know it by."""
    try:
        asked = ipaddress.ip_address(address)
    except ValueError as why:
        raise Invalid(f"Invalid fixed IP Address {address[:45]}: it is no IP address.") from why
    if asked not in network.range:
        raise Invalid(
            f"Fixed IP address {address} is not in network {network.name}, which is {network.cidr}."
        )
    plain = str(asked)
    if plain in network.own:
        raise Invalid(
            f"Fixed IP address {address} is network {network.name}'s own, or its gateway's; ask for"
            " another."
        )
    if attempt or plain in beside:
        raise Invalid(f"Fixed IP address {address} is already in use on network {network.name}.")
    return plain
