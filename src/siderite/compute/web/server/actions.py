"""POST /v2.1/servers/{id}/action: one key names what is asked for."""

from collections.abc import Awaitable
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING
from typing import Any

import msgspec

from siderite.compute.domain.network import DEFAULT_GROUP
from siderite.compute.domain.network import is_group
from siderite.compute.usecases.placement import pending
from siderite.compute.usecases.server import acting
from siderite.compute.usecases.server import delete
from siderite.compute.usecases.server import interrupting
from siderite.compute.usecases.server import resetting
from siderite.compute.usecases.server import update
from siderite.compute.usecases.server.acting import Ask
from siderite.compute.web import forms
from siderite.compute.web import policy
from siderite.compute.web import versions
from siderite.compute.web.forms import LATEST
from siderite.compute.web.forms import Keys
from siderite.compute.web.server import action_keys
from siderite.compute.web.server import consoles
from siderite.compute.web.server import larger_actions as larger
from siderite.compute.web.server import shutdown_type
from siderite.core import shape
from siderite.core.errors import Conflict
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.errors import SideriteError
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import Route
from siderite.core.http import reply

if TYPE_CHECKING:
    from siderite.compute.web.service import ComputeService as Service

Does = Callable[["Service", Request, Any], Awaitable[Response]]


class Gone(SideriteError):
    """That was removed from the API long ago."""

    code = "resource.gone"
    status = 410


class Action(msgspec.Struct, frozen=True):
    """A key of the body: what it does, who may, from which version to which."""

    does: Does
    policy: str = "servers:action"
    since: int = 1
    until: int = LATEST
    keys: Keys | None = None
    """Those of its value, if that matters."""


def _simply(kind: str, status: int = 202) -> Does:
    """An action whose value does not matter."""

    async def does(service: "Service", request: Request, value: Any) -> Response:
        await acting.ask(
            service.ctx, request.params[0], Ask(kind), who=request.who,
            cause=service.cause(request),
        )  # fmt: skip
        return Response(status=status)

    return does


def _softly(name: str, kind: str) -> Does:
    """The same, but from some version on it may say that the guest is not to be asked."""

    async def does(service: "Service", request: Request, value: Any) -> Response:
        is_hard = shutdown_type.of_any(name, value, request.version)
        await acting.ask(
            service.ctx, request.params[0], Ask(kind, is_hard=is_hard), who=request.who,
            cause=service.cause(request),
        )  # fmt: skip
        return Response(status=202)

    return does


async def _reboot(service: "Service", request: Request, value: Any) -> Response:
    asked = forms.take(value, "reboot", action_keys.REBOOT, request.version)
    kind = "reboot_hard" if asked["type"].upper() == "HARD" else "reboot"
    return await _simply(kind)(service, request, value)


async def _restore(service: "Service", request: Request, value: Any) -> Response:
    await delete.restore(
        service.ctx, request.params[0], who=request.who, cause=service.cause(request)
    )
    return Response(status=202)


async def _lock(service: "Service", request: Request, value: Any) -> Response:
    reason = None
    if request.version >= 73 and value is not None:  # noqa: PLR2004
        reason = forms.take(value, "lock", action_keys.LOCK, request.version).get("locked_reason")
    await update.lock(
        service.ctx, request.params[0], on=True, reason=reason, who=request.who,
        cause=service.cause(request),
    )  # fmt: skip
    return Response(status=202)


async def _unlock(service: "Service", request: Request, value: Any) -> Response:
    await update.lock(
        service.ctx, request.params[0], on=False, reason=None, who=request.who,
        cause=service.cause(request),
    )  # fmt: skip
    return Response(status=202)


async def _reset_state(service: "Service", request: Request, value: Any) -> Response:
    asked = forms.take(value, "os-resetState", action_keys.RESET_STATE, request.version)
    unfilled = await resetting.reset(
        service.ctx, request.params[0], asked["state"], who=request.who,
        cause=service.cause(request),
    )  # fmt: skip
    with suppress(SideriteError):  # or else a little later
        if interrupting.DISCARD in unfilled:
            await service.images.discard(unfilled[interrupting.DISCARD])
        if interrupting.REMOVE in unfilled:
            await service.images.remove(unfilled[interrupting.REMOVE])
    return Response(status=202)


async def _claim_pending(service: "Service", request: Request, value: Any) -> Response:
    asked = forms.take(value, "siderite-claimPending", action_keys.CLAIM_PENDING, request.version)
    if "node" in asked and not asked.get("making_room"):
        raise Invalid("A node is named where room is made: say making_room, too.")
    server = await pending.claim(
        service.ctx, request.params[0], keeper=asked["keeper"], seconds=asked["seconds"],
        making_room=asked.get("making_room"), node=asked.get("node"), who=request.who,
        cause=service.cause(request),
    )  # fmt: skip
    return reply({"keeper": server.keeper, "kept_until": server.kept_until})


async def _force_delete(service: "Service", request: Request, value: Any) -> Response:
    await delete.ask(
        service.ctx, request.params[0], who=request.who, cause=service.cause(request), force=True
    )
    return Response(status=202)


async def _change_password(service: "Service", request: Request, value: Any) -> Response:
    asked = forms.take(value, "changePassword", action_keys.CHANGE_PASSWORD, request.version)
    await acting.ask(
        service.ctx, request.params[0], Ask("change_password", {"password": asked["adminPass"]}),
        who=request.who, cause=service.cause(request),
    )  # fmt: skip
    return Response(status=202)


async def _nothing_to_do(service: "Service", request: Request, value: Any) -> Response:
    """What Nova's networks needed once: accepted, and nothing follows."""
    await update.noted(
        service.ctx, request.params[0], "injectNetworkInfo", who=request.who,
        cause=service.cause(request),
    )  # fmt: skip
    return Response(status=202)


def _security_group(*, add: bool) -> Does:
    """Each server with an address is in its project's one group, which filters nothing."""

    async def does(service: "Service", request: Request, value: Any) -> Response:
        asked = forms.take(value, "securityGroup", action_keys.SECURITY_GROUP, request.version)
        server = await service.server(request)
        acting.check_lock(server, request.who)
        if not is_group(server.project_id, asked["name"]):
            raise NotFound(
                f"Security group {asked['name'][:80]} could not be found: each project has one"
                f" here, {DEFAULT_GROUP}."
            )
        if not server.ports:
            raise Invalid(f"Instance {server.uuid} has no port that a security group could be on.")
        if not add:
            raise Conflict(
                f"Instance {server.uuid} stays in {DEFAULT_GROUP}: it is the only group there is,"
                " and filters nothing; name it among the groups that the server is to have."
            )
        return Response(status=202)

    return does


async def _gone(service: "Service", request: Request, value: Any) -> Response:
    raise Gone()


async def _no_network_service(service: "Service", request: Request, value: Any) -> Response:
    raise Conflict("There is no network service here that could do that.")


ACTIONS: dict[str, Action] = {
    "os-start": Action(_simply("start")),
    "os-stop": Action(_softly("os-stop", "stop"), keys=shutdown_type.ALONE),
    "reboot": Action(_reboot, keys=action_keys.REBOOT),
    "pause": Action(_simply("pause")),
    "unpause": Action(_simply("unpause")),
    "suspend": Action(_simply("suspend")),
    "resume": Action(_simply("resume")),
    "rescue": Action(larger.rescue, keys=action_keys.RESCUE),
    "unrescue": Action(_simply("unrescue")),
    "rebuild": Action(larger.rebuild, keys=action_keys.rebuild(LATEST)),
    "resize": Action(larger.resize, keys=action_keys.RESIZE),
    "confirmResize": Action(_simply("confirm_resize", 204)),
    "revertResize": Action(_simply("revert_resize")),
    "migrate": Action(larger.migrate, "servers:admin_action", keys=action_keys.MIGRATE),
    "os-migrateLive": Action(
        larger.migrate_live, "servers:admin_action", keys=action_keys.migrate_live(LATEST)
    ),
    "evacuate": Action(larger.evacuate, "servers:admin_action", keys=action_keys.EVACUATE),
    "createImage": Action(larger.create_image, keys=action_keys.CREATE_IMAGE),
    "createBackup": Action(larger.create_backup, keys=action_keys.CREATE_BACKUP),
    "shelve": Action(larger.shelve, keys=shutdown_type.ALONE),
    "shelveOffload": Action(
        _softly("shelveOffload", "shelve_offload"),
        "servers:admin_action",
        keys=shutdown_type.ALONE,
    ),
    "unshelve": Action(larger.unshelve, keys=action_keys.unshelve(LATEST)),
    "lock": Action(_lock, keys=action_keys.LOCK),
    "unlock": Action(_unlock),
    "changePassword": Action(_change_password, keys=action_keys.CHANGE_PASSWORD),
    "restore": Action(_restore),
    "forceDelete": Action(_force_delete),
    "os-resetState": Action(_reset_state, "servers:admin_action", keys=action_keys.RESET_STATE),
    "siderite-claimPending": Action(
        _claim_pending, "servers:admin_action", since=900, keys=action_keys.CLAIM_PENDING
    ),
    "trigger_crash_dump": Action(larger.crash_dump, since=17),
    "os-getConsoleOutput": Action(
        consoles.output, "servers:action", keys=action_keys.CONSOLE_OUTPUT
    ),
    "os-getVNCConsole": Action(consoles.old("vnc"), until=5, keys=action_keys.CONSOLE),
    "os-getSPICEConsole": Action(consoles.old("spice"), until=5, keys=action_keys.CONSOLE),
    "os-getSerialConsole": Action(consoles.old("serial"), until=5, keys=action_keys.CONSOLE),
    "addSecurityGroup": Action(_security_group(add=True), keys=action_keys.SECURITY_GROUP),
    "removeSecurityGroup": Action(_security_group(add=False), keys=action_keys.SECURITY_GROUP),
    "injectNetworkInfo": Action(_nothing_to_do, "servers:admin_action"),
    "addFixedIp": Action(_no_network_service, until=43),
    "removeFixedIp": Action(_no_network_service, until=43),
    "addFloatingIp": Action(_no_network_service, until=43),
    "removeFloatingIp": Action(_no_network_service, until=43),
    "resetNetwork": Action(_gone),
    "os-getRDPConsole": Action(_gone),
}


def form() -> shape.Json:
    """The form of the body: one action, whose value matters to some."""
    values = {
        name: shape.ANYTHING if one.keys is None else shape.or_null(forms.form(one.keys))
        for name, one in ACTIONS.items()
    }
    return {**shape.record(values), "minProperties": 1, "maxProperties": 1}


async def act(service: "Service", request: Request) -> Response:
    """POST /v2.1/servers/{id}/action"""
    found = await forms.document(request)
    if len(found) != 1:
        raise Invalid("Malformed request body: it must have exactly one key, the action.")
    ((key, value),) = found.items()
    action = ACTIONS.get(key)
    if action is None:
        raise Invalid(f"There is no such action: {key[:80]}")
    versions.check(request.version, action.since, action.until)
    policy.check(action.policy, request.who)
    return await action.does(service, request, value)


ROUTES = (Route("POST", "/v2.1/servers/{id}/action", act, "servers:action", takes=form),)
