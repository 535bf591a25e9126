"""Starts that are odd: other passwords, places that cannot be used."""

import asyncio

import pytest

from siderite import clouds
from siderite import health
from siderite import wiring
from siderite.core import log
from siderite.core.config import BadOption
from siderite.core.config import Config
from siderite.core.store import Op
from tests.support.app import running
from tests.support.app import standing
from tests.support.disk import held


def config(data, db="", **options):
    return Config(data=str(data), db=db, public_url="http://cloud.test", host="here", **options)


def test_another_admin_password_at_a_later_start_is_said_not_to_count(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(log._Sink, "level", log.WARNING)
    monkeypatch.setattr(log._Sink, "as_json", False)

    async def start(**options):
        program = await wiring.build(config(tmp_path, **options))
        await program.close()

    asyncio.run(start(admin_password="one"))
    asyncio.run(start(admin_password="one"))
    assert "first start only" not in capfd.readouterr().err
    for _ in range(2):  # with the file and without
        asyncio.run(start(admin_password="two"))
        assert "it counts at the first start only" in capfd.readouterr().err
        assert clouds.password(config(tmp_path)) != "two"
        clouds.path(config(tmp_path)).unlink(missing_ok=True)
    asyncio.run(start(admin_password="one"))
    assert clouds.password(config(tmp_path)) == "one"


def test_a_place_that_cannot_be_used_is_said_with_the_remedy(tmp_path):
    (tmp_path / "file").write_text("")
    for place in ("file", "file/below"):
        with pytest.raises(RuntimeError, match="name another with --data"):
            asyncio.run(wiring.build(config(tmp_path / place)))


@pytest.mark.parametrize(
    "wrong",
    [{"networks": "bogus"}, {"console_ports": "9:5"}, {"enabled_hardware_types": "tape"}],
)
def test_a_wrong_option_is_refused_before_the_database_is_touched(tmp_path, wrong):
    with pytest.raises((BadOption, wiring.Invalid), match=next(iter(wrong))):
        asyncio.run(wiring.build(config(tmp_path / "data", **wrong)))
    assert not (tmp_path / "data").exists()


def test_an_embedded_database_of_a_newer_version_is_left_alone(tmp_path):
    async def story():
        program = await wiring.build(config(tmp_path))
        await program.store.commit(
            [Op("INSERT INTO migrations VALUES ('compute/9999_x.sql')", (), 1)]
        )
        await program.close()
        await wiring.build(config(tmp_path))

    with pytest.raises(RuntimeError, match=r"newer version of Siderite .* restore a backup"):
        asyncio.run(story())


def test_health_is_tried_and_not_taken_from_who_found_nothing_to_write(tmp_path, monkeypatch):
    """A disk that is full takes what writes nothing, such as a worker that finds no work."""
    monkeypatch.setattr(health, "_OFTEN_S", -1.0)
    with standing(tmp_path) as app:
        assert app.ask("GET", "/healthz").status == 200
        monkeypatch.setattr(health, "now", lambda: 1.0)  # a clock that was set back
        app.app.program.store._writer.execute("PRAGMA query_only = ON")
        assert app.app.program.store.troubles == 0
        for _ in range(2):
            assert app.ask("GET", "/healthz").status == 503
            app.app.program.store.troubles = 0
        app.app.program.store._writer.execute("PRAGMA query_only = OFF")
        assert app.ask("GET", "/healthz").status == 200


def test_health_is_in_doubt_after_a_refusal_though_what_is_small_still_finds_room(tmp_path):
    with standing(tmp_path) as app:

        def made(size):
            node = {"driver": "fake-hardware", "extra": {"text": "x" * size}}
            return app.ask("POST", "/baremetal/v1/nodes", node, version="1.50").status

        assert (made(1), app.ask("GET", "/healthz").status) == (201, 200)
        execute = app.app.program.store._writer.execute
        (pages,) = execute("PRAGMA page_count").fetchone()
        execute(f"PRAGMA max_page_count = {pages + 12}")
        assert (made(60000), made(1)) == (503, 201)
        assert app.ask("GET", "/healthz").status == 503
        execute(f"PRAGMA max_page_count = {pages + 1000}")
        assert app.ask("GET", "/healthz").status == 200


def test_a_database_that_does_not_answer_is_not_waited_for_by_whoever_asks_for_health(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(health, "_PATIENCE_S", 0.2)

    async def story():
        async with running(tmp_path) as app:
            disk = held(app.program.store)
            async with asyncio.timeout(20):
                answer = await app.ask("GET", "/healthz")
            assert answer.status == 503
            assert "not answered for 0.2 seconds" in answer.sentence
            disk.set()
            assert (await app.ask("GET", "/healthz")).status == 200

    asyncio.run(story())
