"""Starts that are odd: several at once, other passwords, places that cannot be used."""

import asyncio

import pytest

from siderite import clouds
from siderite import wiring
from siderite.core import log
from siderite.core.config import Config
from siderite.identity import store as rows


def config(data, db="", **options):
    return Config(data=str(data), db=db, public_url="http://cloud.test", host="here", **options)


def test_of_several_first_starts_each_password_in_a_clouds_yaml_is_the_one(
    tmp_path, postgres_url, monkeypatch
):
    """Two of them share a data directory, a third has its own."""
    places = [config(tmp_path / name, postgres_url) for name in ("a", "a", "b")]
    has_users = rows.has_users

    async def all_find_none(store):
        found = await has_users(store)
        await asyncio.sleep(0.2)
        return found

    monkeypatch.setattr(rows, "has_users", all_find_none)

    async def story():
        programs = await asyncio.gather(*map(wiring.build, places))
        try:
            kept = {clouds.password(one) for one in places} - {None}
            assert len(kept) == 1
            assert await programs[0].identity.by_password("admin", kept.pop()) is not None
        finally:
            for program in programs:
                await program.close()

    asyncio.run(story())


def test_another_admin_password_at_a_later_start_is_said_not_to_count(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(log._Sink, "level", log.WARNING)
    monkeypatch.setattr(log._Sink, "as_json", False)

    async def start(**options):
        program = await wiring.build(config(tmp_path, **options))
        await program.close()

    asyncio.run(start(admin_password="one"))
    asyncio.run(start(admin_password="one"))
    assert "first start only" not in capfd.readouterr().err
    for _ in range(2):
        asyncio.run(start(admin_password="two"))
        assert "it counts at the first start only" in capfd.readouterr().err
        assert clouds.password(config(tmp_path)) != "two"
        clouds.forget(config(tmp_path))
    asyncio.run(start(admin_password="one"))
    assert clouds.password(config(tmp_path)) == "one"


def test_a_place_that_cannot_be_used_is_said_with_the_remedy(tmp_path):
    (tmp_path / "file").write_text("")
    for place in ("file", "file/below"):
        with pytest.raises(RuntimeError, match="name another with --data"):
            asyncio.run(wiring.build(config(tmp_path / place)))
