"""Simulated hosts and guests: a product of their own, for demonstrations and people's tests."""

from siderite.compute.drivers.simulated.control import simulated_hosts_service
from siderite.compute.drivers.simulated.driver import simulated_driver
from siderite.compute.drivers.simulated.guests import Guests

__all__ = ["Guests", "simulated_driver", "simulated_hosts_service"]
