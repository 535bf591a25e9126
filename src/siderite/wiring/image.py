"""The image room."""

from dataclasses import dataclass
from pathlib import Path

from siderite.identity import CatalogEntry
from siderite.image import Images
from siderite.image import ImageService
from siderite.image.files import Files
from siderite.image.transfer import Transfer
from siderite.image.usecases.context import Context
from siderite.wiring.part import Base
from siderite.wiring.part import Part


@dataclass(frozen=True, slots=True)
class ImageRoom:
    """The room, and its face for others."""

    part: Part
    images: Images


def image(base: Base) -> ImageRoom:
    """Image records, their files and their API."""
    config = base.config
    folder = Path(config.image_dir) if config.image_dir else base.data / "images"
    transfer = Transfer(
        ctx := Context(base.door, config.max_limit),
        Files(folder, max_bytes=config.image_max_gib * 2**30),
    )
    part = Part(
        services={"image": ImageService(ctx, transfer, base.identity)},
        catalog=(CatalogEntry("image", "siderite-image", "/image"),),
        jobs=(transfer.sweep,),
        event_types=("image.*",),
    )
    return ImageRoom(part, Images(ctx, transfer))
