"""A program with images in it, and short ways to ask about them."""

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.app import Answer
from tests.support.app import Application
from tests.support.app import running

PATCH = "application/openstack-images-v2.1-json-patch"
DATA = "application/octet-stream"
_names = itertools.count(1)


class World:
    """The program, and its admin."""

    def __init__(self, app: Application, folder: Path) -> None:
        self.app = app
        self.folder = folder / "images"

    async def ask(self, method: str, path: str, *body: Any, **how: Any) -> Answer:
        """A request to the image API."""
        return await self.app.ask(method, "/image" + path, *body, version=None, **how)

    async def make(self, *, token: str | None = None, **fields: Any) -> dict[str, Any]:
        """A new image."""
        usual = {"name": f"i{next(_names)}", "disk_format": "raw", "container_format": "bare"}
        answer = await self.ask("POST", "/v2/images", {**usual, **fields}, token=token)
        assert answer.status == 201, answer
        made: dict[str, Any] = answer.json
        return made

    async def upload(
        self, image: str, data: bytes, *, token: str | None = None, to: str = "file"
    ) -> Answer:
        """Give an image its data."""
        headers = {"content-type": DATA}
        return await self.ask("PUT", f"/v2/images/{image}/{to}", data, token=token, headers=headers)

    async def patch(self, image: str, *ops: Any, token: str | None = None) -> Answer:
        """Change an image."""
        headers = {"content-type": PATCH}
        return await self.ask(
            "PATCH", f"/v2/images/{image}", _json(list(ops)), token=token, headers=headers
        )

    async def show(self, image: str, token: str | None = None) -> dict[str, Any]:
        """An image."""
        answer = await self.ask("GET", f"/v2/images/{image}", token=token)
        assert answer.status == 200, answer
        shown: dict[str, Any] = answer.json
        return shown

    async def names(self, query: str = "", token: str | None = None) -> list[str]:
        """The names in a list."""
        answer = await self.ask("GET", f"/v2/images{query}", token=token)
        assert answer.status == 200, answer
        return [one["name"] for one in answer.json["images"]]

    def files(self) -> list[str]:
        """What is in the directory."""
        return sorted(path.name for path in self.folder.iterdir())


def _json(value: Any) -> bytes:

    return json.dumps(value).encode()


@asynccontextmanager
async def world(folder: Path, db: str = "", **options: Any) -> AsyncIterator[World]:
    """An installation, with its admin logged in."""
    async with running(folder, db, **options) as app:
        yield World(app, folder)
