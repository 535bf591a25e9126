"""What a ramdisk is told of the image it shall write."""

from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from siderite.baremetal.domain.secrets import mask
from siderite.core.ids import is_uuid


class NoImage(Exception):
    """The image cannot be written as it is described; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class LocalImage:
    """An image of the image service, as a file here."""

    path: Path
    disk_format: str
    hash_algo: str
    hash_value: str


Images = Callable[[str, str | None], Awaitable[LocalImage]]
"""The image of an id, as far as a project may see it; NoImage if it cannot be had."""


def image_id(instance_info: Mapping[str, Any]) -> str | None:
    """The id of an image of the image service, if that is what `image_source` is."""
    source = str(instance_info.get("image_source") or "").removeprefix("glance://")
    return source if is_uuid(source) else None


def problem(instance_info: Mapping[str, Any], *, by_id: bool = False) -> str | None:
    """What `instance_info` lacks for a disk image to be written; `by_id`: an image service has
    images.
    """
    source = instance_info.get("image_source")
    if instance_info.get("image_type") == "partition":
        return "instance_info.image_type is partition; only whole-disk images can be written."
    if not isinstance(source, str) or not source:
        return "instance_info lacks image_source, a whole-disk image: its http(s) address" + (
            ", or its id." if by_id else "."
        )
    if by_id and image_id(instance_info):
        return None
    if not source.startswith(("http://", "https://")):
        return f"instance_info.image_source {mask(source)[:200]!r} is no http(s) address."
    pair = instance_info.get("image_os_hash_algo") and instance_info.get("image_os_hash_value")
    if not pair and not instance_info.get("image_checksum"):
        return (
            "instance_info lacks image_checksum (or image_os_hash_algo and image_os_hash_value):"
            " without it nobody knows whether the image arrived whole."
        )
    return None


def local_info(node: str, found: LocalImage, url: str) -> dict[str, Any]:
    """The ramdisk's `image_info` of an image that is served here."""
    return {
        "id": node,
        "urls": [url],
        "disk_format": found.disk_format,
        "container_format": "bare",
        "os_hash_algo": found.hash_algo,
        "os_hash_value": found.hash_value,
        "image_type": "whole-disk-image",
        "stream_raw_images": True,
        "node_uuid": node,
    }


def info(node: str, instance_info: Mapping[str, Any]) -> dict[str, Any]:
    """The ramdisk's `image_info`; NoImage if something is missing."""
    why = problem(instance_info)
    if why is not None:
        raise NoImage(why)
    source = str(instance_info["image_source"])
    guess = "qcow2" if source.partition("?")[0].endswith(".qcow2") else "raw"
    told = {
        "id": source.rpartition("/")[2] or node,
        "urls": [source],
        "disk_format": instance_info.get("image_disk_format") or guess,
        "container_format": "bare",
        "checksum": instance_info.get("image_checksum"),
        "os_hash_algo": instance_info.get("image_os_hash_algo"),
        "os_hash_value": instance_info.get("image_os_hash_value"),
        "image_type": "whole-disk-image",
        "stream_raw_images": True,
        "node_uuid": node,
    }
    return {key: value for key, value in told.items() if value is not None}
