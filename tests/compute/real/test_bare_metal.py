"""Servers on whole machines: the compute API over our own bare metal API, in the real program."""

import asyncio
import itertools
import time
from collections.abc import Callable
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from siderite.cli.cloud import Cloud
from siderite.reaper import Api
from siderite.reaper import Reaper
from siderite.reaper import Rules
from tests.baremetal.real.life import Life
from tests.baremetal.real.life import image
from tests.baremetal.real.life import ramdisk_options
from tests.baremetal.real.life import ramdisk_params
from tests.lab import LabHost
from tests.lab.bmc import files_served
from tests.lab.bmc import redfish_bmcs
from tests.lab.bmc import with_pool
from tests.lab.iron import HERE
from tests.lab.iron import iron
from tests.support.server import Server
from tests.support.server import running_server

PATIENCE_S = 120.0
_numbers = itertools.count(1)
# The bare metal side tells nothing, so that only the comparing shows.
UNTOLD = {"compute_endpoint": "", "sync_power_state_interval_s": "0.2"}
WATCHFUL = {"power_watch_interval_s": "2", "sync_power_state_interval_s": "0.5"}


class Metal:
    """One running program with nodes, and a client of both its halves."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def nova(self, method: str, path: str, body: Any = None, version: str = "2.900") -> Any:
        headers = {**self.server.headers(), "OpenStack-API-Version": f"compute {version}"}
        reply = self.server.api.request(method, f"/compute/v2.1{path}", json=body, headers=headers)
        assert reply.is_success, reply.text
        return reply.json() if reply.content else None

    def ironic(self, method: str, path: str, body: Any = None) -> Any:
        reply = self.server.api.request(
            method, f"/baremetal/v1{path}", json=body, headers=self.server.headers("1.90")
        )
        assert reply.is_success, reply.text
        return reply.json() if reply.content else None

    def node(self, uuid: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ironic("GET", f"/nodes/{uuid}")
        return found

    def wait(self, look: Callable[[], Any], holds: Callable[[Any], bool]) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while not holds(seen := look()):
            assert time.monotonic() < deadline, seen
            time.sleep(0.1)
        return seen

    def until(self, server: str, status: str) -> dict[str, Any]:
        def look() -> dict[str, Any]:
            found: dict[str, Any] = self.nova("GET", f"/servers/{server}")["server"]
            return found

        found: dict[str, Any] = self.wait(
            look,
            lambda s: s["status"] == status and s["OS-EXT-STS:task_state"] is None,
        )
        return found

    def do(self, server: str, action: dict[str, Any], then: str) -> None:
        self.nova("POST", f"/servers/{server}/action", action)
        self.until(server, then)

    def image(self, **properties: str) -> str:
        api, headers = self.server.api, self.server.headers()
        fields = {"name": "os", "disk_format": "raw", "container_format": "bare", **properties}
        image = str(api.post("/image/v2/images", json=fields, headers=headers).json()["id"])
        octets = {**headers, "content-type": "application/octet-stream"}
        api.put(f"/image/v2/images/{image}/file", content=b"boot", headers=octets)
        return image

    def flavor(self, resource_class: str) -> str:
        fields = {"name": f"{resource_class}-{next(_numbers)}", "ram": 1024, "vcpus": 1, "disk": 50}
        flavor = str(self.nova("POST", "/flavors", {"flavor": fields})["flavor"]["id"])
        specs = {"extra_specs": {f"resources:{resource_class}": "1"}}
        self.nova("POST", f"/flavors/{flavor}/os-extra_specs", specs)
        return flavor

    def available_node(self) -> str:
        fields = {
            "driver": "fake-hardware",
            "resource_class": "baremetal.gold",
            "properties": {"cpus": 8, "memory_mb": 4096, "local_gb": 100},
        }
        uuid = str(self.ironic("POST", "/nodes", fields)["uuid"])
        for target, state in (("manage", "manageable"), ("provide", "available")):
            self.ironic("PUT", f"/nodes/{uuid}/states/provision", {"target": target})
            self.wait(lambda: self.node(uuid), lambda n, s=state: n["provision_state"] == s)
        return uuid

    @contextmanager
    def nodes(self, count: int) -> Iterator[list[str]]:
        """So many available nodes, for servers; afterwards there are none, neither of these."""
        made = [self.available_node() for _ in range(count)]
        host = {"host": {"name": "metal", "uri": "baremetal:"}}
        assert self.nova("POST", "/hosts", host)["host"]["problem"] is None
        yield made
        for server in self.nova("GET", "/servers")["servers"]:
            self.nova("DELETE", f"/servers/{server['id']}")
        self.wait(lambda: self.nova("GET", "/servers")["servers"], lambda left: left == [])
        for uuid in made:
            self.wait(lambda n=uuid: self.node(n)["provision_state"], lambda s: s == "available")
            self.ironic("DELETE", f"/nodes/{uuid}")
        self.nova("DELETE", "/hosts/metal")

    def look(self) -> None:
        """Have the nodes looked at now, which else happens every ten seconds."""
        self.nova("POST", "/hosts/metal/check")

    def settle(self, servers: list[str]) -> bool:
        """Until all of them run."""
        return all(self.until(server, "ACTIVE") for server in servers)

    def boot(self, flavor: str, image: str, **more: Any) -> str:
        wish = {"name": "iron", "flavorRef": flavor, "imageRef": image, "networks": "none", **more}
        return str(self.nova("POST", "/servers", {"server": wish})["server"]["id"])


@pytest.fixture(scope="module")
def metal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metal]:
    folder: Path = tmp_path_factory.mktemp("metal")
    with running_server(folder, options=UNTOLD | {"use_pending_state": "true"}) as server:
        yield Metal(server)


def test_the_power_of_a_node_in_maintenance_says_nothing_of_its_server(metal: Metal) -> None:
    """Somebody works on the machine; what it does then is not what its owner asked for."""
    with metal.nodes(2) as nodes:
        image_id, flavor = metal.image(), metal.flavor("CUSTOM_BAREMETAL_GOLD")
        servers = [metal.boot(flavor, image_id) for _ in nodes]
        where = {metal.node(node)["instance_uuid"]: node for node in nodes if metal.settle(servers)}
        server, other = servers
        metal.ironic("PUT", f"/nodes/{where[server]}/maintenance", {"reason": "a new fan"})
        for uuid in servers:
            metal.ironic("PUT", f"/nodes/{where[uuid]}/states/power", {"target": "power off"})
            metal.wait(
                lambda n=where[uuid]: metal.node(n)["power_state"], lambda p: p == "power off"
            )
        for target, status in (("power on", "ACTIVE"), ("power off", "SHUTOFF")):
            metal.until(other, "SHUTOFF" if status == "ACTIVE" else "ACTIVE")  # they were compared
            metal.ironic("PUT", f"/nodes/{where[other]}/states/power", {"target": target})
            metal.until(other, status)
        assert metal.until(server, "ACTIVE")["OS-EXT-STS:power_state"] == 1
        metal.ironic("DELETE", f"/nodes/{where[server]}/maintenance")
        assert metal.until(server, "SHUTOFF")["OS-EXT-STS:power_state"] == 4


def test_a_server_lives_on_a_node_from_deploying_to_cleaning(metal: Metal) -> None:
    with metal.nodes(1) as [node]:
        image_id = metal.image()
        server = metal.boot(metal.flavor("CUSTOM_BAREMETAL_GOLD"), image_id)
        shown = metal.until(server, "ACTIVE")
        assert shown["OS-EXT-SRV-ATTR:hypervisor_hostname"] == node
        seen = metal.node(node)
        assert seen["provision_state"] == "active"
        assert seen["instance_uuid"] == server
        assert seen["instance_info"]["image_source"] == image_id
        metal.do(server, {"os-stop": None}, "SHUTOFF")
        assert metal.node(node)["power_state"] == "power off"
        metal.do(server, {"os-start": None}, "ACTIVE")
        assert metal.node(node)["power_state"] == "power on"
        metal.do(server, {"reboot": {"type": "HARD"}}, "ACTIVE")
        metal.do(server, {"rescue": {}}, "RESCUE")
        assert metal.node(node)["provision_state"] == "rescue"
        metal.do(server, {"unrescue": None}, "ACTIVE")
        metal.do(server, {"rebuild": {"imageRef": image_id}}, "ACTIVE")
        assert metal.node(node)["provision_state"] == "active"
        metal.nova("DELETE", f"/servers/{server}")
        freed = metal.wait(lambda: metal.node(node), lambda n: n["provision_state"] == "available")
        assert freed["instance_uuid"] is None


def test_a_guest_on_a_node_has_the_time_of_its_image_unless_it_is_overruled(metal: Metal) -> None:
    with metal.nodes(1) as [node]:
        image_id = metal.image(os_shutdown_timeout="600")
        server = metal.boot(metal.flavor("CUSTOM_BAREMETAL_GOLD"), image_id)
        metal.until(server, "ACTIVE")
        metal.server.script(f"node:{node}", latency_s={"power.soft power off": 900})
        metal.nova("POST", f"/servers/{server}/action", {"os-stop": None})
        metal.wait(lambda: metal.node(node), lambda seen: seen["target_power_state"] is not None)
        hard = {"os-stop": {"shutdown_type": "HARD"}}
        metal.nova("POST", f"/servers/{server}/action", hard, "2.901")
        metal.until(server, "SHUTOFF")
        metal.server.script(f"node:{node}")
        actions = metal.nova("GET", f"/servers/{server}/os-instance-actions")["instanceActions"]
        path = f"/servers/{server}/os-instance-actions"
        (event,) = [
            event
            for action in actions
            if action["action"] == "stop"
            for event in metal.nova("GET", f"{path}/{action['request_id']}")["instanceAction"][
                "events"
            ]
        ]
        assert "powered off after 1 signals, as was asked for" in event["details"]


@pytest.mark.parametrize("verb", ["reboot", "rebuild", "rescue"])
def test_a_rescue_that_failed_is_over_when_the_server_is_mended(metal: Metal, verb: str) -> None:
    with metal.nodes(1) as [node]:
        image_id = metal.image()
        server = metal.boot(metal.flavor("CUSTOM_BAREMETAL_GOLD"), image_id)
        metal.until(server, "ACTIVE")
        metal.server.script(f"node:{node}", fail={"rescue.boot_rescue": "no ramdisk"})
        metal.do(server, {"rescue": {}}, "ERROR")
        assert metal.node(node)["provision_state"] == "rescue failed"
        metal.server.unscript(f"node:{node}")
        how = {"reboot": {"type": "HARD"}, "rebuild": {"imageRef": image_id}}
        if verb == "rescue":  # it is tried again, as often as it is asked for
            metal.do(server, {"rescue": {}}, "RESCUE")
            metal.do(server, {"unrescue": None}, "ACTIVE")
        else:
            metal.do(server, {verb: how[verb]}, "ACTIVE")
        seen = metal.node(node)
        assert (seen["provision_state"], seen["power_state"]) == ("active", "power on")


def test_a_deleted_server_does_not_wait_for_a_node_whose_cleaning_failed(metal: Metal) -> None:
    """The node carries it no more; what it needs itself is for its operator to see."""
    with metal.nodes(1) as [node]:
        server = metal.boot(metal.flavor("CUSTOM_BAREMETAL_GOLD"), metal.image())
        metal.until(server, "ACTIVE")
        metal.server.script(f"node:{node}", fail={"clean": "stuck", "deploy": "stuck"})
        metal.nova("DELETE", f"/servers/{server}")
        metal.wait(lambda: metal.node(node), lambda n: n["provision_state"] == "clean failed")
        assert metal.node(node)["maintenance"]
        metal.wait(lambda: metal.nova("GET", "/servers")["servers"], lambda left: left == [])
        metal.server.unscript(f"node:{node}")
        metal.ironic("DELETE", f"/nodes/{node}/maintenance")
        for target, state in (("manage", "manageable"), ("provide", "available")):
            metal.ironic("PUT", f"/nodes/{node}/states/provision", {"target": target})
            metal.wait(lambda: metal.node(node)["provision_state"], lambda s, to=state: s == to)


def reap(metal: Metal) -> None:
    """One round of the reaper, while an operator has the nodes looked at again and again."""
    with ThreadPoolExecutor() as beside:
        reaping = beside.submit(_reap, metal)
        while not wait([reaping], 0.5).done:
            metal.look()
        reaping.result()


def _reap(metal: Metal) -> None:

    async def rounds() -> None:
        cloud = Cloud(str(metal.server.data))
        api = Api(cloud.base, cloud.identity, cloud.credentials)
        await api.login()
        await Reaper(api, Rules("reaper")).round()
        await api.close()

    asyncio.run(rounds())


@pytest.fixture
def slow(metal: Metal) -> Iterator[Metal]:
    """Where it takes a while to clean a node."""
    yield metal
    metal.server.unscript("all")


def test_one_preemptible_server_goes_though_its_node_is_cleaned_for_a_while(slow: Metal) -> None:
    with slow.nodes(2):
        flavor, image_id = slow.flavor("CUSTOM_BAREMETAL_GOLD"), slow.image()
        cheap = [slow.boot(flavor, image_id, metadata={"preemptible": "true"}) for _ in range(2)]
        assert slow.settle(cheap)
        paying = slow.boot(flavor, image_id)
        slow.until(paying, "PENDING")
        slow.server.script("all", latency_s={"clean": 4.0})
        reap(slow)
        slow.until(paying, "ACTIVE")
        slow.server.script("all", latency_s={})
        left = {one["id"] for one in slow.nova("GET", "/servers")["servers"]}
        assert len(left & set(cheap)) == 1


def test_nobody_goes_where_a_node_is_being_cleaned_that_somebody_else_left(slow: Metal) -> None:
    with slow.nodes(2):
        flavor, image_id = slow.flavor("CUSTOM_BAREMETAL_GOLD"), slow.image()
        cheap = slow.boot(flavor, image_id, metadata={"preemptible": "true"})
        leaving = slow.boot(flavor, image_id)
        assert slow.settle([cheap, leaving])
        slow.server.script("all", latency_s={"clean": 6.0})
        slow.nova("DELETE", f"/servers/{leaving}")

        def refusals() -> list[Any]:
            slow.look()
            path = "/os-hypervisors/detail"
            found = slow.nova("GET", path, version="2.901")["hypervisors"]
            return [(one["is_available"], one["why_not"]) for one in found]

        slow.wait(refusals, lambda all_: (False, "is cleaning, not available") in all_)
        paying = slow.boot(flavor, image_id)
        slow.until(paying, "PENDING")
        reap(slow)
        slow.until(paying, "ACTIVE")
        assert slow.until(cheap, "ACTIVE")
        slow.server.script("all", latency_s={})


def test_a_preemptible_server_leaves_its_node_to_a_paying_one(metal: Metal) -> None:
    with metal.nodes(1) as [node]:
        flavor, image_id = metal.flavor("CUSTOM_BAREMETAL_GOLD"), metal.image()
        cheap = metal.boot(flavor, image_id, metadata={"preemptible": "true"})
        assert metal.until(cheap, "ACTIVE")["OS-EXT-SRV-ATTR:hypervisor_hostname"] == node
        paying = metal.boot(flavor, image_id)
        assert metal.until(paying, "PENDING")["refusals"].keys() == {node}
        reap(metal)
        assert metal.until(paying, "ACTIVE")["OS-EXT-SRV-ATTR:hypervisor_hostname"] == node
        assert metal.node(node)["instance_uuid"] == paying


def test_where_one_node_fails_another_of_the_same_host_is_tried(metal: Metal) -> None:
    with metal.nodes(2) as nodes:
        scope = f"node:{nodes[0]}"
        metal.server.script(scope, fail={"deploy": "no disk"})
        flavor, image_id = metal.flavor("CUSTOM_BAREMETAL_GOLD"), metal.image()
        shown = metal.until(metal.boot(flavor, image_id), "ACTIVE")
        assert shown["OS-EXT-SRV-ATTR:hypervisor_hostname"] == nodes[1]
        metal.server.unscript(scope)


def test_no_node_of_the_class_says_why(metal: Metal) -> None:
    server = metal.boot(metal.flavor("CUSTOM_TIN"), metal.image())
    assert "fault" in metal.until(server, "PENDING")
    metal.nova("DELETE", f"/servers/{server}")


def test_a_server_is_deployed_on_a_real_machine_behind_a_redfish_bmc(
    lab: LabHost, tmp_path: Path
) -> None:
    served = tmp_path / "images"
    served.mkdir()
    name, checksum = image(served, "a server on iron")
    machine = iron(lab)
    guest = machine.guest
    with (
        redfish_bmcs(tmp_path / "bmc", with_pool(lab)) as bmcs,
        files_served(served) as images,
        running_server(tmp_path, options=ramdisk_options() | WATCHFUL) as server,
    ):
        metal = Metal(server)
        node = Life.enrol(
            server,
            driver="redfish",
            resource_class="iron",
            driver_info=bmcs.driver_info(
                guest.uuid, kernel_append_params=ramdisk_params(machine.callback)
            ),
            automated_clean=False,
        )
        node.add_port(guest.mac)
        node.verb("manage", "manageable")
        node.verb("provide", "available")
        metal.nova("POST", "/hosts", {"host": {"name": "metal", "uri": "baremetal:"}})
        source = {
            "image_source": f"{images.replace('127.0.0.1', HERE)}/{name}",
            "image_os_hash_algo": "sha256",
            "image_os_hash_value": checksum,
        }
        made = metal.boot(metal.flavor("CUSTOM_IRON"), metal.image(**source))
        metal.until(made, "ACTIVE")
        guest.wait_for("TINY GUEST ready a server on iron")
        assert "AGENT has a config drive" in guest.serial()
        guest.wait_for("armed")
        guest.domain().destroy()  # somebody pulls the plug …
        metal.until(made, "SHUTOFF")
        guest.start()  # … and comes back
        metal.until(made, "ACTIVE")
        time.sleep(3)  # over several syncs
        assert metal.until(made, "ACTIVE")["OS-EXT-STS:power_state"] == 1
        assert guest.is_on(), "nobody switched it off again"
        guest.wait_for("armed", times=2)
        metal.do(made, {"os-stop": None}, "SHUTOFF")
        assert not guest.is_on()
        assert "power button, off" in guest.serial()  # it was asked, through its BMC
        metal.nova("DELETE", f"/servers/{made}")
        freed = node.until(lambda seen: seen["provision_state"] == "available", "available")
        assert freed["instance_uuid"] is None
    guest.remove()
