"""Images that a request names, as far as its caller may use them."""

from typing import TYPE_CHECKING

from siderite.compute.domain.image import Image
from siderite.compute.domain.image import whole
from siderite.core.errors import Invalid
from siderite.core.http import Request

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service


async def named(service: "Service", request: Request, ident: str) -> Image:
    """An image by its id."""
    token = request.header(b"x-auth-token")
    found = await service.images.show(ident, token=token, project=request.who.project_id)
    if found is None:
        raise Invalid(
            f"Can not find requested image {ident}. `image list` shows those for your project."
        )
    return found


async def check_booted(
    service: "Service", request: Request, image: Image, project: str | None
) -> None:
    """Refuse an image whose kernel or ramdisk is not for the project of the server that boots it:
    hosts get them whosever they are. Whoever may write its properties can name any there, also
    between a server's making and a rebuild by somebody who may use all images.
    """
    token = request.header(b"x-auth-token") if project == request.who.project_id else None
    for what in ("kernel", "ramdisk"):
        ident = image.properties.get(f"{what}_id")
        if not ident:
            continue
        found = await service.images.show(ident, token=token, project=project)
        if found is None:
            raise Invalid(
                f"Can not find image {ident[:80]}, the {what} that image {image.id} boots: it is"
                " not there, or not for the server's project."
            )
        whole(found)
