"""Images for tries without an image service: any UUID is one, and snapshots are remembered."""

from siderite.compute.domain.image import Image
from siderite.core.ids import is_uuid
from siderite.core.ids import new_uuid


class SimulatedImages:
    """An `ImageSource` that has whatever is asked for."""

    def __init__(self) -> None:
        self._made: dict[str, Image] = {}

    async def show(self, image: str, *, token: str | None, project: str | None) -> Image | None:
        if not is_uuid(image):
            return None
        return self._made.get(image) or Image(id=image, name="simulated", disk_format="raw")

    async def make(
        self, name: str, properties: dict[str, str], *, token: str | None, project: str | None
    ) -> str:
        made = Image(id=new_uuid(), name=name, properties=properties, disk_format="qcow2")
        self._made[made.id] = made
        return made.id

    async def discard(self, image: str) -> None:
        self._made.pop(image, None)
