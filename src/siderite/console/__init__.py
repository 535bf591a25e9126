"""Pages for the operator: plain files that talk to the public APIs from the browser."""

from siderite.console.service import ConsoleService
from siderite.console.service import Shown

__all__ = ["ConsoleService", "Shown"]
