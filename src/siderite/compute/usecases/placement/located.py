"""Hypervisor nodes with what aggregates say of their hosts."""

from collections.abc import Iterable

import msgspec

from siderite.compute.domain.aggregate import NOWHERE
from siderite.compute.domain.aggregate import Atlas
from siderite.compute.domain.host import Hypervisor


def located(atlas: Atlas, found: Iterable[Hypervisor]) -> list[Hypervisor]:
    """The nodes, each in its place."""
    return [
        at
        if (there := atlas.place(at.host)) is NOWHERE
        else msgspec.structs.replace(
            at, zone=there.zone, aggregate_metadata=there.aggregate_metadata
        )
        for at in found
    ]
