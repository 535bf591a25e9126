"""`siderite up`: the whole service in one process."""

import argparse
import asyncio
import os
import shutil
import sys
from pathlib import Path

import uvloop

from siderite.cli.settings import loaded
from siderite.core import log
from siderite.core.config import Config
from siderite.wiring import Program
from siderite.wiring import build
from siderite.wiring import carrying_on
from siderite.wiring import listen
from siderite.wiring import serve

_CLOUDS = """\
clouds:
  siderite:
    auth_type: password
    auth:
      auth_url: {url}/identity/v3
      username: admin
      password: "{password}"
      project_name: admin
      user_domain_id: default
      project_domain_id: default
    region_name: {region}
    identity_api_version: 3
"""


def run(said: argparse.Namespace) -> int:
    """Run until SIGTERM or Ctrl-C."""
    options = loaded(said)
    config = options.config
    level = config.log_level
    if options.origin["log_level"] == "default" and sys.stderr.isatty():
        level = "warning"  # somebody is looking: what they must see should stay on the screen
    # The thread that waits for the disk must get a word in while the loop is busy.
    sys.setswitchinterval(0.0005)
    log.set_up(level, config.log_format)
    try:
        uvloop.run(_up(config))
    except (RuntimeError, OSError) as why:
        print(f"siderite: {why}", file=sys.stderr)
        return 1
    return 0


async def _up(config: Config) -> None:
    listener = listen(config)
    program = await build(config)
    clouds = _write_clouds(program)
    async with carrying_on(program):
        ready = asyncio.Event()
        welcome = asyncio.create_task(_welcome(config, clouds, ready))
        try:
            await serve(program, listener, ready)
        finally:
            welcome.cancel()


def _write_clouds(program: Program) -> Path:
    """clouds.yaml for the clients: at first start, when the password is known."""
    config = program.config
    path = Path(config.data).resolve() / "clouds.yaml"
    password = program.new_password or config.admin_password
    if not password:
        return path
    text = _CLOUDS.format(
        url=config.url,
        region=config.region,
        password=password.replace("\\", "\\\\").replace('"', '\\"'),
    )
    if program.new_password is None and path.exists():
        return path
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)
    return path


async def _welcome(config: Config, clouds: Path, ready: asyncio.Event) -> None:
    await ready.wait()
    print(
        f"""
Siderite is ready at {config.url}. Try, in another terminal:
{_client_hint()}
  export OS_CLIENT_CONFIG_FILE={clouds} OS_CLOUD=siderite
  openstack baremetal node list
  openstack baremetal node create --driver fake-hardware --name mine
""",
        flush=True,
    )


def _client_hint() -> str:
    """How to get the client, if it is not there."""
    if shutil.which("openstack"):
        return ""
    beside = Path(sys.executable).with_name("openstack")
    if beside.exists():
        return f"\n  export PATH=$PATH:{beside.parent}"
    return "\n  pip install python-openstackclient python-ironicclient"
