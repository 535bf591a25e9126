"""Each real change of power reaches the compute service, in order, whatever happens to it or us."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from siderite.baremetal.workers import compute_api
from siderite.baremetal.workers import tell_compute
from siderite.core.ids import new_uuid
from tests.baremetal.workers.lives import facts
from tests.baremetal.workers.lives import until
from tests.baremetal.workers.lives import verb
from tests.baremetal.workers.receiver import Receiver
from tests.baremetal.workers.receiver import receiving
from tests.baremetal.workers.receiver import wait_for
from tests.support.app import running
from tests.support.server import running_server


@pytest.fixture(params=["sqlite", "postgresql"])
def db(request):
    """No URL is SQLite in the data folder."""
    return "" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """Pauses of a test's length."""
    monkeypatch.setattr(tell_compute, "FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(tell_compute, "LONGEST_PAUSE_S", 0.1)


@pytest.fixture
def receiver():
    with receiving() as made:
        yield made


async def carrier(app, server=None, **fields):
    """A node that carries a server, off and recorded so."""
    return await app.plant(
        "active", instance_uuid=server or new_uuid(), power_state="power off", **fields
    )


async def power(app, uuid, target):
    answer = await app.ask("PUT", f"/v1/nodes/{uuid}/states/power", {"target": target})
    assert answer.status == 202, answer
    async with asyncio.timeout(30):
        while (await app.node(uuid)).target_power_state is not None:
            await asyncio.sleep(0.005)


async def taken(receiver, count):
    async with asyncio.timeout(30):
        while len(receiver.taken) < count:
            await asyncio.sleep(0.01)
    return receiver.taken


async def nothing_left(app):
    async with asyncio.timeout(30):
        while True:
            counts = [
                (await app.program.store.fetch(f"SELECT count(*) FROM {table}"))[0][0]
                for table in ("work", "power_updates")
            ]
            if counts == [0, 0]:
                return
            await asyncio.sleep(0.01)


QUIET = {"power_watch_interval_s": 0.0}


def test_changes_are_told_in_the_words_of_the_external_events_api(tmp_path, db, receiver):
    async def story():
        options = {**QUIET, "compute_endpoint": receiver.url}
        async with running(tmp_path, db, work=True, **options) as app:
            server = new_uuid()
            uuid = await carrier(app, server)
            await power(app, uuid, "power on")
            await power(app, uuid, "power on")  # nothing changes, nothing is told
            await power(app, uuid, "power off")
            assert await taken(receiver, 2) == [(server, "POWER_ON"), (server, "POWER_OFF")]
            _, body, headers = receiver.heard[0]
            assert body == {
                "events": [{"name": "power-update", "server_uuid": server, "tag": "POWER_ON"}]
            }
            assert headers["OpenStack-API-Version"] == "compute 2.76"
            assert headers["X-OpenStack-Nova-API-Version"] == "2.76"
            await nothing_left(app)
            said = await facts(app, uuid, "power_update")
            assert [(status, d["tag"], d["code"]) for status, d in said] == [
                ("end", "POWER_ON", 200), ("end", "POWER_OFF", 200),
            ]  # fmt: skip

    asyncio.run(story())


@asynccontextmanager
async def switched_on(tmp_path, receiver):
    """A node that carries a server and was switched on; and what it told of that."""
    options = {**QUIET, "compute_endpoint": receiver.url}
    async with running(tmp_path, work=True, **options) as app:
        server = new_uuid()
        uuid = await carrier(app, server)
        await power(app, uuid, "power on")
        yield app, uuid, server


def test_what_is_done_to_a_node_in_maintenance_is_not_told(tmp_path, receiver):
    async def story():
        async with switched_on(tmp_path, receiver) as (app, uuid, server):
            await app.ask("PUT", f"/v1/nodes/{uuid}/maintenance", {"reason": "new fan"})
            await power(app, uuid, "power off")
            await power(app, uuid, "power on")
            await app.ask("DELETE", f"/v1/nodes/{uuid}/maintenance")
            await power(app, uuid, "power off")
            assert await taken(receiver, 2) == [(server, "POWER_ON"), (server, "POWER_OFF")]
            await nothing_left(app)

    asyncio.run(story())


async def maintained(app, uuid, *, on, patch):
    """A user sets or ends maintenance, by the one way or the other."""
    path = f"/v1/nodes/{uuid}"
    if patch:
        body = [{"op": "replace", "path": "/maintenance", "value": on}]
        answer = await app.ask("PATCH", path, body)
    elif on:
        answer = await app.ask("PUT", f"{path}/maintenance", {})
    else:
        answer = await app.ask("DELETE", f"{path}/maintenance")
    assert answer.status < 300, answer


@pytest.mark.parametrize("patch", [False, True])
def test_what_a_repair_leaves_otherwise_is_told_when_the_maintenance_ends(
    tmp_path, receiver, patch
):
    """Else a Nova that knows it as off would switch off again what was repaired."""

    async def story():
        async with switched_on(tmp_path, receiver) as (app, uuid, server):
            await power(app, uuid, "power off")
            assert await taken(receiver, 2) == [(server, "POWER_ON"), (server, "POWER_OFF")]
            for target, tag in (("power on", "POWER_ON"), ("power off", "POWER_OFF")):
                await maintained(app, uuid, on=True, patch=patch)
                await power(app, uuid, target)
                await nothing_left(app)
                before = len(receiver.taken)
                await maintained(app, uuid, on=False, patch=patch)
                told = await taken(receiver, before + 1)
                assert told[before:] == [(server, tag)]
            await nothing_left(app)

    asyncio.run(story())


def test_the_end_of_a_server_is_told_of_too(tmp_path, receiver):
    """The node goes off while it is still the server's."""

    async def story():
        async with switched_on(tmp_path, receiver) as (app, uuid, server):
            await verb(app, uuid, "deleted")
            await until(app, uuid, "available")
            assert await taken(receiver, 2) == [(server, "POWER_ON"), (server, "POWER_OFF")]
            await nothing_left(app)

    asyncio.run(story())


def test_a_node_without_a_server_is_nobodys_news(tmp_path, receiver):
    async def story():
        options = {**QUIET, "compute_endpoint": receiver.url}
        async with running(tmp_path, work=True, **options) as app:
            uuid = await app.plant("active", power_state="power off")
            await power(app, uuid, "power on")
            await nothing_left(app)
            assert receiver.heard == []

    asyncio.run(story())


def test_what_happens_behind_our_back_is_told_and_unknown_is_not(tmp_path, receiver):
    async def story():
        options = {"power_watch_interval_s": 0.2, "compute_endpoint": receiver.url}
        async with running(tmp_path, work=True, **options) as app:
            server = new_uuid()
            uuid = await carrier(app, server, driver_info={"rack": "r1"})
            await power(app, uuid, "power on")
            await app.ask(
                "PUT", "/simulator/v1/scripts/rack:r1", {"unreachable": True}, version=None
            )
            app.program.machines.cut_power("r1")
            async with asyncio.timeout(30):
                while (await app.node(uuid)).power_state is not None:
                    await asyncio.sleep(0.01)
            assert await taken(receiver, 1) == [(server, "POWER_ON")]
            await app.ask("DELETE", "/simulator/v1/scripts/rack:r1", version=None)
            assert await taken(receiver, 2) == [(server, "POWER_ON"), (server, "POWER_OFF")]

    asyncio.run(story())


def test_a_service_that_fails_hangs_babbles_and_is_away_loses_nothing(
    tmp_path, db, receiver, monkeypatch
):
    monkeypatch.setattr(compute_api, "TIMEOUT_S", 0.2)

    async def heard(count):
        async with asyncio.timeout(30):
            while len(receiver.heard) < count:
                await asyncio.sleep(0.01)

    async def story():
        options = {**QUIET, "compute_endpoint": receiver.url}
        async with running(tmp_path, db, work=True, **options) as app:
            server = new_uuid()
            uuid = await carrier(app, server)
            receiver.mood = "500"
            await power(app, uuid, "power on")
            await heard(2)
            receiver.mood = "hang"
            await power(app, uuid, "power off")
            await heard(len(receiver.heard) + 2)
            receiver.mood = "garbage"
            await heard(len(receiver.heard) + 2)
            for mood in ("401", "404"):  # a wrong password or address is put right one day
                receiver.mood = mood
                await heard(len(receiver.heard) + 1)
            receiver.stop()
            await power(app, uuid, "power on")
            await asyncio.sleep(0.2)
            assert receiver.taken == []
            again = Receiver(receiver.port)
            again.start()
            try:
                assert await taken(again, 3) == [
                    (server, "POWER_ON"), (server, "POWER_OFF"), (server, "POWER_ON"),
                ]  # fmt: skip
                await nothing_left(app)
            finally:
                again.stop()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("mood", "code"), [("event:404", 404), ("event:422", 422), ("400", 400), ("unknown", 404)]
)
def test_what_is_refused_for_good_is_recorded_and_not_sent_again(tmp_path, receiver, mood, code):
    async def story():
        options = {**QUIET, "compute_endpoint": receiver.url}
        async with running(tmp_path, work=True, **options) as app:
            uuid = await carrier(app)
            receiver.mood = mood
            await power(app, uuid, "power on")
            await nothing_left(app)
            assert len(receiver.heard) == 1
            [(status, told)] = await facts(app, uuid, "power_update")
            assert (status, told["code"]) == ("error", code)
            assert told["reason"]
            receiver.mood = "accept"
            await power(app, uuid, "power off")
            await nothing_left(app)
            assert [tag for _, tag in receiver.taken][-1:] == ["POWER_OFF"]

    asyncio.run(story())


def test_many_nodes_at_once_neither_crowd_the_service_nor_get_lost(tmp_path, db, receiver):
    async def story():
        options = {**QUIET, "compute_endpoint": receiver.url}
        async with running(tmp_path, db, work=True, **options) as app:
            uuids = [await carrier(app) for _ in range(8)]
            receiver.mood = "503"
            for target in ("power on", "power off", "power on"):
                await asyncio.gather(*(power(app, uuid, target) for uuid in uuids))
            receiver.mood = "accept"
            heard = await taken(receiver, 24)
            await nothing_left(app)
            assert len(heard) == 24
            for uuid in uuids:
                server = (await app.node(uuid)).instance_uuid
                tags = [tag for who, tag in heard if who == server]
                assert tags == ["POWER_ON", "POWER_OFF", "POWER_ON"]

    asyncio.run(story())


def test_another_cloud_is_told_with_a_token_of_its_keystone(tmp_path, receiver):
    async def story():
        options = {
            **QUIET, "compute_endpoint": receiver.url,
            "compute_auth_url": receiver.url + "/identity",
            "compute_username": "ironic", "compute_password": "sesame",
        }  # fmt: skip
        async with running(tmp_path, work=True, **options) as app:
            await power(app, await carrier(app), "power on")
            await taken(receiver, 1)
            kind, login = receiver.heard[0]
            user = login["auth"]["identity"]["password"]["user"]
            assert (kind, user["name"], user["password"]) == ("token", "ironic", "sesame")
            assert login["auth"]["scope"]["project"]["name"] == "service"
            assert receiver.heard[1][2]["X-Auth-Token"] == "a-token"

    asyncio.run(story())


def test_our_own_service_is_asked_with_the_service_role(tmp_path):
    async def story():
        async with running(tmp_path) as app:
            token = await app.program.identity.service_token("siderite-baremetal", 60)
            again = await app.program.identity.service_token("siderite-baremetal", 60)
            who = await app.program.identity.by_token(token)
            assert (who.user, who.project, who.roles) == (
                "siderite-baremetal", "service", {"service"},
            )  # fmt: skip
            assert await app.program.identity.by_token(again) is not None

    asyncio.run(story())


def test_a_process_killed_with_something_to_tell_tells_it_when_it_is_back(tmp_path, receiver):
    options = {"compute_endpoint": receiver.url, "power_watch_interval_s": "0.5"}
    with running_server(tmp_path, options=options) as server:
        headers = server.headers("1.10")
        receiver.mood = "hang"
        carried = {}
        for _ in range(5):
            body = {"driver": "fake-hardware", "instance_uuid": new_uuid()}
            made = server.api.post("/baremetal/v1/nodes", json=body, headers=headers).json()
            carried[made["uuid"]] = made["instance_uuid"]
        for uuid in carried:
            path = f"/baremetal/v1/nodes/{uuid}/states/power"
            wait_for(
                lambda path=path: server.api.put(
                    path, json={"target": "power on"}, headers=headers
                ).status_code == 202
            )  # fmt: skip
        wait_for(lambda: receiver.heard)
        server.kill()
        receiver.released.set()
        receiver.mood = "accept"
        server.start()
        expected = set(carried.values())
        wait_for(lambda: {s for s, tag in receiver.taken if tag == "POWER_ON"} == expected)
        for one in expected:
            tags = [tag for s, tag in receiver.taken if s == one]
            assert tags[-1] == "POWER_ON"


def test_a_clock_that_is_set_back_does_not_prolong_the_pause_of_a_service_that_fails():
    now = [9000.0]
    ctx = SimpleNamespace(door=SimpleNamespace(clock=lambda: now[0]))
    telling = tell_compute.TellCompute(ctx, None)
    telling._failed(compute_api.NotNow("away"))
    now[0] -= 3600.0
    assert telling._failed(compute_api.NotNow("away")) <= tell_compute.LONGEST_PAUSE_S
