"""The addresses for the agent in a ramdisk, which has no token (see `usecases.life.agent`)."""

from typing import TYPE_CHECKING
from typing import Any
from urllib.parse import urlsplit

import msgspec

from siderite.baremetal.domain.agent import STATUSES
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.wire import NODE_FIELDS
from siderite.baremetal.usecases.life import agent
from siderite.baremetal.web import views
from siderite.baremetal.web.address import ident
from siderite.baremetal.web.bodies import Body
from siderite.core import shape
from siderite.core.check import short
from siderite.core.errors import Invalid
from siderite.core.errors import NotFound
from siderite.core.http import MIB
from siderite.core.http import Request
from siderite.core.http import Response
from siderite.core.http import reply
from siderite.core.ids import is_uuid

if TYPE_CHECKING:
    from siderite.baremetal.web.service import BaremetalService as Service

TOKEN_SINCE = 62
INSPECTION_SINCE = 84
SHOWN = ("uuid", "properties", "instance_info", "driver_internal_info")
HEARTBEAT_SINCE = {
    "callback_url": 22, "agent_version": 36, "agent_token": 62, "agent_verify_ca": 68,
    "agent_status": 72, "agent_status_message": 72,
}  # fmt: skip
_LONGEST = 65536
_MOST_FOUND = 16 * MIB


async def lookup(service: "Service", request: Request) -> Response:
    """GET /v1/lookup"""
    uuid: str | None = None
    addresses: list[str] = []
    for key, value in request.query:
        if key == "node_uuid":
            uuid = _uuid(value)
        elif key == "addresses":
            addresses += [address for address in value.split(",") if address]
        else:
            raise Invalid(f"Unexpected arguments: {key[:80]}. lookup takes: addresses, node_uuid.")
    if len(addresses) > agent.MOST_ADDRESSES:
        raise Invalid(f"addresses may hold {agent.MOST_ADDRESSES} MAC addresses at most.")
    if uuid is None and not addresses:
        raise Invalid("lookup needs node_uuid, or addresses: the MAC addresses of the node.")
    node, token = await agent.lookup(
        service.ctx, uuid, addresses, gives_token=request.version >= TOKEN_SINCE
    )
    return reply(_found(service, request, node, token))


def _found(service: "Service", request: Request, node: Node, token: str | None) -> dict[str, Any]:
    text = views.NODE.one(NODE_FIELDS.render(node), request.version, service.base(request), SHOWN)
    return {"node": msgspec.Raw(text), "config": config(node, token)}


def found_form() -> shape.Json:
    """The form of what a ramdisk is told of its node."""
    text = views.NODE.one(NODE_FIELDS.render(shape.made_up(Node)), TOKEN_SINCE, "", SHOWN)
    shown = {name: shape.OBJECT for name in msgspec.json.decode(text)}
    config_form = shape.wire(*(config(shape.made_up(Node), token) for token in ("", None)))
    node = shape.record({**shown, "uuid": shape.UUID, "links": {"type": "array"}}, list(shown))
    return shape.record({"node": node, "config": config_form}, ["node", "config"])


def config(node: Node, token: str | None) -> dict[str, Any]:
    """How the agent shall behave."""
    out_of_band = node.management_interface == "redfish"
    return {
        "metrics": {
            "backend": "noop", "prepend_host": False, "prepend_uuid": False,
            "prepend_host_reverse": True, "global_prefix": None,
        },
        "metrics_statsd": {"statsd_host": "localhost", "statsd_port": 8125},
        "heartbeat_timeout": 300,
        "agent_containers": {
            "allow_arbitrary_containers": False, "allowed_containers": [],
            "container_steps_file": "/etc/ironic-python-agent.d/mysteps.yaml", "runner": "podman",
            "pull_options": "--tls-verify=false",
            "run_options": "--rm --network=host --tls-verify=false",
            "container_conf_file": "/etc/containers/containers.conf",
        },
        "agent_token": token,
        "agent_token_required": True,
        "agent_md5_checksum_enable": False,
        "disable_deep_image_inspection": False,
        "permitted_image_formats": ["raw", "qcow2", "iso"],
        "agent_skip_bmc_detect": out_of_band,
        "enable_bios_bootloader_install": False,
        "tls_min_version": "1.3",
        "tls_cipher_suites": None,
    }  # fmt: skip


async def heartbeat(service: "Service", request: Request) -> Response:
    """POST /v1/heartbeat/{node}"""
    body = await HEARTBEAT.of(request)
    for key, value in body.items():
        if value is not None and HEARTBEAT_SINCE[key] > request.version:
            raise Invalid(f'Field "{key}" not recognised before 1.{HEARTBEAT_SINCE[key]}.')
        if value is not None and (not isinstance(value, str) or len(value) > _LONGEST):
            raise Invalid(f"{key} must be text of at most {_LONGEST} characters.")
    status = body.get("agent_status")
    if status is not None and status not in STATUSES:
        raise Invalid(f"Agent status is invalid. Valid states are {', '.join(STATUSES)}.")
    if body.get("agent_token") is None:
        raise Invalid("Agent token is required for heartbeat processing.")
    beat = agent.Heartbeat(**{**body, "callback_url": _url(body["callback_url"])})
    await agent.heartbeat(service.ctx, ident(request), beat)
    return Response(status=202)


HEARTBEAT = Body(
    {"callback_url": "https://10.0.0.9:9999"},
    tuple(key for key in HEARTBEAT_SINCE if key != "callback_url"),
)


def _url(value: Any) -> str:
    """The agent's address; an installer that takes no commands has none."""
    if value == "":
        return ""
    try:
        parts = urlsplit(value or "")
        right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        right = False
    if not right:
        raise Invalid(f"callback_url must be an http or https URL, not {short(value)}.")
    return str(value)


def inspected_form() -> shape.Json:
    """The form of the answer to an inspection's report: to old ramdisks only whose it was."""
    return {"anyOf": [found_form(), shape.wire({"uuid": ""})]}


async def continue_inspection(service: "Service", request: Request) -> Response:
    """POST /v1/continue_inspection"""
    uuid: str | None = None
    for key, value in request.query:
        if key != "node_uuid":
            raise Invalid(f"Unexpected arguments: {key[:80]}. This address takes: node_uuid.")
        uuid = _uuid(value)
    is_new = request.version >= INSPECTION_SINCE
    if not is_new and (request.version != 1 or uuid is not None):
        raise NotFound(f"API version 1.{INSPECTION_SINCE} or newer is required.")
    await agent.expect(service.ctx, uuid)
    found = await request.json(_MOST_FOUND)
    inventory = _inventory(found.pop("inventory", None) if isinstance(found, dict) else None)
    node, token = await agent.inspected(service.ctx, uuid, inventory, found, gives_token=is_new)
    answer = _found(service, request, node, token) if is_new else {"uuid": node.uuid}
    return reply(answer, 202)


def _inventory(inventory: Any) -> dict[str, Any]:
    """What the ramdisk found, which must at least name the network interfaces."""
    interfaces = inventory.get("interfaces") if isinstance(inventory, dict) else None
    if not isinstance(interfaces, list) or not interfaces:
        raise Invalid('The body must be an object with "inventory", and that with "interfaces".')
    for interface in interfaces:
        mac = interface.get("mac_address") if isinstance(interface, dict) else None
        if not isinstance(mac, str):
            raise Invalid("Each interface of the inventory needs its mac_address, as text.")
    return dict(inventory)


def _uuid(value: str) -> str:
    if not is_uuid(value):
        raise Invalid(f"node_uuid must be a UUID, not {short(value)}.")
    return value.lower()
