"""What the event log tells of a resource."""

import json
from dataclasses import dataclass
from typing import Any

from tests.support.app import Standing


@dataclass(frozen=True, slots=True)
class Told:
    """One fact."""

    event_type: str
    priority: str
    publisher: str
    project: str | None
    kind: str
    data: dict[str, Any]


def told(app: Standing, uuid: str) -> list[Told]:
    """The facts of a resource, in order."""
    store = app.app.program.store
    order = "seq" if store.dialect == "sqlite" else "id"
    columns = "event_type, priority, publisher_id, project, payload"
    sql = f"SELECT {columns} FROM events WHERE resource = ? ORDER BY {order}"
    out = []
    for event_type, priority, publisher, project, payload in app.run(store.fetch(sql, (uuid,))):
        sent = json.loads(payload)
        kind = f"{sent['ironic_object.name']} {sent['ironic_object.version']}"
        data = sent["ironic_object.data"]
        out.append(Told(event_type, priority, publisher, project, kind, data))
    return out


def types(app: Standing, uuid: str) -> list[str]:
    """The event types of a resource, in order, without the common beginning."""
    return [fact.event_type.removeprefix("baremetal.") for fact in told(app, uuid)]
