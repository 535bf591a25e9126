"""A BMC's update service and its tasks, by sushy. All of it blocks: it is called on a line."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from siderite.baremetal.drivers.redfish.answers import or_else

_MANAGERS = ("ManagedBy", "Managers")


def tasks(system: Any) -> list[str] | None:
    """The addresses of the BMC's tasks; None if it has no list of them."""
    from sushy import exceptions  # noqa: PLC0415

    try:
        return list(system.root.get_task_service().tasks.members_identities)
    except (exceptions.MissingAttributeError, exceptions.ResourceNotFoundError):
        return None


def tell(system: Any, component: str, url: str, *, begins: Callable[[], None]) -> None:
    """Have the BMC fetch an image and flash it. It knows by the image which part that is for; some
    want to be told all the same. What fails before `begins` was called has not reached it.
    """
    from sushy import exceptions  # noqa: PLC0415
    from sushy.resources.updateservice import constants  # noqa: PLC0415

    service = system.root.get_update_service()
    kinds = constants.UpdateTransferProtocolType
    how = kinds.HTTPS if url.lower().startswith("https:") else kinds.HTTP
    begins()
    try:
        try:
            service.simple_update(url, transfer_protocol=how)
        except exceptions.BadRequestError as why:
            if "target" not in f"{why} {why.detail}".lower():
                raise
            # Refused, so nothing was begun.
            service.simple_update(url, [_target(system, component)], transfer_protocol=how)
    except exceptions.MissingHeaderError:
        pass  # it was told, and says nothing of a task


def _target(system: Any, component: str) -> str:
    if component == "bios":
        return str(system.path)
    if component == "bmc":
        return str(next((one.path for one in linked(system, "managers")), system.path))
    for adapter in adapters(system):
        if component == f"nic:{adapter.identity}":
            return str(adapter.path)
    return str(system.path)


def adapters(system: Any) -> list[Any]:
    """The network adapters in the system's chassis, as far as the BMC tells of them."""
    found: list[Any] = []
    for chassis in linked(system, "chassis"):
        found += or_else(partial(_adapters, chassis), [])
    return found


def _adapters(chassis: Any) -> list[Any]:
    return list(chassis.network_adapters.get_members())


def linked(system: Any, kind: str) -> list[Any]:
    """The `managers` or `chassis` of a system, as far as there are any. Links that are absent, null
    or of another form, and those that lead nowhere, are passed over: sushy falls over them.
    """
    from sushy.resources.chassis.chassis import Chassis  # noqa: PLC0415
    from sushy.resources.manager.manager import Manager  # noqa: PLC0415

    resource, names = (Chassis, ("Chassis",)) if kind == "chassis" else (Manager, _MANAGERS)
    links = system.json.get("Links")
    lists = (links.get(name) for name in names if isinstance(links, dict))
    found = []
    for link in next((each for each in lists if each and isinstance(each, list)), []):
        path = link.get("@odata.id") if isinstance(link, dict) else None
        if not isinstance(path, str) or not path.startswith("/"):
            continue
        one = or_else(partial(_at, system, resource, path), None)
        found += [] if one is None else [one]
    return found


def _at(system: Any, resource: Any, path: str) -> Any:
    known = {"redfish_version": system.redfish_version, "registries": system.registries}
    return resource(system._conn, path, root=system.root, **known)


def is_update(answer: Any, url: str) -> bool:
    """Whether a task is one that flashes this image, as far as it tells."""
    try:
        page = answer.json()
    except ValueError:
        return False
    if not isinstance(page, dict):
        return False
    payload = page.get("Payload")
    if isinstance(payload, dict) and (payload.get("JsonBody") or payload.get("TargetUri")):
        body = payload.get("JsonBody")
        said = body if isinstance(body, str) else json.dumps(body)
        is_order = "SimpleUpdate" in str(payload.get("TargetUri") or "SimpleUpdate")
        return is_order and (not body or url in said.replace("\\/", "/"))
    words = f"{page.get('Name')} {page.get('Description')}".lower()
    return "update" in words or "firmware" in words
