"""A BMC's update service and its tasks, by sushy. All of it blocks: it is called on a line."""

import json
from collections.abc import Callable
from typing import Any


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
    how = kinds.HTTPS if url.startswith("https:") else kinds.HTTP
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
        return str(system.managers[0].path)
    for adapter in adapters(system):
        if component == f"nic:{adapter.identity}":
            return str(adapter.path)
    return str(system.path)


def adapters(system: Any) -> list[Any]:
    """The network adapters in the system's chassis, as far as the BMC tells of them."""
    from sushy import exceptions  # noqa: PLC0415

    absent = (exceptions.MissingAttributeError, exceptions.HTTPError)
    found: list[Any] = []
    try:
        for chassis in linked(system, "chassis"):
            try:
                found += chassis.network_adapters.get_members()
            except absent:
                continue  # this one has none, or none that it can tell of
    except absent:
        return found
    return found


def linked(system: Any, kind: str) -> list[Any]:
    """The `managers` or `chassis` of a system; none if its BMC says null where their links would
    be, which sushy falls over.
    """
    if "Links" in system.json and system.json["Links"] is None:
        return []
    return list(getattr(system, kind))


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
