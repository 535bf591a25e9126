"""The bare metal APIs that servers on whole machines run on: our own, or an Ironic elsewhere."""

from siderite.compute.drivers.baremetal import Apis
from siderite.compute.drivers.baremetal_api import BaremetalApi
from siderite.compute.drivers.baremetal_api import Tokens
from siderite.compute.drivers.contract import At
from siderite.core.config import Config
from siderite.wiring.compute_api import own_url
from siderite.wiring.keystone_tokens import KeystoneTokens
from siderite.wiring.keystone_tokens import NoTokens
from siderite.wiring.own_tokens import OwnTokens
from siderite.wiring.part import Base

ACCOUNT = "siderite-compute"
_OWN = ("", "baremetal:")


def baremetal_apis(base: Base) -> Apis:
    """The API of a host: our own if its URI is empty or `baremetal:`."""
    known: dict[str, BaremetalApi] = {}

    def of(at: At) -> BaremetalApi:
        api = known.get(at.uri)
        if api is None:
            api = known[at.uri] = _api(base, at.uri)
        return api

    return of


def _api(base: Base, uri: str) -> BaremetalApi:
    if uri in _OWN:
        url = f"{own_url(base.config, base.role)}/baremetal"
        return BaremetalApi(url, OwnTokens(base.own_identity, ACCOUNT))
    return BaremetalApi(uri, _tokens(base.config))


def _tokens(config: Config) -> Tokens:
    if not config.baremetal_auth_url:
        return NoTokens()
    return KeystoneTokens(
        config.baremetal_auth_url,
        user=config.baremetal_username,
        password=config.baremetal_password,
        project=config.baremetal_project,
        domain=config.baremetal_domain,
        option="baremetal_username",
    )
