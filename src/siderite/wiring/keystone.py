"""Another Keystone, if one is named: whose tokens are good here too."""

from siderite.core.config import Config
from siderite.core.who import Authenticator
from siderite.identity import Either
from siderite.identity import Identity
from siderite.identity import Keystone
from siderite.identity.keystone import Account


def keystone(config: Config) -> Keystone | None:
    """The Keystone that the options name."""
    if not config.keystone_url:
        return None
    account = Account(
        config.keystone_user, config.keystone_password, config.keystone_project,
        config.keystone_domain,
    )  # fmt: skip
    return Keystone(config.keystone_url, account)


def who_asks(own: Identity, other: Keystone | None) -> Authenticator:
    """Who can tell whose a token is: we, and the other Keystone."""
    return own if other is None else Either(own, other)
