"""Which addresses may be called because a client said so: not this machine, its neighbours by
link-local address, or a cloud's metadata service, whatever name they are given by.

Names are looked up here and the connection goes to the address that was checked
(`core.guarded_http`), so that a name which changes its mind gains nothing.
"""

import ipaddress
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from siderite.core.errors import Invalid
from siderite.core.lookups import LookUps

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

LONGEST_URL = 2000
_PORTS = range(1, 65536)
_METADATA = tuple(
    ipaddress.ip_address(text)
    for text in ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16")
)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Refused(Exception):
    """The address is not to be called."""


class Guard:
    """The rules for some callers, and the networks that are exempt from them, or denied besides."""

    def __init__(
        self,
        allowed: Sequence[Network] = (),
        *,
        denied: Sequence[Network] = (),
        callers: str = "webhooks",
        option: str = "webhook_allow",
    ) -> None:
        """`option` is the one that `allowed` comes from: those who are refused are told of it."""
        self._allowed = tuple(allowed)
        self._denied = tuple(denied)
        self._callers = callers
        self.option = option
        self._names = LookUps()

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
            ("in a network that is denied", any(bare in one for one in self._denied)),
        ):
            if is_so:
                raise Refused(f"{bare} is {what}, which {self._callers} may not call")

    async def resolve(self, host: str, port: int) -> list[str]:
        """The addresses of a host that may be called; Refused if one of them may not be."""
        found = await self._look_up(host)
        for address in found:
            self.check(address)
        return list(dict.fromkeys(map(str, found)))

    async def _look_up(self, host: str) -> list[Address]:
        try:
            return [ipaddress.ip_address(host.strip("[]"))]
        except ValueError:
            found = await self._names.of(host)
        return [ipaddress.ip_address(address.partition("%")[0]) for address in found]

    async def check_url(self, name: str, url: Any) -> str:
        """A URL that may be called as far as can be told now; Invalid with a sentence if not."""
        host, port = _parts(name, url)
        try:
            await self.resolve(host, port)
        except Refused as why:
            raise Invalid(f"{why}; an operator can allow it with {self.option}.") from why
        except (UnicodeError, ipaddress.AddressValueError) as why:
            raise Invalid(f"{name} has a host that cannot be: {host[:80]!r}.") from why
        except (OSError, TimeoutError):
            pass  # a name that is not known yet may be known when it is called
        return str(url)


def networks(text: str) -> list[Network]:
    """Networks from a list with commas; ValueError if one is none."""
    return [ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip()]


def _parts(name: str, url: Any) -> tuple[str, int]:
    """Host and port of what must be an http(s) URL."""
    if not isinstance(url, str) or not 1 <= len(url) <= LONGEST_URL:
        raise Invalid(f"{name} must be an http or https URL of at most {LONGEST_URL} characters.")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise Invalid(f"{name} must be of printable ASCII characters; encode others with %.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as why:
        raise Invalid(f"{name} is not a URL: {why}.") from why
    if parts.scheme not in ("http", "https") or not host:
        raise Invalid(f"{name} must be such as https://host/path, with the scheme http or https.")
    if parts.username is not None or parts.password is not None:
        raise Invalid(f"{name} must not hold a user or password: it is kept, and shown.")
    if not _can_be_called(url):
        raise Invalid(f"{name} has a host that cannot be: {host[:80]!r}.")
    if parts.fragment or (port is not None and port not in _PORTS):
        raise Invalid(f"{name} must have no fragment (#…), and a port from 1 to 65535 if any.")
    return host, port or 443


def _can_be_called(url: str) -> bool:
    """Whether the client that will call it takes it for a URL, its host included."""
    import httpx  # noqa: PLC0415 - only those who call others need it

    try:
        return bool(httpx.URL(url).host)
    except (httpx.InvalidURL, ValueError):
        return False


def _inner(address: Address) -> Address:
    """The address that is called: the IPv4 one inside one that only wraps it; without a zone."""
    if isinstance(address, ipaddress.IPv6Address):
        wrapped = address.ipv4_mapped or address.sixtofour
        if wrapped is not None:
            return wrapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return ipaddress.IPv6Address(int(address))  # with a zone it equals nothing
    return address
