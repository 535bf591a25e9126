"""Addresses of servers on the networks that hosts offer."""

import ipaddress

from siderite.compute import store as rows
from siderite.compute.domain.network import Network
from siderite.compute.domain.network import Port
from siderite.compute.domain.network import mac_of
from siderite.compute.usecases.context import Context
from siderite.core.errors import Invalid
from siderite.core.ids import new_uuid

_AT_ONCE = 6


async def new_port(
    ctx: Context, network: Network, address: str | None, tag: str | None, attempt: int
) -> Port:
    """A port with an address that seems free; who takes it finds out (`Duplicate`), and comes back
    with the next attempt.
    """
    ident = new_uuid()
    if address is not None:
        _check(network, address, attempt)
        return Port(ident, network.name, mac_of(ident), address, tag)
    candidates = [network.candidate(ident, attempt * _AT_ONCE + n) for n in range(_AT_ONCE)]
    used = await rows.taken(ctx.door.store, network.name, candidates)
    free = [candidate for candidate in candidates if candidate not in used]
    return Port(ident, network.name, mac_of(ident), free[0] if free else candidates[0], tag)


def _check(network: Network, address: str, attempt: int) -> None:
    try:
        inside = ipaddress.ip_address(address) in network.range
    except ValueError as why:
        raise Invalid(f"Invalid fixed IP Address {address[:45]}: it is no IP address.") from why
    if not inside:
        raise Invalid(
            f"Fixed IP address {address} is not in network {network.name}, which is {network.cidr}."
        )
    if attempt:
        raise Invalid(f"Fixed IP address {address} is already in use on network {network.name}.")
