"""From command line flags to the configuration."""

import argparse
import os
import re
import sqlite3
import sys
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path

from siderite.core.config import BadOption
from siderite.core.config import Config
from siderite.core.config import Loaded
from siderite.core.config import load

_PREFIX = "SIDERITE_"
_LINK = re.compile(r"SIDERITE(_\w+)?_(SERVICE_(HOST|PORT\w*)|PORT_\d+_\w+)=|\w+_PORT=\w+://.*")
"""What Kubernetes tells every container of services by that name."""


def loaded(said: argparse.Namespace) -> Loaded:
    """The configuration in force; a mistake in it ends the command with a sentence, and one in a
    variable's name is said.
    """
    names = Config.__dataclass_fields__
    flags = {name: getattr(said, name) for name in names if getattr(said, name, None) is not None}
    for sentence in unknown_variables(os.environ):
        print(f"siderite: {sentence}", file=sys.stderr)
    try:
        return load(flags, file=said.config)
    except BadOption as why:
        print(f"siderite: {why}", file=sys.stderr)
        raise SystemExit(2) from why


def trouble(config: Config, why: OSError | sqlite3.Error) -> str:
    """What a file or the embedded database gives for a reason, and what to do."""
    if isinstance(why, OSError):
        what = f"cannot use {why.filename}: {why.strerror}" if why.filename else str(why)
        return f"{what}; see to it, or change the option that names it."
    return (
        f"cannot use the database in {Path(config.data).resolve()}: {why}; see to its file and its"
        " disk, or restore a backup."
    )


def unknown_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """A sentence on each variable that looks like an option and is none."""
    known = ["CONFIG", *(name.upper() for name in Config.__dataclass_fields__)]
    for name, value in sorted(environ.items()):
        if not name.upper().startswith(_PREFIX) or _LINK.match(f"{name}={value}"):
            continue
        if name.removeprefix(_PREFIX) in known:
            continue
        from difflib import get_close_matches

        near = get_close_matches(name.upper().removeprefix(_PREFIX), known, 1)
        hint = f"do you mean {_PREFIX}{near[0]}?" if near else "see `siderite config show`."
        yield f"the environment variable {name} is no option and is ignored; {hint}"
