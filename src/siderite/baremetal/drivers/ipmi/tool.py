"""Running ipmitool: one short process per order, so many at a time, ended if it takes too long.

The password goes by the environment, which others cannot read, never by the command line, which
they can.
"""

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from time import monotonic
from typing import Any

from siderite.baremetal.domain.hardware import HardwareError
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.secrets import mask
from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.words import storable

_LEVELS = ("ADMINISTRATOR", "OPERATOR", "USER", "CALLBACK")
_BRIDGES = {
    "single": (("ipmi_target_channel", "-b"), ("ipmi_target_address", "-t")),
    "dual": (
        ("ipmi_transit_channel", "-B"),
        ("ipmi_transit_address", "-T"),
        ("ipmi_target_channel", "-b"),
        ("ipmi_target_address", "-t"),
    ),
}
_UNTRUSTED = re.compile(r"RAKP|unauthorized|password|privilege|hmac", re.IGNORECASE)
_SILENT = re.compile(
    r"establish|timeout|no response|unreachable|address lookup|connect|get device id|node busy",
    re.IGNORECASE,
)
_FULL = re.compile(r"insufficient resources for session", re.IGNORECASE)
_CUT_SHORT = re.compile(
    r"no response from RAKP \d message"
    r"|RAKP \d message indicates an error : (invalid|inactive) session ID"
    r"|Set Session Privilege Level to \w+ failed(?!:)",
    re.IGNORECASE,
)
"""What ipmitool says of a session that did not come about because something got no answer, or came
too late: such words say nothing about the account.
"""
_UNAGREED = re.compile(r"invalid (authentication|integrity|confidentiality)|cipher", re.IGNORECASE)
READING = ("power", "status")
_NO_SESSION = "Unable to establish"
_NOISE = "Loading IANA PEN Registry..."
_AT_ONCE_S = 2.0
"""Sooner than ipmitool gives up on a BMC that says nothing."""
LONG_S = 3.0
"""A BMC that takes longer for an order is slow."""
MOST_MARKED = 100_000
"""More than one process has to ask, so that those it does ask are not forgotten."""
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Account:
    """Where a BMC is and how to get in, from `driver_info`."""

    words: tuple[str, ...]
    password: str = field(repr=False)

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> "Account":
        """Read `driver_info`; ValueError says what is wrong with it."""
        address = str(info.get("ipmi_address") or "")
        if not address or address.startswith("-"):
            raise ValueError("driver_info lacks ipmi_address, a name or an IP address")
        version = str(info.get("ipmi_protocol_version") or "2.0")
        if version not in ("1.5", "2.0"):
            raise ValueError(f"ipmi_protocol_version is {version!r}; it can be 1.5 or 2.0")
        level = str(info.get("ipmi_priv_level") or "ADMINISTRATOR").upper()
        if level not in _LEVELS:
            raise ValueError(f"ipmi_priv_level is {level!r}; it can be {', '.join(_LEVELS)}")
        words = ["-I", "lanplus" if version == "2.0" else "lan", "-H", address, "-L", level]
        port = info.get("ipmi_port")
        if port is not None:
            words += ["-p", _number("ipmi_port", port)]
        if info.get("ipmi_username"):
            words += ["-U", str(info["ipmi_username"])]
        if info.get("ipmi_cipher_suite") is not None:
            words += ["-C", _number("ipmi_cipher_suite", info["ipmi_cipher_suite"])]
        return cls((*words, *_bridging(info)), str(info.get("ipmi_password") or ""))


def _number(key: str, value: Any) -> str:
    text = str(value)
    if not text.isdigit():
        raise ValueError(f"{key} is {text[:40]!r}; it must be a number")
    return text


def _bridging(info: Mapping[str, Any]) -> list[str]:
    kind = str(info.get("ipmi_bridging") or "no")
    if kind == "no":
        return []
    if kind not in _BRIDGES:
        raise ValueError(f"ipmi_bridging is {kind!r}; it can be no, single or dual")
    words = []
    if info.get("ipmi_local_address"):
        words += ["-m", str(info["ipmi_local_address"])]
    for key, flag in _BRIDGES[kind]:
        if info.get(key) is None:
            raise ValueError(f"ipmi_bridging {kind} needs {key}")
        words += [flag, str(info[key])]
    return words


class Marked:
    """Accounts with something in common. The first are forgotten when there are too many: nobody
    tells when a node is removed, or has another address.
    """

    def __init__(self) -> None:
        self._words: dict[tuple[str, ...], None] = {}

    def __contains__(self, account: Account) -> bool:
        return account.words in self._words

    def __len__(self) -> int:
        return len(self._words)

    def add(self, account: Account) -> None:
        """Mark it, as the last."""
        self.discard(account)
        self._words[account.words] = None
        if len(self._words) > MOST_MARKED:
            del self._words[next(iter(self._words))]

    def discard(self, account: Account) -> None:
        """Mark it no more."""
        self._words.pop(account.words, None)


class IpmiTool:
    """Gives orders to BMCs. Those that did not answer the last time share a few processes, those
    that took long have some of their own: many of them do not keep others from being heard.
    """

    def __init__(self, *, at_once: int = 32, timeout_s: float = 20.0) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._slow = asyncio.Semaphore(at_once)
        self._lost = asyncio.Semaphore(max(1, at_once // 4))
        self._silent = Marked()
        self._lame = Marked()
        self._barred = Marked()
        self._timeout_s = timeout_s

    async def run(self, at: Endpoint, doing: str, *order: str) -> str:
        """What ipmitool prints for an order; HardwareError if the BMC does not do it."""
        account = self.account(at, doing)
        async with self._turn(account):
            began = monotonic()
            try:
                code, out, said = await self._asked(at, doing, account, order)
            except (Unreachable, asyncio.CancelledError):
                self._silent.add(account)
                raise
            if monotonic() - began > LONG_S:
                self._lame.add(account)
            else:
                self._lame.discard(account)
        error = None if code == 0 else _told(at, doing, said or out)
        if error is not None and error.refuses_login:
            self._barred.add(account)
        if isinstance(error, Unreachable):
            self._silent.add(account)
        else:
            self._silent.discard(account)
        if error is not None:
            raise error
        return out

    async def _asked(
        self, at: Endpoint, doing: str, account: Account, order: tuple[str, ...]
    ) -> tuple[int, str, str]:
        """How an order went, with the reason if the BMC let nobody in. Each try is a login, and may
        be one of the few until the account is locked: a reading of power, which comes before most
        else, is asked for in the way that tells the reason. So is one that was not let in the last
        time, and given the order only if it is let in.
        """
        if order == READING:
            code, out, said = await self._read(at, doing, account)
            if not code:
                self._barred.discard(account)
            return code, out, said
        if account in self._barred:
            said = await self._why(at, doing, account)
            if said:
                return 1, "", said
            self._barred.discard(account)
        began = monotonic()
        code, out, said = await self._process(at, doing, account, order)
        if code and _NO_SESSION in said and monotonic() - began < _AT_ONCE_S:
            said = await self._why(at, doing, account) or said
        return code, out, said

    def _turn(self, account: Account) -> asyncio.Semaphore:
        if account in self._silent:
            return self._lost
        return self._slow if account in self._lame else self._free

    async def _why(self, at: Endpoint, doing: str, account: Account) -> str:
        """What a BMC has against a session that it would not open; it says so only when asked."""
        code, _, said = await self._read(at, doing, account)
        return said if code else ""

    async def _read(self, at: Endpoint, doing: str, account: Account) -> tuple[int, str, str]:
        code, out, said = await self._process(at, doing, account, ("-v", *READING))
        return code, out, said.replace(_NOISE, "")

    def account(self, at: Endpoint, doing: str) -> Account:
        """How to get into the node's BMC."""
        try:
            return Account.of(at.driver_info)
        except ValueError as why:
            raise Refused(at.bmc, doing, str(why), "Mend driver_info, then try again.") from why

    async def _process(
        self, at: Endpoint, doing: str, account: Account, order: tuple[str, ...]
    ) -> tuple[int, str, str]:
        try:
            process = await asyncio.create_subprocess_exec(
                "ipmitool", *account.words, "-E", "-N", "1", "-R", "2", *order,
                env=environment(account), stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
        except FileNotFoundError as why:
            remedy = "Install ipmitool on the machine where Siderite runs."
            raise Refused(at.bmc, doing, "ipmitool is missing here", remedy) from why
        except OSError as why:
            raise Unreachable(
                at.bmc, doing, f"ipmitool cannot be run here ({why.strerror})"
            ) from why
        try:
            async with asyncio.timeout(self._timeout_s):
                out, said = await process.communicate()
        except TimeoutError as why:
            raise Unreachable(at.bmc, doing, f"no answer within {self._timeout_s:g} s") from why
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        code = process.returncode if process.returncode is not None else 1
        return code, storable(out.decode(errors="replace")), storable(said.decode(errors="replace"))


def environment(account: Account) -> dict[str, str]:
    """What an ipmitool process needs to know, the password included."""
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "IPMI_PASSWORD": account.password}


def _told(at: Endpoint, doing: str, said: str) -> HardwareError:
    # Masked before it is cut: half a secret is not known for one any more.
    text = mask(" ".join(line.strip() for line in said.splitlines() if line.strip()))[-_LONGEST:]
    if _FULL.search(text):
        return Unreachable(
            at.bmc, doing, f"it has no session free ({text})",
            "That passes when others end theirs; see who else uses it, or restart the BMC.",
            is_busy=True,
        )  # fmt: skip
    if _UNTRUSTED.search(_CUT_SHORT.sub("", text)):
        return Refused(
            at.bmc, doing, f"it does not take the credentials ({text})",
            "Check ipmi_username, ipmi_password and ipmi_priv_level in driver_info.",
            refuses_login=True,
        )  # fmt: skip
    if _UNAGREED.search(text):
        return Refused(
            at.bmc, doing, f"it does not take the cipher suite ({text})",
            "Set ipmi_cipher_suite in driver_info to one that it offers, such as 3 or 17.",
        )  # fmt: skip
    if not text or _SILENT.search(text):
        return Unreachable(at.bmc, doing, text or "it does not answer")
    return Refused(at.bmc, doing, text)
