"""From configuration to a running program: the only room that knows everything."""

from siderite.core.errors import Invalid
from siderite.core.errors import Unavailable
from siderite.wiring.part import Role
from siderite.wiring.program import Program
from siderite.wiring.program import build
from siderite.wiring.program import carrying_on
from siderite.wiring.server import listen
from siderite.wiring.server import serve

__all__ = ["Invalid", "Program", "Role", "Unavailable", "build", "carrying_on", "listen", "serve"]
