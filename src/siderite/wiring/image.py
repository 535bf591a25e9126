"""The image room."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from siderite.core.guard import Guard
from siderite.core.guard import networks
from siderite.core.singleton import Singleton
from siderite.identity import CatalogEntry
from siderite.image import Images
from siderite.image import ImageService
from siderite.image.domain.image import FIELDS
from siderite.image.files import Files
from siderite.image.importing import Imports
from siderite.image.transfer import Transfer
from siderite.image.usecases.context import Context
from siderite.image.usecases.imports import KIND
from siderite.wiring.own_images import OwnImages
from siderite.wiring.part import Base
from siderite.wiring.part import Part

if TYPE_CHECKING:
    from siderite.wiring.glance_images import GlanceImages


class ImageRoom(msgspec.Struct, frozen=True):
    """The room, its face, and where images for servers come from: it, or a Glance elsewhere."""

    part: Part
    images: Images
    source: "OwnImages | GlanceImages"


def image(base: Base) -> ImageRoom:
    """Image records, their files and their API."""
    config = base.config
    folder = Path(config.image_dir) if config.image_dir else base.data / "images"
    methods = tuple(config.image_import_methods.replace(",", " ").split())
    transfer = Transfer(
        ctx := Context(base.door, config.max_limit, config.quota_image_gib, methods),
        Files(folder, max_bytes=config.image_max_gib * 2**30),
    )
    guard = Guard(
        networks(config.image_import_allow), denied=networks(config.image_import_deny),
        callers="image imports", option="image_import_allow",
    )  # fmt: skip
    other = cache = None
    if config.image_url and base.keystone is not None:
        from siderite.wiring.glance_images import GlanceImages
        from siderite.wiring.image_cache import ImageCache

        cache = ImageCache(base.data / "image-cache", keep_s=config.image_cache_keep_s)
        other = GlanceImages(config.image_url, base.keystone, cache)
    part = Part(
        services={"image": ImageService(ctx, transfer, guard, base.identity)},
        catalog=(CatalogEntry("image", "siderite-image", config.image_url or "/image"),),
        handlers={KIND: Imports(ctx, transfer, guard).carry_on},
        jobs=(
            Singleton(base.store, "image.sweep", transfer.sweep).run,
            *(() if cache is None else (cache.tidy,)),
        ),
        serving=() if other is None else (other.run,),
        event_types=("image.*",),
        fields=FIELDS,
        freely_named=("image",),
    )
    images = Images(ctx, transfer)
    return ImageRoom(part, images, other or OwnImages(images, base.identity))
