"""Provisioning work on simulated machines, end to end below HTTP's surface; on both databases."""

import asyncio

import pytest

from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.simulated import driver as simulated
from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.life.progress import SHOWN_LATE_S
from siderite.core import work
from siderite.core.times import iso
from siderite.core.times import seconds
from siderite.core.transition import Cause
from siderite.core.work import Due
from tests.baremetal.workers.lives import facts
from tests.baremetal.workers.lives import last_word
from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import script
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import verb
from tests.support.app import running


def told(pairs):
    return [
        (status, d["event"], d["previous_provision_state"], d["provision_state"])
        for status, d in pairs
    ]


def test_a_whole_life_announces_every_move_once_and_in_order(database_url, tmp_path):
    async def story():
        async with running(tmp_path, _db(database_url), work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage", "inspect", "provide", "active", "rescue", "unrescue")
            node = await lead(app, uuid, "deleted")
            assert told(await facts(app, uuid)) == [
                ("start", "manage", "enroll", "verifying"),
                ("end", "done", "verifying", "manageable"),
                ("start", "inspect", "manageable", "inspecting"),
                ("end", "done", "inspecting", "manageable"),
                ("start", "provide", "manageable", "cleaning"),
                ("end", "done", "cleaning", "available"),
                ("start", "deploy", "available", "deploying"),
                ("end", "done", "deploying", "active"),
                ("start", "rescue", "active", "rescuing"),
                ("end", "done", "rescuing", "rescue"),
                ("start", "unrescue", "rescue", "unrescuing"),
                ("end", "done", "unrescuing", "active"),
                ("start", "delete", "active", "deleting"),
                ("success", "clean", "deleting", "cleaning"),
                ("end", "done", "cleaning", "available"),
            ]
            assert node.properties["cpus"] == "8", "inspection filled in what it found"
            assert node.power_state == "power off"
            assert (node.instance_uuid, node.instance_info) == (None, {})
            assert await work.depth(app.program.store) == (0, 0)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("verbs", "target", "wait", "end"),
    [
        (("manage",), "provide", "clean wait", "available"),
        (("manage", "provide"), "active", "wait call-back", "active"),
        (("manage",), "inspect", "inspect wait", "manageable"),
        (("manage", "provide", "active"), "rescue", "rescue wait", "rescue"),
    ],
)
def test_wait_states_go_on_when_the_ramdisk_calls_back(tmp_path, verbs, target, wait, end):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, *verbs)
            script(app, f"node:{uuid}", latency_s={"*": 0.2}, ramdisk=True)
            more = {"rescue_password": "x"} if target == "rescue" else {}
            await verb(app, uuid, target, **more)
            waiting = await until(app, uuid, wait)
            assert "ramdisk is busy" in waiting.wait_reason
            assert waiting.deadline is not None
            node = await until(app, uuid, end)
            assert (node.wait_reason, node.deadline) == (None, None)
            states = [row[3] for row in told(await facts(app, uuid))]
            assert wait in states
            power = app.program.machines.power(Endpoint.of(node))
            assert node.power_state == power, "the record says how the ramdisk left the machine"

    asyncio.run(story())


def test_a_ramdisk_that_never_calls_fails_the_work_at_its_deadline(tmp_path):
    async def story():
        async with running(tmp_path, work=True, callback_timeout_s=0.3) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            script(app, f"node:{uuid}", silent=True)
            await verb(app, uuid, "provide")
            node = await until(app, uuid, "clean failed")
            assert "nothing called back within 0.3 s" in node.last_error
            assert (node.maintenance, node.fault) == (True, "clean failure")
            assert node.target_provision_state == "available"

    asyncio.run(story())


async def lateness(app, uuid):
    """How much longer the work on a node may wait than the node shows."""
    (item,) = await work.of_machine(app.program.store, uuid)
    return item.deadline - seconds((await app.node(uuid)).deadline)


async def set_back(app, uuid, by_s, *, overdue=False):
    """The node shows a deadline that is so much earlier, and its work is looked at now."""
    node = await app.node(uuid)
    (item,) = await work.of_machine(app.program.store, uuid)
    change = app.program.door.change(Cause())
    earlier = {"deadline": iso(seconds(node.deadline) - by_s)}
    change.put(NODES.swap(node, node.changed(change.now, earlier)))
    deadline = change.now if overdue else item.deadline
    late = "UPDATE work SET due = ?, deadline = ? WHERE machine = ? AND owner IS NULL"
    change.work(Due(late, (change.now, deadline, uuid), 1, change.now))
    await app.program.door.commit(change)


@pytest.mark.parametrize("maintenance", [False, True])
def test_the_deadline_that_a_node_shows_follows_the_calls_of_its_ramdisk(
    database_url, tmp_path, maintenance
):
    async def story():
        async with running(tmp_path, _db(database_url), work=True) as app:
            uuid = await app.plant("manageable")
            script(app, f"node:{uuid}", silent=True)
            await verb(app, uuid, "inspect")
            await until(app, uuid, "inspect wait")
            if maintenance:
                path = f"/v1/nodes/{uuid}/maintenance"
                assert (await app.ask("PUT", path, {"reason": "a new fan"})).status == 202
            await set_back(app, uuid, 600.0, overdue=maintenance)
            async with asyncio.timeout(30):
                while abs(await lateness(app, uuid)) > SHOWN_LATE_S:
                    await asyncio.sleep(0.01)
            shown = (await app.node(uuid)).deadline
            assert abs(await lateness(app, uuid)) < 0.001
            await set_back(app, uuid, SHOWN_LATE_S / 2)
            async with asyncio.timeout(30):
                while await lateness(app, uuid) <= SHOWN_LATE_S / 2:
                    await asyncio.sleep(0.01)
            assert (await app.node(uuid)).deadline < shown, "it is not written for so little"

    asyncio.run(story())


def test_work_that_broke_until_its_deadline_says_so_and_not_what_it_waited_for_before(
    tmp_path, monkeypatch
):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")

            async def broken(*args):
                raise ZeroDivisionError

            monkeypatch.setattr("siderite.baremetal.workers.steps.plan", broken)
            await verb(app, uuid, "inspect")
            async with asyncio.timeout(30):
                while not (await work.of_machine(app.program.store, uuid))[0].attempts:
                    await asyncio.sleep(0.01)
            change = app.program.door.change(Cause())
            late = "UPDATE work SET due = ?, deadline = ? WHERE machine = ?"
            change.work(Due(late, (change.now, change.now, uuid), 1, change.now))
            await app.program.door.commit(change)
            node = await until(app, uuid, "inspect failed")
            assert "unexpected error (ZeroDivisionError)" in node.last_error

    asyncio.run(story())


def test_a_step_that_fails_says_which_and_leaves_a_fault(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            script(app, f"node:{uuid}", fail={"deploy.erase_devices_metadata": "disk is gone"})
            await verb(app, uuid, "provide")
            node = await until(app, uuid, "clean failed")
            assert "step deploy.erase_devices_metadata failed: disk is gone" in node.last_error
            assert (node.maintenance, node.fault, node.clean_step) == (True, "clean failure", {})
            [_, (status, last)] = (await facts(app, uuid))[-2:]
            assert status == "error"
            assert last["last_error"] == node.last_error, "the change comes before the event"
            assert last["maintenance"] is True

    asyncio.run(story())


@pytest.mark.parametrize(
    ("verbs", "target", "failed"),
    [
        (("manage", "provide"), "active", "deploy failed"),
        (("manage",), "inspect", "inspect failed"),
        (("manage",), "adopt", "adopt failed"),
        (("manage", "provide", "active"), "rescue", "rescue failed"),
        (("manage", "provide", "active", "rescue"), "unrescue", "unrescue failed"),
        (("manage", "provide", "active"), "deleted", "error"),
    ],
)
def test_each_kind_of_work_fails_to_its_fail_state(tmp_path, verbs, target, failed):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, *verbs)
            script(app, f"node:{uuid}", fail={"*": "nothing works today"})
            more = {"rescue_password": "x"} if target == "rescue" else {}
            await verb(app, uuid, target, **more)
            node = await until(app, uuid, failed)
            assert "nothing works today" in node.last_error
            assert not node.maintenance

    asyncio.run(story())


def test_a_machine_that_cannot_be_read_fails_verification_with_the_remedy(tmp_path, monkeypatch):
    async def story():
        monkeypatch.setattr("siderite.baremetal.workers.steps.VERIFY_PATIENCE_S", 0.0)
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node(driver_info={"rack": "r1"})
            script(app, "rack:r1", unreachable=True)
            await verb(app, uuid, "manage")
            async with asyncio.timeout(10):
                while (node := await app.node(uuid)).last_error is None:
                    await asyncio.sleep(0.01)
            assert node.provision_state == "enroll"
            assert "check its address" in node.last_error

    asyncio.run(story())


def test_manual_cleaning_runs_exactly_what_was_asked_in_order(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            steps = [
                {"interface": "raid", "step": "delete_configuration"},
                {
                    "interface": "raid",
                    "step": "create_configuration",
                    "args": {"delete_existing": True},
                },
                {"interface": "power", "step": "power_on"},
            ]
            await verb(app, uuid, "clean", clean_steps=steps)
            node = await until(app, uuid, "manageable")
            assert (node.power_state, node.clean_step) == ("power on", {})
            ran = app.program.machines._db.execute(
                "SELECT what FROM runs ORDER BY began"
            ).fetchall()
            assert [row[0] for row in ran] == [
                "raid.delete_configuration",
                "raid.create_configuration",
                "power.power on",
            ]

    asyncio.run(story())


def test_an_unknown_step_fails_before_anything_is_done_and_names_the_known_ones(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            await verb(app, uuid, "clean", clean_steps=[{"interface": "bios", "step": "dance"}])
            node = await until(app, uuid, "clean failed")
            assert "has no step bios.dance; it has: bios.apply_configuration" in node.last_error
            assert not node.maintenance
            await lead(app, uuid, "manage")

    asyncio.run(story())


@pytest.mark.parametrize(
    ("step", "args", "known"),
    [
        ("bios.factory_reset", {"settings": []}, "none"),
        ("raid.create_configuration", {"create_root": True}, "create_root_volume"),
        ("power.wait", {"minutes": 1}, "seconds"),
        ("power.power_off", {"soft": True}, "none"),
    ],
)
def test_a_step_with_an_argument_it_does_not_take_fails_before_anything_is_done(
    tmp_path, step, args, known
):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            interface, _, name = step.partition(".")
            steps = [{"interface": interface, "step": name, "args": args}]
            await verb(app, uuid, "clean", clean_steps=steps)
            node = await until(app, uuid, "clean failed", "manageable")
            assert f"step {step} has no argument {next(iter(args))!r}" in (node.last_error or "")
            assert f"it takes: {known}" in node.last_error
            assert not node.maintenance

    asyncio.run(story())


def test_an_abortable_step_is_aborted_at_once(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            script(app, f"node:{uuid}", latency_s={"*": 3600}, ramdisk=True)
            await verb(app, uuid, "provide")
            await until(app, uuid, "clean wait")
            await verb(app, uuid, "abort")
            node = await until(app, uuid, "clean failed")
            assert node.last_error == (
                "Aborted by request in state clean wait during step deploy.erase_devices_metadata."
            )
            assert (node.maintenance, node.clean_step) == (False, {})
            assert node.target_provision_state == "available"
            async with asyncio.timeout(10):
                while await work.depth(app.program.store) != (0, 0):
                    await asyncio.sleep(0.01)

    asyncio.run(story())


def test_a_step_that_cannot_be_interrupted_is_aborted_when_it_ends(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage", "provide")
            script(app, f"node:{uuid}", latency_s={"*": 0.3}, ramdisk=True)
            await verb(app, uuid, "active")
            await until(app, uuid, "wait call-back")
            for _ in range(2):
                await verb(app, uuid, "abort")
            assert (await app.node(uuid)).deploy_step["abort_after"] is True
            assert await last_word(app, uuid) == "update.end"
            assert len(await facts(app, uuid, "update")) == 2
            node = await until(app, uuid, "deploy failed")
            assert "aborted by request" in node.last_error

    asyncio.run(story())


def test_an_abort_is_not_lost_on_whoever_looks_at_the_step_just_then(tmp_path, monkeypatch):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage", "provide")
            script(app, f"node:{uuid}", latency_s={"*": 0.2}, ramdisk=True)
            run, looking, seen = simulated._Simulated.run, asyncio.Event(), asyncio.Event()

            async def slow(self, at, family, step, token):
                outcome = await run(self, at, family, step, token)
                if isinstance(outcome, Done) and not looking.is_set():
                    looking.set()
                    await seen.wait()
                return outcome

            monkeypatch.setattr(simulated._Simulated, "run", slow)
            await verb(app, uuid, "active")
            async with asyncio.timeout(30):
                await looking.wait()
            assert (await app.node(uuid)).provision_state == "wait call-back"
            await verb(app, uuid, "abort")
            seen.set()
            node = await until(app, uuid, "deploy failed", "active")
            assert "aborted by request" in (node.last_error or ""), node.provision_state

    asyncio.run(story())


@pytest.mark.parametrize("ends", ["failed", "aborted"])
def test_the_password_of_a_rescue_that_failed_is_forgotten(tmp_path, ends):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage", "provide", "active")
            if ends == "failed":
                script(app, f"node:{uuid}", fail={"rescue": "no way in"})
            else:
                script(app, f"node:{uuid}", latency_s={"*": 3600}, ramdisk=True)
            await verb(app, uuid, "rescue", rescue_password="hunter2")
            if ends == "aborted":
                await until(app, uuid, "rescue wait")
                await verb(app, uuid, "abort")
            node = await until(app, uuid, "rescue failed")
            assert "rescue_password" not in node.instance_info

    asyncio.run(story())


def test_deleting_a_node_that_waits_gives_up_its_deploy(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage", "provide")
            script(app, f"node:{uuid}", latency_s={"deploy.write_image": 3600}, ramdisk=True)
            await verb(app, uuid, "active")
            await until(app, uuid, "wait call-back")
            node = await lead(app, uuid, "deleted")
            assert node.power_state == "power off"

    asyncio.run(story())


def test_a_held_node_waits_for_unhold_and_goes_on_with_the_next_step(database_url, tmp_path):
    async def story():
        async with running(tmp_path, _db(database_url), work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            steps = [
                {"interface": "raid", "step": "delete_configuration"},
                {"interface": "deploy", "step": "hold"},
                {"interface": "power", "step": "power_on"},
            ]
            await verb(app, uuid, "clean", clean_steps=steps)
            held = await until(app, uuid, "clean hold")
            assert held.target_provision_state == "manageable"
            assert "unhold or abort" in held.wait_reason
            await verb(app, uuid, "unhold")
            node = await until(app, uuid, "manageable")
            assert node.power_state == "power on"
            ran = app.program.machines._db.execute("SELECT what FROM runs").fetchall()
            assert len(ran) == 2, "no step ran twice"

    asyncio.run(story())


def test_a_call_that_comes_when_the_node_is_held_already_does_not_lose_its_steps(tmp_path):
    """A ramdisk that calls finds its node waiting, and the hold begins before the work is woken."""

    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            steps = [
                {"interface": "deploy", "step": "hold"},
                {"interface": "power", "step": "power_on"},
            ]
            await verb(app, uuid, "clean", clean_steps=steps)
            await until(app, uuid, "clean hold")
            change = app.program.door.change(Cause())
            change.work(work.wake(uuid, "provision", change.now))
            await app.program.door.commit(change)
            async with asyncio.timeout(10):
                while any(item.due != work.FAR for item in await _work(app, uuid)):
                    await asyncio.sleep(0.01)
            assert len(await _work(app, uuid)) == 1
            await verb(app, uuid, "unhold")
            node = await until(app, uuid, "manageable")
            assert node.power_state == "power on"

    asyncio.run(story())


async def _work(app, uuid):
    return await work.of_machine(app.program.store, uuid)


def test_an_aborted_service_brings_the_node_back_to_active(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage", "provide", "active")
            steps = [{"interface": "deploy", "step": "hold"}]
            await verb(app, uuid, "service", service_steps=steps)
            await until(app, uuid, "service hold")
            await verb(app, uuid, "abort")
            await until(app, uuid, "active")

    asyncio.run(story())


def test_servicing_runs_its_steps_and_keeps_the_workload(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node(instance_uuid="22222222-2222-4222-8222-222222222222")
            await lead(app, uuid, "manage", "provide", "active")
            image = {"component": "bmc", "url": "http://a/bmc-2.0.bin"}
            step = {"interface": "firmware", "step": "update", "args": {"settings": [image]}}
            await verb(app, uuid, "service", service_steps=[step])
            node = await until(app, uuid, "active")
            assert node.instance_uuid == "22222222-2222-4222-8222-222222222222"

    asyncio.run(story())


def test_without_automated_cleaning_provide_leads_through_cleaning_at_once(tmp_path):
    async def story():
        async with running(tmp_path, work=True, automated_clean=False) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage", "provide")
            assert [row[3] for row in told(await facts(app, uuid))][-2:] == [
                "cleaning",
                "available",
            ]
            ran = app.program.machines._db.execute("SELECT count(*) FROM runs").fetchone()
            assert ran[0] == 0

    asyncio.run(story())


def test_a_retired_node_ends_cleaning_as_manageable(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage", "provide", "active")
            patch = [{"op": "add", "path": "/retired", "value": True}]
            assert (await app.ask("PATCH", f"/v1/nodes/{uuid}", patch)).status == 200
            await verb(app, uuid, "deleted")
            await until(app, uuid, "manageable")

    asyncio.run(story())


def test_a_deploy_merges_the_steps_that_were_asked_for_by_priority(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage", "provide")
            asked = [
                {"interface": "raid", "step": "create_configuration", "args": {}, "priority": 90},
                {"interface": "bios", "step": "factory_reset", "args": {}, "priority": 50},
            ]
            await verb(app, uuid, "active", deploy_steps=asked)
            await until(app, uuid, "active")
            ran = app.program.machines._db.execute(
                "SELECT what FROM runs ORDER BY began DESC LIMIT 3"
            ).fetchall()
            assert [row[0] for row in reversed(ran)] == [
                "raid.create_configuration",
                "deploy.write_image",
                "bios.factory_reset",
            ]

    asyncio.run(story())


def test_changes_to_the_node_meanwhile_do_not_disturb_its_work(database_url, tmp_path):
    async def story():
        async with running(tmp_path, _db(database_url), work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage")
            script(app, f"node:{uuid}", latency_s={"*": 0.01})
            steps = [{"interface": "raid", "step": "delete_configuration"}] * 10
            await verb(app, uuid, "clean", clean_steps=steps)
            count = 0
            while (await app.node(uuid)).provision_state != "manageable":
                patch = [{"op": "add", "path": "/extra/n", "value": count}]
                assert (await app.ask("PATCH", f"/v1/nodes/{uuid}", patch)).status == 200
                count += 1
            assert (await app.node(uuid)).extra == {"n": count - 1}
            assert count > 3

    asyncio.run(story())


def test_work_goes_on_after_a_restart_where_it_stood(database_url, tmp_path):
    async def story():
        async with running(tmp_path, _db(database_url), work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage", "provide")
            script(app, f"node:{uuid}", latency_s={"deploy.write_image": 1.0}, ramdisk=True)
            await verb(app, uuid, "active")
            await until(app, uuid, "wait call-back")
        async with running(tmp_path, _db(database_url), work=True) as app:
            await until(app, uuid, "active")
            asked = app.program.machines._db.execute(
                "SELECT what, count(*) FROM runs GROUP BY what"
            ).fetchall()
            assert dict(asked)["deploy.write_image"] == 1

    asyncio.run(story())


def _db(url):
    return "" if url.startswith("sqlite") else url
