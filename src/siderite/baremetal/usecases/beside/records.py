"""Records: what is kept beside nodes, found, made, changed and forgotten.

A kind of record is a `Records`: its table, its words, and checks for what is special about it.

A record of a node belongs to it: who sees the node sees its records, and its state may say what can
be done to them. So each change also holds the node to what was read of it, and a new record counts
the node's version up, lest the node is deleted by somebody who does not know of the record.
"""

from collections.abc import Awaitable
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Generic
from typing import TypeVar

import msgspec

from siderite.baremetal.domain import facts
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.record import Record
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.context import Context
from siderite.baremetal.usecases.life.refusals import once_steady
from siderite.baremetal.usecases.node import find
from siderite.core.errors import Busy
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.errors import SideriteError
from siderite.core.fact import Fact
from siderite.core.ids import is_uuid
from siderite.core.ids import new_uuid
from siderite.core.store import Duplicate
from siderite.core.store import Line
from siderite.core.store.table import Page
from siderite.core.store.table import Table
from siderite.core.store.table import Where
from siderite.core.times import iso
from siderite.core.transition import Cause
from siderite.core.transition import Change
from siderite.core.who import Who

R = TypeVar("R", bound=Record)

OF_MY_NODES = "node_uuid IN (SELECT uuid FROM nodes WHERE owner = ? OR lessee = ?)"
"""The records of nodes that a project (for each `?`) may see."""


class By(msgspec.Struct, frozen=True):
    """Who asks and why; the guard refuses, by raising, what they may not do to a node, or to a
    record that belongs to none.
    """

    who: Who
    cause: Cause
    guard: Callable[[Any], None] = lambda _: None


class Found(msgspec.Struct, Generic[R], frozen=True):
    """A record and its node, if it belongs to one."""

    value: R
    node: Node | None = None

    @property
    def home(self) -> Node:
        """The node, of a record that belongs to one."""
        assert self.node is not None  # noqa: S101
        return self.node

    @property
    def project(self) -> str | None:
        """Whose it is."""
        owned: object = self.value if self.node is None else self.node
        return getattr(owned, "owner", None)


Check = Callable[[Context, Change, Found[R], dict[str, Any]], Awaitable[SideriteError | None]]
"""Why a record cannot be made, changed so or forgotten: what it gives back is also announced, what
it raises is not. It may add to the change.
"""


async def _fine(
    ctx: Context, change: Change, found: Found[Any], changes: dict[str, Any]
) -> SideriteError | None:
    return None


class Records(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """One kind of record.

    `mine` is the condition of those that do not see everything, with their project for each `?`;
    `unique` has a sentence for each value that is taken; a change of a field in `touches` also
    counts the node's version up; with `removes_itself` the last check also puts the op for that.
    """

    kind: type[R]
    table: Table[R]
    facts: facts.Kind
    command: str
    noun: str = ""
    of_node: bool = False
    mine: str | None = None
    unique: Mapping[str, str]
    touches: frozenset[str] = frozenset()
    may_create: Check[R] = _fine
    may_update: Check[R] = _fine
    may_remove: Check[R] = _fine
    removes_itself: bool = False

    def __post_init__(self) -> None:
        if not self.noun:
            msgspec.structs.force_setattr(self, "noun", self.facts.word)

    async def body_of(self, ctx: Context, ident: str, who: Who) -> str:
        """A record as it is shown, rendered."""
        return str(await self._read(ctx, "body", ident, who))

    async def find(self, ctx: Context, ident: str, by: By) -> Found[R]:
        """A record and its node as values, if the caller may see them and the guard lets pass."""
        found = self.table.value(await self._read(ctx, "doc", ident, by.who))
        if not self.of_node:
            by.guard(found)
            return Found(found)
        node = await NODES.get(ctx.door.store, getattr(found, "node_uuid"))  # noqa: B009
        if node is None or not find.may_see(by.who, node.owner, node.lessee):
            raise self.missing(ident)
        by.guard(node)
        return Found(found, node)

    async def page(
        self, ctx: Context, what: str, where: Sequence[Where], page: Page, who: Who
    ) -> Sequence[Line]:
        """Columns of a page of the records that the caller may see."""
        if page.marker is not None:
            await self._read(ctx, "uuid", page.marker, who)
        return await self.table.select(ctx.door.store, what, [*where, *self._seen(who)], page)

    async def create(self, ctx: Context, fields: dict[str, Any], by: By) -> R:
        """A new record; that of a node names it by UUID or name in `node_uuid`."""
        uuid = fields.get("uuid") or new_uuid()
        tried: list[Found[R]] = []

        async def decide(change: Change) -> R:
            made = {**fields, "uuid": uuid, "created_at": iso(change.now)}
            node = None
            if self.of_node:
                node = await self._home(ctx, fields["node_uuid"], by)
                made["node_uuid"] = node.uuid
            new = Found(self.kind(**made), node)
            tried[:] = [new]
            await self._refuse(ctx, by, "create", new, await self.may_create(ctx, change, new, {}))
            change.put(self.table.insert(new.value))
            if node is not None:
                change.put(NODES.swap(node, node.touched()))
            self.tell(change, "create", new)
            return new.value

        try:
            return await ctx.door.attempt(by.cause, str(fields.get("node_uuid", uuid)), decide)
        except Duplicate as clash:
            await self.announce_failure(ctx, by.cause, "create", tried[0])
            raise self._taken(clash, tried[0].value) from clash
        except Busy:
            await self.announce_failure(ctx, by.cause, "create", tried[0])
            raise

    async def update(
        self, ctx: Context, ident: str, changes: Callable[[R], dict[str, Any]], by: By
    ) -> R:
        """Change the record, or say why not; it announces both."""
        tried: list[Found[R]] = []

        async def decide(change: Change) -> R:
            found = await self.find(ctx, ident, by)
            tried[:] = [found]
            before, node = found.value, found.node
            new = {k: v for k, v in changes(before).items() if v != getattr(before, k)}
            if not new:
                return before
            home = node
            if node is not None and "node_uuid" in new:
                home = await self._home(ctx, new["node_uuid"], by)
            for place in (node, home) if home is not node else (node,):
                why = await self.may_update(ctx, change, Found(before, place), new)
                await self._refuse(ctx, by, "update", found, why)
            after = before.changed(change.now, new)
            change.put(self.table.swap(before, after))
            self._keep(change, node, home, touch=bool(self.touches & set(new)))
            change.tell(self._fact("update", "start", found))
            change.tell(self._fact("update", "end", Found(after, home)))
            return after

        try:
            return await once_steady(
                lambda: ctx.door.attempt(by.cause, ident, decide), ctx.settings.power_wait_s
            )
        except Duplicate as clash:
            await self.announce_failure(ctx, by.cause, "update", tried[0])
            before = tried[0].value
            raise self._taken(clash, before.changed(0, changes(before))) from clash
        except Busy:
            await self.announce_failure(ctx, by.cause, "update", tried[0])
            raise

    async def remove(self, ctx: Context, ident: str, by: By) -> None:
        """Forget a record that nothing depends on."""
        tried: list[Found[R]] = []

        async def decide(change: Change) -> None:
            found = await self.find(ctx, ident, by)
            tried[:] = [found]
            why = await self.may_remove(ctx, change, found, {})
            await self._refuse(ctx, by, "delete", found, why)
            if not self.removes_itself:
                change.put(self.table.remove(found.value))
            self._keep(change, found.node, found.node, touch=False)
            self.tell(change, "delete", found)

        try:
            await once_steady(
                lambda: ctx.door.attempt(by.cause, ident, decide), ctx.settings.power_wait_s
            )
        except Busy:
            await self.announce_failure(ctx, by.cause, "delete", tried[0])
            raise

    def remove_with(self, change: Change, record: R, node: Node) -> None:
        """A record goes with its node, in the same change."""
        change.put(self.table.remove(record))
        self.tell(change, "delete", Found(record, node))

    def tell(self, change: Change, action: str, found: Found[R]) -> None:
        """Start and end of something that changes nothing of the payload in between."""
        change.tell(*(self._fact(action, status, found) for status in ("start", "end")))

    async def announce_failure(
        self, ctx: Context, cause: Cause, action: str, found: Found[R]
    ) -> None:
        """Nothing changed, and that is announced too."""
        change = ctx.door.change(cause)
        change.tell(*(self._fact(action, status, found) for status in ("start", "error")))
        await ctx.door.commit(change)

    def missing(self, ident: str) -> NotFound:
        """It is not there, for the caller."""
        return NotFound(
            f"{self.noun.capitalize()} {ident[:200]} could not be found; `{self.command} list`"
            " shows those there are."
        )

    async def _read(self, ctx: Context, what: str, ident: str, who: Who) -> Any:
        by_uuid = is_uuid(ident)
        seen = "".join(f" AND {where.sql}" for where in self._seen(who))
        key = "uuid" if by_uuid else "name"
        sql = f"SELECT {what} FROM {self.table.name} WHERE {key} = ?{seen}"  # noqa: S608
        args = [arg for where in self._seen(who) for arg in where.args]
        rows = await ctx.door.store.fetch(sql, (ident.lower() if by_uuid else ident, *args))
        if not rows:
            raise self.missing(ident)
        return rows[0][0]

    def _seen(self, who: Who) -> list[Where]:
        mine = OF_MY_NODES if self.of_node else self.mine
        if who.sees_all or mine is None:
            return []
        return [Where(mine, (who.project_id,) * mine.count("?"))]

    async def _home(self, ctx: Context, ident: str, by: By) -> Node:
        """The node that a request's body names: one that is not there is a wrong body."""
        try:
            return await find.node(ctx, ident, by.who, by.guard)
        except NotFound as missing:
            raise Invalid(missing.sentence) from missing

    async def _refuse(
        self, ctx: Context, by: By, action: str, found: Found[R], why: SideriteError | None
    ) -> None:
        if why is None:
            return
        if not isinstance(why, Busy):  # which is announced where it is caught, whatever is busy
            await self.announce_failure(ctx, by.cause, action, found)
        raise why

    def _keep(self, change: Change, node: Node | None, home: Node | None, *, touch: bool) -> None:
        """What was decided on the nodes holds only while they are as they were read."""
        if node is None or home is None:
            return
        touched = touch or home is not node
        change.put(NODES.swap(home, home.touched()) if touched else NODES.hold(home))
        if home is not node:
            change.put(NODES.hold(node))

    def _fact(self, action: str, status: str, found: Found[R]) -> Fact:
        return facts.record_crud(self.facts, action, status, found.value, found.project)

    def _taken(self, clash: Duplicate, value: R) -> Conflict:
        field = clash.column.rpartition(".")[2]
        if field in self.unique:
            return Conflict(self.unique[field].format(value))
        return Conflict(
            f"A {self.noun} with UUID {value.uuid} already exists; leave it out to get a new one."
        )


async def of_node(
    ctx: Context, node: Node, kinds: Sequence[Records[Any]]
) -> list[tuple[Records[Any], Any]]:
    """The records of a node, of all of these kinds at once."""
    each = (
        f"SELECT {n} AS kind, id, doc FROM {kind.table.name} WHERE node_uuid = ?"  # noqa: S608
        for n, kind in enumerate(kinds)
    )
    sql = f"{' UNION ALL '.join(each)} ORDER BY kind, id"
    rows = await ctx.door.store.fetch(sql, (node.uuid,) * len(kinds))
    found = [(kinds[int(row[0] or 0)], row[2]) for row in rows]
    return [(kind, kind.table.value(doc)) for kind, doc in found]
