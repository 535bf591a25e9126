"""The query of a list of servers: filters, order, page."""

from collections.abc import Callable
from collections.abc import Sequence

import msgspec

from siderite.compute.domain.server_machine import V
from siderite.compute.domain.status import STATUSES
from siderite.compute.domain.status import states_of
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.server import listing
from siderite.compute.usecases.server.listing import Sort
from siderite.compute.web import patterns
from siderite.compute.web import policy
from siderite.compute.web import queries
from siderite.compute.web.versions import PENDING
from siderite.core.check import is_whole
from siderite.core.check import truth
from siderite.core.errors import Forbidden
from siderite.core.errors import Invalid
from siderite.core.http import Request
from siderite.core.store import Line
from siderite.core.store.table import Where

STRICT = 75
_STATUS_STRICT = 38
_OPEN_FILTERS = 83

SORT = {
    "access_ip_v4": "access_ip_v4", "access_ip_v6": "access_ip_v6", "auto_disk_config": "id",
    "availability_zone": "availability_zone", "config_drive": "config_drive",
    "created_at": "created_at", "display_description": "description", "display_name": "name",
    "host": "host", "hostname": "hostname", "image_ref": "image_id",
    "instance_type_id": "flavor_id", "kernel_id": "id", "key_name": "key_name",
    "launch_index": "launch_index", "launched_at": "launched_at", "locked_by": "locked_by",
    "node": "node", "power_state": "power_state", "progress": "progress",
    "project_id": "project_id", "ramdisk_id": "id", "root_device_name": "root_device_name",
    "task_state": "task_state", "terminated_at": "terminated_at", "updated_at": "changed_at",
    "user_id": "user_id", "uuid": "uuid", "vm_state": "vm_state", "name": "name",
}  # fmt: skip
_ADMIN_SORT = frozenset({"host", "node"})

_EQUAL = {
    "reservation_id": "reservation_id", "availability_zone": "availability_zone",
    "key_name": "key_name", "created_at": "created_at", "launched_at": "launched_at",
    "terminated_at": "terminated_at", "user_id": "user_id", "host": "host", "node": "node",
    "hostname": "hostname", "uuid": "uuid", "root_device_name": "root_device_name",
    "access_ip_v4": "access_ip_v4", "access_ip_v6": "access_ip_v6", "locked_by": "locked_by",
}  # fmt: skip
_NUMBERS = {"power_state": "power_state", "progress": "progress", "launch_index": "launch_index"}
EVERYBODY = {
    "reservation_id": 1, "name": 1, "status": 1, "image": 1, "flavor": 1, "ip": 1,
    "changes-since": 1, "ip6": 5, "tags": 26, "tags-any": 26, "not-tags": 26, "not-tags-any": 26,
    "changes-before": 66, "locked": 73, "hostname": 90,
    **dict.fromkeys(
        ("availability_zone", "config_drive", "key_name", "created_at", "launched_at",
         "terminated_at", "power_state", "task_state", "vm_state", "progress", "user_id"),
        _OPEN_FILTERS,
    ),
}  # fmt: skip
_MOST_TAGS = 100
_NEW = frozenset({"tags", "tags-any", "not-tags", "not-tags-any", "changes-before", "locked"})
"""Filters that nobody had before their version; of the others administrators always did."""
_OTHERS = frozenset({
    "limit", "marker", "sort_key", "sort_dir", "all_tenants", "tenant_id", "project_id", "host",
    "node", "uuid", "deleted", "soft_deleted", "launch_index", "root_device_name", "ip", "ip6",
    "access_ip_v4", "access_ip_v6", "auto_disk_config", "availability_zone", "config_drive",
    "created_at", "display_description", "display_name", "hostname", "image_ref",
    "instance_type_id", "kernel_id", "key_name", "launched_at", "locked_by", "power_state",
    "progress", "ramdisk_id", "task_state", "terminated_at", "updated_at", "user_id", "vm_state",
    "description",
})  # fmt: skip
_INNER = frozenset({
    "block_device_mapping", "extra", "info_cache", "metadata", "pci_devices", "security_groups",
    "services", "system_metadata",
})  # fmt: skip
"""Tables of other databases that nobody may look into."""


class Ask(msgspec.Struct):
    """What a query asks for."""

    limit: int
    marker: str | None = None
    where: list[Where] = msgspec.field(default_factory=list)
    sort: list[Sort] = msgspec.field(default_factory=list)
    is_empty: bool = False


def flag(name: str, text: str) -> bool:
    """Yes or no in a query."""
    found = truth(text)
    if found is None:
        raise Invalid(
            f"Invalid input for query parameters {name}. Value: {text[:40]}. Use true or false."
        )
    return found


def parse(ctx: Context, request: Request) -> Ask:
    """The query of a list of servers."""
    ask = Ask(queries.limit_of(request, ctx.settings.max_limit))
    pairs = request.query
    _refuse_unknown(request)
    everything = False
    for key, value in pairs:
        if key == "marker":
            ask.marker = value
        elif key == "all_tenants":
            everything = value == "" or flag(key, value)
    _project(ask, request, everything=everything)
    _deleted(ask, request)
    _filters(ask, request, ctx.door.store.dialect)
    _sort(ask, request)
    return ask


def _refuse_unknown(request: Request) -> None:
    for key, _ in request.query:
        is_known = key in EVERYBODY or key in _OTHERS
        is_inner = key.startswith("_") or key in _INNER
        if is_inner or (not is_known and request.version >= STRICT):
            raise queries.unexpected(key)


def _project(ask: Ask, request: Request, *, everything: bool) -> None:
    who = request.who
    if not everything:
        ask.where.append(Where("project_id = ?", (who.project_id,), "all"))
        return
    if not policy.allows("servers:all_projects", who):
        raise policy.refusal("servers:all_projects")
    for key, value in request.query:
        if key in ("tenant_id", "project_id"):
            ask.where.append(Where("project_id = ?", (value,), "all"))


def _deleted(ask: Ask, request: Request) -> None:
    """Deleted servers are shown to administrators who ask, and to those who follow changes."""
    is_admin = request.who.is_admin
    shown = False
    for key, value in request.query:
        if key == "deleted" and is_admin:
            ask.where.append(Where(f"deleted = {int(flag(key, value))}", (), "all"))
            return
        if key in ("changes-since", "changes-before") and request.version >= EVERYBODY[key]:
            shown = True
        if key == "status" and value.upper() == "DELETED":
            if not is_admin:
                raise Forbidden("Only administrators can list deleted servers by status.")
            shown = True
        if key == "vm_state" and value == V.DELETED and is_admin:
            shown = True
    # Indexes begin with it: so it is said in any case.
    ask.where.append(Where("deleted IN (0, 1)" if shown else "deleted = 0", (), "all"))


def _is_passed_over(key: str, version: int, *, is_admin: bool) -> bool:
    since = EVERYBODY.get(key)
    if since is None:
        return not is_admin
    return version < since and (not is_admin or key in _NEW)


def _filters(ask: Ask, request: Request, dialect: str) -> None:
    version, is_admin = request.version, request.who.is_admin
    statuses, states, since, before = [], [], None, None
    for key, value in request.query:
        if _is_passed_over(key, version, is_admin=is_admin):
            continue  # silently, as it always was
        if key == "status":
            statuses.append(value)
        elif key == "vm_state":
            states.append(value)
        elif key == "changes-since":
            since = queries.moment(key, value)
        elif key == "changes-before":
            before = queries.moment(key, value)
        else:
            _filter(ask, key, value, dialect)
    if statuses:
        _status(ask, statuses, version)
    if states:
        _vm_state(ask, states, version)
    if since is not None:
        ask.where.append(Where("changed_at >= ?", (since,)))
    queries.check_span(since, before)
    if before is not None:
        ask.where.append(Where("changed_at <= ?", (before,)))


def _filter(ask: Ask, key: str, value: str, dialect: str) -> None:
    special: dict[str, Callable[[str], Where]] = {
        "name": lambda text: patterns.contains("name", text, dialect),
        "display_name": lambda text: patterns.contains("name", text, dialect),
        "ip": lambda text: patterns.word_contains("addresses_text", text, dialect),
        "ip6": lambda text: patterns.word_contains("addresses_text", text, dialect),
        "description": lambda text: patterns.contains("description", text, dialect),
        "display_description": lambda text: patterns.contains("description", text, dialect),
        "image_ref": lambda text: Where("image_id = ?", (text,)),
        "image": lambda text: Where("image_id = ?", (text.rstrip("/").rpartition("/")[2],)),
        "flavor": lambda text: Where("flavor_id = ?", (text.rstrip("/").rpartition("/")[2],)),
        "config_drive": lambda text: Where("config_drive = ?", (int(flag("config_drive", text)),)),
        "locked": _locked,
        "task_state": _task,
    }
    if key in _EQUAL:
        ask.where.append(Where(f"{_EQUAL[key]} = ?", (value,)))
    elif key in _NUMBERS:
        if not is_whole(value, 9):
            raise Invalid(
                f"Invalid input for query parameters {key}. Value: {value[:40]}. It is a number."
            )
        ask.where.append(Where(f"{_NUMBERS[key]} = ?", (int(value),)))
    elif key in special:
        ask.where.append(special[key](value))
    elif key in ("tags", "tags-any", "not-tags", "not-tags-any"):
        ask.where.append(_tags(key, value.split(",")))


def _locked(text: str) -> Where:
    return Where(f"locked_by IS {'NOT ' if flag('locked', text) else ''}NULL")


def _task(text: str) -> Where:
    if text.lower() in ("none", "null", ""):
        return Where("task_state IS NULL")
    return Where("task_state = ?", (text,))


def _tags(key: str, names: Sequence[str]) -> Where:
    one = "replace(tag_text, ?, '') <> tag_text"  # LIKE takes A for a, but not everywhere
    joint = " AND " if key in ("tags", "not-tags") else " OR "
    marks = [f",{name}," for name in dict.fromkeys(names)]
    if len(marks) > _MOST_TAGS:
        raise Invalid(
            f"Invalid input for query parameters {key}. It names {len(marks)} tags; ask for"
            f" {_MOST_TAGS} at the most."
        )
    clause = joint.join([one] * len(marks))
    no = "NOT " if key.startswith("not") else ""
    return Where(f"{no}({clause})", tuple(marks))


def _status(ask: Ask, words: Sequence[str], version: int) -> None:
    parts, args = [], list[str]()
    for word in words:
        known = states_of(word.upper())
        if known is None or (word.upper() == "PENDING" and version < PENDING):
            if version >= _STATUS_STRICT:
                shown = ", ".join(one for one in STATUSES if one != "PENDING" or version >= PENDING)
                raise Invalid(f"Invalid status value: {word[:40]}. It is one of {shown}.")
            continue
        vms, tasks = known
        if version < PENDING and V.ERROR in vms and not tasks:
            vms = [*vms, V.PENDING]
        sql = f"vm_state IN ({', '.join('?' * len(vms))})"
        args += vms
        if tasks:
            sql += f" AND task_state IN ({', '.join('?' * len(tasks))})"
            args += tasks
        parts.append(f"({sql})")
    if not parts:
        ask.is_empty = True
        return
    ask.where.append(Where("(" + " OR ".join(parts) + ")", tuple(args), "many"))


def _vm_state(ask: Ask, words: Sequence[str], version: int) -> None:
    """An old version knows no pending: it is among the errors."""
    wanted = [word.lower() for word in words]
    if version < PENDING:
        wanted = [word for word in wanted if word != V.PENDING]
        if V.ERROR in wanted:
            wanted.append(V.PENDING)
    if not wanted:
        ask.is_empty = True
        return
    ask.where.append(Where(f"vm_state IN ({', '.join('?' * len(wanted))})", tuple(wanted), "many"))


def _sort(ask: Ask, request: Request) -> None:
    keys = [value for key, value in request.query if key == "sort_key"]
    ways = [value for key, value in request.query if key == "sort_dir"]
    for way in ways:
        if way not in ("asc", "desc"):
            raise Invalid(
                f"Invalid input for query parameters sort_dir. Value: {way[:40]}. Use asc or desc."
            )
    for at, key in enumerate(keys):
        way = ways[at] if at < len(ways) else (ways[0] if ways else "desc")
        if key == "locked" and request.version >= EVERYBODY["locked"]:
            ask.sort.append(Sort("locked_by", way == "desc"))
            continue
        if key not in SORT:
            raise Invalid(
                f"Invalid input for query parameters sort_key. Value: {key[:40]}. It is one of"
                f" {', '.join(sorted(SORT))}."
            )
        if key in _ADMIN_SORT and not request.who.is_admin:
            raise Forbidden(f"Only administrators can sort servers by {key}.")
        ask.sort.append(Sort(SORT[key], way == "desc", request.version < PENDING))
    if len(ways) > max(len(keys), 1):
        raise Invalid("Sort direction array size exceeds sort key array size.")
    if not keys and ways:
        ask.sort.append(Sort("created_at", ways[0] == "desc"))


async def rows(ctx: Context, ask: Ask, what: str) -> Sequence[Line]:
    """The page that a query asks for."""
    if ask.is_empty or ask.limit == 0:
        return ()
    return await listing.page(ctx, what, ask.where, ask.sort, marker=ask.marker, limit=ask.limit)
