"""An import as a task: what Glance shows of one that goes on after the answer."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from siderite.core.times import iso
from siderite.core.times import to_second


class Progress(StrEnum):
    """How a task is going."""

    PENDING = "pending"
    PROCESSING = "processing"
    SUCCESS = "success"
    FAILURE = "failure"


class Hopeless(Exception):
    """What is to be imported cannot be had, however often one asks; the text says why."""


class Broken(Exception):
    """It could not be had this time; the text says why."""


class Task(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is recorded of it. `uri` is without its query, which may be a password."""

    uuid: str
    version: int = 1
    image_id: str
    created_at: str
    updated_at: str
    uri: str
    status: str = Progress.PENDING
    message: str = ""
    owner: str | None = None
    user_id: str | None = None
    request_id: str | None = None

    def changed(self, now: float, changes: Mapping[str, Any]) -> "Task":
        """The task with these fields changed, one version on."""
        return msgspec.structs.replace(
            self, version=self.version + 1, updated_at=iso(now), **changes
        )

    def brief(self) -> dict[str, Any]:
        """What clients read of it in a list of all."""
        apart = ("input", "result", "message")
        return {name: value for name, value in self.view().items() if name not in apart}

    def view(self) -> dict[str, Any]:
        """What clients read."""
        method = {"name": "web-download", "uri": self.uri}
        return {
            "id": self.uuid,
            "type": "api_image_import",
            "status": self.status,
            "message": self.message,
            "input": {"image_id": self.image_id, "import_req": {"method": method}},
            "result": {"image_id": self.image_id} if self.status == Progress.SUCCESS else None,
            "image_id": self.image_id,
            "owner": self.owner,
            "user_id": self.user_id,
            "request_id": self.request_id,
            "created_at": to_second(self.created_at),
            "updated_at": to_second(self.updated_at),
            "expires_at": None,
            "self": f"/v2/tasks/{self.uuid}",
            "schema": "/v2/schemas/task",
        }


def render(task: Task) -> str:
    """The same as text, for the row."""
    return msgspec.json.encode(task.view()).decode()


def without_query(uri: str) -> str:
    """What may be shown of an address: signed ones have their secret in the query."""
    bare, mark, _ = uri.partition("?")
    return f"{bare}?***" if mark else bare
