"""Where a bare metal API listens and what every request to it carries.

Made by the subjects; read by the client, by wrk and by the capture of answers.
"""

from dataclasses import dataclass
from dataclasses import replace
from urllib.parse import urlsplit

API_VERSION = "1.115"
COMPUTE_VERSION = "compute 2.900"


@dataclass(frozen=True, slots=True)
class Address:
    """A bare metal API: `prefix` is what stands before `/v1`."""

    host: str
    port: int
    prefix: str = ""
    token: str | None = None
    version: str = API_VERSION

    @classmethod
    def of(cls, url: str, *, token: str | None = None) -> "Address":
        """The address that a URL names, as in http://127.0.0.1:6385 or http://127.0.0.1:8770/baremetal."""
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"{url!r} is no http://host:port[/prefix]")
        return cls(parts.hostname, parts.port or 80, parts.path.rstrip("/"), token)

    @property
    def root(self) -> str:
        """The server itself, without the prefix."""
        return f"http://{self.host}:{self.port}"

    @property
    def headers(self) -> dict[str, str]:
        """What every request carries, beside Host."""
        found = {"Accept": "application/json", "X-OpenStack-Ironic-API-Version": self.version}
        found["OpenStack-API-Version"] = COMPUTE_VERSION
        if self.token is not None:
            found["X-Auth-Token"] = self.token
        return found

    def root_of(self, prefix: str) -> "Address":
        """Another service at the same listener."""
        return replace(self, prefix=prefix)

    def path(self, rest: str) -> str:
        """The request target for a path below the API's root, as in /v1/nodes."""
        return self.prefix + rest
