"""Which addresses a webhook may call: not this machine, its neighbours by link-local address, or a
cloud's metadata service, whatever name they are given by.

Names are looked up here and the connection goes to the address that was checked, so that a name
which changes its mind gains nothing; redirects are not followed.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

LOOK_UP_S = 5.0
_METADATA = tuple(
    ipaddress.ip_address(text)
    for text in ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16")
)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Refused(Exception):
    """The address is not for webhooks."""


class Guard:
    """The rules, and the networks that are exempt from them."""

    def __init__(self, allowed: Sequence[Network] = ()) -> None:
        self._allowed = tuple(allowed)

    def check(self, address: Address) -> None:
        """Refuse an address that must not be called."""
        bare = _inner(address)
        if any(bare in network for network in self._allowed):
            return
        for what, is_so in (
            ("a loopback address", bare.is_loopback),
            ("a metadata service", bare in _METADATA),
            ("a link-local address", bare.is_link_local),
            ("not the address of one machine", bare.is_multicast or bare.is_unspecified),
            ("a reserved address", bare.is_reserved or str(bare) == "255.255.255.255"),
        ):
            if is_so:
                raise Refused(f"{bare} is {what}, which webhooks may not call")

    async def resolve(self, host: str, port: int) -> list[str]:
        """The addresses of a host that may be called; Refused if one of them may not be."""
        found = await _look_up(host, port)
        for address in found:
            self.check(address)
        return list(dict.fromkeys(map(str, found)))


def networks(text: str) -> list[Network]:
    """Networks from a list with commas; ValueError if one is none."""
    return [ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip()]


def _inner(address: Address) -> Address:
    """The IPv4 address inside one that only wraps it."""
    if isinstance(address, ipaddress.IPv6Address):
        wrapped = address.ipv4_mapped or address.sixtofour
        if wrapped is not None:
            return wrapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


async def _look_up(host: str, port: int) -> list[Address]:
    try:
        return [ipaddress.ip_address(host.strip("[]"))]
    except ValueError:
        pass
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(LOOK_UP_S):
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found]
