"""What a guest prints, and where its screen is."""

import asyncio
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree as Xml

from siderite.compute.domain.discreet import discreet
from siderite.compute.domain.outcome import Failed
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import ConsoleAddress
from siderite.compute.drivers.contract import Guest
from siderite.compute.drivers.libvirt import domains
from siderite.compute.drivers.libvirt import names
from siderite.compute.drivers.libvirt.dialling import ssh_of
from siderite.compute.drivers.libvirt.hosts import Host
from siderite.compute.drivers.libvirt.site import Site
from siderite.compute.drivers.libvirt.trouble import HostError
from siderite.compute.drivers.libvirt.trouble import Refused
from siderite.compute.drivers.libvirt.trouble import Unreachable
from siderite.compute.drivers.libvirt.volumes import Pool

MAX_LOG_BYTES = 256 * 1024
_TIMEOUT_S = 20.0
_ANYWHERE = ("0.0.0.0", "::")  # noqa: S104
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class LibvirtConsole:
    """The contract's `ConsoleLog` and `Console`."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def log(self, at: At, guest: Guest, lines: int | None) -> str:
        host = self._site.host(at)
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                text = await host.call(_tail, host, guest)
        except (Unreachable, HostError, Refused) as why:
            return f"[the console log cannot be read now: {discreet(str(why))}]"
        except TimeoutError:
            return "[the console log cannot be read now: its host does not answer]"
        if lines is None or lines < 0:
            return text
        kept = text.splitlines(keepends=True)
        return "".join(kept[len(kept) - lines :] if lines < len(kept) else kept)

    async def console(self, at: At, guest: Guest, kind: str) -> ConsoleAddress | Failed:
        host = self._site.host(at)
        if kind not in ("vnc", "novnc"):
            return Failed(f"host {host.name} has VNC consoles only, not {kind}", elsewhere=False)
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                return await host.call(_screen, host, guest)
        except Refused as why:
            return Failed(why.reason)
        except (Unreachable, HostError) as why:
            return Failed(str(why))
        except TimeoutError:
            return Failed(f"host {host.name} ({host.uri}) does not answer")


def _tail(connection: Any, host: Host, guest: Guest) -> str:
    pool = Pool(connection, host.options)
    name = names.console(guest.uuid)
    size = pool.size(name)
    if size is None:
        return ""
    offset = max(0, size - MAX_LOG_BYTES)
    text = b"".join(pool.chunks(name, offset)) if size else b""
    if offset:
        text = text.partition(b"\n")[2]
    return text.decode(errors="replace").replace("\r\n", "\n")


def _screen(connection: Any, host: Host, guest: Guest) -> ConsoleAddress:
    domain = domains.must_find(connection, host, guest)
    graphics = Xml.fromstring(domain.XMLDesc(0)).find("devices/graphics[@type='vnc']")  # noqa: S314
    port = 0 if graphics is None else int(graphics.get("port", "-1"))
    if graphics is None or port <= 0:
        raise Refused(f"the guest of server {guest.uuid} does not run, so it has no screen")
    listen = graphics.get("listen", "127.0.0.1")
    remote = urlsplit(host.uri).hostname
    ssh = ssh_of(host.uri, host.options)
    if ssh is not None:  # the screen need not be on any network: libvirt's road leads to it too
        there = "127.0.0.1" if listen in _ANYWHERE else listen
        return ConsoleAddress(there, port, command=ssh.to(there, port))
    if listen in _ANYWHERE:
        listen = remote or "127.0.0.1"
    elif listen in _LOOPBACK and remote and remote not in _LOOPBACK:
        raise Refused(
            f"host {host.name} shows screens to itself only ({listen}); give it the option"
            " vnc_listen, an address of its management network, and reboot the server hard"
        )
    return ConsoleAddress(listen, port)
