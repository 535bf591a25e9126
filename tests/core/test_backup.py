"""A copy of a running installation, put back elsewhere; and the move to PostgreSQL."""

import asyncio
import gzip
import os
import sqlite3
import subprocess
import sys
import tarfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from siderite import clouds
from siderite import wiring
from siderite.cli.main import main
from siderite.core.config import Config
from siderite.core.store import backup
from siderite.core.store import open_store
from siderite.core.store.backup import CannotBackUp
from siderite.core.store.backup import back_up
from siderite.core.store.backup import finish
from siderite.core.store.backup import restore
from siderite.core.store.copy import CannotCopy
from siderite.wiring.keeping import check_is_embedded
from siderite.wiring.keeping import copy_to
from tests.support.app import PASSWORD
from tests.support.app import running
from tests.support.app import standing


class Killed(BaseException):
    """As SIGKILL: nothing after it is done."""


def told(what, done, total):
    assert 0 <= done <= total


def test_a_backup_of_a_busy_service_has_one_moment_of_it(tmp_path):
    async def story():
        async with running(tmp_path / "a", work=True) as app:
            names = [f"n{n}" for n in range(30)]
            (tmp_path / "a" / "images").mkdir(exist_ok=True)
            (tmp_path / "a" / "images" / "one").write_bytes(b"x" * 100_000)
            await asyncio.gather(*(app.make_node(name=name) for name in names[:20]))
            later = asyncio.gather(*(app.make_node(name=name) for name in names[20:]))
            await asyncio.to_thread(back_up, tmp_path / "a", tmp_path / "kept.tar", told)
            await later

    asyncio.run(story())
    restore(tmp_path / "kept.tar", tmp_path / "b", told)
    assert (tmp_path / "b" / "images" / "one").read_bytes() == b"x" * 100_000
    with standing(tmp_path / "b") as again:
        nodes = again.ask("GET", "/v1/nodes?limit=100").json["nodes"]
        assert {node["name"] for node in nodes} >= {f"n{n}" for n in range(20)}
        facts = again.ask("GET", "/events/v1/events?type=baremetal.node.create.end").json["events"]
        assert len(facts) == len(nodes), "each node came with its fact, or not at all"


def test_what_is_restored_is_its_owners_alone_whatever_the_umask(tmp_path):
    with standing(tmp_path / "a"):
        (tmp_path / "a" / "images").mkdir(exist_ok=True)
        (tmp_path / "a" / "images" / "one").write_bytes(b"x")
        back_up(tmp_path / "a", tmp_path / "kept.tar", told)
    before = os.umask(0)
    try:
        restore(tmp_path / "kept.tar", tmp_path / "b", told)
    finally:
        os.umask(before)
    folders = [tmp_path / "b", *(path for path in (tmp_path / "b").rglob("*") if path.is_dir())]
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in folders} == {
        "b": "0o700",
        "images": "0o700",
    }


def test_a_restore_says_how_to_start_in_words_that_a_shell_takes(tmp_path, capsys):
    with standing(tmp_path / "a"):
        back_up(tmp_path / "a", tmp_path / "kept.tar", told)
    assert main(["restore", f"{tmp_path}/kept.tar", "--data", f"{tmp_path}/on monday"]) == 0
    assert f"siderite up --data '{tmp_path}/on monday'" in capsys.readouterr().out


def test_nothing_is_overwritten_by_a_backup_or_a_restore(tmp_path):
    with standing(tmp_path / "a"):
        pass
    kept = tmp_path / "kept.tar"
    back_up(tmp_path / "a", kept, told)
    with pytest.raises(CannotBackUp, match="there already"):
        back_up(tmp_path / "a", kept, told)
    with pytest.raises(CannotBackUp, match="not empty"):
        restore(kept, tmp_path / "a", told)
    with pytest.raises(CannotBackUp, match="name the data directory"):
        back_up(tmp_path / "nowhere", tmp_path / "other.tar", told)
    with pytest.raises(CannotBackUp, match="there is no directory"):
        back_up(tmp_path / "a", tmp_path / "no" / "kept.tar", told)
    (tmp_path / "junk.tar").write_bytes(b"no archive")
    with pytest.raises(CannotBackUp, match="is no backup of Siderite, or a damaged one"):
        restore(tmp_path / "junk.tar", tmp_path / "c", told)


def test_an_image_that_is_kept_elsewhere_by_a_link_is_part_of_the_backup(tmp_path):
    with standing(tmp_path / "a"):
        pass
    (tmp_path / "disk").write_bytes(b"an image's data")
    images = tmp_path / "a" / "images"
    images.mkdir(exist_ok=True)
    (images / "moved").symlink_to(tmp_path / "disk")
    back_up(tmp_path / "a", tmp_path / "kept.tar", told)
    (tmp_path / "disk").unlink()
    restore(tmp_path / "kept.tar", tmp_path / "b", told)
    assert (tmp_path / "b" / "images" / "moved").read_bytes() == b"an image's data"


def test_a_backup_says_that_it_lacks_images_which_are_kept_elsewhere(tmp_path, capsys, monkeypatch):
    data, elsewhere = tmp_path / "a", tmp_path / "pool"
    with standing(data, image_dir=str(elsewhere)) as app:
        made = {"name": "mine", "container_format": "bare", "disk_format": "raw"}
        image, *others = [
            app.ask("POST", "/image/v2/images", made, version=None).json["id"] for _ in range(3)
        ]
        octets = {"content-type": "application/octet-stream"}
        for one in (image, *others):
            app.ask("PUT", f"/image/v2/images/{one}/file", b"its data", headers=octets)

        assert main(["backup", f"{tmp_path}/half.tar", "--data", str(data)]) == 1
        said = capsys.readouterr()
        assert "and 2 more" in said.err and f"not in {data}/images" in said.err
        assert "SIDERITE_IMAGE_DIR" in said.err and not said.out
        assert (tmp_path / "half.tar").exists(), "the database is worth something by itself"

        monkeypatch.setenv("SIDERITE_IMAGE_DIR", str(elsewhere))
        assert main(["backup", f"{tmp_path}/whole.tar", "--data", str(data)]) == 0
        assert not capsys.readouterr().err
        for file in elsewhere.glob(f"{image}*"):
            file.unlink()
        assert main(["backup", f"{tmp_path}/lost.tar", "--data", str(data)]) == 1
        assert f"the data of the image {image}: " in capsys.readouterr().err


def test_an_image_that_is_deleted_during_a_backup_is_not_missed(tmp_path):
    data = tmp_path / "a"
    with standing(data):
        pass
    writer = sqlite3.connect(data / "siderite.db", isolation_level=None)
    writer.execute("CREATE TABLE files (name TEXT)")
    writer.execute("INSERT INTO files VALUES ('gone'), ('lost')")

    def deleted(what, done, total):
        writer.execute("DELETE FROM files WHERE name = 'gone'")

    query = "SELECT name FROM files"
    assert back_up(data, tmp_path / "kept.tar", deleted, spoken_of=query) == {"lost"}
    writer.close()


def test_a_backup_ends_however_often_the_service_commits_meanwhile(tmp_path):
    """In a directory whose name a URL would read otherwise, too."""
    data = tmp_path / "a#50%?"
    data.mkdir()
    writer = sqlite3.connect(data / "siderite.db", isolation_level=None)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("PRAGMA synchronous=OFF")
    writer.execute("CREATE TABLE t (x)")
    writer.execute("CREATE TABLE big AS SELECT zeroblob(12000000) AS x")
    commits = []

    def busy(what, done, total):
        """The service commits between any two steps of the copy."""
        commits.append(what)
        assert len(commits) < 50, "each commit began the copy anew"
        writer.execute("INSERT INTO t VALUES (1)")

    back_up(data, tmp_path / "kept.tar", busy)
    writer.close()
    restore(tmp_path / "kept.tar", tmp_path / "b", told)
    again = sqlite3.connect(tmp_path / "b" / "siderite.db")
    assert again.execute("SELECT count(*) FROM t").fetchone() == (0,)
    assert len(commits) > 1
    again.close()


def test_nobody_else_can_read_a_backup_while_it_is_written(tmp_path):
    with standing(tmp_path / "a"):
        pass
    kept = tmp_path / "kept.tar"
    (tmp_path / "kept.tar.part").write_bytes(b"left by one that was killed")
    seen = []

    def watched(what, done, total):
        for path in tmp_path.iterdir():
            if path.name not in ("a", "kept.tar.part"):
                seen.append(path.stat().st_mode & 0o077)

    back_up(tmp_path / "a", kept, watched)
    assert seen
    assert not any(seen)
    assert kept.stat().st_mode & 0o077 == 0


def test_a_restore_that_fails_leaves_nothing_and_can_be_done_again(tmp_path):
    with standing(tmp_path / "a"):
        pass
    back_up(tmp_path / "a", tmp_path / "kept.tar", told)
    whole = (tmp_path / "kept.tar").read_bytes()
    (tmp_path / "cut.tar").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "spoilt.tar").write_bytes(whole.replace(b"CREATE TABLE", b"CREATE ELBAT"))
    (tmp_path / "b" / ".restoring" / "images").mkdir(parents=True)  # one that was killed
    for bad in ("cut.tar", "spoilt.tar"):
        with pytest.raises(CannotBackUp):
            restore(tmp_path / bad, tmp_path / "b", told)
        assert not list((tmp_path / "b").iterdir())
    restore(tmp_path / "kept.tar", tmp_path / "b", told)
    with standing(tmp_path / "b"):
        pass


@pytest.mark.parametrize("more", [0, 100])
def test_an_archive_that_was_cut_off_between_two_files_is_not_taken_for_a_whole_one(tmp_path, more):
    (tmp_path / "a" / "images").mkdir(parents=True)
    sqlite3.connect(tmp_path / "a" / "siderite.db").close()
    for name in ("one", "two"):
        (tmp_path / "a" / "images" / name).write_bytes(b"x" * 1000)
    whole, cut = tmp_path / "kept.tar", tmp_path / "cut.tar"
    back_up(tmp_path / "a", whole, told)
    with tarfile.open(whole) as archive:
        last = archive.getmembers()[-1].offset
    cut.write_bytes(whole.read_bytes()[: last + more])
    with pytest.raises(CannotBackUp, match="a damaged one"):
        restore(cut, tmp_path / "b", told)
    restore(whole, tmp_path / "b", told)
    assert (tmp_path / "b" / "images" / "two").exists()


def test_an_archive_that_was_compressed_and_then_cut_off_or_damaged_is_said_to_be(tmp_path):
    (tmp_path / "a").mkdir()
    sqlite3.connect(tmp_path / "a" / "siderite.db").close()
    (tmp_path / "a" / "images").mkdir()
    (tmp_path / "a" / "images" / "one").write_text(" ".join(map(str, range(100_000))))
    back_up(tmp_path / "a", tmp_path / "kept.tar", told)
    packed = gzip.compress((tmp_path / "kept.tar").read_bytes())
    for name, text in (
        ("cut", packed[:50_000]),
        ("spoilt", packed[:50_000] + bytes(100) + packed[50_100:]),
    ):
        (tmp_path / name).write_bytes(text)
        with pytest.raises(CannotBackUp):
            restore(tmp_path / name, tmp_path / "b", told)
    (tmp_path / "whole").write_bytes(packed)
    restore(tmp_path / "whole", tmp_path / "b", told)


def test_a_restore_writes_files_below_its_directory_and_nothing_else(tmp_path):
    with standing(tmp_path / "a"):
        pass
    (tmp_path / "a" / "images").mkdir(exist_ok=True)
    (tmp_path / "a" / "images" / "one").write_text("an image")
    back_up(tmp_path / "a", tmp_path / "kept.tar", told)
    foreign = {
        "../outside": tarfile.REGTYPE,
        str(tmp_path / "outside"): tarfile.REGTYPE,
        "outside": tarfile.SYMTYPE,
        "images/outside": tarfile.FIFOTYPE,
    }
    for name, kind in foreign.items():
        bad = tmp_path / "bad.tar"
        bad.write_bytes((tmp_path / "kept.tar").read_bytes())
        with tarfile.open(bad, "a") as archive:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
        with pytest.raises(CannotBackUp, match="outside"):
            restore(bad, tmp_path / "b", told)
        assert not list((tmp_path / "b").iterdir())
        assert not (tmp_path / "outside").exists()

    folder = tarfile.TarInfo("images")  # of somebody who packed it anew
    folder.type, folder.uid = tarfile.DIRTYPE, 12345
    with tarfile.open(tmp_path / "kept.tar", "a") as archive:
        archive.addfile(folder)
    restore(tmp_path / "kept.tar", tmp_path / "b", told)
    image = tmp_path / "b" / "images" / "one"
    assert image.read_text() == "an image"
    assert image.stat().st_uid == image.parent.stat().st_uid == os.getuid()
    assert (tmp_path / "b" / "siderite.db").stat().st_mode & 0o077 == 0


def test_a_restore_killed_at_any_rename_is_finished_by_whoever_comes_next(tmp_path, monkeypatch):
    """The next start, or another restore, which then says so."""
    with standing(tmp_path / "a") as app:
        app.make_node(name="mine")
    (tmp_path / "a" / "images").mkdir(exist_ok=True)
    (tmp_path / "a" / "images" / "one").write_bytes(b"x")
    back_up(tmp_path / "a", tmp_path / "kept.tar", told)
    rename = Path.rename
    for renames in range(8):
        data, left = tmp_path / f"b{renames}", iter([True] * renames)

        def dies(path, to, left=left):
            if not next(left, False):
                raise Killed
            return rename(path, to)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", dies)
            try:
                restore(tmp_path / "kept.tar", data, told)
            except Killed:
                pass
            else:
                break
        if not renames:
            with pytest.raises(CannotBackUp, match="was interrupted"):
                finish(data)
            restore(tmp_path / "kept.tar", data, told)
        elif renames % 2:
            with pytest.raises(CannotBackUp, match="it is finished now"):
                restore(tmp_path / "kept.tar", data, told)
        with standing(data) as again:
            assert again.ask("GET", "/v1/nodes/mine").status == 200
        assert (data / "images" / "one").read_bytes() == b"x"
        assert not list(data.glob(".restor*"))
    assert renames == 4, "at each of them"


def test_two_restores_do_not_meet_in_one_directory(tmp_path):
    with standing(tmp_path / "a"):
        pass
    back_up(tmp_path / "a", tmp_path / "kept.tar", told)

    def meanwhile(what, done, total):
        for other in (lambda: restore(tmp_path / "kept.tar", tmp_path / "b", told),
                      lambda: finish(tmp_path / "b")):  # fmt: skip
            with pytest.raises(CannotBackUp, match="let it end"):
                other()

    restore(tmp_path / "kept.tar", tmp_path / "b", meanwhile)
    with standing(tmp_path / "b"):
        pass


def test_a_restore_that_waited_for_another_does_not_overwrite_what_that_brought(
    tmp_path, monkeypatch
):
    with standing(tmp_path / "a"):
        pass
    kept, alone = tmp_path / "kept.tar", backup._sole_restorer
    back_up(tmp_path / "a", kept, told)

    @contextmanager
    def late(data):
        monkeypatch.setattr(backup, "_sole_restorer", alone)
        restore(kept, data, told)
        with alone(data):
            yield

    monkeypatch.setattr(backup, "_sole_restorer", late)
    with pytest.raises(CannotBackUp, match="not empty"):
        restore(kept, tmp_path / "b", told)
    with standing(tmp_path / "b") as again:
        assert again.ask("GET", "/healthz").status == 200


def test_an_old_file_is_not_backed_up_in_the_place_of_the_database_in_use(tmp_path):
    with standing(tmp_path / "a"):
        pass
    check_is_embedded(Config(data=str(tmp_path / "a")))
    with pytest.raises(CannotBackUp, match="not the one in use"):
        check_is_embedded(Config(data=str(tmp_path / "a"), db="postgresql://db/siderite"))


def test_a_database_that_is_no_url_is_not_repeated_as_it_may_hold_a_password(tmp_path):
    dsn = "host=here password=s3cret"
    (tmp_path / "siderite.db").touch()
    with pytest.raises(CannotBackUp) as said:
        check_is_embedded(Config(db=dsn))
    assert "s3cret" not in str(said.value)
    with pytest.raises(CannotCopy, match="no PostgreSQL URL") as said:
        asyncio.run(copy_to(Config(data=str(tmp_path)), dsn, told))
    assert "s3cret" not in str(said.value)


def test_what_is_no_database_is_said_in_a_sentence(tmp_path):
    (tmp_path / "siderite.db").write_bytes(b"no database" * 100)
    with pytest.raises(CannotBackUp, match="not a database"):
        back_up(tmp_path, tmp_path / "kept.tar", told)


INDEXED = "1be26c0b-03f2-4d2e-ae87-c02d7f33c123"


def test_everything_moves_to_postgresql(tmp_path, postgres_url):
    async def before():
        async with running(tmp_path / "a", work=True) as app:
            uuid = await app.make_node(name="mine", extra={"rack": "ü"})
            await app.ask("PUT", f"/v1/nodes/{uuid}/states/provision", {"target": "manage"})
            while (await app.show(uuid))["provision_state"] != "manageable":
                await asyncio.sleep(0.01)
            events = (await app.ask("GET", "/events/v1/events")).json["events"]
            return await app.show(uuid), [(one["seq"], one["message_id"]) for one in events]

    async def after():
        async with running(tmp_path / "b", postgres_url, work=True) as app:
            shown = await app.show("mine")
            events = (await app.ask("GET", "/events/v1/events")).json["events"]
            seen = [(one["seq"], one["message_id"]) for one in events]
            made = await app.make_node(name="another")
            async with asyncio.timeout(20):
                while len((await app.ask("GET", "/events/v1/events")).json["events"]) == len(seen):
                    await asyncio.sleep(0.02)
            last = (await app.ask("GET", "/events/v1/events")).json["events"][-1]
            found = (await app.ask("GET", "/events/v1/search?q=r9")).json["results"]
            assert [one["id"] for one in found] == [INDEXED], "what the log has no more is found"
            return shown, seen, made, last["seq"]

    node, log = asyncio.run(before())
    database = sqlite3.connect(tmp_path / "a" / "siderite.db")
    database.execute(
        "INSERT INTO search_docs (type, uuid, seq, at, doc) VALUES ('node', ?, 1, 1.5, ?)",
        (INDEXED, '{"name": "of old", "extra": {"rack": "what? r9"}}'),
    )
    database.commit()
    database.close()
    config = Config(data=str(tmp_path / "a"), admin_password=PASSWORD)
    copied = asyncio.run(copy_to(config, postgres_url, told))
    assert copied["nodes"] == 1
    shown, seen, made, last = asyncio.run(after())
    assert shown == node
    assert seen == log
    assert made != node["uuid"]
    assert last > log[-1][0], "the log goes on counting"
    with pytest.raises(CannotCopy, match="in use"):
        asyncio.run(copy_to(config, postgres_url, told))


def test_a_log_whose_beginning_was_pruned_moves_to_postgresql(tmp_path, postgres_url):
    async def read(*where):
        async with running(*where) as app:
            events = (await app.ask("GET", "/events/v1/events")).json["events"]
            return [(one["seq"], one["message_id"]) for one in events]

    with standing(tmp_path / "a") as app:
        for n in range(20):
            app.make_node(name=f"n{n}")
    database = sqlite3.connect(tmp_path / "a" / "siderite.db")
    database.execute("DELETE FROM events WHERE seq <= 5")
    database.commit()
    database.close()
    log = asyncio.run(read(tmp_path / "a"))
    assert len(log) > 10
    config = Config(data=str(tmp_path / "a"), admin_password=PASSWORD)
    assert asyncio.run(copy_to(config, postgres_url, told))["events"] == len(log)
    assert asyncio.run(read(tmp_path / "b", postgres_url)) == log


def test_a_running_service_is_not_copied(tmp_path, postgres_url):
    with standing(tmp_path / "a"), pytest.raises(RuntimeError, match="in use by another"):
        asyncio.run(copy_to(Config(data=str(tmp_path / "a")), postgres_url, told))


def test_the_commands_say_what_they_did_and_what_is_next(tmp_path):
    with standing(tmp_path / "a"):
        pass

    def siderite(*words):
        program = Path(sys.executable).with_name("siderite")
        return subprocess.run(
            [program, *words], check=False, capture_output=True, text=True, timeout=60, cwd=tmp_path
        )

    done = siderite("backup", "kept.tar", "--data", "a")
    assert (done.returncode, done.stderr) == (0, ""), done
    done = siderite("restore", "kept.tar", "--data", "b")
    assert "siderite up --data b" in done.stdout, done
    done = siderite("restore", "kept.tar", "--data", "b")
    assert done.returncode == 1, done
    assert "not empty" in done.stderr
    done = siderite("db", "copy", "mysql://x", "--data", "b")
    assert (done.returncode, "no PostgreSQL URL" in done.stderr) == (1, True), done


@pytest.mark.parametrize(
    ("url", "is_said"), [("https://cloud.test", True), ("http://127.0.0.1:8770", False)]
)
def test_a_restore_says_if_commands_go_to_the_service_that_was_backed_up(
    tmp_path, capsys, url, is_said
):
    here = Config(data=str(tmp_path / "a"), public_url=url)
    with standing(tmp_path / "a"):
        clouds.write(here, PASSWORD)
    archive, there = str(tmp_path / "kept.tar"), str(tmp_path / "b")
    assert main(["backup", archive, "--data", here.data]) == 0
    assert main(["restore", archive, "--data", there]) == 0
    assert (f"clouds.yaml names {url}: that is where" in capsys.readouterr().out) == is_said


def test_nothing_of_a_newer_release_is_left_behind_or_copied_over(tmp_path, postgres_url):
    with standing(tmp_path / "a"):
        pass
    config = Config(data=str(tmp_path / "a"))
    database = sqlite3.connect(tmp_path / "a" / "siderite.db")
    database.execute("INSERT INTO migrations VALUES ('image/9999_later.sql')")
    database.commit()
    with pytest.raises(CannotCopy, match=r"a newer release \(it has image/9999_later.sql"):
        asyncio.run(copy_to(config, postgres_url, told))
    database.execute("DELETE FROM migrations WHERE name = 'image/9999_later.sql'")
    database.commit()
    database.close()

    async def let_it_be_newer():
        store = await open_store(postgres_url)
        await store.write("INSERT INTO migrations VALUES ('image/9999_later.sql')")
        await store.close()

    asyncio.run(let_it_be_newer())
    with pytest.raises(CannotCopy, match="PostgreSQL database is of a newer release"):
        asyncio.run(copy_to(config, postgres_url, told))


def test_a_row_that_cannot_be_copied_is_said_and_nothing_is(tmp_path, postgres_url):
    with standing(tmp_path / "a"):
        pass
    config = Config(data=str(tmp_path / "a"))
    database = sqlite3.connect(tmp_path / "a" / "siderite.db")
    for due, ends in (("soon", "a row of work"), (1.0, "")):
        database.execute("DELETE FROM work")
        database.execute(
            "INSERT INTO work"
            " (machine, lane, kind, job, due, deadline, attempts, fence, created_at)"
            " VALUES ('m', 'l', 'k', '{}', ?, 1, 0, 1, 1)",
            (due,),
        )
        database.commit()
        if ends:
            with pytest.raises(CannotCopy, match=ends):
                asyncio.run(copy_to(config, postgres_url, told))
        else:
            assert asyncio.run(copy_to(config, postgres_url, told))["work"] == 1
    database.close()


def test_who_lost_the_administrators_password_gets_a_new_one(tmp_path, capsys):
    options = ["--data", str(tmp_path), "--listen", "127.0.0.1:1"]
    assert main(["admin-password", *options]) == 1
    assert "name its place with --data" in capsys.readouterr().err
    config = Config(data=str(tmp_path), admin_password="forgotten")

    async def is_admins(password):
        program = await wiring.build(config)
        try:
            return await program.identity.by_password("admin", password) is not None
        finally:
            await program.close()

    assert asyncio.run(is_admins("forgotten"))
    assert main(["admin-password", *options]) == 0
    assert str(tmp_path / "clouds.yaml") in capsys.readouterr().out
    assert asyncio.run(is_admins(clouds.password(config)))
    assert not asyncio.run(is_admins("forgotten"))


def test_a_new_password_that_is_nobodys_does_not_replace_the_one_in_use(tmp_path):
    config = Config(data=str(tmp_path), admin_password="in use")

    async def started():
        await (await wiring.build(config)).close()

    asyncio.run(started())
    assert clouds.password(config) == "in use"
    dies = (
        "import os, sys; from siderite.cli.main import main;"
        "from siderite.identity.usecases.users import Users;"
        "Users._swap = lambda *_, **__: os._exit(9); main(sys.argv[1:])"
    )
    words = [sys.executable, "-c", dies, "admin-password", "--data", tmp_path]
    killed = subprocess.run(words, check=False)
    assert killed.returncode == 9
    assert clouds.password(config) == "in use"
