"""Requests that a browser makes for the page of another site, in the name of whoever uses it.

A page cannot send a token that it does not know. But a browser sends a password of HTTP basic along
by itself once its user has typed it, and where nobody is asked who he is, anybody's page may ask.
So such ways in are not for pages of other sites (`core.auth`, the bare metal API without it).
"""

import ipaddress
from urllib.parse import SplitResult
from urllib.parse import urlsplit

from siderite.core.errors import Forbidden
from siderite.core.http import Request

_READS = ("GET", "HEAD")
"""What comes of these the browser keeps from the page."""
_OUR_PAGES = ("same-origin", "none")
_LOCAL = "localhost"


def check(request: Request) -> None:
    """Refuse what the page of another site would change."""
    if request.method not in _READS and not _is_ours(request):
        raise Forbidden(
            "A page of another site sends this; for that it needs a token (X-Auth-Token), not what"
            " the browser knows."
        )


def check_name(request: Request) -> None:
    """Refuse a name that is not ours: a page may be from where it says, and have that name mean
    this machine from now on, so that its browser takes it for one of our own pages.
    """
    name = _host(f"//{request.header(b'host') or _LOCAL}")
    if not _is_address(name) and name not in (_LOCAL, _host(request.base)):
        raise Forbidden(
            f"Host {name[:80]!r} is not a name of this service (option public_url); ask at its"
            " address. Who is asked for no credential must not come by a name of somebody else's."
        )


def _is_ours(request: Request) -> bool:
    said = request.header(b"sec-fetch-site")
    if said is not None:
        return said in _OUR_PAGES
    origin = request.header(b"origin")  # of browsers that do not say it, or not over plain http
    if origin is None:
        return True
    return _parts(origin).netloc in (request.header(b"host"), _parts(request.base).netloc)


def _parts(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def _host(url: str) -> str:
    return _parts(url).hostname or ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
