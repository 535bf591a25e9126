"""What goes wrong with Redfish, told to the operator: which BMC, what, and the remedy."""

import re
from urllib.parse import urlsplit

from siderite.baremetal.domain.hardware import HardwareError
from siderite.baremetal.domain.hardware import Refused
from siderite.baremetal.domain.hardware import Unreachable
from siderite.baremetal.domain.secrets import is_secret
from siderite.baremetal.domain.secrets import mask
from siderite.baremetal.domain.secrets import without
from siderite.baremetal.drivers.contract import Endpoint

_LONGEST = 300
_SHORTEST_SECRET = 3
"""Shorter ones are parts of too many words."""
_TRUST = "Give the file of its CA as redfish_verify_ca in driver_info, or false to trust any."
_NO_REDFISH = (
    "See whether redfish_address in driver_info leads to a Redfish service; a BMC that answers so"
    " may need a restart, or newer firmware."
)
CREDENTIALS = (
    "Check redfish_username and redfish_password in driver_info, and the account's role; then try"
    " again."
)
_UNTRUSTED = re.compile(r"certificate verify failed: ([\w ,.'-]{1,200})")
_CUT_SHORT = ("IncompleteRead", "InvalidChunkLength", "failed to decode")
"""What is said of an answer that does not end, or not as it began."""
ENDLESS = "the answer goes on and on"
_SEE_OTHER = 303
BUSY = frozenset({408, 423, 425, 429, 503})
"""HTTP's words for: not now."""
_PASSES = "That passes; if it lasts, look at the BMC's own log."


class SentElsewhere(Exception):
    """An order was redirected in a way by which it gets lost: nobody was told anything; or, by one
    such way, somebody was, and what became of it is not known.
    """

    def __init__(self, location: object, status: int) -> None:
        parts = urlsplit(str(location or ""))
        where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else ""
        self.where = where[:_LONGEST] or "elsewhere"
        is_open = status == _SEE_OTHER
        self.fate = "may have been taken or lost" if is_open else "do not arrive"
        super().__init__(self.where)


def spoils(why: Exception) -> bool:
    """Whether what is known of a BMC may be wrong after this error. One that is out of reach or has
    trouble of its own is the same when it comes back.
    """
    from sushy import exceptions  # noqa: PLC0415 (loaded by the call that failed)

    if isinstance(why, exceptions.AccessError | exceptions.ResourceNotFoundError):
        return True
    return not isinstance(why, exceptions.SushyError | HardwareError)


def told(at: Endpoint, doing: str, why: Exception, *, worked: bool) -> HardwareError:
    """The error of a call to a node's BMC, as it is told; `worked` says that others succeeded."""
    from sushy import exceptions  # noqa: PLC0415 (loaded by the call that failed)

    bmc = at.bmc
    match why:
        case HardwareError():
            return why
        case exceptions.AccessError() | exceptions.ResourceNotFoundError() if worked:
            # BMCs that start their services anew answer so for a while.
            reason = f"it answers as never before ({_detail(at, why)})"
            is_login = isinstance(why, exceptions.AccessError)
            return Unreachable(bmc, doing, reason, refuses_login=is_login)
        case exceptions.AccessError():
            return Refused(
                bmc, doing, f"it does not take the credentials (HTTP {why.status_code})",
                CREDENTIALS, refuses_login=True,
            )  # fmt: skip
        case exceptions.ResourceNotFoundError():
            system = at.driver_info.get("redfish_system_id")
            return Refused(
                bmc, doing, f"it has not what was asked for ({_short(at, why)})",
                f"Check redfish_system_id in driver_info, which is {system!r}.",
            )  # fmt: skip
        case exceptions.UnknownDefaultError():
            return Refused(
                bmc, doing, "it has not exactly one system",
                "Set redfish_system_id in driver_info.",
            )  # fmt: skip
        case exceptions.HTTPError() if why.status_code in BUSY:
            reason = f"it is busy ({_detail(at, why)})"
            return Unreachable(bmc, doing, reason, _PASSES, is_busy=True)
        case exceptions.ServerSideError():
            return Unreachable(bmc, doing, f"it has trouble of its own ({_detail(at, why)})")
        case exceptions.ConnectionError():
            return _silent(bmc, doing, str(why), worked=worked)
        case exceptions.HTTPError():
            return Refused(bmc, doing, _detail(at, why))
        case exceptions.SushyError():
            return Refused(bmc, doing, _short(at, why))
    return _odd(at, doing, why)


def not_yet(at: Endpoint, doing: str, wanted: float | None, left: float) -> Unreachable:
    """The BMC was busy, and said how many seconds it wants: it is not asked before."""
    reason = f"it is busy, and asked to be left alone for {wanted or left:.0f} s"
    return Unreachable(at.bmc, doing, reason, _PASSES, is_busy=True, again_in=left)


def _odd(at: Endpoint, doing: str, why: Exception) -> HardwareError:
    """What sushy has no word for."""
    bmc = at.bmc
    match why:
        case SentElsewhere():
            return Refused(
                bmc, doing, f"it sends orders on to {why.where}, where they {why.fate}",
                "Set redfish_address in driver_info to that address.",
            )  # fmt: skip
        case UnicodeError():
            return Refused(
                bmc, doing, "HTTP basic authentication cannot carry the user name or password",
                "Use letters, digits and signs of ASCII, or redfish_auth_type session.",
            )  # fmt: skip
        case OSError() if "CA certificate" in str(why):
            return Refused(bmc, doing, _short(at, why), _TRUST)
    return Unreachable(bmc, doing, f"its answer makes no sense ({_short(at, why)})", _NO_REDFISH)


def _silent(bmc: str, doing: str, text: str, *, worked: bool) -> HardwareError:
    if "certificate verify failed" in text.lower().replace("_", " "):
        said = _UNTRUSTED.search(text)
        reason = "its certificate is not one that is trusted here"
        reason += f" ({said[1].strip()})" if said is not None else ""
        # One that was trusted before has ended, or the BMC has made another: either can be mended.
        return (Unreachable if worked else Refused)(bmc, doing, reason, _TRUST)
    if "no certificate or crl" in text.lower():
        return Refused(bmc, doing, "the file of its CA holds no certificate", _TRUST)
    if "SSL" in text:
        return Refused(
            bmc, doing, "it does not speak TLS as expected",
            "Check the scheme (http or https) and port of redfish_address in driver_info.",
        )  # fmt: skip
    if ENDLESS in text:
        return Unreachable(bmc, doing, "its answer does not come to an end", _NO_REDFISH)
    if any(word in text for word in _CUT_SHORT):
        return Unreachable(bmc, doing, "its answer was cut short or spoilt")
    return Unreachable(bmc, doing)


def _detail(at: Endpoint, why: Exception) -> str:
    detail = getattr(why, "detail", None)
    code = getattr(why, "status_code", "?")
    return f"HTTP {code}" + (f", {quoted(at, str(detail))}" if detail else "")


def _short(at: Endpoint, why: Exception) -> str:
    return quoted(at, str(why) or type(why).__name__)


def quoted(at: Endpoint, text: str) -> str:
    """What a BMC says, without the passwords that it was given (some repeat what they refuse), and
    not all of it if that is long. Of a word that has no room nothing is left: half a secret is not
    known for one any more.
    """
    info = at.driver_info.items()
    hidden = {str(value) for key, value in info if value is not None and is_secret(key)}
    known = (secret for secret in hidden if len(secret) >= _SHORTEST_SECRET)
    said: str = mask(without(text, known))
    if len(said) <= _LONGEST:
        return said
    return said[: _LONGEST + 1].rpartition(" ")[0] or said[:_LONGEST]
