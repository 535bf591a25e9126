"""Who of those that wait would find a place now."""

from dataclasses import replace

import msgspec

from siderite.compute.store import SERVERS
from siderite.compute.usecases.context import Context
from siderite.compute.usecases.server import due
from tests.compute.cloud import Cloud
from tests.compute.usecases.placement.test_kept_room import care
from tests.compute.usecases.placement.test_kept_room import full as full_cloud
from tests.compute.usecases.placement.test_kept_room import makes_room
from tests.compute.usecases.placement.test_kept_room import one_goes
from tests.compute.usecases.placement.test_kept_room import pends

full = full_cloud


def waking(made: Cloud) -> Context:
    """The same service, which wakes those that wait; it does not do so by itself here."""
    context: Context = made.app.app.program.compute.context
    return replace(context, settings=msgspec.structs.replace(context.settings, wake_pending=True))


def would_be_woken(made: Cloud) -> list[str]:
    return made.app.run(due.to_wake(waking(made)))[0]


def test_the_first_that_came_takes_it_from_those_after_it(full: Cloud) -> None:
    first, second, third = pends(full), pends(full), pends(full)
    assert would_be_woken(full) == []
    one_goes(full)
    assert would_be_woken(full) == [first]
    one_goes(full)
    assert would_be_woken(full) == [first, second]
    assert care(full, first) == 200
    assert would_be_woken(full) == [second, third]


def test_what_is_kept_for_another_is_not_there(full: Cloud) -> None:
    first, second = pends(full), pends(full)
    assert makes_room(full, second) == 200
    one_goes(full)
    assert would_be_woken(full) == []
    one_goes(full)
    assert would_be_woken(full) == [first]


def test_one_for_which_room_is_kept_is_weighed_though_others_like_it_found_none(
    full: Cloud,
) -> None:
    _, second = pends(full), pends(full)
    assert makes_room(full, second) == 200
    one_goes(full)
    door = full.app.app.program.compute.context.door

    async def nobody_cares() -> None:
        """As of one that compute itself has woken, and that waits again."""
        server = await SERVERS.get(door.store, second)
        assert server is not None
        changed = server.changed(door.clock(), {"keeper": None})
        await door.store.commit([SERVERS.swap(server, changed)])

    full.app.run(nobody_cares())
    assert would_be_woken(full) == [second]
