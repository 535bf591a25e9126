"""What a ramdisk is told of the image it shall write."""

from collections.abc import Mapping
from typing import Any


class NoImage(Exception):
    """The image cannot be written as it is described; the text says what is missing."""


def problem(instance_info: Mapping[str, Any]) -> str | None:
    """What `instance_info` lacks for a disk image to be written."""
    source = instance_info.get("image_source")
    if not isinstance(source, str) or not source:
        return "instance_info lacks image_source, the http(s) address of a whole-disk image."
    if not source.startswith(("http://", "https://")):
        return f"instance_info.image_source {source[:200]!r} is no http(s) address."
    pair = instance_info.get("image_os_hash_algo") and instance_info.get("image_os_hash_value")
    if not pair and not instance_info.get("image_checksum"):
        return (
            "instance_info lacks image_checksum (or image_os_hash_algo and image_os_hash_value):"
            " without it nobody knows whether the image arrived whole."
        )
    if instance_info.get("image_type") == "partition":
        return "instance_info.image_type is partition; only whole-disk images can be written."
    return None


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
