"""How nodes look on the wire: stored text, cut to the version, spelt for it, with its URL."""

from collections.abc import Iterable
from collections.abc import Sequence

import msgspec

from siderite.baremetal.domain.node_machine import P
from siderite.baremetal.domain.wire import URL
from siderite.baremetal.domain.wire import cut

_AVAILABLE = f'"provision_state":"{P.AVAILABLE}"'
_INSPECT_WAIT = f'"provision_state":"{P.INSPECTWAIT}"'
_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode

STATES = (
    ("console_enabled", 1), ("last_error", 1), ("power_state", 1), ("provision_state", 1),
    ("provision_updated_at", 1), ("target_power_state", 1), ("target_provision_state", 1),
    ("raid_config", 12), ("target_raid_config", 12), ("boot_mode", 75), ("secure_boot", 75),
)  # fmt: skip


def _spelt(body: str, version: int) -> str:
    """States that the version does not know are shown as those that it does."""
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


def _text(body: str, version: int, base: str) -> str:
    if version < 39:  # noqa: PLR2004
        body = _spelt(body, version)
    return cut(body, version).replace(URL, base)


def node(body: str, version: int, base: str, fields: Sequence[str] | None = None) -> bytes:
    """One node, whole or some fields of it."""
    text = _text(body, version, base)
    return text.encode() if fields is None else _some(text, fields)


def nodes(
    bodies: Iterable[str],
    version: int,
    base: str,
    fields: Sequence[str] | None,
    following: str | None,
) -> bytes:
    """A list of nodes, and where it goes on."""
    if fields is None:
        old = version < 39  # noqa: PLR2004
        texts = (cut(_spelt(body, version) if old else body, version) for body in bodies)
        items = ",".join(texts).replace(URL, base).encode()
    else:
        items = b",".join(_some(_text(body, version, base), fields) for body in bodies)
    return collection(b"nodes", items, following)


def collection(name: bytes, items: bytes, following: str | None) -> bytes:
    """A list under its name; `next` only when there may be more."""
    more = b"" if following is None else b',"next":' + _encode(following)
    return b'{"' + name + b'":[' + items + b"]" + more + b"}"


def _some(text: str, fields: Sequence[str]) -> bytes:
    found = _RAW.decode(text)
    return _encode({name: found[name] for name in (*fields, "links") if name in found})


def states(body: str, version: int, base: str) -> bytes:
    """The states of a node."""
    found = _RAW.decode(_text(body, max(version, 75), base))
    shown = {name: found[name] for name, since in STATES if since <= version}
    if version < 39:  # noqa: PLR2004
        shown["provision_state"] = _RAW.decode(_text(body, version, base))["provision_state"]
    return _encode(shown)
