"""Who may see an image, and who may change it."""

from siderite.core.errors import Forbidden
from siderite.core.errors import NotFound
from siderite.image.domain.image import Image
from siderite.image.domain.image import Visibility


def missing(uuid: str) -> NotFound:
    """There is none, or none for this caller."""
    return NotFound(f"No image found with ID {uuid[:64]}; `openstack image list` shows them.")


def is_owner(image: Image, project: str | None) -> bool:
    """Whether it belongs to the caller's project."""
    return project is not None and image.owner == project


def is_open(image: Image) -> bool:
    """Whether everybody may use it."""
    return image.visibility in (Visibility.PUBLIC, Visibility.COMMUNITY)


def not_owner(image: Image) -> Forbidden:
    """It is seen, but not the caller's to change."""
    return Forbidden(
        f"You are not permitted to change image {image.uuid}: it belongs to another project."
    )


def check_deletable(image: Image) -> None:
    """Refuse what is protected."""
    if image.protected:
        raise Forbidden(
            f"Image {image.uuid} is protected and cannot be deleted; set protected to false first."
        )
