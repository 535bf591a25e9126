"""`siderite backup`, `siderite restore`, `siderite db copy` and `siderite admin-password`."""

import argparse
import asyncio
import shlex
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from siderite import clouds
from siderite.cli.settings import loaded
from siderite.cli.settings import trouble
from siderite.core.config import Config
from siderite.wiring import keeping


def run(said: argparse.Namespace) -> int:
    """Do what was said; 1 with a sentence if it cannot be done, or not all of it."""
    config = loaded(said).config
    copied: dict[str, int] = {}
    kept, lacking = Path(), None
    try:
        with _shown() as progress:
            if said.word == "backup":
                lacking = keeping.back_up(config, Path(said.file), progress)
            elif said.word == "restore":
                keeping.restore(Path(said.file), Path(config.data), progress)
            elif said.word == "admin-password":
                kept = asyncio.run(keeping.new_admin_password(config))
            else:
                copied = asyncio.run(keeping.copy_to(config, said.to, progress))
    except (keeping.CannotBackUp, keeping.CannotCopy, RuntimeError) as why:
        print(f"siderite: {why}", file=sys.stderr)
        return 1
    except (OSError, sqlite3.Error) as why:
        print(f"siderite: {trouble(config, why)}", file=sys.stderr)
        return 1
    if lacking is not None:
        print(f"siderite: {lacking}", file=sys.stderr)
        return 1
    if said.word == "backup":
        print(f"{said.file} has the database and the files of {config.data}.")
    elif said.word == "restore":
        _tell_restored(config)
    elif said.word == "admin-password":
        print(f"The user admin is an administrator and has a new password; it is in {kept}.")
    else:
        print(f"copied {sum(copied.values())} rows of {len(copied)} tables.")
        print("Start on the new database with --db; keep the old files until you trust it.")
    return 0


def _tell_restored(config: Config) -> None:
    """How to go on, and what would be taken for the restored one and is not."""
    print(f"restored; start it with: siderite up --data {shlex.quote(str(config.data))}")
    if config.image_dir:
        print(f"Its images are in {config.data}/images: move them to {config.image_dir} first.")
    if other := clouds.elsewhere(config):
        print(
            f"Its clouds.yaml names {other}: that is where commands with --data {config.data}"
            " go, so change it there if this is to be another service beside that."
        )


@contextmanager
def _shown() -> Iterator[keeping.Progress]:
    """A progress bar per thing that is copied, while somebody looks."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bars:
        known = {}

        def progress(what: str, done: int, total: int) -> None:
            if what not in known:
                known[what] = bars.add_task(what, total=total)
            bars.update(known[what], completed=done, total=total)

        yield progress
