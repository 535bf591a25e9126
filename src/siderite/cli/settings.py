"""From command line flags to the configuration."""

import argparse
import sys

from siderite.core.config import BadOption
from siderite.core.config import Config
from siderite.core.config import Loaded
from siderite.core.config import load


def loaded(said: argparse.Namespace) -> Loaded:
    """The configuration in force; a mistake in it ends the command with a sentence."""
    names = Config.__dataclass_fields__
    flags = {name: getattr(said, name) for name in names if getattr(said, name, None) is not None}
    try:
        return load(flags, file=said.config)
    except BadOption as why:
        print(f"siderite: {why}", file=sys.stderr)
        raise SystemExit(2) from why
