"""Every event type of the specification of notifications, triggered by the API or the hardware.

One story per database leads resources through their lives, with a real failure for each error;
each type is then looked up in the log it left: envelope, payload, priority, order.
"""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from contextlib import contextmanager

import msgspec
import pytest

from siderite.baremetal.domain.port import Port
from siderite.baremetal.store import PORTS
from siderite.core import eventlog
from siderite.core import sequencer
from siderite.core import transition
from siderite.core.ids import new_uuid
from siderite.core.store import Op
from siderite.core.transition import Cause
from tests.baremetal.domain.test_facts import PLAIN
from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import script
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import until_power
from tests.baremetal.workers.lives import verb
from tests.baremetal.workers.test_power_watch import OFTEN
from tests.baremetal.workers.test_power_watch import seen
from tests.baremetal.workers.test_power_watch import switched_on
from tests.support.app import running

CRUD = {"chassis_uuid", "instance_info", "driver_info"}
MOVED = {
    "instance_info", "driver_internal_info", "event", "previous_provision_state",
    "previous_target_provision_state",
}  # fmt: skip
PORT = {
    "address", "available_for_dynamic_portgroup", "category", "created_at", "description", "extra",
    "is_smartnic", "local_link_connection", "name", "node_uuid", "physical_network",
    "portgroup_uuid", "pxe_enabled", "updated_at", "uuid", "vendor",
}  # fmt: skip
CHASSIS = {"created_at", "description", "extra", "updated_at", "uuid"}
THREE = ("start", "end", "error")
# Object and action: their statuses, the payload's name and version, its fields, and who says so.
TYPES = {
    **{f"node.{a}": (THREE, "NodeCRUDPayload 1.15", PLAIN | CRUD, "ironic-api")
       for a in ("create", "update", "delete")},
    **{f"port.{a}": (THREE, "PortCRUDPayload 1.8", PORT, "ironic-api")
       for a in ("create", "update", "delete")},
    **{f"chassis.{a}": (THREE, "ChassisCRUDPayload 1.0", CHASSIS, "ironic-api")
       for a in ("create", "update", "delete")},
    "node.provision_set": ((*THREE, "success"), "NodeSetProvisionStatePayload 1.18",
                           PLAIN | MOVED, "ironic-conductor"),
    "node.maintenance_set": (THREE, "NodePayload 1.17", PLAIN, "ironic-api"),
    "node.console_set": (THREE, "NodePayload 1.17", PLAIN, "ironic-conductor"),
    "node.console_restore": (THREE, "NodePayload 1.17", PLAIN, "ironic-conductor"),
    "node.power_set": (THREE, "NodeSetPowerStatePayload 1.17", PLAIN | {"to_power"},
                       "ironic-conductor"),
    "node.power_state_corrected": (("success",), "NodeCorrectedPowerStatePayload 1.17",
                                   PLAIN | {"from_power"}, "ironic-conductor"),
}  # fmt: skip
WORDS = [f"{name}.{status}" for name, (statuses, *_) in TYPES.items() for status in statuses]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def log(request, tmp_path_factory):
    """The log after the whole story."""
    data = tmp_path_factory.mktemp("notifications")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("siderite.baremetal.workers.console.BEAT_S", 0.05)
        if request.param == "sqlite":
            return asyncio.run(story(data, ""))
        with request.getfixturevalue("lending").database() as url:
            return asyncio.run(story(data, url))


async def story(data, url):
    async with running(data, url, work=True) as app:
        await chassis(app)
        await ports(app)
        await nodes(app)
        await power(app)
        kept, lost = await consoles(app)
        script(app, f"node:{lost}", fail={"console": "BMC was replaced"})
    async with running(data, url, work=True) as app:
        await heard(app, "console_restore.end", kept)
        await heard(app, "console_restore.error", lost)
        return await entries(app)


async def entries(app):
    if app.program.store.dialect == "postgresql":
        await sequencer.place(app.program.store)
    return await eventlog.read(app.program.store, limit=100_000)


async def heard(app, what, resource):
    async with asyncio.timeout(30):
        while not any(
            e.event_type.endswith(what) and e.resource == resource for e in await entries(app)
        ):
            await asyncio.sleep(0.02)


async def ask(app, status, method, path, body=None):
    answer = await app.ask(method, path, body)
    assert answer.status == status, answer
    return answer.json if answer.body else None


def replaced(field, value):
    return [{"op": "add", "path": f"/{field}", "value": value}]


@contextmanager
def overtaken(app, table, uuid):
    """Somebody else's change of a resource always comes first: real races, all lost."""
    store = app.program.store
    commit = store.commit

    async def late(ops):
        if any(f"UPDATE {table} " in op.sql for op in ops):
            won = f"UPDATE {table} SET version = version + 1 WHERE uuid = ?"
            await commit([Op(won, (uuid,), 1)])
            doc = "json_set(doc, '$.version', version)"
            if store.dialect == "postgresql":
                doc = "jsonb_set(doc::jsonb, '{version}', to_jsonb(version))::text"
            await commit([Op(f"UPDATE {table} SET doc = {doc} WHERE uuid = ?", (uuid,), 1)])
        await commit(ops)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "commit", late)
        patch.setattr(transition, "TRIES", 3)
        yield


async def chassis(app):
    secret = {"switch_password": "hunter2"}
    body = {"description": "a", "extra": secret}
    uuid = (await ask(app, 201, "POST", "/v1/chassis", body))["uuid"]
    path = f"/v1/chassis/{uuid}"
    await ask(app, 409, "POST", "/v1/chassis", {"uuid": uuid})
    await ask(app, 200, "PATCH", path, replaced("description", "b"))
    with overtaken(app, "chassis", uuid):
        await ask(app, 409, "PATCH", path, replaced("description", "c"))
    node = await app.make_node(chassis_uuid=uuid)
    await ask(app, 400, "DELETE", path)
    await ask(app, 204, "DELETE", f"/v1/nodes/{node}")
    await ask(app, 204, "DELETE", path)


async def ports(app):
    node = await app.make_node()
    secret = {"switch": {"snmp_auth_key": "hunter2"}}
    body = {"node_uuid": node, "address": "52:54:00:00:00:01", "extra": secret}
    first = (await ask(app, 201, "POST", "/v1/ports", body))["uuid"]
    await ask(app, 409, "POST", "/v1/ports", body)
    other = {"node_uuid": node, "address": "52:54:00:00:00:02"}
    second = (await ask(app, 201, "POST", "/v1/ports", other))["uuid"]
    await ask(app, 200, "PATCH", f"/v1/ports/{second}", replaced("extra", {"a": 1}))
    await ask(app, 409, "PATCH", f"/v1/ports/{second}", replaced("address", body["address"]))
    await ask(app, 204, "DELETE", f"/v1/ports/{first}")
    bound = Port(
        uuid=new_uuid(), node_uuid=node, created_at="2026-01-01T00:00:00.000000+00:00",
        address="52:54:00:00:00:03", internal_info={"tenant_vif_port_id": "vif-7"},
    )  # fmt: skip
    change = app.program.door.change(Cause())
    change.put(PORTS.insert(bound))
    await app.program.door.commit(change)
    await ask(app, 409, "DELETE", f"/v1/ports/{bound.uuid}")


async def nodes(app):
    uuid = await app.make_node(
        name="one",
        driver_info={"redfish_password": "hunter2", "ipmi_hex_kg_key": "hunter2", "rack": "r1"},
        instance_info={"configdrive": {"user_data": "hunter2"}},
        extra={"door": {"password": "hunter2"}, "tile": 7},
        properties={"capabilities": "boot_mode:uefi", "license_token": "hunter2"},
    )
    shown = await ask(app, 200, "GET", f"/v1/nodes/{uuid}")
    assert shown["extra"]["door"] == {"password": "hunter2"}, "it is for whoever wrote it"
    await ask(app, 409, "POST", "/v1/nodes", {"driver": "fake-hardware", "name": "one"})
    other = await app.make_node(name="two")
    await ask(app, 200, "PATCH", f"/v1/nodes/{other}", replaced("extra", {"a": 1}))
    await ask(app, 409, "PATCH", f"/v1/nodes/{other}", replaced("name", "one"))
    await ask(app, 202, "PUT", f"/v1/nodes/{other}/maintenance", {"reason": "smoke"})
    with overtaken(app, "nodes", other):
        await ask(app, 409, "DELETE", f"/v1/nodes/{other}/maintenance")
    await ask(app, 204, "DELETE", f"/v1/nodes/{other}")
    await lead(app, uuid, "manage", "provide")
    await verb(app, uuid, "manage")
    await lead(app, uuid, "provide", "active")
    await ask(app, 409, "DELETE", f"/v1/nodes/{uuid}")
    script(app, f"node:{uuid}", fail={"deploy": "disk on fire"})
    await verb(app, uuid, "rebuild")
    await until(app, uuid, "deploy failed")


async def power(app):
    uuid = await app.make_node()
    path = f"/v1/nodes/{uuid}/states/power"
    await lead(app, uuid, "manage")
    await ask(app, 202, "PUT", path, {"target": "power on"})
    await until_power(app, uuid)
    script(app, f"node:{uuid}", fail={"power": "fuse blown"})
    await ask(app, 202, "PUT", path, {"target": "power off"})
    await until_power(app, uuid)


async def consoles(app):
    failing, kept, lost = [await app.make_node() for _ in range(3)]
    script(app, f"node:{failing}", fail={"console.start": "no serial line"})
    for uuid in (failing, kept, lost):
        await ask(app, 202, "PUT", f"/v1/nodes/{uuid}/states/console", {"enabled": True})
    await heard(app, "console_set.error", failing)
    await heard(app, "console_set.end", kept)
    await heard(app, "console_set.end", lost)
    return kept, lost


def of_type(log, word):
    found = [entry for entry in log if entry.event_type == f"baremetal.{word}"]
    assert found, f"nothing in the log is of type {word}"
    return found


@pytest.mark.parametrize("word", WORDS)
def test_each_type_is_announced_in_its_own_form(log, word):
    name, _, status = word.rpartition(".")
    _, kind, fields, publisher = TYPES[name]
    for entry in of_type(log, word):
        payload = msgspec.json.decode(entry.payload)
        data = payload.pop("ironic_object.data")
        assert payload == {
            "ironic_object.name": kind.split()[0],
            "ironic_object.namespace": "ironic",
            "ironic_object.version": kind.split()[1],
        }
        assert set(data) == fields
        assert data["uuid"] == entry.resource
        assert entry.priority == ("ERROR" if status == "error" else "INFO")
        assert entry.publisher_id == f"{publisher}.here"
        assert entry.resource_type == name.split(".")[0]
        assert len(entry.message_id) == 36
        for field in ("created_at", "updated_at"):
            assert data[field] is None or msgspec.convert(data[field], type=str).endswith("Z")
            assert data[field] is None or len(data[field]) == 20


@pytest.mark.parametrize("name", [name for name in TYPES if "corrected" not in name])
def test_every_start_has_its_end_or_error_and_nothing_ends_that_did_not_start(log, name):
    under_way = Counter()
    for entry in log:
        if not entry.event_type.startswith(f"baremetal.{name}."):
            continue
        status = entry.event_type.rpartition(".")[2]
        if status == "start":
            assert under_way[entry.resource] == 0, entry
            under_way[entry.resource] = 1
        elif status in ("end", "error"):
            assert under_way[entry.resource] == 1, entry
            under_way[entry.resource] = 0
    assert sum(under_way.values()) == 0


def test_all_that_goes_with_a_move_is_in_its_announcement(log):
    """The specification's rule: `last_error`, `maintenance` and the like come before the event."""
    failed = of_type(log, "node.provision_set.error")[-1]
    data = msgspec.json.decode(failed.payload)["ironic_object.data"]
    assert "disk on fire" in data["last_error"]
    assert (data["previous_provision_state"], data["provision_state"]) == (
        "deploying",
        "deploy failed",
    )
    assert data["event"] == "fail"
    off = of_type(log, "node.power_set.error")[-1]
    data = msgspec.json.decode(off.payload)["ironic_object.data"]
    assert (data["to_power"], data["target_power_state"]) == ("power off", None)
    assert "fuse blown" in data["last_error"]
    failed = of_type(log, "node.maintenance_set.error")[-1]
    data = msgspec.json.decode(failed.payload)["ironic_object.data"]
    assert (data["maintenance"], data["maintenance_reason"]) == (True, "smoke"), "it stays so"
    began = of_type(log, "node.maintenance_set.start")[0]
    data = msgspec.json.decode(began.payload)["ironic_object.data"]
    assert (data["maintenance"], data["maintenance_reason"]) == (True, "smoke")


def test_no_secret_is_in_any_announcement(log):
    assert not [entry.seq for entry in log if b"hunter2" in bytes(entry.payload)]
    masked = [entry for entry in log if b'"redfish_password":"******"' in bytes(entry.payload)]
    assert any(b'"configdrive":"******"' in bytes(entry.payload) for entry in masked)
    told = msgspec.json.decode(masked[0].payload)["ironic_object.data"]
    assert told["extra"] == {"door": {"password": "******"}, "tile": 7}
    assert told["properties"] == {"capabilities": "boot_mode:uefi", "license_token": "******"}


def test_what_others_always_overtake_is_announced_as_failed(tmp_path, database_url):
    async def story():
        async with running(tmp_path, database_url) as app:
            node = await app.make_node()
            port = {"node_uuid": node, "address": "52:54:00:00:00:09"}
            with overtaken(app, "nodes", node):
                await ask(app, 409, "POST", "/v1/ports", port)
                await ask(app, 409, "PUT", f"/v1/nodes/{node}/traits/CUSTOM_A")
                child = {"driver": "fake-hardware", "parent_node": node}
                await ask(app, 409, "POST", "/v1/nodes", child)
            return await entries(app)

    told = [entry.event_type.removeprefix("baremetal.") for entry in asyncio.run(story())]
    assert told[2:] == [
        "port.create.start", "port.create.error", "node.update.start", "node.update.error",
        "node.create.start", "node.create.error",
    ]  # fmt: skip


@asynccontextmanager
async def fleet(data, url, size):
    async with running(data, url, work=True) as app:
        yield app, [await app.make_node() for _ in range(size)]


def test_500_fast_verbs_lose_no_end_and_none_tells_of_a_later_state(tmp_path, database_url):
    """Measured upstream: 22 of 30 ends lost, and starts that carried the final state."""

    async def story():
        async with fleet(tmp_path, database_url, 500) as (app, uuids):
            for start in range(0, 500, 50):
                await asyncio.gather(
                    *(verb(app, uuid, "manage") for uuid in uuids[start : start + 50])
                )
            for uuid in uuids:
                await until(app, uuid, "manageable")
            return await entries(app)

    told = {}
    for entry in asyncio.run(story()):
        if ".provision_set." in entry.event_type:
            data = msgspec.json.decode(entry.payload)["ironic_object.data"]
            status = entry.event_type.rpartition(".")[2]
            told.setdefault(entry.resource, []).append((status, data["provision_state"]))
    assert len(told) == 500
    assert all(moves == [("start", "verifying"), ("end", "manageable")] for moves in told.values())


async def _types(app, resource):
    """Publisher and type of all that was announced of a resource."""
    log = await eventlog.read(app.program.store, limit=100_000)
    return [(e.publisher_id, e.event_type) for e in log if e.resource == resource]


def test_a_port_that_the_driver_makes_is_announced_by_the_conductor(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            await verb(app, uuid, "inspect")
            await until(app, uuid, "manageable")
            (port,) = (await app.ask("GET", f"/v1/nodes/{uuid}/ports")).json["ports"]
            assert await _types(app, port["uuid"]) == [
                ("ironic-conductor.here", "baremetal.port.create.start"),
                ("ironic-conductor.here", "baremetal.port.create.end"),
            ]

    asyncio.run(story())


def test_a_port_that_the_driver_cannot_make_is_announced_as_failed(tmp_path, database_url):
    """Its address is another node's: one of both is wrong, and somebody should know."""

    async def story():
        async with running(tmp_path, database_url, work=True) as app:
            uuid, other = await app.make_node(), await app.make_node()
            await lead(app, uuid, "manage", "inspect")
            (port,) = (await app.ask("GET", f"/v1/nodes/{uuid}/ports")).json["ports"]
            await ask(app, 204, "DELETE", f"/v1/ports/{port['uuid']}")
            body = {"node_uuid": other, "address": port["address"]}
            await ask(app, 201, "POST", "/v1/ports", body)
            before = len(await entries(app))
            await lead(app, uuid, "inspect")
            assert (await app.ask("GET", f"/v1/nodes/{uuid}/ports")).json["ports"] == []
            told = [e for e in (await entries(app))[before:] if e.resource_type == "port"]
            assert [(e.publisher_id, e.event_type) for e in told] == [
                ("ironic-conductor.here", "baremetal.port.create.start"),
                ("ironic-conductor.here", "baremetal.port.create.error"),
            ]
            data = msgspec.json.decode(told[1].payload)["ironic_object.data"]
            assert (data["node_uuid"], data["address"]) == (uuid, port["address"])

    asyncio.run(story())


def test_maintenance_that_nobody_asked_for_is_covered_by_what_led_to_it(tmp_path):
    async def story():
        async with running(tmp_path, work=True, **OFTEN) as app:
            uuid = await switched_on(app, driver_info={"rack": "r1"})
            script(app, "rack:r1", unreachable=True)
            await seen(app, uuid, maintenance=True)
            told = [kind for _, kind in await _types(app, uuid)]
            assert not any("maintenance_set" in kind for kind in told)
            assert "power_failure.start" in told[-1]

    asyncio.run(story())


def test_a_search_index_can_leave_starts_and_errors_aside(tmp_path):
    """Neither changes what there is; what was not created is not found."""

    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node(name="there")
            clash = await app.ask("POST", "/v1/nodes", {"driver": "fake-hardware", "name": "there"})
            assert clash.status == 409
            newest = (await app.ask("GET", "/events/v1/events?limit=1000")).json["next"]
            async with asyncio.timeout(30):
                while True:
                    found = (await app.ask("GET", "/events/v1/search?type=node")).json
                    if found["current_to"] >= newest:
                        break
                    await asyncio.sleep(0.02)
            assert [one["data"]["uuid"] for one in found["results"]] == [uuid]

    asyncio.run(story())
