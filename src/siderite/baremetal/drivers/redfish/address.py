"""Where a Redfish system is, and how to get in."""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from typing import Any
from urllib.parse import SplitResult
from urllib.parse import urlsplit

from siderite.core.check import truth

Door = tuple[str, str | None, str | None]


@dataclass(frozen=True, slots=True)
class Address:
    """Where a system is and how to get in, from `driver_info`."""

    url: str
    system: str | None
    username: str | None
    password: str | None = field(repr=False)
    verify: bool | str
    auth: str

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> "Address":
        """Read `driver_info`; ValueError says what is wrong with it."""
        text = str(info.get("redfish_address") or "").strip().rstrip("/")
        if not text:
            raise ValueError("driver_info lacks redfish_address, such as https://bmc.example.org")
        parts = urlsplit(text if "://" in text else f"https://{text}")
        bare = parts.netloc.rpartition("@")[2]
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"redfish_address {bare!r} is no http or https address")
        if not _has_fine_port(parts):
            raise ValueError(
                f"redfish_address {bare!r} has no proper port; an IPv6 address is written in []"
            )
        auth = str(info.get("redfish_auth_type") or "auto")
        if auth not in ("auto", "basic", "session"):
            raise ValueError(f"redfish_auth_type is {auth!r}; it can be auto, basic or session")
        system = info.get("redfish_system_id")
        return cls(
            f"{parts.scheme}://{bare}",
            None if not system else str(system),
            _text(info.get("redfish_username")),
            _text(info.get("redfish_password")),
            _verify(info.get("redfish_verify_ca")),
            auth,
        )

    @property
    def door(self) -> Door:
        """The BMC and the account, whichever of its systems is meant."""
        return self.url, self.username, self.password

    @property
    def reach(self) -> tuple[str, int]:
        """Host and port."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _has_fine_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _verify(value: Any) -> bool | str:
    if value is None or value == "":
        return True
    word = str(value).strip()
    found = truth(word)
    return word if found is None else found
