"""`siderite reaper`: frees room for PENDING servers, as a client of the public API."""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

import httpx
import yaml

from siderite.core import log
from siderite.reaper import Api
from siderite.reaper import Reaper
from siderite.reaper import Rules


def run(said: argparse.Namespace) -> int:
    """Until SIGTERM or Ctrl-C, or once."""
    log.set_up(said.log_level or "info", "text")
    path = Path(said.data or "./siderite-data") / "clouds.yaml"
    try:
        auth = yaml.safe_load(path.read_text())["clouds"]["siderite"]["auth"]
    except (OSError, KeyError, TypeError, yaml.YAMLError) as why:
        print(
            f"siderite: cannot read {path}: {why}; name the --data of a running service.",
            file=sys.stderr,
        )
        return 1
    rules = Rules(
        said.name or f"reaper-{os.uname().nodename}",
        strategy=said.strategy,
        dry_run=said.dry_run,
        per_project_and_hour=said.limit,
        projects=frozenset(said.preemptible_project),
    )
    try:
        asyncio.run(_reap(auth, rules, once=said.once or said.dry_run))
    except KeyboardInterrupt:
        return 130
    except httpx.HTTPError as why:
        print(f"siderite: cannot reach {auth['auth_url']}: {why!r}", file=sys.stderr)
        return 1
    return 0


async def _reap(auth: dict[str, str], rules: Rules, *, once: bool) -> None:
    api = Api(auth["auth_url"], auth["username"], auth["password"], auth["project_name"])
    try:
        await api.login()
        reaper = Reaper(api, rules)
        if once:
            count = await reaper.round()
            print(f"{count} servers were pending.")
            return
        print(f"{rules.name} frees room for PENDING servers ({rules.strategy}).", flush=True)
        work = asyncio.create_task(reaper.run())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
        await asyncio.gather(work, return_exceptions=True)
    finally:
        await api.close()
