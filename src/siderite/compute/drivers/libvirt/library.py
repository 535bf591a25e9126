"""libvirt's Python binding, loaded when the first real host is used, and its event loop.

Events and keep-alive messages are handled in one thread for all connections. The loop must run
before the first connection is opened, so nothing else in the driver imports `libvirt` by itself.
"""

import threading
import time
from functools import cache
from typing import Any

from siderite.core.log import get_logger

log = get_logger("libvirt")


class LibraryMissing(Exception):
    """The binding is not installed."""


@cache
def library() -> Any:
    """The module `libvirt`, with its event loop running."""
    try:
        import libvirt
    except ImportError as why:
        raise LibraryMissing(
            "libvirt-python is not installed, so no libvirt host can be reached;"
            " install libvirt's headers (Debian: libvirt-dev gcc pkg-config python3-dev), then"
            " `pip install libvirt-python` in the environment that Siderite runs in"
        ) from why
    libvirt.registerErrorHandler(_quietly, None)
    libvirt.virEventRegisterDefaultImpl()
    threading.Thread(target=_run, args=(libvirt,), name="libvirt-events", daemon=True).start()
    return libvirt


def monitor() -> Any:
    """What talks to the QEMU of a guest, past libvirt."""
    import libvirt_qemu

    return libvirt_qemu


def _quietly(_: object, __: object) -> None:
    """The C library prints every error to stderr; we have them as exceptions."""


def _run(libvirt: Any, pause_s: float = 1.0) -> None:
    """For as long as the process lives: without it no event is heard and no silence noticed."""
    while True:
        try:
            libvirt.virEventRunDefaultImpl()
        except libvirt.libvirtError as why:  # as when there is no memory to wait with
            log.warning("libvirt's events could not be waited for", error=str(why))
            time.sleep(pause_s)
