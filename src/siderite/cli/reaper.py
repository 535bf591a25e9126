"""`siderite reaper`: frees room for PENDING servers, as a client of the public API."""

import argparse
import asyncio
import os
import signal
import sys

import httpx

from siderite.cli.cloud import Cloud
from siderite.cli.cloud import Refused as Unusable
from siderite.cli.projects import project
from siderite.core import log
from siderite.reaper import Api
from siderite.reaper import Reaper
from siderite.reaper import Refused
from siderite.reaper import Rules

_FORBIDDEN = 403


def run(said: argparse.Namespace) -> int:
    """Until SIGTERM or Ctrl-C, or once."""
    log.set_up(said.log_level or "info", "text")
    cloud = Cloud(said.data)
    rules = Rules(
        # Two of one name would take each other's care for their own.
        said.name or f"reaper-{os.uname().nodename}-{os.getpid()}",
        strategy=said.strategy,
        dry_run=said.dry_run,
        per_project_and_hour=said.limit,
        projects=frozenset(project(cloud, word) for word in said.preemptible_project),
    )
    try:
        asyncio.run(_reap(cloud, rules, once=said.once or said.dry_run))
    except KeyboardInterrupt:
        return 130
    except httpx.HTTPError as why:
        print(f"siderite: cannot reach {cloud.base}: {why!r}", file=sys.stderr)
        return 1
    return 0


async def _check(api: Api, user: str) -> None:
    """One who may not see the servers of others would be refused for ever."""
    try:
        await api.ask("GET", "/servers?all_tenants=1&limit=1")
    except Refused as why:
        if why.status == _FORBIDDEN:
            sentence = f"{user} may not look after the servers of others: give it the role admin"
            raise Unusable(f"{sentence}, or name another user in clouds.yaml ({why})") from why
        # What else is wrong may pass.


async def _reap(cloud: Cloud, rules: Rules, *, once: bool) -> None:
    api = Api(cloud.base, cloud.identity, cloud.credentials, trust=cloud.trust)
    try:
        try:
            await api.login()
        except Refused as why:
            raise Unusable(f"{cloud.identity} gave no token: {why}") from why
        reaper = Reaper(api, rules)
        await _check(api, cloud.user)
        if once:
            try:
                count = await reaper.round()
            except Refused as why:
                raise Unusable(f"pending servers cannot be looked after: {why}") from why
            print(f"{count} {'server was' if count == 1 else 'servers were'} pending.")
            return
        print(f"{rules.name} frees room for PENDING servers ({rules.strategy}).", flush=True)
        work = asyncio.create_task(reaper.run())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
        await asyncio.wait([work])
        if not work.cancelled():
            work.result()  # it ends by itself only if something broke, which is to be told
    finally:
        await api.close()
