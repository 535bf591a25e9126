"""Rows of images and of those they are shared with. Called by the use cases."""

from collections.abc import Sequence

import msgspec

from siderite.core.store import Line
from siderite.core.store import Op
from siderite.core.store import Store
from siderite.core.store import Value
from siderite.core.store.table import Table
from siderite.core.store.table import Where
from siderite.image.domain.image import Image
from siderite.image.domain.image import Member
from siderite.image.domain.image import render
from siderite.image.domain.task import Task
from siderite.image.domain.task import render as render_task

TEXTS = (
    "name", "status", "visibility", "owner", "container_format", "disk_format", "checksum",
    "os_hash_value", "file", "created_at", "updated_at",
)  # fmt: skip
NUMBERS = ("protected", "os_hidden", "min_disk", "min_ram", "size")
IMAGES: Table[Image] = Table("images", Image, (*TEXTS, *NUMBERS), render, numbers=NUMBERS)
TASKS: Table[Task] = Table("image_tasks", Task, ("image_id",), render_task)

FILES = "SELECT file FROM images WHERE file IS NOT NULL AND size IS NOT NULL"
"""The names of all files that images have, and that are not just being written."""

_NUMBER = "SELECT id FROM image_tasks WHERE uuid = ?"
_MEMBER = "image_id, member_id, status, created_at, updated_at"


class Order(msgspec.Struct, frozen=True):
    """One key of a list's order."""

    key: str
    descending: bool = False

    @property
    def sql(self) -> str:
        """The column, unset values first."""
        if self.key == "id":
            return "uuid"
        return f"COALESCE({self.key}, {0 if self.key in NUMBERS else chr(39) * 2})"

    def of(self, image: Image) -> Value:
        """The value that an image is sorted by."""
        if self.key == "id":
            return image.uuid
        value: Value = getattr(image, self.key)
        if value is None:
            return 0 if self.key in NUMBERS else ""
        return int(value) if isinstance(value, bool) else value


async def page(
    store: Store,
    where: Sequence[Where],
    order: Sequence[Order],
    *,
    limit: int,
    after: Image | None = None,
) -> Sequence[Line]:
    """uuid and body of a page of images, by keyset."""
    keys = [*order, Order("id", order[-1].descending)]
    conditions = [*where, _beyond(keys, after)] if after is not None else list(where)
    clause = " AND ".join(f"({one.sql})" for one in conditions)
    by = ", ".join(f"{key.sql} {'DESC' if key.descending else 'ASC'}" for key in keys)
    sql = (
        f"SELECT uuid, body FROM images{' WHERE ' + clause if clause else ''}"  # noqa: S608
        f" ORDER BY {by} LIMIT {limit}"
    )
    return await store.fetch(sql, [arg for one in conditions for arg in one.args])


def _beyond(keys: Sequence[Order], after: Image) -> Where:
    """What comes after an image in this order: equal in the first keys, beyond it in the next."""
    ways: list[str] = []
    args: list[Value] = []
    for at, key in enumerate(keys):
        equal = [f"{before.sql} = ?" for before in keys[:at]]
        ways.append(" AND ".join([*equal, f"{key.sql} {'<' if key.descending else '>'} ?"]))
        args += [before.of(after) for before in keys[: at + 1]]
    return Where(" OR ".join(f"({way})" for way in ways), tuple(args))


def has_property(dialect: str, name: str, value: str) -> Where:
    """Whether an image has a property of this value."""
    if dialect == "sqlite":
        return Where(
            "EXISTS (SELECT 1 FROM json_each(doc, '$.properties') WHERE key = ? AND value = ?)",
            (name, value),
        )
    return Where("json_extract_path_text(doc::json, 'properties', ?) = ?", (name, value))


def has_tag(dialect: str, tag: str) -> Where:
    """Whether an image has a tag."""
    if dialect == "sqlite":
        return Where("EXISTS (SELECT 1 FROM json_each(doc, '$.tags') WHERE value = ?)", (tag,))
    return Where("COALESCE(doc::jsonb -> 'tags', '[]'::jsonb) @> to_jsonb(?::text)", (tag,))


async def with_files(store: Store) -> dict[str, tuple[str, bool]]:
    """For each file that an image speaks of: the image, and whether it should be being written."""
    rows = await store.fetch("SELECT file, uuid, size FROM images WHERE file IS NOT NULL")
    return {str(file): (str(uuid), size is None) for file, uuid, size in rows}


async def bytes_of(store: Store, owner: str) -> int:
    """How much data the images of a project have."""
    rows = await store.fetch("SELECT SUM(size) FROM images WHERE owner = ?", (owner,))
    return int(rows[0][0] or 0)


async def importing(store: Store, owner: str | None) -> int:
    """How many images of a project are being imported."""
    rows = await store.fetch(
        "SELECT count(*) FROM images WHERE owner = ? AND status = 'importing'", (owner,)
    )
    return int(rows[0][0] or 0)


def give_id(uuid: str) -> Op:
    """An image gets its id, which none had before it and none gets after it."""
    return Op("INSERT INTO image_ids (uuid) VALUES (?)", (uuid,), 1)


def remove_tasks(image_id: str) -> Op:
    """Forget how the imports of an image went."""
    return Op("DELETE FROM image_tasks WHERE image_id = ?", (image_id,))


_ADDITION = """
INSERT INTO image_additions (owner, number) VALUES (?, 1)
ON CONFLICT (owner) DO UPDATE SET number = image_additions.number + 1
WHERE image_additions.number = ?
"""


async def additions(store: Store, owner: str) -> int:
    """How often data was added to the images of a project."""
    rows = await store.fetch("SELECT number FROM image_additions WHERE owner = ?", (owner,))
    return int(rows[0][0] or 0) if rows else 0


def addition(owner: str, before: int) -> Op:
    """Data is added, and was so often before; else what was counted is no longer so."""
    return Op(_ADDITION, (owner, before), 1)


async def members(store: Store, image_id: str) -> list[Member]:
    """Whom an image is shared with."""
    rows = await store.fetch(
        f"SELECT {_MEMBER} FROM image_members WHERE image_id = ? ORDER BY created_at, member_id",  # noqa: S608
        (image_id,),
    )
    return [_member(row) for row in rows]


async def member(store: Store, image_id: str, member_id: str) -> Member | None:
    """One of them."""
    rows = await store.fetch(
        f"SELECT {_MEMBER} FROM image_members WHERE image_id = ? AND member_id = ?",  # noqa: S608
        (image_id, member_id),
    )
    return _member(rows[0]) if rows else None


def _member(row: Line) -> Member:
    image_id, member_id, status, created_at, updated_at = (str(value) for value in row)
    return Member(
        image_id=image_id, member_id=member_id, status=status, created_at=created_at,
        updated_at=updated_at,
    )  # fmt: skip


def add_member(new: Member) -> Op:
    """Share an image."""
    return Op(
        f"INSERT INTO image_members ({_MEMBER}) VALUES (?, ?, ?, ?, ?)",  # noqa: S608
        (new.image_id, new.member_id, new.status, new.created_at, new.updated_at),
        1,
    )


def set_member(changed: Member) -> Op:
    """A member's new status."""
    return Op(
        "UPDATE image_members SET status = ?, updated_at = ? WHERE image_id = ? AND member_id = ?",
        (changed.status, changed.updated_at, changed.image_id, changed.member_id),
        1,
    )


def remove_member(gone: Member) -> Op:
    """Share it no more."""
    return Op(
        "DELETE FROM image_members WHERE image_id = ? AND member_id = ?",
        (gone.image_id, gone.member_id),
        1,
    )


def remove_members(image_id: str) -> Op:
    """An image goes, and those it was shared with."""
    return Op("DELETE FROM image_members WHERE image_id = ?", (image_id,))


async def task_page(
    store: Store, where: Sequence[Where], *, limit: int, after: str | None, oldest_first: bool
) -> list[Task]:
    """A page of tasks in the order in which they began; the one that it follows is of a UUID."""
    conditions = list(where)
    if after is not None:
        sign = ">" if oldest_first else "<"
        conditions.append(Where(f"id {sign} ({_NUMBER})", (after,)))
    clause = " AND ".join(f"({one.sql})" for one in conditions)
    sql = (
        f"SELECT doc FROM image_tasks{' WHERE ' + clause if clause else ''}"  # noqa: S608
        f" ORDER BY id {'ASC' if oldest_first else 'DESC'} LIMIT {limit}"
    )
    found = await store.fetch(sql, [arg for one in conditions for arg in one.args])
    return [TASKS.value(row[0]) for row in found]


def of_project(project: str) -> Where:
    """The tasks of a project's images."""
    return Where("image_id IN (SELECT uuid FROM images WHERE owner = ?)", (project,))


def in_status(status: str) -> Where:
    """Tasks of one status, which is a word without quotes: no other text in the body has such."""
    return Where("body LIKE ?", (f'%"status":"{status}"%',))


def of_image(image_id: str) -> Where:
    """The tasks of an image."""
    return Where("image_id = ?", (image_id,))
