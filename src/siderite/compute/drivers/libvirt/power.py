"""Power of guests: on, off, a signal, reset; their processors stopped; their memory on disk."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Outcome
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.libvirt import arrivals
from siderite.compute.drivers.libvirt import domains
from siderite.compute.drivers.libvirt import names
from siderite.compute.drivers.libvirt.hosts import Host
from siderite.compute.drivers.libvirt.library import library
from siderite.compute.drivers.libvirt.names import Mark
from siderite.compute.drivers.libvirt.runs import Run
from siderite.compute.drivers.libvirt.site import Site
from siderite.compute.drivers.libvirt.trouble import code
from siderite.compute.drivers.libvirt.volumes import Pool

Deed = Callable[[Any, Host, Guest, str], None]


class LibvirtPower:
    """The contract's `PowerSwitch`, `Pause`, `Suspend` and `CrashDump`."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def on(self, at: At, guest: Guest, token: str) -> Outcome:
        return await self._do(at, guest, token, "starting", _on)

    async def off(self, at: At, guest: Guest, token: str) -> Outcome:
        return await self._do(at, guest, token, "stopping", _off)

    async def signal(self, at: At, guest: Guest, left_s: float, token: str) -> Outcome:
        return await self._do(at, guest, token, "signalling", _signal)

    async def reset(self, at: At, guest: Guest, token: str) -> Outcome:
        return await self._do(at, guest, token, "resetting", _reset)

    async def pause(self, at: At, guest: Guest, token: str) -> Outcome:
        return await self._do(at, guest, token, "pausing", _pause)

    async def unpause(self, at: At, guest: Guest, token: str) -> Outcome:
        return await self._do(at, guest, token, "unpausing", _unpause)

    async def suspend(self, at: At, guest: Guest, token: str) -> Outcome:
        return await self._do(at, guest, token, "saving the memory of", _suspend, is_long=True)

    async def resume(self, at: At, guest: Guest, token: str) -> Outcome:
        return await self._do(at, guest, token, "restoring the memory of", _on, is_long=True)

    async def crash_dump(self, at: At, guest: Guest, token: str) -> Outcome:
        return await self._do(at, guest, token, "interrupting", _interrupt)

    async def _do(
        self, at: At, guest: Guest, token: str, doing: str, deed: Deed, *, is_long: bool = False
    ) -> Outcome:
        async def work(host: Host, run: Run) -> Outcome:
            await (host.transfer if is_long else host.call)(deed, host, guest, token)
            return Done()

        return await self._site.outcome(at, token, f"{doing} domain {guest.name}", work)


def current(connection: Any, host: Host, guest: Guest) -> Mark:
    """The mark of a guest; guessed from its disks if somebody undefined the domain."""
    domain = domains.find(connection, guest.uuid)
    known = None if domain is None else domains.mark(domain)
    if known is not None:
        return known
    prefix = f"{guest.uuid}."
    disks = [n for n in Pool(connection, host.options).names() if n.startswith(prefix)]
    return Mark(disk=max((names.generation_of(name) for name in disks), default=1) or 1)


def _on(connection: Any, host: Host, guest: Guest, token: str) -> None:
    domain, known = domains.find(connection, guest.uuid), current(connection, host, guest)
    if domain is None or (known.is_rescued and not domain.isActive()):
        domain = _own_system(connection, host, guest, known.by(token))
    domains.start(domain)


def _own_system(connection: Any, host: Host, guest: Guest, known: Mark) -> Any:
    """The domain that boots the guest's own disk; if it was rescued, or should have been, that is
    over.
    """
    domain = domains.define(connection, host, guest, replace(known, is_rescued=False))
    pool, rescue = Pool(connection, host.options), names.further_disk(guest.uuid, "rescue")
    if known.is_rescued or pool.find(rescue) is not None:
        domains.write_config_drive(pool, guest)  # the rescue system had a password of its own
        pool.delete(rescue)
    return domain


def back_to_own_system(connection: Any, host: Host, guest: Guest, token: str) -> Any:
    """The same of a guest that is stopped for it, once for each token."""
    known = current(connection, host, guest)
    domain = domains.find(connection, guest.uuid)
    if domain is None or known.token != token:
        if domain is not None:
            domains.stop(domain)
        domain = _own_system(connection, host, guest, known.by(token))
    return domain


def _off(connection: Any, host: Host, guest: Guest, token: str) -> None:
    domain = domains.find(connection, guest.uuid)
    if domain is not None:
        domains.stop(domain)


def _signal(connection: Any, host: Host, guest: Guest, token: str) -> None:
    """libvirt asks the guest's agent if one answers, else presses the power button."""
    domain = domains.must_find(connection, host, guest)
    if domain.isActive():
        try:
            domain.shutdown()
        except library().libvirtError as why:
            if not code(why, "VIR_ERR_OPERATION_INVALID"):  # it went down meanwhile
                raise


def _reset(connection: Any, host: Host, guest: Guest, token: str) -> None:
    domains.start(back_to_own_system(connection, host, guest, token))


def _pause(connection: Any, host: Host, guest: Guest, token: str) -> None:
    domain = _running(connection, host, guest)
    if domain.state()[0] != library().VIR_DOMAIN_PAUSED:
        domain.suspend()


def _unpause(connection: Any, host: Host, guest: Guest, token: str) -> None:
    domain = _running(connection, host, guest)
    if domain.state()[0] == library().VIR_DOMAIN_PAUSED:
        domain.resume()
    arrivals.runs(domain)


def _suspend(connection: Any, host: Host, guest: Guest, token: str) -> None:
    domain = domains.must_find(connection, host, guest)
    if not domain.isActive() and domain.hasManagedSaveImage(0):
        return
    _running(connection, host, guest).managedSave(0)


def _interrupt(connection: Any, host: Host, guest: Guest, token: str) -> None:
    _running(connection, host, guest).injectNMI()


def _running(connection: Any, host: Host, guest: Guest) -> Any:
    domain = domains.must_find(connection, host, guest)
    if not domain.isActive():
        raise domains.not_running(host, guest)
    return domain
