"""Two clients at one node: each verb is taken, or refused with what is under way and when to come
back. Readings of power in the background are in nobody's way.
"""

import asyncio
from collections import Counter

import pytest

from tests.baremetal.workers.lives import script
from tests.support.app import running

TIMES = 500


@pytest.fixture(params=["sqlite", "postgresql"])
def db(request):
    """No URL is SQLite in the data folder."""
    return "" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def test_two_clients_fire_a_thousand_verbs_at_one_node(tmp_path, db):
    async def client(app, uuid, wishes, seen):
        for number in range(TIMES):
            kind, target = wishes[number % len(wishes)]
            answer = await app.ask("PUT", f"/v1/nodes/{uuid}/states/{kind}", {"target": target})
            seen[answer.status] += 1
            if answer.status == 409:
                assert answer.headers["retry-after"] == "2", answer
                assert "please retry after the current operation is completed" in answer.sentence
                assert "on its way to" in answer.sentence or "is busy" in answer.sentence, answer
            else:
                assert answer.status == 202, answer
            await asyncio.sleep(0)

    async def story():
        options = {"power_watch_interval_s": 0.05}
        async with running(tmp_path, db, work=True, **options) as app:
            uuid = await app.plant("active", power_state="power on")
            script(app, "all", latency_s={"*": 0.002})
            seen = Counter()
            await asyncio.gather(
                client(app, uuid, [("provision", "rebuild"), ("power", "rebooting")], seen),
                client(app, uuid, [("power", "power off"), ("provision", "rebuild")], seen),
            )
            assert sum(seen.values()) == 2 * TIMES
            assert set(seen) == {202, 409}
            async with asyncio.timeout(30):
                while True:
                    node = await app.node(uuid)
                    rows = await app.program.store.fetch("SELECT count(*) FROM work")
                    if rows[0][0] == 0 and node.target_power_state is None:
                        break
                    await asyncio.sleep(0.01)
            assert (node.provision_state, node.last_error) == ("active", None)

    asyncio.run(story())


def test_one_client_alone_is_never_refused_while_power_is_read_all_the_time(tmp_path, db):
    async def story():
        options = {"power_watch_interval_s": 0.01}
        async with running(tmp_path, db, work=True, **options) as app:
            uuid = await app.plant("active", power_state="power on", driver_info={"rack": "r"})
            for number in range(60):
                patch = [{"op": "add", "path": "/extra/n", "value": number}]
                answer = await app.ask("PATCH", f"/v1/nodes/{uuid}", patch)
                assert answer.status == 200, answer
                if number % 10 == 0:
                    app.program.machines.cut_power("r")  # so that readings have news, too
                    body = {"target": "power on"}
                    answer = await app.ask("PUT", f"/v1/nodes/{uuid}/states/power", body)
                    assert answer.status == 202, answer
                    async with asyncio.timeout(30):
                        while (await app.node(uuid)).target_power_state is not None:
                            await asyncio.sleep(0.002)
                await asyncio.sleep(0.002)

    asyncio.run(story())
