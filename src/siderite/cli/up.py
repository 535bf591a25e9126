"""`siderite up`: the whole service in one process; `api` and `worker`: one half of it each."""

import argparse
import asyncio
import gc
import os
import shlex
import shutil
import signal
import sqlite3
import sys
from dataclasses import replace
from pathlib import Path

import uvloop

from siderite import clouds
from siderite.cli import notify
from siderite.cli.settings import loaded
from siderite.cli.settings import trouble
from siderite.core import log
from siderite.core.config import BadOption
from siderite.core.config import Config
from siderite.wiring import Invalid
from siderite.wiring import Role
from siderite.wiring import Unavailable
from siderite.wiring import build
from siderite.wiring import carrying_on
from siderite.wiring import listen
from siderite.wiring import serve


def run(said: argparse.Namespace) -> int:
    """Run until SIGTERM or Ctrl-C."""
    options = loaded(said)
    config = options.config
    if config.demo and options.origin["use_pending_state"] == "default":
        config = replace(config, use_pending_state=True)  # `siderite demo full-cloud` is about it
    level = config.log_level
    if options.origin["log_level"] == "default" and sys.stderr.isatty():
        level = "warning"  # somebody is looking: what they must see should stay on the screen
    # The thread that waits for the disk must get a word in while the loop is busy.
    sys.setswitchinterval(0.0005)
    os.umask(0o077)  # what we write holds passwords of machines
    log.set_up(level, config.log_format)
    try:
        uvloop.run(_up(config, Role(said.word), quiet=options.origin["listen"] == "default"))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT  # before it listened, or once more while it stopped
    except (BadOption, Invalid) as why:
        print(f"siderite: {why}", file=sys.stderr)
        return 2
    except (RuntimeError, Unavailable) as why:
        print(f"siderite: {why}", file=sys.stderr)
        return 1
    except (OSError, sqlite3.Error) as why:
        print(f"siderite: {trouble(config, why)}", file=sys.stderr)
        return 1
    return 0


async def _up(config: Config, role: Role, *, quiet: bool) -> None:
    if role is Role.WORKER and quiet:
        await _only_work(config)
        return
    listener = listen(config)
    host, _, _ = config.listen.rpartition(":")  # the port may have been 0: any that is free
    config = replace(config, listen=f"{host}:{listener.getsockname()[1]}")
    program = await build(config, role)
    _spare_the_collector()
    async with carrying_on(program):
        ready = asyncio.Event()
        welcome = asyncio.create_task(_welcome(config, role, ready))
        try:
            await serve(program, listener, ready)
        finally:
            notify.tell("STOPPING=1")
            welcome.cancel()


async def _only_work(config: Config) -> None:
    """Without a listener: nobody said where to ask for its health."""
    program = await build(config, Role.WORKER, listens=False)
    _spare_the_collector()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop_or_hurry() -> None:
        if stop.is_set():
            program.worker.hurry()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop_or_hurry)
    async with carrying_on(program):
        notify.tell("READY=1")
        print("Siderite works. Stop it with SIGTERM: it finishes the steps under way.", flush=True)
        await stop.wait()


def _spare_the_collector() -> None:
    """Almost nothing here forms cycles: look for them less often, and never in what is loaded."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


async def _welcome(config: Config, role: Role, ready: asyncio.Event) -> None:
    await ready.wait()
    notify.tell("READY=1")
    if role is not Role.ALL:
        what = "answers requests" if role is Role.API else "works; its health is"
        print(f"Siderite {what} at {config.url}.", flush=True)
        return
    print(
        f"""
Siderite is ready at {config.url}; its console is at {config.url}/console/
(user admin, with the password in {clouds.path(config)}). Ctrl-C stops it.
Try, in another terminal:
{_path_hint()}
  export OS_CLIENT_CONFIG_FILE={shlex.quote(str(clouds.path(config)))} OS_CLOUD=siderite
{_server_hint(config)}
{_client_hint()}
""",
        flush=True,
    )


def _server_hint(config: Config) -> str:
    """Machines, if there are some; else how to have them."""
    if config.demo:
        return """\
  siderite node list --attention
  siderite server create mine --flavor m1.tiny --image tiny --wait"""
    return """\
  siderite doctor
  siderite host add mine simulated:    # or qemu:///system; `siderite up --demo` has some"""


def _path_hint() -> str:
    """How to get at our own command, if it is not there."""
    here = Path(sys.executable).parent
    return "" if shutil.which("siderite") else f"\n  export PATH=$PATH:{shlex.quote(str(here))}"


def _client_hint() -> str:
    """OpenStack's clients are not ours, and may not be there."""
    if shutil.which("openstack") or (Path(sys.executable).parent / "openstack").exists():
        return "  openstack baremetal node list"
    return (
        "  openstack baremetal node list    # its packages: python-openstackclient,"
        " python-ironicclient"
    )
