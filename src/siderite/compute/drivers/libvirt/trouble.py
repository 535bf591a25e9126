"""What libvirt's errors mean here: the host is away, it is busy, or it refuses, and the remedy."""

from typing import Any

from siderite.compute.domain.outcome import Failed
from siderite.compute.domain.outcome import Wait
from siderite.compute.drivers.libvirt.dialling import CannotDial
from siderite.compute.drivers.libvirt.library import library

_BUSY_AGAIN_IN_S = 2.0

_CONNECTION = (
    "VIR_ERR_NO_CONNECT", "VIR_ERR_INVALID_CONN", "VIR_ERR_RPC", "VIR_ERR_SYSTEM_ERROR",
    "VIR_ERR_AUTH_FAILED", "VIR_ERR_AUTH_CANCELLED", "VIR_ERR_INTERNAL_ERROR",
)  # fmt: skip
_BUSY = ("VIR_ERR_OPERATION_TIMEOUT", "VIR_ERR_RESOURCE_BUSY", "VIR_ERR_AGENT_UNRESPONSIVE")
MAKE_ROOM = "free space in the host's storage pool, or add a larger disk to it"
# Words of a message, and what the operator can do about it.
_REMEDIES = (
    ("no space left", MAKE_ROOM),
    ("cannot allocate memory", "the host's memory is used by others: move guests away"),
    ("cannot set up guest memory", "the host's memory is used by others: move guests away"),
    ("network not found", "define and start that network on the host, or name another"),
    ("is not active", "start it on the host (virsh net-start, virsh pool-start)"),
    ("cannot get interface mtu", "make that bridge on the host, or name another"),
    ("permission denied", "check owner and mode of the path for the user that QEMU runs as"),
    ("ide controllers are unsupported", "change the image's hw_disk_bus, say to sata"),
    ("unsupported machine type", "change the image's hw_machine_type"),
    ("no more available pci slots", "stop the server, and attach it then"),
    ("unable to find any firmware", "install UEFI firmware on the host (Debian: ovmf)"),
    ("unable to resolve address", "give the host the option migration_address, an IP address"),
    ("guest cpu is not compatible", "the hosts' processors differ: migrate cold"),
)
_CHANGED_KEY = "was the host made anew? compare its key, and put that into known_hosts"
# libvirt's way of saying that ssh wrote more than 1024 bytes before it ended.
_TOO_LONG = "value too large for defined data type"
# The first that fits counts, so the narrower come first.
_CONNECT_REMEDIES = (
    ("host key for", _CHANGED_KEY),
    (_TOO_LONG, f"ssh said too much for libvirt, as of a key that changed: {_CHANGED_KEY}"),
    ("host key verification", "put the host's key into known_hosts: ssh to it once as this user"),
    ("permission denied (", "no key of ours is known there: add it to ~/.ssh/authorized_keys of the"
     " URI's user on the host, or name another with the option keyfile"),
    ("ssh: connect to host", "no ssh server answers there: check host and port of the URI"),
    ("resolve", "the host's name is not known here: use its IP address"),
    ("command not found", "install libvirt on the host (Debian: libvirt-daemon-system)"),
    ("peer's certificate", "the host's certificate is not for this name, or not of the authority in"
     " our cacert.pem"),
    ("certificate", "put cacert.pem, clientcert.pem and clientkey.pem of the host's authority into"
     " a folder, and name it with the option pkipath"),
    ("no such file", "is libvirtd running there? (systemctl status libvirtd)"),
    ("permission denied", "this user may not use libvirt: add it to the group libvirt there"),
    ("authentication failed", "check the user, key or certificate that the URI names"),
    ("connection refused", "libvirtd does not listen there: check host and port of the URI"),
)  # fmt: skip
_SSH_NOISE = ("Cannot recv data: ", ": Connection reset by peer")
_LAST_LINES = 2  # ssh draws a box of warnings above what it has to say


class Unreachable(Exception):
    """The host does not answer; what it runs is not known."""

    def __init__(self, reason: str, again_in: float) -> None:
        super().__init__(reason)
        self.reason = reason
        self.again_in = again_in


class HostError(Exception):
    """libvirt refused a call; what that means is in `outcome`."""

    def __init__(self, outcome: Wait | Failed) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


class Refused(Exception):
    """What was asked for cannot be done; the text is for the user."""

    def __init__(self, reason: str, *, elsewhere: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.elsewhere = elsewhere


def code(error: BaseException, *names: str) -> bool:
    """Whether this is libvirt's error with one of the codes."""
    libvirt = library()
    if not isinstance(error, libvirt.libvirtError):
        return False
    return error.get_error_code() in {getattr(libvirt, name) for name in names}


def is_lost(error: BaseException, connection: Any) -> bool:
    """Whether the error came of the connection, not of what was asked."""
    if not code(error, *_CONNECTION):
        return False
    try:
        return not connection.isAlive()
    except library().libvirtError:
        return True


def explain(host: str, uri: str, error: BaseException) -> Wait | Failed:
    """What a worker is told of a libvirt error."""
    said = " ".join(str(error).split()).rstrip(".")  # with line ends, if a program said it
    text = f"host {host} ({uri}): {said}"
    if code(error, *_BUSY):
        return Wait(f"{text}; waiting for it", _BUSY_AGAIN_IN_S)
    remedy = _remedy(said, _REMEDIES)
    return Failed(f"{text}; {remedy}." if remedy else f"{text}.")


def cannot_connect(host: str, uri: str, error: BaseException) -> str:
    """Why a connection could not be made, with a remedy."""
    said = _in_short(str(error))
    remedy = _remedy(said, _CONNECT_REMEDIES) or "check the host and its URI"
    if isinstance(error, CannotDial):
        remedy = error.remedy
    return f"host {host} ({uri}) cannot be reached: {said}; {remedy}"


def _in_short(said: str) -> str:
    """What went wrong, without what libvirt puts around the words of ssh."""
    lines = said.removeprefix(_SSH_NOISE[0]).removesuffix(_SSH_NOISE[1]).splitlines()
    kept = [line.strip() for line in lines if line.strip()][-_LAST_LINES:]
    return " ".join(kept).rstrip(".") or "it closed the connection"


def _remedy(said: str, table: tuple[tuple[str, str], ...]) -> str | None:
    lower = said.lower()
    return next((remedy for words, remedy in table if words in lower), None)
