"""`siderite doctor`: what is wrong, and what to do about it."""

import argparse
import asyncio
import ctypes
import json
import shutil
import socket
import sqlite3
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from pathlib import Path

from siderite.cli import show
from siderite.cli.cloud import Cloud
from siderite.cli.cloud import Refused
from siderite.cli.settings import loaded
from siderite.core.config import Config

_SKEW_S = 5.0
_TIGHT_BYTES = 1 << 30
_NOT_SYNCHRONISED = 5
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it is (well, caution, wrong), and the remedy."""

    what: str
    state: str
    found: str
    remedy: str = ""


def run(said: argparse.Namespace) -> int:
    """Print the findings; 1 if something is wrong."""
    findings = list(examine(loaded(said).config, said.data))
    if said.output == "json":
        print(json.dumps([asdict(one) for one in findings], indent=2, ensure_ascii=False))
    else:
        columns: list[show.Column] = [
            ("state", lambda one: one["state"]),
            ("what", lambda one: one["what"]),
            ("found", lambda one: one["found"]),
        ]
        show.rows([asdict(one) for one in findings], columns, "table", name="what")
        for one in findings:
            if one.remedy:
                print(f"\n{one.what}: {one.remedy}")
    return 1 if any(one.state == "wrong" for one in findings) else 0


def examine(config: Config, data: str | None) -> Iterator[Finding]:
    """Everything, one after the other; what depends on the service only if it answers."""
    yield _data(config)
    yield _database(config)
    yield _clock()
    port, is_up = _port(config)
    yield port
    yield _libvirt()
    if is_up:
        yield from _service(data or config.data)


def _data(config: Config) -> Finding:
    place = Path(config.data)
    there = next(p for p in (place, *place.resolve().parents) if p.exists())
    free = shutil.disk_usage(there).free
    if free < _TIGHT_BYTES:
        return Finding(
            "disk", "wrong", f"{free >> 20} MiB are free at {there}",
            "free some space, or move the data directory (--data).",
        )  # fmt: skip
    return Finding("disk", "well", f"{free >> 30} GiB are free at {there}")


def _database(config: Config) -> Finding:
    try:
        if config.db:
            skew = asyncio.run(_postgres_skew(config.db))
            if abs(skew) > _SKEW_S:
                return Finding(
                    "database", "wrong", f"its clock is {skew:+.1f} s off ours",
                    "synchronise both machines (chrony): deadlines and leases are compared.",
                )  # fmt: skip
            return Finding("database", "well", "PostgreSQL answers")
        path = Path(config.database.removeprefix("sqlite:///"))
        if not path.exists():
            return Finding("database", "well", f"{path} will be made at the first start")
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5) as file:
            file.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return Finding("database", "well", f"{path} can be read")
    except Exception as why:
        return Finding(
            "database", "wrong", f"{type(why).__name__}: {why}",
            "check --db: address, name, password, and that PostgreSQL runs and lets us in"
            " (pg_hba.conf)." if config.db else "restore a backup: `siderite restore`.",
        )  # fmt: skip


async def _postgres_skew(url: str) -> float:
    import asyncpg

    link = await asyncpg.connect(url, timeout=10)
    try:
        theirs = await link.fetchval("SELECT extract(epoch FROM clock_timestamp())::float8")
        return float(theirs) - time.time()
    finally:
        await link.close()


def _clock() -> Finding:
    """What the kernel says of the clock; a container sees its host's."""
    try:
        state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(512))
    except (OSError, AttributeError):
        state = 0
    if state in (_NOT_SYNCHRONISED, -1):
        return Finding(
            "clock", "caution", "it is not synchronised",
            "run chrony or systemd-timesyncd: deadlines, tokens and BMC certificates go by it.",
        )  # fmt: skip
    return Finding("clock", "well", "it is synchronised")


def _port(config: Config) -> tuple[Finding, bool]:
    host, _, port = config.listen.rpartition(":")
    address = f"http://{'127.0.0.1' if host in ('0.0.0.0', '[::]') else host}:{port}"  # noqa: S104
    try:
        with urllib.request.urlopen(f"{address}/healthz", timeout=2) as answer:  # noqa: S310
            said = answer.headers["Date"]
            ours = json.loads(answer.read()) == {"status": "ok"}
        skew = parsedate_to_datetime(said).timestamp() - time.time() if said else 0.0
        if ours and abs(skew) > _SKEW_S:
            return Finding("port", "wrong", f"the service's clock is {skew:+.0f} s off ours",
                           "synchronise both machines (chrony)."), True  # fmt: skip
        if ours:
            return Finding("port", "well", f"Siderite answers at {address}"), True
    except (OSError, ValueError, TypeError):
        pass
    try:
        with socket.create_server((host.strip("[]"), int(port))):
            pass
    except OSError as why:
        return Finding(
            "port", "wrong", f"{config.listen}: {why.strerror}",
            f"another program has it (`ss -ltnp 'sport = :{port}'` says which): end that, or"
            " choose another with --listen.",
        ), False  # fmt: skip
    return Finding(
        "port", "caution", f"{config.listen} is free: the service does not run",
        "start it with `siderite up`; hosts and BMCs are looked at through it.",
    ), False  # fmt: skip


def _libvirt() -> Finding:
    if find_spec("libvirt") is None:
        return Finding(
            "libvirt", "caution", "its Python library is not installed",
            "only needed for libvirt hosts: pip install 'siderite[libvirt]' (Debian: with"
            " libvirt-dev, gcc and pkg-config).",
        )  # fmt: skip
    return Finding("libvirt", "well", "its Python library is installed")


def _service(data: str) -> Iterator[Finding]:
    try:
        cloud = Cloud(data)
        hosts = cloud.compute("GET", "/hosts")["hosts"]
        lost = cloud.baremetal("GET", "/nodes?fault=power%20failure&fields=name,uuid&limit=1000")
    except Refused as why:
        yield Finding("service", "wrong", str(why), "check clouds.yaml in the data directory.")
        return
    down = [host for host in hosts if host["status"] != "UP"]
    for host in down[:_SHOWN]:
        yield Finding(
            f"host {host['name']}", "wrong", host.get("problem") or f"it is {host['status']}",
            f"`siderite host check {host['name']}` asks it now and says what it answers;"
            " see docs/how-to/use-a-libvirt-host.md.",
        )  # fmt: skip
    yield Finding("hosts", "wrong" if down else "well", f"{len(hosts) - len(down)} of {len(hosts)}"
                  " answer")  # fmt: skip
    names = [node["name"] or node["uuid"] for node in lost["nodes"]]
    if names:
        yield Finding(
            "BMCs", "wrong", f"{len(names)} do not answer: {', '.join(names[:_SHOWN])}"
            + (" …" if len(names) > _SHOWN else ""),
            "check their power, network and credentials: `siderite node show NAME` has the"
            " address and the last error; `siderite node list --fault 'power failure'` has all.",
        )  # fmt: skip
    else:
        yield Finding("BMCs", "well", "none is known to be lost")
