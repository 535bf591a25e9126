"""Which images a flavor can boot."""

import pytest

from siderite.compute.domain.image import Image
from siderite.compute.domain.image import usable
from siderite.core.errors import Invalid


@pytest.mark.parametrize(
    ("image", "is_fit"),
    [
        (Image(id="i", size=1 << 30), True),
        (Image(id="i", size=(1 << 30) + 1), False),
        (Image(id="i", size=512, virtual_size=2 << 30), False),
        (Image(id="i", min_disk_gib=2), False),
        (Image(id="i", min_ram_mib=1024), False),
        (Image(id="i", status="queued"), False),
    ],
)
def test_it_must_have_its_data_and_fit(image: Image, is_fit: bool) -> None:
    if is_fit:
        usable(image, 512, 1)
    else:
        with pytest.raises(Invalid):
            usable(image, 512, 1)


def test_a_flavor_without_a_disk_is_as_large_as_its_image() -> None:
    usable(Image(id="i", size=50 << 30), 512, 0)
