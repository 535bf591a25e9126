"""clouds.yaml: the address and the administrator's password, for the clients on this machine.

It is written before the administrator is made: a process that dies in between leaves a file with
a password that nobody has yet, and the next start writes another; never an account whose password
is lost. A new password for an administrator who is there already takes the old one's place only
once it is theirs.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from siderite.core.config import Config
from siderite.core.disk import sync

_TEXT = """\
clouds:
  siderite:
    auth_type: password
    auth:
      auth_url: {url}/identity/v3
      username: admin
      password: {password}
      project_name: admin
      user_domain_id: default
      project_domain_id: default
    region_name: {region}
    identity_api_version: 3
"""

_AUTH_URL = re.compile(
    r"auth_url: http://(?:[0-9.]+|\[[0-9a-fA-F.:]+\]|[0-9a-fA-F]*:[0-9a-fA-F.:]*|localhost):[0-9]+"
    r"/identity/v3\n"
)
"""As we write it for a listener without a public URL. (One as `::1:8770` was written so once.)"""
_PASSWORD = re.compile(r"^ +password: (\".*\")$", re.MULTILINE)


def path(config: Config) -> Path:
    """Where it is."""
    return Path(config.data).resolve() / "clouds.yaml"


def write(config: Config, password: str) -> None:
    """Write it, readable by its owner alone, all of it or nothing."""
    with changing(config, password):
        pass


@contextmanager
def changing(config: Config, password: str) -> Iterator[None]:
    """Write it to a draft beside it, and put that into its place when what is done meanwhile has
    been done; else all stays as it was.
    """
    # JSON is YAML, whatever is in it.
    region = config.region if config.region.isidentifier() else json.dumps(config.region)
    text = _TEXT.format(url=config.url, region=region, password=json.dumps(password))
    draft = _draft(config, text)
    try:
        yield
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _publish(config, draft)


def password(config: Config) -> str | None:
    """The password in it, as we wrote it."""
    try:
        found = _PASSWORD.search(path(config).read_text())
        return str(json.loads(found[1])) if found else None
    except (OSError, ValueError):
        return None


def follow(config: Config) -> None:
    """The address has changed since it was written: name the new one, and leave all else."""
    try:
        text = path(config).read_text()
    except FileNotFoundError:
        return
    ours = f"auth_url: {config.url}/identity/v3\n"
    new = _AUTH_URL.sub(lambda _: ours, text, count=1)
    if new != text:
        _publish(config, _draft(config, new))


def elsewhere(config: Config) -> str | None:
    """The address in it, if that is another than ours and no start will change it."""
    try:
        text = path(config).read_text()
    except (OSError, UnicodeDecodeError):
        return None
    found = re.search(r"^ +auth_url: (\S+?)(?:/identity/v3)?$", text, re.MULTILINE)
    if found is None or _AUTH_URL.search(text) or found[1] == config.url:
        return None
    return found[1]


def _draft(config: Config, text: str) -> Path:
    draft = path(config).with_suffix(".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return draft


def _publish(config: Config, draft: Path) -> None:
    """The draft is the file, also after a power failure: the account may be made right after."""
    place = path(config)
    draft.replace(place)
    sync(place.parent)


def restore(config: Config) -> None:
    """Write it again if it is gone and the configuration names the password."""
    if config.admin_password and not path(config).exists():
        write(config, config.admin_password)
