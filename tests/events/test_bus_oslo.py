"""The bus by oslo.messaging's own transports, whose calls may block for ever."""

import asyncio
import importlib
import subprocess
import sys
import textwrap
from threading import Event

import pytest

from siderite.events.envelope import Sorter
from tests.events.test_bus import IRON
from tests.events.test_bus import an_entry

# What the library imports is not ours to mend.
pytestmark = [
    pytest.mark.filterwarnings(r"ignore:\s*Eventlet is deprecated"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture
def bus_oslo():
    return importlib.import_module("siderite.events.bus_oslo")


class Stuck:
    """A transport that takes one message, and says no more until it is let go."""

    def __init__(self):
        self.is_free = Event()
        self.has_more = Event()
        self.sent = []

    def _send_notification(self, _target, _context, message, *_more, **_how):
        self.sent.append(message["message_id"])
        self.is_free.wait(30)

    def cleanup(self):
        self.has_more.set()


def test_a_transport_that_is_stuck_holds_up_nobodys_end(monkeypatch, bus_oslo):
    monkeypatch.setattr(bus_oslo, "SEND_S", 0.05)
    monkeypatch.setattr(bus_oslo, "CLOSE_S", 0.05)
    stuck = Stuck()

    async def story():
        bus = bus_oslo.OsloBus("oslo+kafka://h", Sorter([IRON], "info"))
        bus._hand.transport = stuck
        with pytest.raises(TimeoutError, match="check notification_url"):
            await bus.deal([an_entry(1), an_entry(2)])
        async with asyncio.timeout(10):
            await bus.close()

    asyncio.run(story())
    stuck.is_free.set()
    assert stuck.has_more.wait(10)
    assert stuck.sent == ["m-1"]  # what came too late is not sent behind another's back


def test_what_it_does_not_take_does_not_pile_up_and_goes_out_once_it_does(monkeypatch, bus_oslo):
    monkeypatch.setattr(bus_oslo, "SEND_S", 0.05)
    monkeypatch.setattr(bus_oslo, "MOST_HANGING", 0)
    stuck = Stuck()

    async def story():
        bus = bus_oslo.OsloBus("oslo+kafka://h", Sorter([IRON], "info"))
        bus._hand.transport = stuck
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await bus.deal([an_entry(1), an_entry(2)])
        assert bus._hand._todo.empty()
        monkeypatch.setattr(bus_oslo, "SEND_S", 10)
        stuck.is_free.set()
        await bus.deal([an_entry(1), an_entry(2)])
        await bus.close()

    asyncio.run(story())
    assert stuck.sent == ["m-1", "m-1", "m-2"]


def test_another_transport_goes_on_where_one_hangs_for_ever(monkeypatch, bus_oslo):
    monkeypatch.setattr(bus_oslo, "SEND_S", 0.05)
    stuck, sound = Stuck(), Stuck()
    sound.is_free.set()
    opened = iter([stuck, sound])
    monkeypatch.setattr(
        bus_oslo.oslo_messaging, "get_notification_transport", lambda *_: next(opened)
    )

    async def story():
        bus = bus_oslo.OsloBus("oslo+kafka://h", Sorter([IRON], "info"))
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await bus.deal([an_entry(1), an_entry(2)])
        monkeypatch.setattr(bus_oslo, "SEND_S", 10)
        await bus.deal([an_entry(1), an_entry(2)])
        await bus.close()

    asyncio.run(story())
    assert sound.sent == ["m-1", "m-2"]
    stuck.is_free.set()
    assert stuck.has_more.wait(10)  # the thread lets go of it at last
    assert stuck.sent == ["m-1"]


def test_only_a_few_are_left_hanging_and_one_that_came_back_makes_room(monkeypatch, bus_oslo):
    monkeypatch.setattr(bus_oslo, "SEND_S", 0.02)
    monkeypatch.setattr(bus_oslo, "MOST_HANGING", 2)
    opened = []

    def open_another(*_):
        opened.append(Stuck())
        return opened[-1]

    monkeypatch.setattr(bus_oslo.oslo_messaging, "get_notification_transport", open_another)

    async def story():
        bus = bus_oslo.OsloBus("oslo+kafka://h", Sorter([IRON], "info"))

        async def try_often():
            for _ in range(8):
                with pytest.raises(TimeoutError):
                    await bus.deal([an_entry(1)])

        await try_often()
        assert len(opened) == 3
        opened[0].is_free.set()
        await asyncio.to_thread(opened[0].has_more.wait, 10)
        await try_often()
        assert len(opened) == 4

    asyncio.run(story())
    for one in opened:
        one.is_free.set()


def test_and_the_process_ends():
    ends = """
        import asyncio, contextlib, threading
        from siderite.events import bus_oslo

        async def story():
            bus = bus_oslo.OsloBus("oslo+kafka://h", None)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    await bus._hand.do(lambda _: threading.Event().wait())

        asyncio.run(story())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(ends)], timeout=20, check=False)
    assert done.returncode == 0
