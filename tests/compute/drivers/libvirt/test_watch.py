"""What happens to guests without us is heard."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from siderite.compute.domain.power import Power
from siderite.compute.drivers.contract import At
from tests.compute.drivers.libvirt.world import World
from tests.lab import Guest
from tests.lab import LabHost
from tests.lab import Mode
from tests.lab import tiny_guest


class Heard(list[tuple[str, Power]]):
    """What the driver told."""

    def __init__(self, other: Guest) -> None:
        super().__init__()
        self._other = other

    def nudged(self) -> bool:
        """Have another guest do something; whether anything was heard by now."""
        self._other.domain().suspend()
        self._other.domain().resume()
        return bool(self)

    async def tell(self, uuid: str, power: Power) -> None:
        self.append((uuid, power))


@contextmanager
def listening(world: World, at: At, lab: LabHost) -> Iterator[Heard]:
    """Yield when the driver is known to hear: another guest is nudged until it does."""
    other = tiny_guest(lab)
    other.start()
    heard = Heard(other)
    watch = world.driver.watch
    assert watch is not None

    async def begin() -> asyncio.Task[None]:
        return asyncio.create_task(watch.watch(at, heard.tell))

    async def end() -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    task = world.run(begin())
    try:
        world.until(heard.nudged, lambda: "nothing was heard")
        yield heard
    finally:
        world.run(end())
        other.remove()


def test_a_guest_that_powers_itself_off_is_heard(lab: LabHost, at: At, world: World) -> None:
    with listening(world, at, lab) as heard:
        guest = world.spawn(at, Mode.SELFOFF)
        world.until(lambda: (guest.uuid, Power.RUNNING) in heard, lambda: f"heard {heard}")
        world.until(lambda: (guest.uuid, Power.SHUTDOWN) in heard, lambda: f"heard {heard}")
    world.done(world.driver.life.destroy, at, guest)


def test_a_domain_destroyed_by_hand_is_heard(lab: LabHost, at: At, world: World) -> None:
    guest = world.spawn(at)
    with listening(world, at, lab) as heard:
        lab.connection().lookupByUUIDString(guest.uuid).destroy()
        world.until(lambda: (guest.uuid, Power.SHUTDOWN) in heard, lambda: f"heard {heard}")
    world.done(world.driver.life.destroy, at, guest)
