"""A copy of an embedded installation while it runs, and back again.

The database is copied page by page through SQLite's own backup, which sees one moment of it however
busy it is; then the files that belong to it (images) are added. What was deleted meanwhile is left
out: the copy of the database is what counts, and its records say so on restore.

A restore writes everything into a folder beside, looks at it, and only then says by that folder's
name that it is whole. From there on whoever comes next, another restore or the service itself, can
move it to its place: `finish`.
"""

import fcntl
import os
import shlex
import shutil
import sqlite3
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from siderite.core.disk import sync

DATABASE = "siderite.db"
CLOUDS, IMAGES = "clouds.yaml", "images"
"""What belongs to an installation beside its database."""

_HALF, _WHOLE = ".restoring", ".restored"
"""Where a restore writes, and the same folder when all is there."""

Progress = Callable[[str, int, int], None]
"""Told what is being copied, how much of it is done, and how much there is."""


class CannotBackUp(RuntimeError):
    """The text says why, and what to do."""


def back_up(
    data: Path,
    into: Path,
    progress: Progress,
    images: Path | None = None,
    *,
    spoken_of: str | None = None,
) -> frozenset[str]:
    """Write the installation in `data` into a new archive; its images may be elsewhere.

    Those files that the database speaks of, which this query tells, and that were not found.
    """
    database = data / DATABASE
    if not database.exists():
        raise CannotBackUp(
            f"there is no {DATABASE} in {data}; name the data directory with --data."
            " A PostgreSQL database is backed up with pg_dump: see the how-to."
        )
    if into.exists():
        raise CannotBackUp(f"{into} is there already; name a new file.")
    if not into.parent.is_dir():
        raise CannotBackUp(f"there is no directory {into.parent}; make it, or name another file.")
    try:
        # Nobody else may look into that folder, and two backups do not meet in it.
        with tempfile.TemporaryDirectory(dir=into.parent, prefix=".siderite-backup-") as folder:
            copy, part = Path(folder) / DATABASE, Path(folder) / "part"
            _copy(database, copy, progress)
            # What is a link here is a file there: to where it points may be nowhere.
            with tarfile.open(part, "x", dereference=True) as archive:
                archive.add(copy, DATABASE)
                added = _add_files(archive, data, images or data / IMAGES, progress)
            lacking = _spoken_of(copy, spoken_of) - added
            part.chmod(0o600)
            sync(part)
            part.rename(into)
            sync(into.parent)
            # Of what was deleted since, nothing is lost.
            return lacking & _spoken_of(database, spoken_of) if lacking else lacking
    except sqlite3.Error as why:
        raise CannotBackUp(f"cannot copy {database}: {why}.") from why
    except OSError as why:
        raise CannotBackUp(f"cannot write {into}: {why.strerror}; name a file elsewhere.") from why


def connect_read_only(database: Path) -> sqlite3.Connection:
    """A way into a database that changes nothing in it."""
    return sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)


def _spoken_of(database: Path, query: str | None) -> frozenset[str]:
    if query is None:
        return frozenset()
    connection = connect_read_only(database)
    try:
        return frozenset(name for [name] in connection.execute(query))
    finally:
        connection.close()


def _copy(database: Path, copy: Path, progress: Progress) -> None:
    def told(_status: int, left: int, total: int) -> None:
        progress("database", total - left, total)

    source = connect_read_only(database)
    target = sqlite3.connect(copy)
    try:
        # One moment for all of it: without a transaction, each commit of the service between two
        # steps begins the copy anew, and a busy one would never let it end.
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_master")
        source.backup(target, pages=2000, progress=told, sleep=0.01)
    finally:
        target.close()
        source.close()
    copy.chmod(0o600)


def _add_files(
    archive: tarfile.TarFile, data: Path, images: Path, progress: Progress
) -> frozenset[str]:
    """The names of the images' files that were there."""
    found = [(file, f"{IMAGES}/{file.relative_to(images)}") for file in sorted(images.rglob("*"))]
    found = [(file, name) for file, name in [(data / CLOUDS, CLOUDS), *found] if file.is_file()]
    added = set()
    for number, (file, name) in enumerate(found, 1):
        try:
            archive.add(file, name)
        except FileNotFoundError:
            continue  # deleted since
        added.add(name.removeprefix(f"{IMAGES}/"))
        progress("files", number, len(found))
    return frozenset(added)


def restore(archive: Path, data: Path, progress: Progress) -> None:
    """Put an archive's installation into an empty or new data directory."""
    if (data / _WHOLE).exists():
        finish(data)
        raise CannotBackUp(
            f"an earlier restore into {data} had been interrupted at its end; it is finished now:"
            f" start it with siderite up --data {shlex.quote(str(data))}, or restore into a new"
            " data directory."
        )
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    half = data / _HALF  # in the same file system, so that the end is a rename
    with _sole_restorer(data):
        _check_is_empty(data)  # another restore may have come to its end meanwhile
        shutil.rmtree(half, ignore_errors=True)
        try:
            _extract(archive, half, progress)
            _check(half / DATABASE)
        except BaseException:
            shutil.rmtree(half, ignore_errors=True)
            raise
        for folder, _, names in os.walk(half):
            for name in names:
                sync(Path(folder) / name)
            sync(Path(folder))
        half.rename(data / _WHOLE)
    finish(data)


def _check_is_empty(data: Path) -> None:
    if any(entry.name != _HALF for entry in data.iterdir()):
        raise CannotBackUp(f"{data} is not empty; restore into a new data directory with --data.")


def finish(data: Path) -> None:
    """Move to its place what a restore left that was killed; an error says so if it is not whole.

    Called at every start, before anything is opened.
    """
    whole = data / _WHOLE
    if (data / _HALF).exists():
        raise CannotBackUp(
            f"a restore into {data} is under way, or was interrupted: let it end, or run"
            f" `siderite restore` again. To start with nothing in place of it, remove"
            f" {data / _HALF}."
        )
    if not whole.exists():
        return
    with _sole_restorer(data):
        if not whole.exists():
            return
        # Last of all the database: what has one is whole.
        for entry in sorted(whole.iterdir(), key=lambda entry: entry.name == DATABASE):
            entry.rename(data / entry.name)
        sync(data)
        whole.rmdir()


@contextmanager
def _sole_restorer(data: Path) -> Iterator[None]:
    """While no other process restores into this directory."""
    lock = os.open(data, os.O_RDONLY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as why:
            raise CannotBackUp(f"another process is restoring into {data}; let it end.") from why
        yield
    finally:
        os.close(lock)


def _extract(archive: Path, into: Path, progress: Progress) -> None:
    try:
        with tarfile.open(archive, "r") as found:
            members = found.getmembers()
            _check_ends(found)
            if DATABASE not in [member.name for member in members]:
                raise CannotBackUp(f"{archive} is no backup of Siderite: it has no {DATABASE}.")
            into.mkdir(parents=True, mode=0o700)
            for number, member in enumerate(members, 1):
                _extract_one(found, member, into)
                progress("files", number, len(members))
    except OSError as why:
        raise CannotBackUp(f"cannot restore {archive}: {why.strerror or why}.") from why
    except (tarfile.TarError, EOFError, zlib.error) as why:  # it may have been compressed since
        raise CannotBackUp(
            f"{archive} is no backup of Siderite, or a damaged one: it cannot be read as a tar"
            " archive; use another."
        ) from why


def _check_ends(archive: tarfile.TarFile) -> None:
    """What was cut off between two files reads like all of it, but for the mark at the end."""
    archive.fileobj.seek(archive.offset)
    if archive.fileobj.read(tarfile.BLOCKSIZE) != tarfile.NUL * tarfile.BLOCKSIZE:
        raise tarfile.ReadError("no end")
    while archive.fileobj.read(1 << 20):
        pass  # what was compressed has its checksum at the very end


def _extract_one(archive: tarfile.TarFile, member: tarfile.TarInfo, into: Path) -> None:
    """Write one file, as whoever restores. Only files, and only here: what else an archive may tell
    a reader to do is not asked for (the filters that a tar knows against that are younger than the
    oldest Python that runs this).
    """
    if member.isdir():
        return  # made with what is in it
    place = into / member.name
    source = archive.extractfile(member) if member.isreg() else None
    if source is None or ".." in place.parts or not place.is_relative_to(into):
        raise CannotBackUp(
            f"this archive is no backup of Siderite: {member.name} is no file of a data directory;"
            " use another."
        )
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with source, place.open("xb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    place.chmod(member.mode & 0o755 | 0o600)


def _check(database: Path) -> None:
    connection = sqlite3.connect(database)
    try:
        [answer] = connection.execute("PRAGMA integrity_check").fetchone()
    except sqlite3.DatabaseError as why:
        answer = str(why)
    finally:
        connection.close()
    if answer != "ok":
        raise CannotBackUp(f"the database in the backup is damaged: {answer}; use another backup.")
