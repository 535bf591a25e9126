"""Every kind of record that is made by a client, as tests speak of it."""

import itertools
from dataclasses import dataclass
from dataclasses import field
from typing import Any

from siderite.baremetal.web.beside import inspection_rules
from siderite.baremetal.web.beside import ports
from siderite.baremetal.web.beside import runbooks
from siderite.baremetal.web.beside import templates
from siderite.baremetal.web.beside import volumes
from siderite.baremetal.web.beside.records import Resource
from tests.support import shown
from tests.support.app import Answer
from tests.support.app import Standing

_numbers = itertools.count(1)
DEPLOY_STEP = {"interface": "bios", "step": "factory_reset", "args": {"key": 1}, "priority": 10}
RUNBOOK_STEP = {"interface": "bios", "step": "factory_reset", "args": {"key": 1}, "order": 1}
RULE = {"op": "set-attribute", "args": {"path": "/extra/a", "value": "1"}}


@dataclass(frozen=True)
class Kind:
    """One kind: what Ironic shows since which version, and what a new one may look like."""

    resource: Resource[Any]
    shown: dict[int, str]
    brief: str
    payload: str
    fields: str
    valid: dict[str, Any]
    """What a client may say beside what it must."""
    wrong: list[tuple[str, Any]]
    """Fields that cannot be so."""
    of_node: bool = True
    unique: tuple[str, ...] = ()
    must: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return f"/v1/{self.resource.path}"

    @property
    def items(self) -> str:
        return self.resource.view.fields.items

    @property
    def since(self) -> dict[str, int]:
        return shown.since(self.shown)

    @property
    def oldest(self) -> int:
        return min(self.shown)

    def node(self, app: Standing, **fields: Any) -> str:
        """A node on which one may be made, changed and removed."""
        return app.plant("manageable", power_state="power off", **fields)

    def body(self, app: Standing, node: str | None = None, **fields: Any) -> dict[str, Any]:
        """What makes a new one."""
        number = next(_numbers)
        made = {
            key: value.format(number, f"{number >> 8:02x}:{number & 255:02x}")
            if isinstance(value, str)
            else value
            for key, value in self.must.items()
        }
        if "boot_index" in made:
            made["boot_index"] = number
        if self.of_node:
            made["node_uuid"] = node or self.node(app)
        return {**made, **fields}

    def post(self, app: Standing, *, version: int = 115, **fields: Any) -> Answer:
        """The answer to a creation."""
        return app.ask("POST", self.path, self.body(app, **fields), version=version)

    def make(self, app: Standing, **fields: Any) -> dict[str, Any]:
        """A new one, as it is shown."""
        answer = self.post(app, **fields)
        assert answer.status == 201, answer
        made: dict[str, Any] = answer.json
        return made

    def patch(self, app: Standing, uuid: str, *ops: tuple[Any, ...], version: int = 115) -> Answer:
        """The answer to a patch of (op, path, value)."""
        body = [dict(zip(("op", "path", "value"), op, strict=False)) for op in ops]
        return app.ask("PATCH", f"{self.path}/{uuid}", body, version=version)


KINDS = {
    "portgroup": Kind(
        ports.PORTGROUPS,
        shown.PORTGROUP,
        "uuid address name",
        "PortgroupCRUDPayload 1.3",
        "address category created_at dynamic_portgroup extra mode name node_uuid physical_network"
        " properties standalone_ports_supported updated_at uuid",
        {"extra": {"a": 1}, "mode": "802.3ad", "properties": {"miimon": 100},
         "standalone_ports_supported": False, "physical_network": "net-1", "category": "c"},
        [("address", "x"), ("address", 7), ("mode", 7), ("properties", []), ("name", "two words"),
         ("physical_network", ""), ("category", "x" * 81), ("internal_info", {}),
         ("dynamic_portgroup", True), ("standalone_ports_supported", "maybe")],
        must={"address": "52:54:09:00:{1}", "name": "group-{0}"},
        unique=("address", "name"),
    ),
    "connector": Kind(
        volumes.CONNECTORS,
        shown.CONNECTOR,
        "uuid node_uuid type connector_id",
        "VolumeConnectorCRUDPayload 1.0",
        "connector_id created_at extra node_uuid type updated_at uuid",
        {"extra": {"a": 1}, "type": "ip"},
        [("type", "bogus"), ("type", None), ("connector_id", ""), ("connector_id", None),
         ("extra", 7)],
        must={"type": "iqn", "connector_id": "iqn.2026-01.test:{0}"},
        unique=("connector_id",),
    ),
    "target": Kind(
        volumes.TARGETS,
        shown.TARGET,
        "uuid node_uuid volume_type boot_index volume_id",
        "VolumeTargetCRUDPayload 1.0",
        "boot_index created_at extra node_uuid properties updated_at uuid volume_id volume_type",
        {"extra": {"a": 1}, "properties": {"target_iqn": "x"}, "volume_type": "fibre_channel",
         "volume_id": "v", "boot_index": 999_999},  # others are counted
        [("boot_index", -1), ("boot_index", "1"), ("boot_index", True), ("boot_index", 2**40),
         ("volume_id", ""), ("volume_type", 7), ("properties", "x")],
        must={"volume_type": "iscsi", "volume_id": "volume-{0}", "boot_index": 0},
        unique=("boot_index",),
    ),
    "template": Kind(
        templates.TEMPLATES,
        shown.TEMPLATE,
        "uuid name",
        "DeployTemplateCRUDPayload 1.0",
        "created_at extra name steps updated_at uuid",
        {"extra": {"a": 1}, "steps": [{**DEPLOY_STEP, "priority": 20}]},
        [("name", "fast"), ("name", "CUSTOM_"), ("name", "CUSTOM_a"), ("name", None),
         ("name", "CUSTOM_" + "X" * 250), ("steps", []), ("steps", [DEPLOY_STEP] * 2),
         ("steps", [{}]), ("steps", [{**DEPLOY_STEP, "interface": "bogus"}]),
         ("steps", [{**DEPLOY_STEP, "priority": -1}]), ("steps", [{**DEPLOY_STEP, "x": 1}])],
        of_node=False,
        must={"name": "CUSTOM_T{0}", "steps": [DEPLOY_STEP]},
        unique=("name",),
    ),
    "runbook": Kind(
        runbooks.RUNBOOKS,
        shown.RUNBOOK,
        "uuid name",
        "RunbookCRUDPayload 1.1",
        "created_at description disable_ramdisk extra name owner public steps traits updated_at"
        " uuid",
        {"extra": {"a": 1}, "disable_ramdisk": True, "owner": "p", "description": "d",
         "steps": [{**RUNBOOK_STEP, "order": 2}]},
        [("name", "two words"), ("name", ""), ("name", ".."), ("steps", []),
         ("steps", [{**RUNBOOK_STEP, "p": 1}]),
         ("steps", [{"interface": "bios", "step": "x"}]), ("public", "maybe"), ("owner", 7),
         ("traits", ["CUSTOM_A"]), ("description", "x" * 256)],
        of_node=False,
        must={"name": "CUSTOM_R{0}", "steps": [RUNBOOK_STEP]},
        unique=("name",),
    ),
    "rule": Kind(
        inspection_rules.RULES,
        shown.RULE,
        "uuid priority phase description",
        "InspectionRuleCRUDPayload 1.0",
        "actions conditions created_at description phase priority scope sensitive updated_at uuid",
        {"description": "d", "priority": 7, "scope": "s", "phase": "main",
         "conditions": [{"op": "!eq", "args": [[1, 2]]}], "actions": [RULE, RULE]},
        [("actions", []), ("actions", [{"op": "bogus", "args": {}}]), ("actions", [{"op": "fail"}]),
         ("actions", [{"op": "fail", "args": {"x": 1}}]), ("actions", [{**RULE, "loop": 7}]),
         ("actions", [{"op": ["fail"], "args": {}}]), ("conditions", [{"op": "eq", "args": []}]),
         ("conditions", [{"op": "eq", "args": [[1]], "multiple": "x"}]), ("priority", 10000),
         ("priority", -1), ("phase", "early"), ("sensitive", "maybe")],
        of_node=False,
        must={"actions": [RULE]},
    ),
}  # fmt: skip
