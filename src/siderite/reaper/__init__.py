"""The service outside that frees room for PENDING servers: a client of the public API, and of
nothing else.
"""

from siderite.reaper.api import Api
from siderite.reaper.api import Refused
from siderite.reaper.choose import STRATEGIES
from siderite.reaper.reaper import Reaper
from siderite.reaper.rules import Rules

__all__ = ["STRATEGIES", "Api", "Reaper", "Refused", "Rules"]
