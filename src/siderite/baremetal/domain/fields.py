"""What the outside sees of a resource: each field with the first API version that shows it.

`render` writes a value as JSON text in the order of the table, with a newline before the fields of
each further version (white space to a JSON reader) and a carriage return where the public URL
belongs: raw control characters never occur within JSON text. What a version shows is then the text
up to its newline, without parsing (`cut`). Secrets are masked on the way.
"""

from bisect import bisect_right
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from operator import attrgetter
from operator import itemgetter
from typing import Generic
from typing import Protocol
from typing import TypeVar

import msgspec

from siderite.baremetal.domain.secrets import mask

URL = "\r"
_KEPT = 64
_LARGE = 32 * 1024
"""The length of a text in a value that is not kept: a config drive may have many MiB."""
_UUID = "\0"

_NOTHING = ("null", "{}")
_decode_raw = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode_lines = msgspec.json.Encoder().encode_lines


class Named(Protocol):
    """What is rendered has a UUID, which its links are made of."""

    @property
    def uuid(self) -> str: ...


T = TypeVar("T", bound=Named)


def links(kind: str, ident: str, sub: str = "") -> msgspec.Raw:
    """The self and bookmark links of a resource, with a mark for the public URL."""
    end = f'{kind}/{ident}{sub}","rel":'
    return msgspec.Raw(
        f'[{{"href":"{URL}v1/{end}"self"}},{{"href":"{URL}{end}"bookmark"}}]'.encode()
    )


class Fields(Generic[T]):
    """A resource's fields in the order of the versions that brought them.

    `kind` is the collection's place in its address, whose end is its name in a list. `links` names
    the fields that are links, to the resource itself or to what is below it; those also in
    `wrapped` are a list in a list.
    """

    def __init__(
        self,
        kind: str,
        table: Sequence[tuple[str, int]],
        *,
        brief: Sequence[str],
        links: Sequence[str] = ("links",),
        wrapped: Sequence[str] = (),
        masked: Sequence[str] = (),
    ) -> None:
        self.kind = kind
        self.items = kind.rpartition("/")[2]
        self.table = tuple(table)
        self.since = dict(table)
        self.brief = tuple(brief)
        self.links = frozenset(links)
        self.masked = frozenset(masked)
        self._plain = [name for name, _ in table if name not in self.links]
        self._values = attrgetter(*self._plain)
        self._masked_at = tuple(self._plain.index(name) for name in masked)
        self._steps_at = sorted(set(self.since.values()))
        self._frame = tuple(self._framed(frozenset(wrapped)))
        # The last few with their text: what is stored is often announced and answered with too.
        self._encoded: dict[str, tuple[T, list[str]]] = {}
        self._rendered: dict[str, tuple[T, str]] = {}

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self.table)

    def _framed(self, wrapped: frozenset[str]) -> Iterator[str]:
        """The text before each field's value and after the last, each with a place for what comes
        then. Links depend on the uuid alone: they are part of it, with a mark for that.
        """
        text, before = "", None
        for name, since in self.table:
            text += "" if before is None else "," if before == since else "\n,"
            text += f'"{name}":'
            before = since
            if name not in self.links:
                yield from (text, "")
                text = ""
                continue
            link = bytes(links(self.kind, _UUID, "" if name == "links" else "/" + name)).decode()
            text += f"[{link}]" if name in wrapped else link
        yield from (text, "")

    def render(self, value: T) -> str:
        """The value's JSON text for the store: see the module's text for its form."""
        known = self._rendered.get(value.uuid)
        if known is not None and known[0] is value:
            return known[1]
        if len(self._rendered) >= _KEPT:
            self._rendered.clear()
        text = self._text(value)
        if value.uuid in self._encoded:
            self._rendered[value.uuid] = (value, text)
        return text

    def _text(self, value: T) -> str:
        text = list(self._frame)
        text[1::2] = self.encoded(value)
        return "".join(text).replace(_UUID, value.uuid)

    def encoded(self, value: T) -> list[str]:
        """All fields but links, each as JSON text with its secrets masked; and an empty text."""
        known = self._encoded.get(value.uuid)
        if known is not None and known[0] is value:
            return known[1]
        if len(self._encoded) >= _KEPT:
            self._encoded.clear()
        values = list(self._values(value))
        is_large = False
        for at in self._masked_at:
            if values[at]:
                is_large = is_large or _is_large(values[at])
                values[at] = mask(values[at])
        texts = _encode_lines(values).decode().split("\n")
        if is_large:
            self._encoded.pop(value.uuid, None)
        else:
            self._encoded[value.uuid] = (value, texts)
        return texts

    def redacted(
        self, body: str, hidden: Mapping[str, str], only_if: Mapping[str, str] | None = None
    ) -> str:
        """A rendered value with these JSON texts in the place of what fields say, where they say
        anything; those in `only_if` where another field does, too.
        """
        found = _decode_raw("{" + body.replace(URL, "") + "}")
        said = [bytes(found.get(name, b"null")).decode() for name in self._plain]
        silent = {name for name, it in zip(self._plain, said, strict=True) if it in _NOTHING}
        hidden = {
            name: text
            for name, text in hidden.items()
            if name not in silent and (only_if or {}).get(name) not in silent
        }
        text = list(self._frame)
        text[1::2] = [
            *(hidden.get(name, it) for name, it in zip(self._plain, said, strict=True)),
            "",
        ]
        return "".join(text).replace(_UUID, msgspec.json.decode(found["uuid"], type=str))

    def picker(self, names: Sequence[str]) -> Callable[[Sequence[str]], tuple[str, ...]]:
        """What picks these fields of those that are encoded."""
        return itemgetter(*map(self._plain.index, names))

    def cut(self, body: str, version: int) -> str:
        """What a version shows of a rendered value, as JSON text; the URL is still to be put in."""
        hidden = self._hidden(version)
        return "{" + (body.rsplit("\n", hidden)[0] if hidden else body) + "}"

    def cut_all(self, bodies: Sequence[str], version: int) -> str:
        """The same of many, as the items of a list: put together once, as there may be MiBs."""
        if not bodies:
            return ""
        hidden = self._hidden(version)
        shown = [body.rsplit("\n", hidden)[0] for body in bodies] if hidden else list(bodies)
        shown[0] = "{" + shown[0]
        shown[-1] += "}"
        return "},{".join(shown)

    def _hidden(self, version: int) -> int:
        """How many lines of a rendered value are of later versions."""
        return len(self._steps_at) - bisect_right(self._steps_at, version)


def _is_large(value: object) -> bool:
    inner = value.values() if isinstance(value, dict) else ()
    return any(isinstance(text, str) and len(text) > _LARGE for text in inner)
