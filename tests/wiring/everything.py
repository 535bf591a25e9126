"""Something of every kind that the APIs have, for tests that look at all of them."""

import time
from collections.abc import Callable
from typing import Any

import httpx

from tests.support.server import Server

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me"
PATIENCE_S = 60.0
IRON = ("X-OpenStack-Ironic-API-Version", "1.900")
NOVA = ("OpenStack-API-Version", "compute 2.901")


class Maker:
    """Asks for things, and keeps what was answered to who changed something."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.heard: list[httpx.Response] = []

    def ask(
        self, method: str, path: str, body: Any = None, version: Any = ("Accept", "*/*")
    ) -> Any:
        headers = {**self.server.headers(), version[0]: version[1]}
        answer = self.server.api.request(method, path, json=body, headers=headers)
        assert answer.status_code < 300, (method, path, answer.text)
        if method != "GET":
            self.heard.append(answer)
        return answer.json() if answer.content else {}

    def until(self, path: str, right: Callable[[Any], bool]) -> None:
        """Wait for what comes by itself."""
        deadline = time.monotonic() + PATIENCE_S
        while not right(said := self.ask("GET", path, version=IRON)):
            assert time.monotonic() < deadline, (path, said)
            time.sleep(0.02)

    def record(self, path: str, **fields: Any) -> str:
        return str(self.ask("POST", f"/baremetal/v1/{path}", fields, IRON)["uuid"])

    def compute(self, path: str, body: Any) -> Any:
        return self.ask("POST", f"/compute/v2.1/{path}", body, NOVA)


def everything(make: Maker) -> dict[str, str]:
    """What there is then: ids by the word of the address that they stand behind."""
    return {**_iron(make), **_servers(make), **_people(make)}


def _iron(make: Maker) -> dict[str, str]:
    record = make.record
    chassis = record("chassis", description="row 1")
    node = record(
        "nodes", driver="fake-hardware", name="told", chassis_uuid=chassis, extra={"a": 1}
    )
    group = record("portgroups", node_uuid=node, name="bond")
    step = {"interface": "deploy", "step": "x", "args": {}, "priority": 50}
    order = {"interface": "deploy", "step": "x", "order": 1}
    action = {"op": "set-attribute", "args": {"path": "/extra/x", "value": 1}}
    make.ask("PUT", f"/baremetal/v1/nodes/{node}/traits", {"traits": ["CUSTOM_X"]}, IRON)
    make.ask("PUT", f"/baremetal/v1/nodes/{node}/maintenance", {"reason": "told"}, IRON)
    busy = record("nodes", driver="fake-hardware", name="busy", resource_class="told")
    hook = record("hooks", name="gate", state="cleaning", selector={"owner": "gated"})
    _worked(make, busy)
    return {
        "nodes": node, "chassis": chassis, "portgroups": group,
        "ports": record("ports", node_uuid=node, address="52:54:00:00:00:01", portgroup_uuid=group),
        "connectors": record("volume/connectors", node_uuid=node, type="ip", connector_id="1"),
        "targets": record("volume/targets", node_uuid=node, volume_type="iscsi", boot_index=0,
                          volume_id="1"),
        "deploy_templates": record("deploy_templates", name="CUSTOM_X", steps=[step]),
        "runbooks": record("runbooks", name="fix", steps=[order]),
        "hooks": hook,
        "inspection_rules": record("inspection_rules", actions=[action]),
        "allocations": record("allocations", name="mine", resource_class="told",
                              candidate_nodes=[busy]),
        "worked": busy, "drivers": "fake-hardware", "ipxe": "52:54:00:00:00:01",
        **_found_out(make, busy),
    }  # fmt: skip


def _worked(make: Maker, node: str) -> None:
    """A machine that was inspected, and is held at a hook while it is cleaned."""
    make.server.script(f"node:{node}", latency_s={"*": 0})
    at = f"/baremetal/v1/nodes/{node}"
    for verb in ("manage", "inspect"):
        make.ask("PUT", f"{at}/states/provision", {"target": verb}, IRON)
        make.until(f"{at}/states", lambda said: said["provision_state"] == "manageable")
    make.ask("PATCH", at, [{"op": "add", "path": "/owner", "value": "gated"}], IRON)
    make.ask("PUT", f"{at}/states/provision", {"target": "provide"}, IRON)
    make.until(f"{at}/states", lambda said: said["provision_state"] == "clean hold")


def _found_out(make: Maker, node: str) -> dict[str, str]:
    def first(path: str, name: str) -> str:
        noun = path.rpartition("/")[2]
        [one, *_] = make.ask("GET", f"/baremetal/v1/{path}", version=IRON)[noun]
        return str(one[name])

    return {
        "bios": first(f"nodes/{node}/bios", "name"),
        "history": first(f"nodes/{node}/history", "uuid"),
        "indicators": first(f"nodes/{node}/management/indicators", "name"),
        "conductors": first("conductors", "hostname"),
    }


def _servers(make: Maker) -> dict[str, str]:
    blank = {"name": "told", "disk_format": "raw", "container_format": "bare", "os_type": "none"}
    image = make.ask("POST", "/image/v2/images", {**blank, "visibility": "shared"})["id"]
    make.ask("POST", f"/image/v2/images/{image}/members", {"member": "told"})
    small = {"name": "told", "vcpus": 1, "ram": 64, "disk": 1, "swap": 0}
    flavor = make.compute("flavors", {"flavor": {**small, "os-flavor-access:is_public": False}})
    specs = f"flavors/{flavor['flavor']['id']}/os-extra_specs"
    make.compute(specs, {"extra_specs": {"told": "yes"}})
    ready = make.ask("GET", "/image/v2/images?status=active")["images"][0]["id"]
    wish = {"name": "told", "imageRef": ready, "flavorRef": flavor["flavor"]["id"]}
    more = {"networks": "auto", "metadata": {"told": "yes"}, "tags": ["told"]}
    server = make.compute("servers", {"server": {**wish, **more}})["server"]["id"]
    make.compute("os-keypairs", {"keypair": {"name": "told", "public_key": KEY}})
    grouped = {"server_group": {"name": "apart", "policy": "anti-affinity"}}
    group = make.compute("os-server-groups", grouped)["server_group"]["id"]
    aggregate = make.compute("os-aggregates", {"aggregate": {"name": "told"}})["aggregate"]["id"]
    hosts = make.ask("GET", "/compute/v2.1/os-hypervisors", version=NOVA)["hypervisors"]
    own = make.ask("GET", "/compute/v2.1/hosts", version=NOVA)["hosts"]
    return {
        "images": image, "members": "told", "flavors": flavor["flavor"]["id"], "servers": server,
        "os-extra_specs": "told", "metadata": "told", "os-keypairs": "told",
        "os-server-groups": group, "os-aggregates": str(aggregate),
        "os-hypervisors": hosts[0]["id"], "hosts": own[0]["name"], "os-quota-sets": "told",
        "os-quota-class-sets": "default", "os-instance_usage_audit_log": "2026-01-31 00:00:00",
        "ready": ready, "host": hosts[0]["hypervisor_hostname"],
        **_plugged(make, server),
    }  # fmt: skip


def _plugged(make: Maker, server: str) -> dict[str, str]:
    """What belongs to a server: its port, its network, what was done to it."""
    make.until(f"/compute/v2.1/servers/{server}", lambda said: bool(said["server"]["addresses"]))

    def first(path: str, noun: str, name: str = "id") -> str:
        return str(make.ask("GET", path, version=NOVA)[noun][0][name])

    below = f"/compute/v2.1/servers/{server}"
    [label, *_] = make.ask("GET", f"{below}/ips", version=NOVA)["addresses"]
    nouns = ("networks", "subnets", "ports", "security-groups", "security-group-rules")
    return {
        "ips": label,
        "os-interface": first(f"{below}/os-interface", "interfaceAttachments", "port_id"),
        "os-instance-actions": first(
            f"{below}/os-instance-actions", "instanceActions", "request_id"
        ),
        **{f"network/{noun}": first(f"/network/v2.0/{noun}", noun.replace("-", "_"))
           for noun in nouns},
    }  # fmt: skip


def _people(make: Maker) -> dict[str, str]:
    def first(word: str) -> str:
        return str(make.ask("GET", f"/identity/v3/{word}")[word][0]["id"])

    user = make.ask("GET", "/identity/v3/users?name=admin")["users"][0]["id"]
    at = f"/identity/v3/users/{user}/application_credentials"
    credential = make.ask("POST", at, {"application_credential": {"name": "told"}})
    hook = make.ask("POST", "/events/v1/webhooks", {"url": "http://192.0.2.1/", "enabled": False})
    words = ("projects", "roles", "domains", "services", "endpoints", "regions")
    return {
        **{word: first(word) for word in words}, "users": user, "webhooks": hook["id"],
        "application_credentials": credential["application_credential"]["id"],
        "implies": make.ask("GET", "/identity/v3/roles?name=manager")["roles"][0]["id"],
    }  # fmt: skip
