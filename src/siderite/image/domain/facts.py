"""The facts of images, named as Glance names its notifications."""

import msgspec

from siderite.core.fact import Fact
from siderite.image.domain.image import Image
from siderite.image.domain.image import view

ACTIONS = {
    "create": "an image record was made",
    "prepare": "an upload began",
    "upload": "the data is complete",
    "activate": "the image can be used",
    "update": "attributes, properties, tags or members changed",
    "delete": "the image is gone",
}


def fact(action: str, image: Image) -> Fact:
    """`image.create` and so on."""
    payload = view(image)
    return Fact(
        f"image.{action}", "image", "image", image.uuid, msgspec.json.encode(payload).decode(),
        project=image.owner,
    )  # fmt: skip
