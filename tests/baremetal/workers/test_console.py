"""Consoles are switched by durable work, and outlive the process that carried them."""

import asyncio
import contextlib

import pytest

from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.machine import console
from siderite.core import work
from siderite.core.store import Op
from tests.baremetal.workers.lives import facts
from tests.baremetal.workers.lives import lead
from tests.baremetal.workers.lives import script
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import verb
from tests.support.app import running


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Homes look after their consoles all the time."""
    monkeypatch.setattr("siderite.baremetal.workers.console.BEAT_S", 0.05)


async def switch(app, uuid, enabled, status=202):
    """Ask for the console to be on or off."""
    path = f"/v1/nodes/{uuid}/states/console"
    answer = await app.ask("PUT", path, {"enabled": enabled})
    assert answer.status == status, answer
    return answer


async def shown(app, uuid):
    """What the API says of the console."""
    return (await app.ask("GET", f"/v1/nodes/{uuid}/states/console")).json


async def until_on(app, uuid):
    """The URL of a console once it is on."""
    async with asyncio.timeout(30):
        while not (now := await shown(app, uuid))["console_info"]:
            await asyncio.sleep(0.01)
    assert now["console_enabled"]
    return now["console_info"]["url"]


async def until_off(app, uuid):
    """Once it is off."""
    async with asyncio.timeout(30):
        while (now := await shown(app, uuid))["console_enabled"]:
            await asyncio.sleep(0.01)
    assert now == {"console_enabled": False, "console_info": None}


async def greeting(url):
    """What a console says to whoever connects."""
    host, _, port = url.removeprefix("tcp://").partition(":")
    async with asyncio.timeout(30):
        reader, writer = await asyncio.open_connection(host, int(port))
        text = await reader.readuntil(b"login: ")
        writer.close()
    return text.decode()


async def told(app, uuid):
    """The console facts of a node, in order."""
    order = "seq" if app.program.store.dialect == "sqlite" else "id"
    sql = f"SELECT event_type FROM events WHERE resource = ? ORDER BY {order}"
    names = [str(row[0]) for row in await app.program.store.fetch(sql, (uuid,))]
    return [name.removeprefix("baremetal.node.") for name in names if "console" in name]


@pytest.mark.parametrize("field", ["owner", "lessee"])
def test_a_console_ends_with_the_loan_of_whoever_knows_its_address(database_url, tmp_path, field):
    async def story():
        async with running(tmp_path, database_url, work=True) as app:
            uuid = await app.plant("active", owner="us")
            await switch(app, uuid, True)
            url = await until_on(app, uuid)
            await patched(app, uuid, "lessee", "them")
            assert await until_on(app, uuid) == url, "nobody is gone"
            await patched(app, uuid, field, "others")
            assert await shown(app, uuid) == {"console_enabled": False, "console_info": None}
            stopped = ["console_stop.start", "console_stop.end"]
            assert await told(app, uuid) == ["console_set.start", "console_set.end", *stopped]
            await until_refused(url)
            await switch(app, uuid, True)
            assert uuid in await greeting(await until_on(app, uuid))

    asyncio.run(story())


def test_so_it_does_where_an_inspection_rule_gives_the_node_to_others(database_url, tmp_path):
    async def story():
        async with running(tmp_path, database_url, work=True) as app:
            uuid = await app.plant("manageable", owner="us")
            await switch(app, uuid, True)
            url = await until_on(app, uuid)
            await lead(app, uuid, "inspect")
            assert await until_on(app, uuid) == url, "nobody is gone"
            given = {"op": "set-attribute", "args": ["owner", "others"]}
            made = await app.ask("POST", "/v1/inspection_rules", {"actions": [given]})
            assert made.status == 201, made
            await lead(app, uuid, "inspect")
            assert (await app.node(uuid)).owner == "others"
            assert await shown(app, uuid) == {"console_enabled": False, "console_info": None}
            stopped = ["console_stop.start", "console_stop.end"]
            assert await told(app, uuid) == ["console_set.start", "console_set.end", *stopped]
            await until_refused(url)

    asyncio.run(story())


async def until_refused(url):
    """Once nobody can connect there any more."""
    host, _, port = url.removeprefix("tcp://").partition(":")
    async with asyncio.timeout(30):
        while True:
            try:
                _, writer = await asyncio.open_connection(host, int(port))
            except OSError:
                return
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            await asyncio.sleep(0.01)


async def until_waiting(app, uuid):
    """Once the machine was found to be away, and is asked again later."""
    async with asyncio.timeout(30):
        while not any(
            "be reached" in (item.reason or "") and not item.is_leased
            for item in await work.of_machine(app.program.store, uuid)
        ):
            await asyncio.sleep(0.01)


async def patched(app, uuid, field, value):
    """Once a field of the node has this value."""
    patch = [{"op": "add", "path": f"/{field}", "value": value}]
    assert (await app.ask("PATCH", f"/v1/nodes/{uuid}", patch)).status == 200


def test_a_console_is_opened_anew_when_the_way_to_its_machine_changes(database_url, tmp_path):
    async def story():
        async with running(tmp_path, database_url, work=True) as app:
            uuid = await app.plant("active")
            await switch(app, uuid, True)
            url = await until_on(app, uuid)
            await patched(app, uuid, "extra/a", "b")
            assert (await shown(app, uuid))["console_info"]["url"] == url
            await patched(app, uuid, "driver_info", {"rack": "r2"})
            assert await shown(app, uuid) == {"console_enabled": True, "console_info": None}
            assert uuid in await greeting(await until_on(app, uuid))
            switched = ["console_set.start", "console_set.end"]
            restored = ["console_restore.start", "console_restore.end"]
            assert await told(app, uuid) == [*switched, *restored]

    asyncio.run(story())


def test_a_console_that_was_just_being_opened_in_the_old_way_is_opened_anew_too(
    tmp_path, monkeypatch
):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("active")
            ended = console.ended

            async def late(*args, **more):
                monkeypatch.setattr(console, "ended", ended)
                await patched(app, uuid, "driver_info", {"rack": "r2"})
                await ended(*args, **more)

            monkeypatch.setattr(console, "ended", late)
            await switch(app, uuid, True)
            assert uuid in await greeting(await until_on(app, uuid))
            assert (await told(app, uuid))[2:] == ["console_restore.start", "console_restore.end"]

    asyncio.run(story())


def test_a_console_that_is_being_switched_on_is_not_for_who_is_gone(database_url, tmp_path):
    async def story():
        async with running(tmp_path, database_url, work=True) as app:
            uuid = await app.plant("active", lessee="them")
            script(app, f"node:{uuid}", unreachable=True)
            await switch(app, uuid, True)
            await until_waiting(app, uuid)
            await patched(app, uuid, "lessee", None)
            script(app, f"node:{uuid}", unreachable=False)
            assert await told(app, uuid) == ["console_set.start", "console_set.error"]
            await switch(app, uuid, True)
            await until_on(app, uuid)

    asyncio.run(story())


def test_a_console_can_be_asked_for_while_a_worker_still_has_what_was_given_up(
    database_url, tmp_path
):
    async def story():
        async with running(tmp_path, database_url) as app:
            uuid = await app.plant("active", lessee="them")
            await switch(app, uuid, True)
            held = "UPDATE work SET owner = 'somebody', lease_until = 1e12 WHERE machine = ?"
            await app.program.store.commit([Op(held, (uuid,), 1)])
            await switch(app, uuid, True, 409)
            await patched(app, uuid, "lessee", None)
            await switch(app, uuid, True)
            started = "console_set.start"
            assert await told(app, uuid) == [started, "console_set.error", started]

    asyncio.run(story())


def test_a_console_is_switched_on_connected_to_and_off(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("active")
            assert await shown(app, uuid) == {"console_enabled": False, "console_info": None}
            answer = await switch(app, uuid, True)
            assert answer.headers["location"].endswith(f"/v1/nodes/{uuid}/states/console")
            url = await until_on(app, uuid)
            assert uuid in await greeting(url)
            await switch(app, uuid, True)  # it is on already: nothing happens
            await switch(app, uuid, False)
            await until_off(app, uuid)
            with pytest.raises(OSError, match="onnect"):
                await greeting(url)
            await switch(app, uuid, False)
            assert await told(app, uuid) == [f"console_set.{s}" for s in ("start", "end")] * 2

    asyncio.run(story())


def test_a_console_that_fails_is_an_error_and_stays_as_it_was(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("active")
            script(app, f"node:{uuid}", fail={"console.start": "no serial line"})
            await switch(app, uuid, True)
            async with asyncio.timeout(30):
                while (node := await app.node(uuid)).last_error is None:
                    await asyncio.sleep(0.01)
            assert "Failed to start the console" in node.last_error
            assert "no serial line" in node.last_error
            assert not node.console_enabled
            assert await told(app, uuid) == ["console_set.start", "console_set.error"]

    asyncio.run(story())


def test_a_node_without_a_console_refuses(tmp_path):
    async def story():
        async with running(tmp_path) as app:
            uuid = await app.plant("active", console_interface="no-console")
            answer = await switch(app, uuid, True, status=400)
            assert "does not support console" in answer.sentence
            other = await app.plant("active")
            await switch(app, other, True)
            busy = await switch(app, other, True, status=409)
            assert "switched on" in busy.sentence
            for body in ({}, {"enabled": None}, {"enabled": "perhaps"}, [], {"enabled": 1, "x": 1}):
                wrong = await app.ask("PUT", f"/v1/nodes/{other}/states/console", body)
                assert wrong.status == 400, wrong

    asyncio.run(story())


def test_who_finds_the_console_being_changed_is_told_why_in_one_sentence(tmp_path):
    async def story():
        async with running(tmp_path, work=True, power_timeout_s=3600.0) as app:
            uuid = await app.plant("active")
            script(app, f"node:{uuid}", unreachable=True)
            await switch(app, uuid, True)
            async with asyncio.timeout(30):
                while "reached" not in (busy := await switch(app, uuid, True, 409)).sentence:
                    await asyncio.sleep(0.01)
            assert busy.sentence.endswith("then try again.")
            assert ".." not in busy.sentence

    asyncio.run(story())


def test_consoles_are_restored_when_the_program_starts(tmp_path, database_url):
    async def story():
        async with running(tmp_path, database_url, work=True) as app:
            uuid, gone = await app.plant("active"), await app.make_node()
            first = {}
            for node in (uuid, gone):
                await switch(app, node, True)
                first[node] = await until_on(app, node)
            assert (await app.ask("DELETE", f"/v1/nodes/{gone}")).status == 204
            ends = ["console_set.start", "console_set.end"]
            assert await told(app, gone) == ends * 2
            was = [data["console_enabled"] for _, data in await facts(app, gone, "console_set")]
            assert was == [False, True, True, False]
            async with asyncio.timeout(30):
                while True:
                    try:
                        await greeting(first[gone])
                    except OSError:
                        break
                    await asyncio.sleep(0.05)
        async with running(tmp_path, database_url) as app:  # nothing is restored in this one
            if app.program.store.dialect == "sqlite":  # what was killed could not leave
                await app.program.store.commit([Op("UPDATE consoles SET home = 'here:1:x'")])
                await app.program.store.commit([Op("UPDATE console_homes SET home = 'here:1:x'")])
            else:
                await app.program.store.commit([Op("DELETE FROM console_homes")])
            assert await shown(app, uuid) == {"console_enabled": True, "console_info": None}
        async with running(tmp_path, database_url, work=True) as app:
            restored = ["console_restore.start", "console_restore.end"]
            async with asyncio.timeout(30):
                while await told(app, uuid) != ends + restored:
                    await asyncio.sleep(0.05)
            assert uuid in await greeting(await until_on(app, uuid))

    asyncio.run(story())


def test_a_home_that_is_alone_says_once_that_it_lives(tmp_path):
    """Else an idle program would wait for its disk every few seconds."""

    async def story():
        async with running(tmp_path) as app:
            jobs = app.program.jobs
            home = next(
                job.__self__ for job in jobs if getattr(job, "__qualname__", "") == "Consoles.run"
            )
            written = []
            commit = app.program.store.commit
            app.program.store.commit = lambda ops: (written.append(ops), commit(ops))[1]
            for _ in range(3):
                await home._beat()
            assert len(written) == 1

    asyncio.run(story())


def test_a_console_that_cannot_be_restored_is_off_and_says_why(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("active")
            await switch(app, uuid, True)
            await until_on(app, uuid)
            script(app, f"node:{uuid}", fail={"console": "BMC was replaced"})
        async with running(tmp_path, work=True) as app:
            await until_off(app, uuid)
            assert "BMC was replaced" in (await app.node(uuid)).last_error
            assert (await told(app, uuid))[-2:] == [
                "console_restore.start",
                "console_restore.error",
            ]

    asyncio.run(story())


def test_a_console_that_is_switched_off_just_when_it_is_to_be_restored_goes_off(
    tmp_path, database_url, monkeypatch
):
    async def story():
        async with running(tmp_path, database_url) as app:
            uuid = await app.make_node(console_enabled=True)
            store = app.program.store
            fetch = store.fetch

            async def slow(sql, args=()):
                found = await fetch(sql, args)
                if "console_homes" in sql and "consoles" in sql:
                    monkeypatch.undo()
                    await switch(app, uuid, False)
                return found

            monkeypatch.setattr(store, "fetch", slow)
            await console.restore(app.program.baremetal, "here:1:x")
            assert await told(app, uuid) == ["console_set.start"]
            [asked] = await work.of_machine(store, uuid)
            assert '"enabled":false' in asked.job

    asyncio.run(story())


def test_a_console_that_is_to_be_restored_just_when_its_node_goes_is_given_up(
    tmp_path, database_url, monkeypatch
):
    async def story():
        async with running(tmp_path, database_url) as app:
            uuid = await app.make_node(console_enabled=True)
            of_machine = work.of_machine

            async def slow(*args):
                found = await of_machine(*args)
                monkeypatch.setattr(work, "of_machine", of_machine)
                await console.restore(app.program.baremetal, "here:1:x")
                return found

            monkeypatch.setattr(work, "of_machine", slow)
            assert (await app.ask("DELETE", f"/v1/nodes/{uuid}")).status == 204
            ends = ["console_restore.error", "console_set.start", "console_set.end"]
            assert await told(app, uuid) == ["console_restore.start", *ends]

    asyncio.run(story())


def test_a_console_that_is_still_to_be_restored_can_be_switched_off(tmp_path, database_url):
    """Its BMC may never come back."""

    async def story():
        async with running(tmp_path, database_url, work=True) as app:
            uuid = await app.plant("active")
            await switch(app, uuid, True)
            await until_on(app, uuid)
            script(app, f"node:{uuid}", unreachable=True)
        async with running(tmp_path, database_url, work=True) as app:
            async with asyncio.timeout(30):
                while (await told(app, uuid))[-1] != "console_restore.start":
                    await asyncio.sleep(0.02)
            await switch(app, uuid, True, 409)
            await switch(app, uuid, False)
            await until_off(app, uuid)
            ends = ["console_restore.error", "console_set.start", "console_set.end"]
            assert (await told(app, uuid))[-3:] == ends
            script(app, f"node:{uuid}")
            async with asyncio.timeout(30):
                while await work.depth(app.program.store) != (0, 0):
                    await asyncio.sleep(0.02)
            assert (await told(app, uuid))[-3:] == ends
            await switch(app, uuid, True)
            assert uuid in await greeting(await until_on(app, uuid))

    asyncio.run(story())


def test_a_console_that_is_switched_off_just_when_its_node_is_torn_down_ends_once(
    tmp_path, monkeypatch
):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.plant("active")
            script(app, f"node:{uuid}", unreachable=True)
            node = await app.node(uuid)
            on = NODES.swap(node, node.changed(0, {"console_enabled": True}))
            await app.program.store.commit([on, console.wanted(uuid)])
            async with asyncio.timeout(30):
                while await told(app, uuid) != ["console_restore.start"]:
                    await asyncio.sleep(0.01)
            steps = app.program.baremetal.hardware._drivers["fake-hardware"].steps
            run = steps.run

            async def slow(*args):
                monkeypatch.setattr(steps, "run", run)
                await switch(app, uuid, False)
                script(app, f"node:{uuid}")
                return await run(*args)

            monkeypatch.setattr(steps, "run", slow)
            await verb(app, uuid, "deleted")
            await until(app, uuid, "available")
            ends = ["console_restore.error", "console_set.start", "console_set.end"]
            assert await told(app, uuid) == ["console_restore.start", *ends]

    asyncio.run(story())


def test_a_node_made_with_its_console_on_gets_it(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node(console_enabled=True)
            assert uuid in await greeting(await until_on(app, uuid))

    asyncio.run(story())


def test_a_nodes_console_ends_before_the_node_does(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await switch(app, uuid, True)
            await until_on(app, uuid)
            assert (await app.ask("DELETE", f"/v1/nodes/{uuid}")).status == 204
            stopped = (await facts(app, uuid, "console_set"))[2:]
            removed = await facts(app, uuid, "delete")
            return [(status, data["console_enabled"]) for status, data in (*stopped, *removed)]

    assert asyncio.run(story()) == [
        ("start", True), ("end", False), ("start", False), ("end", False),
    ]  # fmt: skip


def test_an_instances_console_ends_with_it(tmp_path):
    async def story():
        async with running(tmp_path, work=True) as app:
            uuid = await app.make_node()
            await lead(app, uuid, "manage", "provide", "active")
            await switch(app, uuid, True)
            await until_on(app, uuid)
            node = await lead(app, uuid, "deleted")
            assert not node.console_enabled
            assert (await told(app, uuid))[-2:] == ["console_stop.start", "console_stop.end"]

    asyncio.run(story())


def test_a_console_moves_to_a_process_that_lives_once(tmp_path, postgres_url, monkeypatch):
    monkeypatch.setattr("siderite.baremetal.workers.console.SILENT_S", 1.0)

    async def story():
        async with (
            running(tmp_path / "a", postgres_url, work=True) as one,
            running(tmp_path / "b", postgres_url, work=True) as two,
        ):
            uuid = await one.plant("active")
            await switch(one, uuid, True)
            await until_on(two, uuid)
            # Its home falls silent for ever: a process that was killed leaves such a row behind.
            sql = "UPDATE consoles SET home = 'elsewhere:1:x'"
            await one.program.store.write(sql + " RETURNING node_uuid", ())
            async with asyncio.timeout(30):
                while len(await told(one, uuid)) < 4:
                    await asyncio.sleep(0.02)
            assert uuid in await greeting(await until_on(two, uuid))
            await asyncio.sleep(0.3)
            expected = [f"console_{a}.{s}" for a in ("set", "restore") for s in ("start", "end")]
            assert await told(one, uuid) == expected

    asyncio.run(story())
