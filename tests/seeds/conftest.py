"""The compute tests' installations."""

from tests.compute.conftest import both
from tests.compute.conftest import lite

__all__ = ["both", "lite"]
