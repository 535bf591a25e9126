"""What the outside sees of a node: each field with the first API version that shows it.

`render` writes a node as JSON text in the order of this table, with a newline before the fields of
each further version (white space to a JSON reader) and a carriage return where the public URL
belongs: raw control characters never occur within JSON text. What a version shows is then the text
up to its newline, without parsing (`cut`). Secrets are masked on the way.
"""

from bisect import bisect_right
from operator import attrgetter

import msgspec

from siderite.baremetal.domain.node import INTERFACES
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.secrets import mask
from siderite.core.microversion import OURS

LINK_FIELDS = frozenset({"links", "ports", "states", "portgroups", "volume"})

NODE_FIELDS: tuple[tuple[str, int], ...] = (
    # The state comes first: an old version spells it otherwise, and finds it before free text.
    ("provision_state", 1), ("uuid", 1), ("created_at", 1), ("updated_at", 1), ("chassis_uuid", 1),
    ("console_enabled", 1), ("driver", 1), ("driver_info", 1), ("extra", 1), ("instance_info", 1),
    ("instance_uuid", 1), ("last_error", 1), ("links", 1), ("maintenance", 1),
    ("maintenance_reason", 1), ("ports", 1), ("power_state", 1), ("properties", 1),
    ("provision_updated_at", 1), ("reservation", 1), ("target_power_state", 1),
    ("target_provision_state", 1),
    ("driver_internal_info", 3),
    ("name", 5),
    ("inspection_started_at", 6), ("inspection_finished_at", 6),
    ("clean_step", 7),
    ("raid_config", 12), ("target_raid_config", 12),
    ("states", 14),
    ("network_interface", 20),
    ("resource_class", 21),
    ("portgroups", 24),
    ("boot_interface", 31), ("console_interface", 31), ("deploy_interface", 31),
    ("inspect_interface", 31), ("management_interface", 31), ("power_interface", 31),
    ("raid_interface", 31), ("vendor_interface", 31),
    ("volume", 32),
    ("storage_interface", 33),
    ("traits", 37),
    ("rescue_interface", 38),
    ("bios_interface", 40),
    ("fault", 42),
    ("deploy_step", 44),
    ("conductor_group", 46),
    ("automated_clean", 47),
    ("protected", 48), ("protected_reason", 48),
    ("conductor", 49),
    ("owner", 50),
    ("description", 51),
    ("allocation_uuid", 52),
    ("retired", 61), ("retired_reason", 61),
    ("lessee", 65),
    ("network_data", 66),
    ("boot_mode", 75), ("secure_boot", 75),
    ("shard", 82),
    ("parent_node", 83),
    ("firmware_interface", 86),
    ("service_step", 87),
    ("disable_power_off", 95),
    ("instance_name", 104),
    ("health", 109),
    ("wait_reason", OURS), ("deadline", OURS),
)  # fmt: skip

SINCE = dict(NODE_FIELDS)
BRIEF = ("instance_uuid", "maintenance", "power_state", "provision_state", "uuid", "name")
"""What a plain list shows of each node, beside its links."""

_STEPS_AT = sorted(set(SINCE.values()))
_MASKED = frozenset({"driver_info", "driver_internal_info", "instance_info"})
URL = "\r"

_encode = msgspec.json.Encoder().encode


def links(kind: str, ident: str, sub: str = "") -> msgspec.Raw:
    """The self and bookmark links of a resource, with a mark for the public URL."""
    end = f'{kind}/{ident}{sub}","rel":'
    return msgspec.Raw(
        f'[{{"href":"{URL}v1/{end}"self"}},{{"href":"{URL}{end}"bookmark"}}]'.encode()
    )


_PLAIN = tuple(name for name, _ in NODE_FIELDS if name not in LINK_FIELDS)
_plain = attrgetter(*_PLAIN)
_MASKED_AT = tuple(_PLAIN.index(name) for name in _MASKED)
_UUID, _HERE = "\0", "\1"


def _frame() -> str:
    """All that stands between the values: keys, commas, newlines and the links, which depend on
    the uuid alone. One text for every node, with marks for the uuid and for each value."""
    out = []
    before = None
    for name, since in NODE_FIELDS:
        start = "" if before is None else "," if since == before else "\n,"
        before = since
        out.append(f'{start}"{name}":')
        if name in LINK_FIELDS:
            sub = "" if name == "links" else "/" + name
            out.append(bytes(links("nodes", _UUID, sub)).decode())
        else:
            out.append(_HERE)
    return "".join(out)


_FRAME = _frame()


def render(node: Node) -> str:
    """The node's JSON text for the store: see the module's text for its form."""
    values = list(_plain(node))
    for at in _MASKED_AT:
        if values[at]:
            values[at] = mask(values[at])
    frame = _FRAME.replace(_UUID, node.uuid).split(_HERE)
    out = []
    for before, value in zip(frame, values, strict=False):
        out.append(before)
        if value is None:
            out.append("null")
        elif value is False:
            out.append("false")
        elif value is True:
            out.append("true")
        else:
            out.append(_encode(value).decode())
    out.append(frame[-1])
    return "".join(out)


def cut(body: str, version: int) -> str:
    """What a version shows of a rendered node, as JSON text; the URL is still to be put in."""
    hidden = len(_STEPS_AT) - bisect_right(_STEPS_AT, version)
    return "{" + (body.rsplit("\n", hidden)[0] if hidden else body) + "}"


def visible(version: int) -> list[str]:
    """The fields that a version shows."""
    return [name for name, since in NODE_FIELDS if since <= version]


assert {f"{kind}_interface" for kind in INTERFACES} <= set(SINCE)  # noqa: S101
