"""Leading nodes through their life in a running program, and waiting without sleeping blindly."""

import asyncio

from siderite.baremetal.drivers.simulated.scripts import Script
from siderite.core import eventlog
from siderite.core import sequencer
from siderite.core.simulation import parse

PATIENCE_S = 30.0


async def until(app, uuid, *states, patience_s=PATIENCE_S):
    """The node once it is in one of these states."""
    async with asyncio.timeout(patience_s):
        while True:
            node = await app.node(uuid)
            if node.provision_state in states:
                return node
            await asyncio.sleep(0.01)


async def until_power(app, uuid, patience_s=PATIENCE_S):
    """The node once no power change is under way."""
    async with asyncio.timeout(patience_s):
        while True:
            node = await app.node(uuid)
            if node.target_power_state is None:
                return node
            await asyncio.sleep(0.01)


async def verb(app, uuid, target, status=202, **more):
    """Ask for a verb."""
    body = {"target": target, **more}
    answer = await app.ask("PUT", f"/v1/nodes/{uuid}/states/provision", body)
    assert answer.status == status, (answer.status, answer.body)
    return answer


async def lead(app, uuid, *verbs):
    """Through these verbs, each to its end."""
    ends = {
        "manage": "manageable", "provide": "available", "active": "active", "rebuild": "active",
        "deleted": "available", "inspect": "manageable", "adopt": "active", "rescue": "rescue",
        "unrescue": "active", "clean": "manageable",
    }  # fmt: skip
    more = {"rescue": {"rescue_password": "hunter2"}}
    for target in verbs:
        await verb(app, uuid, target, **more.get(target, {}))
        node = await until(app, uuid, ends[target])
    return node


def script(app, scope, **what):
    """Have simulated machines behave so."""
    app.program.machines.scripts.set(scope, parse(what, Script, "machines"))


async def facts(app, uuid, kind="provision_set"):
    """(status, event, previous state, state) of each provision fact of a node, in order."""
    if app.program.store.dialect == "postgresql":
        await sequencer.place(app.program.store)
    found = []
    for entry in await eventlog.read(app.program.store, limit=100000):
        if entry.resource != uuid or f".{kind}." not in entry.event_type:
            continue
        found.append((entry.event_type.rpartition(".")[2], data(entry)))
    return found


async def last_word(app, uuid):
    """The type of the last fact of a node, which says all of the node as it is now."""
    if app.program.store.dialect == "postgresql":
        await sequencer.place(app.program.store)
    log = await eventlog.read(app.program.store, limit=100000)
    last = [entry for entry in log if entry.resource == uuid][-1]
    node, told = (await app.ask("GET", f"/v1/nodes/{uuid}")).json, data(last)
    said = {name: told[name] for name in told if name in node and not name.endswith("_at")}
    assert said == {name: node[name] for name in said}
    return last.event_type.removeprefix("baremetal.node.")


def data(entry):
    """What a fact's payload says."""
    import msgspec

    return msgspec.json.decode(bytes(entry.payload))["ironic_object.data"]
