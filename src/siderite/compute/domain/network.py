"""Networks that hosts offer, and the addresses that servers get of them."""

import ipaddress
import uuid as uuids
from functools import lru_cache
from hashlib import blake2b

import msgspec

from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid

KINDS = ("user", "network", "bridge")
_OURS = uuids.UUID("6f1d2b0e-6f4a-4f5c-9a55-0c6a5e1f7d11")
_GROUPS = uuids.UUID("0e7bd0c4-95a5-5c9d-9f7b-6a8f6d2b8f61")
DEFAULT_GROUP = "default"
"""The name of the one security group that a project has."""
_V4 = 4
MOST_PORTS = 32
"""How many ports a server has at the most. All projects share the addresses of a network, and each
has so many servers only.
"""
FIRST_GIVEN = 16
"""Which of a network's addresses is the first that servers get."""


def group_id(project: str, part: str = "") -> str:
    """The id of a project's one security group, or of a rule in it."""
    return str(uuids.uuid5(_GROUPS, f"{project}/{part}" if part else project))


def is_group(project: str, name: str) -> bool:
    """Whether this is the name or the id of a project's security group."""
    return name in (DEFAULT_GROUP, group_id(project))


@lru_cache(256)
def _range(cidr: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    return ipaddress.ip_network(cidr)


@lru_cache(256)
def _first(cidr: str) -> str:
    return str(_range(cidr)[1])


@lru_cache(256)
def _named(kind: str, name: str) -> str:
    return str(uuids.uuid5(_OURS, f"{kind}/{name}"))


class Network(msgspec.Struct, frozen=True):
    """A named network: how a host offers it, and its addresses."""

    name: str
    kind: str
    target: str
    cidr: str

    @property
    def uuid(self) -> str:
        """Derived from the name, so that it is the same everywhere and always."""
        return _named("network", self.name)

    @property
    def subnet(self) -> str:
        """The id of its one subnet."""
        return _named("subnet", self.name)

    @property
    def range(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        return _range(self.cidr)

    @property
    def gateway(self) -> str:
        """Its first address."""
        return _first(self.cidr)

    def candidate(self, seed: str, attempt: int) -> str:
        """An address that a server may try, spread evenly over the range."""
        number = int.from_bytes(blake2b(seed.encode(), digest_size=8).digest())
        return str(self.range[FIRST_GIVEN + (number + attempt) % self.size])

    @property
    def own(self) -> frozenset[str]:
        """Addresses that no server can have: those of the network itself, and its gateway's."""
        ends = {str(self.range.network_address), self.gateway}
        if self.range.version == _V4:
            ends.add(str(self.range.broadcast_address))
        return frozenset(ends)

    def port_id(self, address: str, chance: str) -> str:
        """The id of a new port with this address, a UUID of which all but the beginning is chance:
        of that its MAC address is made, which no two of a network may have. (Of one that has more
        addresses than there are beginnings, 16 million, hardly any two do.)
        """
        spread = int.from_bytes(blake2b(self.name.encode(), digest_size=3).digest())
        begin = (spread + int(ipaddress.ip_address(address))) % 2**24
        return f"{begin:06x}{chance[6:]}"

    @property
    def size(self) -> int:
        """How many servers can have an address."""
        return self.range.num_addresses - FIRST_GIVEN - 2


def parse(text: str) -> tuple[Network, ...]:
    """Networks from the option: `NAME=KIND[:TARGET]@CIDR`, separated by commas."""
    found = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, rest = item.partition("=")
        way, _, cidr = rest.partition("@")
        kind, _, target = way.partition(":")
        if not name or kind not in KINDS or not cidr:
            raise Invalid(
                f"networks: {item!r} must be NAME=KIND[:TARGET]@CIDR with KIND one of"
                f" {', '.join(KINDS)}, such as private=user@10.88.0.0/16."
            )
        try:
            size = ipaddress.ip_network(cidr).num_addresses
        except ValueError as why:
            raise Invalid(f"networks: {cidr!r} is not a network: {why}.") from why
        if size < 32:  # noqa: PLR2004 - the first 16 are not given out
            raise Invalid(f"networks: {cidr!r} is too small; use a /27 or larger.")
        found.append(Network(name, kind, target, cidr))
    return tuple(found)


class Port(msgspec.Struct, frozen=True, omit_defaults=True):
    """A server's place on a network."""

    id: str
    network: str
    mac: str
    address: str
    tag: str | None = None


def check_ports(count: int) -> None:
    """Refuse more ports than a server may have."""
    if count > MOST_PORTS:
        raise Forbidden(
            f"Maximum number of ports exceeded: a server has at most {MOST_PORTS}. Detach some, or"
            " ask for fewer networks."
        )


def mac_of(port: str) -> str:
    """The MAC address of a port, from its id (`Network.port_id`)."""
    return "fa:16:3e:" + ":".join(port.replace("-", "")[at : at + 2] for at in (0, 2, 4))
