"""How a host is reached: its URI with all that libvirt must be told, and the same road for others.

Over ssh nobody is there to type, so ssh must fail rather than ask, and soon. libvirt has no word
for `known_hosts`, so it is given a small program of ours to call in place of ssh.
"""

import os
import shlex
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qsl
from urllib.parse import quote
from urllib.parse import urlsplit

import msgspec

CONNECT_TIMEOUT_S = 15
_PKI = ("cacert.pem", "clientcert.pem", "clientkey.pem")


class CannotDial(Exception):
    """What the host's options name is not there."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.remedy = remedy


class Ssh(msgspec.Struct, frozen=True):
    """An ssh client's command line for a host; pure."""

    host: str
    port: int | None = None
    user: str | None = None
    keyfile: str | None = None
    known_hosts: str | None = None

    def program(self) -> list[str]:
        """ssh and how it shall behave."""
        words = ["ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_TIMEOUT_S}"]
        if self.keyfile:
            words += ["-i", self.keyfile, "-o", "IdentitiesOnly=yes"]
        if self.known_hosts:
            words += ["-o", f'UserKnownHostsFile="{self.known_hosts}"']
            words += ["-o", "StrictHostKeyChecking=yes", "-o", "GlobalKnownHostsFile=/dev/null"]
        return words

    def to(self, host: str, port: int) -> tuple[str, ...]:
        """A command whose input and output are a TCP connection from there to an address."""
        words = self.program()
        words += ["-p", str(self.port)] if self.port else []
        words += ["-l", self.user] if self.user else []
        at = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return (*words, "-o", "LogLevel=ERROR", "-W", at, "--", self.host)


def ssh_of(uri: str, options: Mapping[str, str]) -> Ssh | None:
    """The ssh client that a URI speaks of; None if it is reached in another way."""
    parts = urlsplit(uri)
    if not parts.scheme.endswith("+ssh") or not parts.hostname:
        return None
    said = dict(parse_qsl(parts.query))
    return Ssh(
        parts.hostname,
        parts.port,
        parts.username,
        said.get("keyfile") or options.get("keyfile"),
        said.get("known_hosts") or options.get("known_hosts"),
    )


def dial(uri: str, options: Mapping[str, str], folder: Path) -> str:
    """The URI to give to libvirt; `folder` takes the program that stands in for ssh."""
    said = dict(parse_qsl(urlsplit(uri).query, keep_blank_values=True))
    if "command" in said:  # whoever may add hosts may not run programs here for that
        raise CannotDial("its URI names a command", "leave it out; ssh is found by itself")
    ssh = ssh_of(uri, options)
    if ssh is not None:
        _must_read("keyfile", ssh.keyfile)
        _must_read("known_hosts", ssh.known_hosts)
        return _with(uri, said, {"no_tty": "1", "command": str(_stand_in(ssh, folder))})
    if urlsplit(uri).scheme.endswith("+tls"):
        path = said.get("pkipath") or options.get("pkipath")
        for name in _PKI if path else ():
            _must_read("pkipath", f"{path}/{name}")
        return _with(uri, said, {"pkipath": path} if path else {})
    return uri


def _with(uri: str, said: Mapping[str, str], further: Mapping[str, str]) -> str:
    new = [f"{name}={quote(value)}" for name, value in further.items() if name not in said]
    if not new:
        return uri
    return uri + ("&" if "?" in uri else "?") + "&".join(new)


def _must_read(option: str, path: str | None) -> None:
    if path is None or os.access(path, os.R_OK):
        return
    raise CannotDial(
        f"{path} cannot be read here",
        "put it there for the user that Siderite runs as, or remove the host and add it anew with"
        f" another {option}",
    )


def _stand_in(ssh: Ssh, folder: Path) -> Path:
    """A program that libvirt calls as it would call ssh."""
    text = f'#!/bin/sh\nexec {shlex.join(ssh.program())} "$@"\n'
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.resolve() / f"ssh-{sha256(text.encode()).hexdigest()[:16]}"
    if not path.exists():
        new = path.with_suffix(f".{os.getpid()}")
        new.write_text(text)
        new.chmod(0o700)
        new.replace(path)
    return path
