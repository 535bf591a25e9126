"""`siderite doctor`: what is wrong, and what to do about it."""

import argparse
import asyncio
import ctypes
import json
import os
import shutil
import socket
import sqlite3
import sys
import time
import urllib.request
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import closing
from contextlib import suppress
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import replace
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.parse import urlsplit

from siderite import clouds
from siderite.cli import reach
from siderite.cli import show
from siderite.cli.cloud import Cloud
from siderite.cli.cloud import Refused
from siderite.cli.cloud import clouds_file
from siderite.cli.cloud import read_cloud
from siderite.cli.node import every
from siderite.cli.settings import loaded
from siderite.core.config import Config

_SKEW_S = 5.0
_HEALTH_S = 8.0
"""Longer than the service itself waits for its database before it says that it is not well."""
_TIGHT_BYTES = 1 << 30
_NOT_SYNCHRONISED = 5
_SHOWN = 5
_REAL = ("redfish", "ipmi")
_FIELDS = (
    "name", "uuid", "driver", "driver_info", "fault", "power_state", "power_state_reason",
)  # fmt: skip
_OLDEST_POSTGRES = 13


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it is (well, caution, wrong), and the remedy."""

    what: str
    state: str
    found: str
    remedy: str = ""


def run(said: argparse.Namespace) -> int:
    """Print the findings; 1 if something is wrong."""
    options = loaded(said)
    config = options.config
    if options.origin["data"] == "default" and not config.db:
        config = replace(config, data=_beside_clouds() or config.data)
    if options.origin["listen"] == "default" or config.listen.endswith(":0"):
        config = replace(config, listen=_told(config) or config.listen)
    findings = list(examine(config, said.data))
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


def _beside_clouds() -> str | None:
    """The data directory whose clouds.yaml other commands would read, if it is one."""
    place = clouds_file(None).parent
    with suppress(OSError):  # another user's
        return str(place) if (place / "siderite.db").exists() else None
    return None


def _told(config: Config) -> str | None:
    """Where the service said that it listens, if that was on this machine: clouds.yaml has it."""
    with suppress(Refused, KeyError, ValueError, OSError):
        if not clouds.path(config).exists():
            return None
        told = urlsplit(str(read_cloud(config.data)["auth"]["auth_url"]))
        if told.scheme == "http" and told.hostname in ("127.0.0.1", "::1", "localhost"):
            return told.netloc
    return None


def examine(config: Config, data: str | None) -> Iterator[Finding]:
    """Everything, one after the other. Hosts and BMCs are asked through the service if it answers,
    and else from here, as far as the database knows them.
    """
    yield from _options(config)
    yield _data(config)
    database, known = _database(config)
    yield database
    yield _clock()
    port, is_up = _port(config)
    yield port
    if is_up:
        yield from _service(data or config.data)
    else:
        yield from _from_here(known)


def _options(config: Config) -> Iterator[Finding]:
    """What was refused elsewhere ended us already; this is what only the service understands."""
    from siderite.core.config import BadOption
    from siderite.wiring import Invalid
    from siderite.wiring import options

    try:
        options.check(config)
    except (BadOption, Invalid) as why:
        yield Finding("options", "wrong", str(why), "change it: the service does not start so.")


def _data(config: Config) -> Finding:
    place = Path(config.data)
    there = next(p for p in (place, *place.resolve().parents) if os.path.exists(p))  # noqa: PTH110  # False where it may not look
    if not os.access(there, os.R_OK | os.W_OK | os.X_OK):
        return Finding(
            "data", "wrong", f"this user may not write to {there}",
            "run this as the user that runs the service, or give this one the right to.",
        )  # fmt: skip
    free = shutil.disk_usage(there).free
    if free < _TIGHT_BYTES:
        return Finding(
            "disk", "wrong", f"{free >> 20} MiB are free at {there}",
            "free some space, or move the data directory (--data).",
        )  # fmt: skip
    return Finding("disk", "well", f"{free >> 30} GiB are free at {there}")


_HOSTS = "SELECT doc FROM hosts"
_NODES = "SELECT doc FROM nodes WHERE driver <> 'fake-hardware' ORDER BY id LIMIT 1000"


@dataclass(frozen=True, slots=True)
class _Known:
    """What the database knows of the world outside."""

    hosts: Sequence[dict[str, Any]] = ()
    nodes: Sequence[dict[str, Any]] = ()


def _database(config: Config) -> tuple[Finding, _Known]:
    try:
        return asyncio.run(_postgres(config.db)) if config.db else _sqlite(config)
    except Exception as why:
        remedy = "restore a backup: `siderite restore`."
        if config.db:
            remedy = (
                "check --db: address, name, password, and that PostgreSQL runs and lets us in"
                " (pg_hba.conf)."
            )
        elif not os.access(config.database.removeprefix("sqlite:///"), os.R_OK | os.W_OK):
            remedy = "run this as the user that runs the service."
        said = str(why) if isinstance(why, RuntimeError) else f"{type(why).__name__}: {why}"
        return Finding("database", "wrong", said, remedy), _Known()


def _sqlite(config: Config) -> tuple[Finding, _Known]:
    path = Path(config.database.removeprefix("sqlite:///"))
    if not path.exists():
        return Finding("database", "well", f"{path} will be made at the first start"), _Known()
    place = path.resolve().as_uri()  # a name may have characters that mean something in an address
    with closing(sqlite3.connect(f"{place}?mode=ro", uri=True, timeout=5)) as file:
        (said,) = file.execute("PRAGMA quick_check(1)").fetchone()
        tables = {row[0] for row in file.execute("SELECT name FROM sqlite_master")}
        known, newer = _Known(), list[str]()
        if "migrations" in tables:
            from siderite.wiring.keeping import unknown_migrations

            newer = unknown_migrations(
                row[0] for row in file.execute("SELECT name FROM migrations")
            )
        if {"hosts", "nodes"} <= tables:
            hosts, nodes = (reach.documents(file.execute(sql)) for sql in (_HOSTS, _NODES))
            known = _Known(hosts, nodes)
    if said != "ok":
        return Finding("database", "wrong", f"{path} is damaged: {said}",
                       "restore a backup: `siderite restore`."), known  # fmt: skip
    if newer:
        return Finding("database", "wrong", f"{path} is of a newer version (it has {newer[0]})",
                       "go on with that version, or restore a backup."), known  # fmt: skip
    return Finding("database", "well", f"{path} is whole, SQLite {sqlite3.sqlite_version}"), known


async def _postgres(url: str) -> tuple[Finding, _Known]:
    import asyncpg

    from siderite.wiring.keeping import check_address

    check_address(url)  # the library would repeat a part of it, perhaps of the password
    link = await asyncpg.connect(url, timeout=10)
    try:
        theirs = await link.fetchval("SELECT extract(epoch FROM clock_timestamp())::float8")
        skew = float(theirs) - time.time()
        major = link.get_server_version().major
        known = _Known()
        if await link.fetchval("SELECT to_regclass('hosts') IS NOT NULL"):
            hosts, nodes = [reach.documents(await link.fetch(sql)) for sql in (_HOSTS, _NODES)]
            known = _Known(hosts, nodes)
    finally:
        await link.close()
    if major < _OLDEST_POSTGRES:
        return Finding("database", "wrong", f"it is PostgreSQL {major}",
                       f"upgrade it to {_OLDEST_POSTGRES} or newer."), known  # fmt: skip
    if abs(skew) > _SKEW_S:
        return Finding(
            "database", "caution", f"its clock is {skew:+.1f} s off ours",
            "synchronise both machines (chrony): Siderite goes by the database's, logs by ours.",
        ), known  # fmt: skip
    return Finding("database", "well", f"PostgreSQL {major} answers"), known


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
    address = config.near_url
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # it is on this machine
    try:
        with direct.open(f"{address}/healthz", timeout=_HEALTH_S) as answer:
            said = answer.headers["Date"]
            ours = json.loads(answer.read()) == {"status": "ok"}
        skew = parsedate_to_datetime(said).timestamp() - time.time() if said else 0.0
        if ours and abs(skew) > _SKEW_S:
            return Finding("port", "wrong", f"the service's clock is {skew:+.0f} s off ours",
                           "synchronise both machines (chrony)."), True  # fmt: skip
        if ours:
            return Finding("port", "well", f"Siderite answers at {address}"), True
    except HTTPError as why:
        if said := _ailing(why):
            return Finding("port", "wrong", f"Siderite answers at {address}, and is not well",
                           said), False  # fmt: skip
    except (OSError, ValueError, TypeError, HTTPException):
        pass
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host.strip("[]"), int(port)), family=family):
            pass
    except OSError as why:
        return Finding(
            "port", "wrong", f"{config.listen}: {why.strerror}",
            f"another program has it (`ss -ltnp 'sport = :{port}'` says which): end that, or"
            " choose another with --listen.",
        ), False  # fmt: skip
    return Finding(
        "port", "caution", f"{config.listen} is free: the service does not run here",
        "start it with `siderite up`; if it runs, name its data directory with --data, or on"
        " another machine, ask the doctor there. Meanwhile hosts and BMCs are asked from here.",
    ), False  # fmt: skip


def _ailing(answer: HTTPError) -> str:
    """What Siderite says of itself that is not well; nothing if somebody else answers."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        if "x-openstack-request-id" in answer.headers:
            return str(json.loads(answer.read())["error"]["message"])
    return ""


def _from_here(known: _Known) -> Iterator[Finding]:
    """Hosts and BMCs, asked by ourselves."""
    uris = {host["name"]: host["uri"] for host in known.hosts if host["driver"] == "libvirt"}
    if find_spec("libvirt") is None:
        yield Finding(
            "libvirt", "wrong" if uris else "caution", "its Python library is not installed",
            f"only needed for libvirt hosts: `{sys.executable} -m pip install libvirt-python`"
            " (Debian: with libvirt-dev, gcc, pkg-config and python3-dev).",
        )  # fmt: skip
    else:
        problems = {name: reach.libvirt_problem(uri) for name, uri in uris.items()}
        yield from _hosts(problems, none="there are none of libvirt")
    yield bmcs(known.nodes, {})


def _hosts(problems: Mapping[str, str], none: str = "there are none") -> Iterator[Finding]:
    down = {name: why for name, why in problems.items() if why}
    for name, why in list(down.items())[:_SHOWN]:
        yield Finding(
            f"host {name}", "wrong", why,
            f"`siderite host check {name}` asks it through the service and says what it answers;"
            " see docs/how-to/use-a-libvirt-host.md.",
        )  # fmt: skip
    answer = f"{len(problems) - len(down)} of {len(problems)} answer"
    yield Finding("hosts", "wrong" if down else "well", answer if problems else none)


def bmcs(nodes: Sequence[dict[str, Any]], known: Mapping[str, str]) -> Finding:
    """BMCs by address, and what is known of others that cannot be read."""
    asked = reach.bmcs_of(nodes)
    lost = {bmc.node: f"{bmc.kind} {bmc.host}:{bmc.port}: {why}" for bmc, why in reach.lost(asked)}
    lost = {**known, **lost}
    if not lost:
        return Finding("BMCs", "well", f"{len(asked)} can be reached" if asked else "none is lost")
    alike: dict[str, list[str]] = {}
    for name, why in lost.items():
        alike.setdefault(why, []).append(name)
    told = [f"{_some(names)} ({why})" for why, names in alike.items()]
    return Finding(
        "BMCs", "wrong", f"{len(lost)} cannot be read: {_some(told)}",
        "check their power, network and credentials: `siderite node show NAME` has the address and"
        " the last error; `siderite node list --attention` has all that the service found.",
    )  # fmt: skip


def _some(words: Sequence[str]) -> str:
    return ", ".join(words[:_SHOWN]) + (" …" if len(words) > _SHOWN else "")


def unread(nodes: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Nodes whose power the service cannot read, and why: it may reach a BMC that refuses it."""
    return {
        node["name"] or node["uuid"]: node["power_state_reason"]
        or "its power could not be read for long"
        for node in nodes
        if node["fault"] == "power failure"
        or (node["power_state"] == "unknown" and node["power_state_reason"])
    }


def _service(data: str) -> Iterator[Finding]:
    """Workers, hosts and BMCs, as the service finds them now."""
    try:
        cloud = Cloud(data)
        workers = cloud.baremetal("GET", "/conductors?detail=true")["conductors"]
        hosts = [host["name"] for host in cloud.compute("GET", "/hosts")["hosts"]]
        nodes = every(cloud, {"fields": ",".join(_FIELDS)})
    except Refused as why:
        yield Finding("service", "wrong", str(why), "check clouds.yaml in the data directory.")
        return
    yield workers_of(workers)
    yield from _hosts({name: _asked(cloud, name) for name in hosts})
    yield bmcs([node for node in nodes if node["driver"] in _REAL], unread(nodes))


def workers_of(found: Sequence[Mapping[str, Any]]) -> Finding:
    """Who carries out work: without anybody, all that is asked for waits."""
    down = [str(one["hostname"]) for one in found if not one["alive"]]
    up = len(found) - len(down)
    if not up:
        return Finding(
            "workers", "wrong", "none is up: what is asked for waits",
            "start one, with the same database: `siderite worker --config FILE`.",
        )  # fmt: skip
    if not down:
        return Finding("workers", "well", f"{up} of {up} are up" if up > 1 else "the one is up")
    return Finding(
        "workers", "caution", f"{up} of {len(found)} are up; not heard of lately: {_some(down)}",
        "start those again that are still wanted; the others are forgotten after a week.",
    )  # fmt: skip


def _asked(cloud: Cloud, host: str) -> str:
    try:
        found = cloud.compute("POST", f"/hosts/{quote(host, safe='')}/check", {})["host"]
    except Refused as why:
        return str(why)
    return str(found.get("problem") or "")
