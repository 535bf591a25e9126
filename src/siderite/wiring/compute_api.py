"""The compute service that is told of nodes' power."""

from siderite.baremetal.workers.compute_api import ComputeApi
from siderite.core.config import Config
from siderite.wiring.keystone_tokens import KeystoneTokens
from siderite.wiring.keystone_tokens import NoTokens
from siderite.wiring.own_tokens import OwnTokens
from siderite.wiring.part import Base
from siderite.wiring.part import Role

OWN = "own"
ACCOUNT = "siderite-baremetal"


def compute_api(base: Base) -> ComputeApi | None:
    """Our own, another one, or none."""
    config = base.config
    if not config.compute_endpoint:
        return None
    if config.compute_endpoint == OWN:
        url = own_url(config, base.role)
        return ComputeApi(f"{url}/compute/v2.1", OwnTokens(base.own_identity, ACCOUNT))
    if not config.compute_auth_url:
        return ComputeApi(config.compute_endpoint, NoTokens())
    tokens = KeystoneTokens(
        config.compute_auth_url,
        user=config.compute_username,
        password=config.compute_password,
        project=config.compute_project,
        domain=config.compute_domain,
        option="compute_username",
    )
    return ComputeApi(config.compute_endpoint, tokens)


def own_url(config: Config, role: Role) -> str:
    """How a process reaches our own APIs: its own listener if it has them, else the public URL."""
    return config.url if role is Role.WORKER else config.near_url
