"""clouds.yaml: the address and the administrator's password, for the clients on this machine.

It is written before the administrator is made: a process that dies in between leaves a file with
a password that nobody has yet, and the next start writes another; never an account whose password
is lost.
"""

import os
from pathlib import Path

from siderite.core.config import Config

_TEXT = """\
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


def path(config: Config) -> Path:
    """Where it is."""
    return Path(config.data).resolve() / "clouds.yaml"


def write(config: Config, password: str) -> None:
    """Write it, readable by its owner alone, all of it or nothing."""
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    text = _TEXT.format(url=config.url, region=config.region, password=quoted)
    draft = path(config).with_suffix(".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path(config))


def restore(config: Config) -> None:
    """Write it again if it is gone and the configuration names the password."""
    if config.admin_password and not path(config).exists():
        write(config, config.admin_password)
