"""Simulated hosts and guests: a product of their own, for demonstrations and people's tests."""

from siderite.compute.drivers.simulated.images import SimulatedImages

__all__ = ["SimulatedImages"]
