"""A Redfish service of a few fixed answers, for what sushy-emulator has not: no machine, no login.

with redfish_static(SerialConsole={"IPMI": {"ServiceEnabled": True, "Port": 623}}) as url: ...
"""

import json
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.serving import serving

SYSTEM = "/redfish/v1/Systems/1"
_MANAGER = "/redfish/v1/Managers/1"


@contextmanager
def redfish_static(*, manager: Mapping[str, Any] | None = None, **system: Any) -> Iterator[str]:
    """One system and its manager, with these properties; gives the service's address."""
    pages = {
        "/redfish/v1": {
            "Id": "Root", "Name": "Root", "RedfishVersion": "1.13.0",
            "Systems": {"@odata.id": "/redfish/v1/Systems"},
            "Managers": {"@odata.id": "/redfish/v1/Managers"},
        },
        SYSTEM: {
            "Id": "1", "Name": "System", "PowerState": "Off", "Actions": {},
            "Links": {"ManagedBy": [{"@odata.id": _MANAGER}]}, **system,
        },
        _MANAGER: {"Id": "1", "Name": "Manager", **(manager or {})},
    }  # fmt: skip

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path.rstrip("/"))
            text = json.dumps({"@odata.id": self.path, **(page or {})}).encode()
            self.send_response(200 if page else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with serving(Pages) as url:
        yield url
