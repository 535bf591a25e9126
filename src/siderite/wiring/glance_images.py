"""A Glance elsewhere, as compute and its drivers see it.

Records are asked for with the caller's token, or our own where there is none. Data is fetched into
a cache in the data directory.
"""

import asyncio
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from siderite.compute.domain.image import Changed
from siderite.compute.domain.image import Image
from siderite.compute.domain.image import missing
from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Outcome
from siderite.compute.domain.outcome import Wait
from siderite.core.errors import Forbidden
from siderite.core.errors import Unavailable
from siderite.core.ids import is_uuid
from siderite.core.log import get_logger
from siderite.identity import Keystone
from siderite.wiring.glance_answers import check_passing
from siderite.wiring.glance_answers import not_taken
from siderite.wiring.glance_answers import refused
from siderite.wiring.glance_answers import silent
from siderite.wiring.glance_answers import unlisted
from siderite.wiring.glance_answers import unmade
from siderite.wiring.image_cache import ImageCache
from siderite.wiring.own_images import as_compute_sees
from siderite.wiring.own_images import check_properties
from siderite.wiring.own_images import new_properties
from siderite.wiring.own_images import pieces

log = get_logger("glance")

_TIMEOUT = httpx.Timeout(30.0, read=300.0)
_AGAIN_S = 0.5
_LATER_S = 5.0
_MENDED_S = 30.0
"""How soon a transfer begins anew that the disk here stopped: all of its data comes again."""
_TOLD_S = 60.0
"""For how long what came of a transfer is kept for who began it, and may not ask any more."""
_PIECE = 1024 * 1024
_PATCH = "application/openstack-images-v2.1-json-patch"
_OK, _CREATED, _NO_CONTENT, _UNAUTHORIZED, _NOT_FOUND = 200, 201, 204, 401, 404
_BAD_REQUEST, _FORBIDDEN, _CONFLICT, _TOO_LARGE = 400, 403, 409, 413


class GlanceImages:
    """An `ImageSource` and the drivers' `ImageFiles`, over HTTP."""

    def __init__(self, url: str, keystone: Keystone, cache: ImageCache) -> None:
        self._url = url.rstrip("/").removesuffix("/v2") + "/v2"
        self._keystone = keystone
        self._cache = cache
        self._http = httpx.AsyncClient(timeout=_TIMEOUT)
        self._under_way: dict[str, asyncio.Task[Any]] = {}

    async def run(self) -> None:
        """Until cancelled; then let go of connections."""
        try:
            await asyncio.Event().wait()
        finally:
            await self._http.aclose()

    async def show(self, image: str, *, token: str | None, project: str | None) -> Image | None:
        if not is_uuid(image):
            return None
        answer = await self._ask("GET", f"/images/{image}", token=token)
        if answer.status_code == _OK:
            return as_compute_sees(answer.json())
        if answer.status_code == _NOT_FOUND:
            return None
        raise refused(answer)

    async def page(
        self,
        filters: Mapping[str, str],
        *,
        token: str | None,
        project: str | None,
        marker: str | None,
        limit: int,
    ) -> Sequence[Image]:
        query = {**filters, "limit": str(limit), **({} if marker is None else {"marker": marker})}
        answer = await self._ask("GET", "/images", token=token, params=query)
        if answer.status_code == _BAD_REQUEST:
            raise unlisted(answer, marker)
        if answer.status_code != _OK:
            raise refused(answer)
        return [as_compute_sees(one) for one in answer.json()["images"]]

    def address(self, image: str, base: str) -> str:
        return f"{self._url}/images/{image}"

    async def describe(
        self,
        image: str,
        changed: Changed,
        *,
        token: str | None,
        project: str | None,
    ) -> Image:
        # Glance cannot be told what was read: what is decided on is as of a moment before.
        found = await self.show(image, token=token, project=project)
        if found is None:
            raise missing(image)
        had, after = found.properties, changed(found.properties)
        check_properties(after, had)
        put = {name: value for name, value in after.items() if had.get(name) != value}
        patch = [_operation("add", name, value) for name, value in put.items()]
        patch += [_operation("remove", name) for name in had if name not in after]
        answer = await self._ask(
            "PATCH", f"/images/{image}", token=token, json=patch, headers={"Content-Type": _PATCH}
        )
        if answer.status_code == _NOT_FOUND:
            raise missing(image)
        if answer.status_code in (_FORBIDDEN, _CONFLICT):
            raise Forbidden(
                f"Image {image} cannot be changed so: it is not yours, or not like that."
            )
        if answer.status_code != _OK:
            raise refused(answer)
        return as_compute_sees(answer.json())

    async def drop(self, image: str, *, token: str | None, project: str | None) -> None:
        if not is_uuid(image) or await self.show(image, token=token, project=project) is None:
            raise missing(image)
        answer = await self._ask("DELETE", f"/images/{image}", token=token)
        if answer.status_code in (_FORBIDDEN, _CONFLICT):
            raise Forbidden(
                f"Image {image} cannot be deleted: it is protected, in use or not yours."
            )
        if answer.status_code not in (_NO_CONTENT, _NOT_FOUND):
            raise refused(answer)

    async def make(
        self,
        name: str,
        properties: dict[str, str],
        *,
        token: str | None,
        project: str | None,
        needs: tuple[int, int] = (0, 0),
    ) -> str:
        record: dict[str, Any] = {**new_properties(properties), "name": name}
        record |= {"min_disk": needs[0], "min_ram": needs[1]}
        record["visibility"] = "private"
        if token is None and project is not None:
            record["owner"] = project
        answer = await self._ask("POST", "/images", token=token, json=record)
        if answer.status_code in (_BAD_REQUEST, _FORBIDDEN, _CONFLICT, _TOO_LARGE):
            raise unmade(answer)
        if answer.status_code != _CREATED:
            raise refused(answer)
        return str(answer.json()["id"])

    async def discard(self, image: str) -> None:
        found = await self.show(image, token=None, project=None)
        if found is not None and found.status != "active":
            await self.remove(image)

    async def remove(self, image: str) -> None:
        check_passing(await self._ask("DELETE", f"/images/{image}"))

    async def local(self, image: str) -> Path | Wait | Failed:
        try:
            found = await self.show(image, token=None, project=None)
        except Unavailable as why:
            return Wait(why.sentence, _LATER_S)
        if found is None:
            return Failed(f"Image {image} is not there.")
        if found.status != "active":
            return Failed(f"Image {image} is {found.status}; it has no data to boot from.")
        path = self._cache.path(image, found.checksum)
        if await self._cache.has(path):
            return path
        outcome = await self._carry_on(f"get {image}", lambda: self._fetch(image, path, found))
        return path if isinstance(outcome, Done) else outcome

    async def store(self, image: str, source: Path, disk_format: str) -> Outcome:
        return await self._carry_on(f"put {image}", lambda: self._put(image, source, disk_format))

    async def _carry_on(self, key: str, begin: Any) -> Outcome:
        """How a transfer is going, that may take longer than anybody should wait."""
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.create_task(begin())
            later = asyncio.get_running_loop().call_later
            task.add_done_callback(lambda done: later(_TOLD_S, self._forget, key, done))
        done, _ = await asyncio.wait((task,), timeout=_AGAIN_S)
        if not done:
            return Wait("the image is on its way", _AGAIN_S)
        self._forget(key, task)
        try:
            outcome: Outcome = task.result()
        except Unavailable as why:
            log.warning("an image's transfer failed", transfer=key, error=repr(why))
            return Wait(why.sentence, _LATER_S)
        except httpx.HTTPError as why:
            log.warning("an image's transfer broke off", transfer=key, error=repr(why))
            return Wait(silent(why).sentence, _LATER_S)
        except OSError as why:
            log.error("an image's file here cannot be used", transfer=key, error=repr(why))
            return Wait(_no_file(why), _MENDED_S)
        return outcome

    def _forget(self, key: str, task: asyncio.Task[Any]) -> None:
        if self._under_way.get(key) is task:  # others may have waited for it, too
            del self._under_way[key]

    async def _fetch(self, image: str, path: Path, found: Image) -> Outcome:
        token = await self._keystone.service_token()
        async with self._http.stream(
            "GET", f"{self._url}/images/{image}/file", headers={"X-Auth-Token": token}
        ) as answer:
            if answer.status_code == _UNAUTHORIZED:
                self._keystone.forget_service_token(token)
            check_passing(answer)
            if answer.status_code != _OK:
                return Failed(f"Image {image} cannot be fetched: {answer.status_code}.")
            if not await self._cache.fill(path, answer.aiter_bytes(_PIECE), found.checksum):
                return Failed(f"Image {image} came with another checksum than it should have.")
        return Done()

    async def _put(self, image: str, source: Path, disk_format: str) -> Outcome:
        found = await self.show(image, token=None, project=None)
        if found is None:
            return Failed(f"Image {image} is gone.")
        if found.status == "active":
            return Done()
        if found.status == "saving":  # it has not noticed yet that an upload of ours broke off
            return Wait(f"image {image} still takes an earlier upload", _LATER_S)
        formats = {"/disk_format": disk_format, "/container_format": "bare"}
        patch = [{"op": "replace", "path": path, "value": v} for path, v in formats.items()]
        changed = await self._ask(
            "PATCH", f"/images/{image}", json=patch, headers={"Content-Type": _PATCH}
        )
        check_passing(changed)
        if changed.status_code != _OK:
            return Failed(not_taken(image, changed))
        answer = await self._ask(
            "PUT", f"/images/{image}/file", content=pieces(source),
            headers={"Content-Type": "application/octet-stream"},
        )  # fmt: skip
        check_passing(answer)
        if answer.status_code != _NO_CONTENT:
            return Failed(not_taken(image, answer))
        return Done()

    async def _ask(
        self, method: str, path: str, *, token: str | None = None, **how: Any
    ) -> httpx.Response:
        answer = await self._send(method, path, token, how)
        if answer.status_code == _UNAUTHORIZED and token is None and "content" not in how:
            answer = await self._send(method, path, token, how)  # our own had ended: with another
        return answer

    async def _send(
        self, method: str, path: str, token: str | None, how: dict[str, Any]
    ) -> httpx.Response:
        own = token or await self._keystone.service_token()
        headers = {"X-Auth-Token": own, **how.get("headers", {})}
        try:
            answer = await self._http.request(
                method, self._url + path, **{**how, "headers": headers}
            )
        except httpx.HTTPError as why:
            raise silent(why) from why
        if answer.status_code == _UNAUTHORIZED and token is None:
            self._keystone.forget_service_token(own)
        return answer


def _operation(op: str, name: str, *value: str) -> dict[str, str]:
    """One step of a patch, of a property whose name may have any characters."""
    path = "/" + name.replace("~", "~0").replace("/", "~1")
    return {"op": op, "path": path, **({"value": value[0]} if value else {})}


def _no_file(why: OSError) -> str:
    return (
        f"a file of the image cannot be read or written here: {why.strerror or why}; an"
        " administrator should look at the data directory's disk"
    )
