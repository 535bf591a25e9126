"""Options that only the rooms understand: whoever starts or examines a service has them refused
before a database is brought up to date for a program that then does not start.
"""

from siderite.compute.domain import network
from siderite.core.config import Config
from siderite.wiring.drivers import console_ports
from siderite.wiring.drivers import enabled


def check(config: Config) -> None:
    """Refuse what cannot be meant, with a sentence."""
    network.parse(config.networks)
    enabled(config)
    console_ports(config)
