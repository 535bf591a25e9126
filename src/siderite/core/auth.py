"""Finding out who asks: a token, or HTTP basic where a service takes it."""

import base64
import binascii

from siderite.core import same_site
from siderite.core.errors import Unauthorized
from siderite.core.http import Request
from siderite.core.who import Authenticator
from siderite.core.who import Who


async def identify(request: Request, who: Authenticator, *, basic: bool = False) -> Who:
    """Whom the request's credential belongs to; Unauthorized if there is none or it is not good."""
    token = request.header(b"x-auth-token")
    if token is not None:
        known = await who.by_token(token)
        if known is None:
            raise Unauthorized("The token is not known or has expired; get a new one.")
        return known
    header = request.header(b"authorization") if basic else None
    if header is None:
        raise Unauthorized()
    same_site.check(request)
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "basic":
        raise Unauthorized(
            "The Authorization header must be of the Basic kind; or send X-Auth-Token."
        )
    try:
        user, colon, password = base64.b64decode(text, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError) as why:
        raise Unauthorized("The Authorization header is not valid base64 text.") from why
    known = await who.by_password(user, password) if colon else None
    if known is None:
        raise Unauthorized("The user name or the password is wrong.")
    return known
