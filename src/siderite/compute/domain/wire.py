"""What the outside sees of a server, as text that is stored with it.

`render` writes one line per group of fields that come and go together (an API version's, or those
for administrators only): what a reader sees is a choice of lines (`lines`), so that a page of 1000
servers is cut and joined, never parsed. Raw control characters never occur within JSON
text, so they serve as marks: a carriage return is where the public URL belongs, and a vertical tab
encloses the name of the host whose status is to be told.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from siderite.compute.domain.discreet import discreet
from siderite.compute.domain.lines import Choice
from siderite.compute.domain.lines import choice
from siderite.compute.domain.lines import stored
from siderite.compute.domain.network import DEFAULT_GROUP
from siderite.compute.domain.server import Fault
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import V
from siderite.compute.domain.status import WITH_FAULT
from siderite.compute.domain.status import WITH_PROGRESS
from siderite.core.microversion import OURS
from siderite.core.times import to_second
from siderite.core.times import without_offset

URL = "\r"
HOST = "\v"
LATEST = 10**6
_KNOWN = ("hw_", "img_", "os_")
"""How properties of images begin that say something of servers."""
_encode = msgspec.json.Encoder().encode


def _json(fields: dict[str, Any]) -> str:
    """Fields as JSON without its braces."""
    return _encode(fields).decode()[1:-1]


def _field(name: str, value: Any) -> str:
    """One field as JSON."""
    if value is None:
        return f'"{name}":null'
    return f'"{name}":{_encode(value).decode()}'


def _links(kind: str, ident: str) -> msgspec.Raw:
    return msgspec.Raw(
        f'[{{"rel":"self","href":"{URL}v2.1/{kind}/{ident}"}},'
        f'{{"rel":"bookmark","href":"{URL}{kind}/{ident}"}}]'.encode()
    )


def _bookmark(kind: str, ident: str) -> msgspec.Raw:
    return msgspec.Raw(f'[{{"rel":"bookmark","href":"{URL}{kind}/{ident}"}}]'.encode())


def _base(server: Server) -> str:
    return _json({
        "id": server.uuid,
        "name": server.name,
        "tenant_id": server.project_id,
        "user_id": server.user_id,
        "created": to_second(server.created_at),
        "updated": to_second(server.changed_at),
        "hostId": server.host_id,
        "accessIPv4": server.access_ip_v4 or "",
        "accessIPv6": server.access_ip_v6 or "",
        "addresses": addresses(server),
        "links": _links("servers", server.uuid),
        "metadata": server.metadata,
        "key_name": server.key_name,
        "config_drive": "True" if server.config_drive else "",
        "OS-DCF:diskConfig": server.disk_config,
        "OS-EXT-AZ:availability_zone": server.availability_zone,
        "OS-EXT-STS:task_state": server.task_state,
        "OS-EXT-STS:power_state": server.power_state,
        "OS-SRV-USG:launched_at": without_offset(server.launched_at),
        "OS-SRV-USG:terminated_at": without_offset(server.terminated_at),
        "os-extended-volumes:volumes_attached": [],
        # Whatever has a port is in the project's one group, which filters nothing.
        **({"security_groups": [{"name": DEFAULT_GROUP}]} if server.ports else {}),
    })  # fmt: skip


def addresses(server: Server) -> dict[str, list[dict[str, Any]]]:
    """By the network's name; none while it is being made."""
    found: dict[str, list[dict[str, Any]]] = {}
    if server.is_unmade:
        return found
    for port in server.ports:
        found.setdefault(port.network, []).append(
            {
                "addr": port.address,
                "version": 6 if ":" in port.address else 4,
                "OS-EXT-IPS:type": "fixed",
                "OS-EXT-IPS-MAC:mac_addr": port.mac,
            }
        )
    return found


def _state(server: Server) -> str:
    fields: dict[str, Any] = {"status": server.status, "OS-EXT-STS:vm_state": server.vm_state}
    if server.status in WITH_PROGRESS:
        fields["progress"] = server.progress
    return _json(fields)


def _old_state(server: Server) -> str:
    if server.vm_state == V.PENDING:
        return _json({"status": "ERROR", "OS-EXT-STS:vm_state": V.ERROR})
    return _state(server)


def _fault(fault: Fault | None, *, admin: bool) -> str:
    if fault is None:
        return ""
    shown: dict[str, Any] = {
        "code": fault.code,
        "created": to_second(fault.created),
        "message": fault.message if admin else discreet(fault.message),
    }
    if fault.details is not None and (admin or fault.code != 500):  # noqa: PLR2004
        shown["details"] = fault.details if admin else discreet(fault.details)
    return _json({"fault": shown})


def _old_fault(server: Server, *, admin: bool) -> str:
    is_shown = server.status in WITH_FAULT or server.vm_state == V.PENDING
    return _fault(server.fault, admin=admin) if is_shown else ""


def _flavor_link(server: Server) -> str:
    ident = server.flavor_id
    return _json({"flavor": {"id": ident, "links": _bookmark("flavors", ident)}})


def _flavor_inline(server: Server) -> str:
    flavor = server.flavor
    return _json(
        {
            "flavor": {
                "vcpus": flavor.vcpus,
                "ram": flavor.ram_mib,
                "disk": flavor.disk_gib,
                "ephemeral": flavor.ephemeral_gib,
                "swap": flavor.swap_mib,
                "original_name": flavor.name,
                "extra_specs": flavor.extra_specs,
            }
        }
    )


def _image(server: Server, *, properties: bool) -> str:
    image = server.image
    if image is None:
        return '"image":""'
    shown: dict[str, Any] = {"id": image.id, "links": _bookmark("images", image.id)}
    if properties:
        shown["properties"] = {
            name: value for name, value in image.properties.items() if name.startswith(_KNOWN)
        }
    return _json({"image": shown})


def _host_status(server: Server) -> str:
    mark = "" if server.host is None else f"{HOST}{server.host}{HOST}"
    return f'"host_status":"{mark}"'


def _attributes(server: Server) -> str:
    return _json(
        {
            "OS-EXT-SRV-ATTR:kernel_id": server.boots("kernel"),
            "OS-EXT-SRV-ATTR:launch_index": server.launch_index,
            "OS-EXT-SRV-ATTR:ramdisk_id": server.boots("ramdisk"),
            "OS-EXT-SRV-ATTR:reservation_id": server.reservation_id,
            "OS-EXT-SRV-ATTR:root_device_name": server.root_device_name,
            "OS-EXT-SRV-ATTR:user_data": server.request.user_data,
        }
    )


def _place(server: Server) -> str:
    return _json(
        {
            "OS-EXT-SRV-ATTR:host": server.host,
            "OS-EXT-SRV-ATTR:hypervisor_hostname": server.node,
            "OS-EXT-SRV-ATTR:instance_name": server.instance_name,
        }
    )


def _hostname(server: Server) -> str:
    return _field("OS-EXT-SRV-ATTR:hostname", server.hostname)


class Line(msgspec.Struct, frozen=True):
    """One line of the stored text: what it says, who sees it, from which version to which."""

    text: Callable[[Server], str]
    since: int = 1
    until: int = LATEST
    admin: bool | None = None
    """True: administrators only; False: others only."""
    alone: bool = False
    """Only when one server is shown, not in lists."""


LINES = (
    Line(_base),
    Line(_old_state, until=OURS - 1),
    Line(_flavor_link, until=46),
    Line(lambda s: _image(s, properties=False), until=97),
    Line(lambda s: _old_fault(s, admin=True), until=OURS - 1, admin=True),
    Line(_place, admin=True),
    Line(lambda s: _old_fault(s, admin=False), until=OURS - 1, admin=False),
    Line(_hostname, since=3, until=89, admin=True),
    Line(_attributes, since=3, admin=True),
    Line(_host_status, since=16, admin=True),
    Line(lambda s: _field("locked", s.locked), since=9),
    Line(lambda s: _field("description", s.description), since=19),
    Line(lambda s: _field("tags", s.tags), since=26),
    Line(_flavor_inline, since=47),
    Line(lambda s: _field("trusted_image_certificates", s.trusted_certificates), since=63),
    Line(lambda s: _field("locked_reason", s.locked_reason), since=73),
    Line(_hostname, since=90),
    Line(lambda s: _field("pinned_availability_zone", s.pinned_zone), since=96),
    Line(lambda s: _image(s, properties=True), since=98),
    Line(lambda s: _field("scheduler_hints", s.request.hints), since=100),
    Line(lambda s: _field("server_groups", [s.group] if s.group else []), since=71, alone=True),
    Line(_state, since=OURS),
    Line(lambda s: _json({"wait_reason": s.wait_reason, "deadline": s.deadline}), since=OURS),
    Line(lambda s: _fault(s.fault, admin=False), since=OURS, admin=False),
    Line(lambda s: _fault(s.fault, admin=True), since=OURS, admin=True),
    Line(lambda s: _field("refusals", s.refusals), since=OURS, admin=True),
)  # fmt: skip


def render(server: Server) -> str:
    """The text to store."""
    return stored(*[line.text(server) for line in LINES])


@lru_cache(1024)
def chosen(version: int, *, admin: bool, alone: bool) -> Choice:
    """What a reader sees."""
    return choice(
        [
            number
            for number, line in enumerate(LINES)
            if line.since <= version <= line.until
            and line.admin in (None, admin)
            and (alone or not line.alone)
        ]
    )
