"""What the outside sees of a flavor, as text that is stored with it: one line per group of fields
that come and go together, as with servers.
"""

from functools import lru_cache
from typing import Any

import msgspec

from siderite.compute.domain.flavor import Flavor
from siderite.compute.domain.lines import Choice
from siderite.compute.domain.lines import choice
from siderite.compute.domain.lines import stored

URL = "\r"
_encode = msgspec.json.Encoder().encode
_LATEST = 10**6


def _json(fields: dict[str, Any]) -> str:
    return _encode(fields).decode()[1:-1]


def _base(flavor: Flavor) -> str:
    links = (
        f'[{{"rel":"self","href":"{URL}v2.1/flavors/{flavor.flavorid}"}},'
        f'{{"rel":"bookmark","href":"{URL}flavors/{flavor.flavorid}"}}]'
    )
    return _json(
        {
            "id": flavor.flavorid,
            "name": flavor.name,
            "ram": flavor.ram_mib,
            "disk": flavor.disk_gib,
            "vcpus": flavor.vcpus,
            "OS-FLV-EXT-DATA:ephemeral": flavor.ephemeral_gib,
            "os-flavor-access:is_public": flavor.is_public,
            "links": msgspec.Raw(links.encode()),
        }
    )


def _lines(flavor: Flavor) -> tuple[str, ...]:
    return (
        _base(flavor),
        _json({"swap": flavor.swap_mib or ""}),
        _json({"swap": flavor.swap_mib}),
        _json(
            {
                "rxtx_factor": flavor.rxtx_factor,
                "OS-FLV-DISABLED:disabled": flavor.disabled,
            }
        ),
        _json({"description": flavor.description}),
        _json({"extra_specs": flavor.extra_specs}),
    )


_SHOWN = ((1, _LATEST), (1, 74), (75, _LATEST), (1, 101), (55, _LATEST), (61, _LATEST))


def render(flavor: Flavor) -> str:
    """The text to store."""
    return stored(*_lines(flavor))


@lru_cache(256)
def chosen(version: int) -> Choice:
    """The lines that a version shows."""
    return choice([n for n, (since, until) in enumerate(_SHOWN) if since <= version <= until])
