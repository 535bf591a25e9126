"""The room's face within the program: what the compute service needs of images."""

import asyncio
from collections.abc import AsyncIterator
from collections.abc import Callable
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from siderite.core.errors import Conflict
from siderite.core.store.table import Where
from siderite.core.transition import Cause
from siderite.core.who import Who
from siderite.image.domain.image import READY
from siderite.image.domain.image import Image
from siderite.image.domain.image import view
from siderite.image.transfer import Transfer
from siderite.image.usecases import change
from siderite.image.usecases import data
from siderite.image.usecases import find
from siderite.image.usecases.context import Context


class Images:
    """Image records, and where their data is."""

    def __init__(self, ctx: Context, transfer: Transfer) -> None:
        self._ctx = ctx
        self._transfer = transfer

    async def show(self, uuid: str, who: Who) -> dict[str, Any]:
        """An image that the caller may see, as the API shows it."""
        return view(await find.image(self._ctx, uuid, who))

    async def page(
        self, filters: Mapping[str, str], *, who: Who, marker: str | None, limit: int
    ) -> list[dict[str, Any]]:
        """Images that the caller may see, the newest first; filters by attribute or property."""
        where = [*find.seen_by(who, None, "accepted"), Where("os_hidden = 0")]
        for name, value in filters.items():
            if name == "status":
                several = value.removeprefix("in:").split(",")
                where.append(Where(f"status IN ({', '.join('?' * len(several))})", tuple(several)))
            elif name == "name":
                where.append(Where("name = ?", (value,)))
            else:
                where.append(find.with_property(self._ctx, name, value))
        newest = [("created_at", True)]
        rows = await find.page(self._ctx, where, newest, limit=limit, marker=marker, who=who)
        return [msgspec.json.decode(str(row[1])) for row in rows]

    async def path(self, uuid: str, who: Who) -> Path:
        """The file of an active image. It is there until the image is deleted."""
        found = await data.readable(self._ctx, uuid, who)
        if found.file is None or found.size is None or found.status not in READY:
            raise Conflict(f"Image {found.uuid} has no data yet; it is {found.status}.")
        return self._transfer.files.path(found.file)

    async def create(self, fields: Mapping[str, Any], *, who: Who, cause: Cause) -> str:
        """A new record without data, such as a snapshot's; its id."""
        made: Image = await change.create(self._ctx, fields, who=who, cause=cause)
        return made.uuid

    async def update(self, uuid: str, fields: Mapping[str, Any], *, who: Who, cause: Cause) -> None:
        """Change a record."""
        await change.update(self._ctx, uuid, lambda _: dict(fields), who=who, cause=cause)

    async def describe(
        self,
        uuid: str,
        changed: Callable[[Mapping[str, str]], dict[str, str]],
        *,
        who: Who,
        cause: Cause,
    ) -> dict[str, Any]:
        """Change a record's properties by what `changed` makes of them; the image as the API shows
        it.
        """

        def changes(image: Image) -> dict[str, Any]:
            return {"properties": changed(image.properties)}

        return view(await change.update(self._ctx, uuid, changes, who=who, cause=cause))

    async def upload(
        self, uuid: str, pieces: AsyncIterator[bytes], *, who: Who, cause: Cause
    ) -> None:
        """The data of a record that has none; the image is active afterwards."""
        await self._transfer.upload(uuid, pieces, staged=False, who=who, cause=cause)

    async def sweep(self) -> None:
        """Let go of uploads that broke off."""
        await self._transfer.sweep_once()

    async def remove(self, uuid: str, *, who: Who, cause: Cause) -> None:
        """Forget an image, and its data."""
        file = await change.remove(self._ctx, uuid, who=who, cause=cause)
        if file is not None:
            await asyncio.to_thread(self._transfer.files.remove, file)
