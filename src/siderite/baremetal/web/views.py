"""How resources look on the wire: stored text, cut to the version, spelt for it, with its URL."""

import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from siderite.baremetal.domain import wire
from siderite.baremetal.domain.fields import URL
from siderite.baremetal.domain.fields import Fields
from siderite.baremetal.domain.fields import links
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.power import PowerState
from siderite.baremetal.web.listing import Listing
from siderite.core import shape
from siderite.core.microversion import OURS
from siderite.core.store import Line

_AVAILABLE = f'"provision_state":"{P.AVAILABLE}"'
_INSPECT_WAIT = f'"provision_state":"{P.INSPECTWAIT}"'
_POWER_NULL = re.compile(r'\A("provision_state":"[a-z -]+","uuid":"[0-9a-f-]+","power_state":)null')
_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode
URL_BYTES = URL.encode()

STATES = (
    ("console_enabled", 1), ("last_error", 1), ("power_state", 1), ("provision_state", 1),
    ("provision_updated_at", 1), ("target_power_state", 1), ("target_provision_state", 1),
    ("raid_config", 12), ("target_raid_config", 12), ("boot_mode", 75), ("secure_boot", 75),
)  # fmt: skip


def _spelt(body: str, version: int) -> str:
    """States that the version does not know are shown as those that it does; ours have a word for
    power that is not known.
    """
    if version >= OURS:
        return _POWER_NULL.sub(r'\1"unknown"', body, count=1)
    if version < 39 and body.startswith(_INSPECT_WAIT):  # noqa: PLR2004
        return '"provision_state":"inspecting"' + body[len(_INSPECT_WAIT) :]
    if version < 2 and body.startswith(_AVAILABLE):  # noqa: PLR2004
        return '"provision_state":null' + body[len(_AVAILABLE) :]
    return body


def state(name: str, version: int) -> str | None:
    """A provision state as the version spells it."""
    if version < 39 and name == P.INSPECTWAIT:  # noqa: PLR2004
        return P.INSPECTING.value
    return None if version < 2 and name == P.AVAILABLE else name  # noqa: PLR2004


class View(msgspec.Struct, frozen=True):
    """How one kind of resource is shown.

    `spell` puts a stored text in the words of a version that has others: one of ours, or one older
    than `spelt_until`. `short` is a row of the columns `fields.brief` as an item of a plain list,
    where that is more than their values.
    """

    fields: Fields[Any]
    short: Callable[[Line, int], dict[str, Any]] | None = None
    spell: Callable[[str, int], str] = lambda body, _: body
    spelt_until: int = 0

    def columns(self, ask: Listing) -> str:
        """The columns that `page` needs of each row."""
        return ", ".join(self.fields.brief) if ask.is_brief else "uuid, body"

    def form(self, kind: type[Any], *more: Any) -> shape.Json:
        """The form of one on the wire, in all versions: of made-up values of its type, and more."""
        bodies = [self.fields.render(value) for value in (*shape.both(kind), *more)]
        first = min(since for _, since in self.fields)
        shown = [self.text(body, version, "") for body in bodies for version in (first, OURS)]
        return shape.seen(*(msgspec.json.decode(text) for text in shown))

    def page(
        self, ask: Listing, rows: Sequence[Line], *, version: int, base: str, path: str
    ) -> bytes:
        """A page of the list at this path, as it was asked for."""
        last = str(rows[-1][0]) if rows else None
        following = ask.following(f"{base}v1/{path}", len(rows), last)
        if ask.is_brief:
            return self.brief(rows, version, base, following)
        bodies = [str(row[1]) for row in rows]
        return self.many(bodies, version, base, ask.fields, following)

    def text(self, body: str, version: int, base: str) -> str:
        """One resource as JSON text."""
        if not self.spelt_until <= version < OURS:
            body = self.spell(body, version)
        return self.fields.cut(body, version).replace(URL, base)

    def one(self, body: str, version: int, base: str, some: Sequence[str] | None = None) -> bytes:
        """One resource, whole or some fields of it."""
        text = self.text(body, version, base)
        return text.encode() if some is None else _some(text, some)

    def many(
        self,
        bodies: Sequence[str],
        version: int,
        base: str,
        some: Sequence[str] | None,
        following: str | None,
    ) -> bytes:
        """A list of resources, and where it goes on."""
        if not self.spelt_until <= version < OURS:
            bodies = [self.spell(body, version) for body in bodies]
        if some is None:
            text = self.fields.cut_all(bodies, version).encode()
            items = text.replace(URL_BYTES, base.encode())  # of text, this takes four times as long
        else:
            # What came later than all of these need not be read past.
            newest = min(version, max(self.fields.since[name] for name in (*some, "links")))
            cut, pick = self.fields.cut, _picker(tuple(some)).decode
            picked = [_encode(pick(cut(body, newest).replace(URL, base))) for body in bodies]
            items = b",".join(picked)
        return collection(self.fields.items.encode(), items, following)

    def brief(self, rows: Iterable[Line], version: int, base: str, following: str | None) -> bytes:
        """A plain list, and where it goes on."""
        kind, short, names = self.fields.kind, self.short, self.fields.brief
        items = []
        for row in rows:
            item = dict(zip(names, row, strict=True)) if short is None else short(row, version)
            item["links"] = links(kind, str(item["uuid"]))
            items.append(_encode(item))
        text = b",".join(items).replace(URL_BYTES, base.encode())
        return collection(self.fields.items.encode(), text, following)


def _short_node(row: Line, version: int) -> dict[str, Any]:
    uuid, name, instance, maintained, power, provision = row
    item = {
        "uuid": uuid,
        "name": name,
        "instance_uuid": instance,
        "maintenance": bool(maintained),
        "power_state": PowerState.UNKNOWN if power is None and version >= OURS else power,
        "provision_state": state(str(provision), version),
    }
    if version < 5:  # noqa: PLR2004
        del item["name"]
    return item


def _spelt_port(body: str, version: int) -> str:
    """A local link with keys that the version does not know is shown as none."""
    if version >= OURS:
        return body
    head, mark, rest = body.partition('\n,"local_link_connection":')
    line, newline, tail = rest.partition("\n")
    at = line.rindex(',"pxe_enabled":')
    if '"vtep-logical-switch"' not in line[:at]:
        return body
    return head + mark + "{}" + line[at:] + newline + tail


NODE = View(wire.NODE_FIELDS, _short_node, _spelt, spelt_until=39)
PORT = View(wire.PORT_FIELDS, spell=_spelt_port, spelt_until=90)
CHASSIS = View(wire.CHASSIS_FIELDS)
PORTGROUP = View(wire.PORTGROUP_FIELDS)
CONNECTOR = View(wire.CONNECTOR_FIELDS)
TARGET = View(wire.TARGET_FIELDS)
TEMPLATE = View(wire.TEMPLATE_FIELDS)
RUNBOOK = View(wire.RUNBOOK_FIELDS)
HOOK = View(wire.HOOK_FIELDS)
INSPECTION_RULE = View(wire.INSPECTION_RULE_FIELDS)
ALLOCATION = View(wire.ALLOCATION_FIELDS)


def with_links(value: Any, base: str) -> bytes:
    """A value that has links in it."""
    return _encode(value).replace(URL_BYTES, base.encode())


def linked(*values: Any) -> shape.Json:
    """The form of values that have links in them."""
    return shape.seen(*(msgspec.json.decode(with_links(one, "")) for one in values))


def collection(name: bytes, items: bytes, following: str | None) -> bytes:
    """A list under its name; `next` only when there may be more."""
    more = b"" if following is None else b',"next":' + _encode(following)
    return b"".join((b'{"', name, b'":[', items, b"]", more, b"}"))


def _some(text: str, fields: Sequence[str]) -> bytes:
    return _encode(_picker(tuple(fields)).decode(text))


@lru_cache(256)
def _picker(fields: tuple[str, ...]) -> msgspec.json.Decoder[msgspec.Struct]:
    """Reads some fields of a text, unparsed, and passes over the others."""
    names = dict.fromkeys((*fields, "links"))
    return msgspec.json.Decoder(msgspec.defstruct("Some", [(name, msgspec.Raw) for name in names]))


def states_form() -> shape.Json:
    """The form of a node's states."""
    bodies = [wire.NODE_FIELDS.render(node) for node in shape.both(Node)]
    bodies.append(wire.NODE_FIELDS.render(shape.made_up(Node, provision_state=P.AVAILABLE)))
    shown = [states(body, version, "") for body in bodies for version in (1, OURS)]
    return shape.seen(*(msgspec.json.decode(text) for text in shown))


def states(body: str, version: int, base: str) -> bytes:
    """The states of a node."""
    found = _RAW.decode(NODE.text(body, max(version, 75), base))
    shown = {name: found[name] for name, since in STATES if since <= version}
    if version < 39:  # noqa: PLR2004
        shown["provision_state"] = _RAW.decode(NODE.text(body, version, base))["provision_state"]
    return _encode(shown)
