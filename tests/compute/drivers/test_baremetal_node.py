"""What a node offers, whatever its owner wrote of it."""

import pytest

from siderite.compute.drivers.baremetal_node import image_words
from siderite.compute.drivers.baremetal_node import offer
from siderite.compute.drivers.contract import Guest

NODE = {
    "uuid": "a-node", "provision_state": "available", "instance_uuid": None, "maintenance": False,
    "resource_class": "baremetal",
}  # fmt: skip


@pytest.mark.parametrize(
    ("said", "size"),
    [
        (8, 8), ("8", 8), (8.9, 8), (2**31 - 1, 2**31 - 1), (2**31, 0), (10**300, 0),
        ("9" * 30, 0), (1e300, 0), (float("inf"), 0), (-1, 0), ("many", 0), (None, 0), ([8], 0),
    ],
)  # fmt: skip
def test_a_size_that_nobody_could_write_down_is_none(said: object, size: int) -> None:
    properties = dict.fromkeys(("cpus", "memory_mb", "local_gb"), said)
    found = offer({**NODE, "properties": properties})
    assert (found.vcpus, found.ram_mib, found.disk_gib) == (size, size, size)


@pytest.mark.parametrize(
    ("said", "source"),
    [
        ("http://there/os.raw", "http://there/os.raw"), ("HTTPS://there/os", "HTTPS://there/os"),
        ("8d2c1c5e-8d4b-4b60-9c0e-4b7b4f1f3b11", "own"), ("glance://8d2c1c5e", "own"),
        ("file:///etc/shadow", "own"), ("", "own"),
    ],
)  # fmt: skip
def test_an_images_properties_say_where_it_is_and_name_no_other_image(
    said: str, source: str
) -> None:
    words = {"image_source": said, "kernel": said, "image_checksum": "c0ffee"}
    guest = Guest(
        "uuid", "instance-1", "s", "s", "project", "node", 1, 512, 1, image="own",
        image_properties=words,
    )  # fmt: skip
    told = image_words(guest)
    assert (told["image_source"], told["image_checksum"]) == (source, "c0ffee")
    assert ("kernel" in told) == (source != "own")
