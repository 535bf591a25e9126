"""A fact: something that became true, as it is announced. Written by `core.eventlog`."""

import msgspec


class Fact(msgspec.Struct, frozen=True, gc=False):
    """Event type and payload are the wire's own.

    `publisher` is completed with the name of the host that commits: `ironic-api` becomes
    `ironic-api.host`, and `nova-compute:` becomes `nova-compute:host`; `nova-compute:other` says
    for itself which host it is about.
    """

    event_type: str
    publisher: str
    resource_type: str
    resource: str
    payload: str
    priority: str = "INFO"
    project: str | None = None
