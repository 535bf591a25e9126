"""The image room as compute and its drivers see it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from siderite.compute.domain.image import Changed
from siderite.compute.domain.image import Image
from siderite.compute.domain.image import check_reserved
from siderite.compute.domain.image import is_reserved
from siderite.compute.domain.image import missing
from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.core.errors import Conflict
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.errors import SideriteError
from siderite.core.transition import Cause
from siderite.core.who import Authenticator
from siderite.core.who import Who
from siderite.image import Images

SYSTEM = Who("", "compute", None, None, frozenset({"admin"}), system=True)
_PIECE = 1024 * 1024
_AGAIN_S = 0.5
_ATTRIBUTES = frozenset(Image.__struct_fields__) | {
    "min_disk", "min_ram", "os_hash_algo", "os_hash_value", "os_hidden", "tags",
    "self", "file", "schema", "direct_url", "locations",
}  # fmt: skip


def as_compute_sees(shown: dict[str, Any]) -> Image:
    """An image of the API in compute's words."""
    own = {
        name: str(value)
        for name, value in shown.items()
        if name not in _ATTRIBUTES and value is not None
    }
    return Image(
        id=shown["id"],
        name=shown.get("name"),
        status=shown["status"],
        size=shown.get("size"),
        virtual_size=shown.get("virtual_size"),
        min_disk_gib=shown.get("min_disk") or 0,
        min_ram_mib=shown.get("min_ram") or 0,
        disk_format=shown.get("disk_format"),
        container_format=shown.get("container_format"),
        visibility=shown.get("visibility") or "private",
        protected=bool(shown.get("protected")),
        owner=shown.get("owner"),
        checksum=shown.get("checksum"),
        created_at=shown.get("created_at"),
        updated_at=shown.get("updated_at"),
        properties=own,
    )


def own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Those that an image can have beside its attributes."""
    return {name: value for name, value in properties.items() if name not in _ATTRIBUTES}


def new_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Those that a snapshot is made with: what an image service noted of the image that its server
    was made from is not true of it.
    """
    own = own_properties(properties)
    return {name: value for name, value in own.items() if not is_reserved(name)}


def check_properties(after: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Refuse what are attributes of an image, which are not written as properties, and what is not
    for its owner to write.
    """
    check_reserved(after, before)
    for name in after:
        if name in _ATTRIBUTES:
            raise Invalid(
                f"Attribute '{name}' of an image is not among its metadata; leave it out."
            )


class OwnImages:
    """An `ImageSource` and the drivers' `ImageFiles`, over the image room."""

    def __init__(self, images: Images, who: Authenticator) -> None:
        self._images = images
        self._who = who
        self._storing: dict[str, asyncio.Task[Outcome]] = {}

    async def show(self, image: str, *, token: str | None, project: str | None) -> Image | None:
        try:
            return as_compute_sees(await self._images.show(image, await self._as(token, project)))
        except NotFound:
            return None

    async def page(
        self,
        filters: Mapping[str, str],
        *,
        token: str | None,
        project: str | None,
        marker: str | None,
        limit: int,
    ) -> Sequence[Image]:
        who = await self._as(token, project)
        found = await self._images.page(filters, who=who, marker=marker, limit=limit)
        return [as_compute_sees(one) for one in found]

    def address(self, image: str, base: str) -> str:
        return f"{base}/image/v2/images/{image}"

    async def describe(
        self,
        image: str,
        changed: Changed,
        *,
        token: str | None,
        project: str | None,
    ) -> Image:
        if await self.show(image, token=token, project=project) is None:
            raise missing(image)
        who = await self._as(token, project)
        cause = Cause(user=who.user or None, project=project)

        def among_all(every: Mapping[str, str]) -> dict[str, str]:
            """What compute does not see stays as it is."""
            seen = own_properties(every)
            after = changed(seen)
            check_properties(after, seen)
            return {**{name: every[name] for name in every if name not in seen}, **after}

        shown = await self._images.describe(image, among_all, who=who, cause=cause)
        return as_compute_sees(shown)

    async def drop(self, image: str, *, token: str | None, project: str | None) -> None:
        who = await self._as(token, project)
        cause = Cause(user=who.user or None, project=project)
        await self._images.remove(image, who=who, cause=cause)

    async def make(
        self,
        name: str,
        properties: dict[str, str],
        *,
        token: str | None,
        project: str | None,
        needs: tuple[int, int] = (0, 0),
    ) -> str:
        fields: dict[str, Any] = {"name": name, "visibility": "private", "owner": project}
        fields |= {"min_disk": needs[0], "min_ram": needs[1]}
        fields["properties"] = new_properties(properties)
        return await self._images.create(fields, who=SYSTEM, cause=Cause(project=project))

    async def discard(self, image: str) -> None:
        try:
            if (await self._images.show(image, SYSTEM))["status"] != "active":
                await self._images.remove(image, who=SYSTEM, cause=Cause())
        except (NotFound, Forbidden):
            return

    async def remove(self, image: str) -> None:
        with contextlib.suppress(NotFound, Forbidden):  # one that somebody protects stays
            await self._images.remove(image, who=SYSTEM, cause=Cause())

    async def local(self, image: str) -> Path | Wait | Failed:
        try:
            path = await self._images.path(image, SYSTEM)
        except SideriteError as why:
            return Failed(why.sentence)
        if not await asyncio.to_thread(path.is_file):
            return Failed(
                f"The data of image {image} is not where it was put; an administrator should look"
                " at the images directory."
            )
        return path

    async def store(self, image: str, source: Path, disk_format: str) -> Outcome:
        task = self._storing.get(image)
        if task is None:
            task = asyncio.create_task(self._store(image, source, disk_format))
            self._storing[image] = task
        done, _ = await asyncio.wait((task,), timeout=_AGAIN_S)
        if not done:
            return Wait("the image is being stored", _AGAIN_S)
        del self._storing[image]
        return task.result()

    async def _store(self, image: str, source: Path, disk_format: str) -> Outcome:
        try:
            if (await self._images.show(image, SYSTEM))["status"] == "active":
                return Done()
            formats = {"disk_format": disk_format, "container_format": "bare"}
            await self._images.update(image, formats, who=SYSTEM, cause=Cause())
            await self._images.upload(image, pieces(source), who=SYSTEM, cause=Cause())
        except Conflict as why:  # an upload that broke off is still on record
            await self._images.sweep()
            return Wait(why.sentence, 2.0)
        except (SideriteError, OSError) as why:
            return Failed(str(why))
        return Done()

    async def _as(self, token: str | None, project: str | None) -> Who:
        known = await self._who.by_token(token) if token else None
        return known or Who("", "compute", project, None, frozenset({"member"}))


async def pieces(path: Path) -> AsyncIterator[bytes]:
    """A file, piece by piece."""
    file = await asyncio.to_thread(path.open, "rb")
    try:
        while data := await asyncio.to_thread(file.read, _PIECE):
            yield data
    finally:
        file.close()
