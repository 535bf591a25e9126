"""Words for the service itself: starting it, keeping it, its configuration."""

import argparse

from siderite.cli.words import data
from siderite.cli.words import form
from siderite.cli.words import table
from siderite.cli.words import whole

_UP = """\
Start the service: all APIs, the console and the work behind them, on one port, with an embedded
database unless --db says otherwise. The first start makes an administrator and writes clouds.yaml
into the data directory.
"""
_API = """\
Answer requests, on a PostgreSQL database (--db) that any number of such processes share. What they
are asked to do is carried out by `siderite worker` processes.
"""
_WORKER = """\
Carry out work, on a PostgreSQL database (--db) that any number of such processes share. With
--listen it answers /healthz and /metrics there, and shows screens of hosts of its conductor groups.
On SIGTERM it takes no more work, finishes the steps under way and leaves the rest to others.
"""
_BACKUP = """\
Write the embedded database, as it is at one moment, with the images and clouds.yaml into an
archive. The service may run meanwhile. A PostgreSQL database is backed up with pg_dump.
"""
_RESTORE = """\
Put a backup into a new data directory, and check it.
"""
_COPY = """\
Copy everything from the embedded database into an empty PostgreSQL database, in one transaction.
The service must be stopped. The embedded database stays as it is.
"""
_LOST = """\
Give the user admin a new random password, in the database itself, and write it into clouds.yaml:
for when nobody knows the old one. If admin, or the project admin, was disabled or has lost the role
admin, it is an administrator again. A service on the embedded database must be stopped.
"""
_DOCTOR = """\
Look at the disk, the database, the clock, the port, workers, hosts and BMCs: through the service if
it runs, and else from here. What is wrong comes with what to do about it. Ends with 1 if something
is.
"""
_REAPER = """\
Wait for servers that found no host (PENDING, with use_pending_state), delete preemptible servers in
their favour and have them built. Preemptible is what says so: a flavor with the extra spec
preemptible=true, or a server with that metadata. A client of the public API, like any other.
"""


def add(words: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Each of them."""
    up = words.add_parser("up", help="start the service", description=_UP)
    _options(up)
    up.add_argument("--demo", action="store_const", const=True, help="with a simulated fleet")
    up.add_argument("--demo-nodes", type=int, metavar="N", help="how many nodes it has (200)")
    up.set_defaults(run="siderite.cli.up")

    api = words.add_parser("api", help="answer requests; work is left to workers", description=_API)
    _options(api)
    api.set_defaults(run="siderite.cli.up")
    _worker(words)
    _keeping(words)
    _reaper(words)

    config = words.add_parser("config", help="look at the configuration")
    verbs = config.add_subparsers(dest="verb", required=True, metavar="VERB")
    show = verbs.add_parser("show", help="every option, its value and where that came from")
    _options(show)
    table(show)
    show.set_defaults(run="siderite.cli.config")
    doctor = words.add_parser("doctor", help="what is wrong, and what to do", description=_DOCTOR)
    _options(doctor)
    form(doctor, "text", "json")
    doctor.set_defaults(run="siderite.cli.doctor")


def _worker(words: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    worker = words.add_parser(
        "worker", help="carry out work; requests are left to others", description=_WORKER
    )
    _options(worker)
    worker.set_defaults(run="siderite.cli.up")
    verbs = worker.add_subparsers(dest="verb", metavar="[VERB]")
    every = verbs.add_parser("list", help="the workers there are, and how they are")
    data(every)
    table(every)
    every.set_defaults(run="siderite.cli.workers")


def _keeping(words: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Backup, restore, and the move to PostgreSQL."""
    backup = words.add_parser("backup", help="copy an embedded installation", description=_BACKUP)
    backup.add_argument("file", metavar="FILE", help="the archive to write (tar)")
    restore = words.add_parser("restore", help="put a backup back", description=_RESTORE)
    restore.add_argument("file", metavar="FILE", help="an archive that `siderite backup` wrote")
    for keep in (backup, restore):
        keep.add_argument("--config", metavar="FILE", help="configuration file (TOML)")
        keep.add_argument("--data", metavar="DIR", help="data directory (./siderite-data)")
        keep.set_defaults(run="siderite.cli.keep")
    lost = words.add_parser("admin-password", help="a new one, if it is lost", description=_LOST)
    _options(lost)
    lost.set_defaults(run="siderite.cli.keep")
    database = words.add_parser("db", help="move to another database")
    verbs = database.add_subparsers(dest="verb", required=True, metavar="VERB")
    copy = verbs.add_parser("copy", help="from SQLite to PostgreSQL", description=_COPY)
    copy.add_argument("to", metavar="URL", help="an empty database: postgresql://user@host/name")
    copy.add_argument("--config", metavar="FILE", help="configuration file (TOML)")
    copy.add_argument("--data", metavar="DIR", help="data directory (./siderite-data)")
    copy.set_defaults(run="siderite.cli.keep")


def _reaper(words: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    reaper = words.add_parser("reaper", help="free room for PENDING servers", description=_REAPER)
    reaper.add_argument("--data", metavar="DIR", help="data directory with clouds.yaml")
    reaper.add_argument(
        "--name", metavar="NAME",
        help="who it is, for others of its kind (host and process); one that is started anew under"
        " the same name goes on at once",
    )  # fmt: skip
    reaper.add_argument(
        "--strategy", choices=("strict", "oldest", "chance"), default="strict", metavar="WORD",
        help="who goes: strict (the smallest set that suffices), oldest, or chance",
    )  # fmt: skip
    reaper.add_argument(
        "--limit", type=whole, default=0, metavar="N",
        help="at most so many servers go for one project within an hour (0: any number)",
    )  # fmt: skip
    reaper.add_argument("--dry-run", action="store_true", help="only say what would be done")
    reaper.add_argument(
        "--preemptible-project", action="append", default=[], metavar="PROJECT",
        help="all servers of this project (name or id) are preemptible; may be given several times",
    )  # fmt: skip
    reaper.add_argument("--once", action="store_true", help="one round, then end")
    reaper.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning or error")
    reaper.set_defaults(run="siderite.cli.reaper")


def _options(words: argparse.ArgumentParser) -> None:
    words.add_argument("--config", metavar="FILE", help="configuration file (TOML)")
    words.add_argument("--data", metavar="DIR", help="data directory (./siderite-data)")
    words.add_argument("--listen", metavar="ADDRESS:PORT", help="listener (127.0.0.1:8770)")
    words.add_argument("--db", metavar="URL", help="postgresql://… (default: SQLite in --data)")
    words.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning or error")
    words.add_argument("--log-format", metavar="FORM", help="text or json")
