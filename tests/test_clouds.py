"""clouds.yaml: written before the password is anybody's, readable by its owner alone."""

import asyncio
import stat

import pytest
import yaml

from siderite import clouds
from siderite.core.config import Config
from siderite.core.store import open_store
from siderite.core.store.migrations import migrate
from siderite.identity import Identity


def config(tmp_path, **options):
    return Config(data=str(tmp_path), listen="127.0.0.1:8770", **options)


def test_it_names_the_address_and_hides_from_others(tmp_path):
    clouds.write(config(tmp_path), 'a "quoted" \\ word')
    path = clouds.path(config(tmp_path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert "auth_url: http://127.0.0.1:8770/identity/v3" in text
    assert 'password: "a \\"quoted\\" \\\\ word"' in text


def test_it_is_yaml_whatever_the_password_and_the_region_are(tmp_path):
    odd = config(tmp_path, region="no: way")
    clouds.write(odd, "a\n b: \t#\u2028 'ü'")
    cloud = yaml.safe_load(clouds.path(odd).read_text())["clouds"]["siderite"]
    assert cloud["auth"]["password"] == "a\n b: \t#\u2028 'ü'"
    assert cloud["region_name"] == "no: way"


def test_it_follows_the_listener_and_keeps_what_its_owner_wrote(tmp_path):
    clouds.follow(config(tmp_path))
    assert not clouds.path(config(tmp_path)).exists()
    clouds.write(config(tmp_path), "secret")
    moved = Config(data=str(tmp_path), listen="127.0.0.1:9000")
    clouds.follow(moved)
    cloud = yaml.safe_load(clouds.path(moved).read_text())["clouds"]["siderite"]
    assert cloud["auth"]["auth_url"] == "http://127.0.0.1:9000/identity/v3"
    assert cloud["auth"]["password"] == "secret"
    assert stat.S_IMODE(clouds.path(moved).stat().st_mode) == 0o600
    own = clouds.path(moved).read_text().replace("127.0.0.1:9000", "cloud.example:443")
    clouds.path(moved).write_text(own)
    clouds.follow(moved)
    assert clouds.path(moved).read_text() == own


def test_an_address_that_an_earlier_version_wrote_and_clients_cannot_read_is_followed_too(tmp_path):
    here = Config(data=str(tmp_path), listen="::1:8770")
    clouds.write(here, "secret")
    good = clouds.path(here).read_text()
    clouds.path(here).write_text(good.replace("[::1]", "::1"))
    clouds.follow(here)
    assert clouds.path(here).read_text() == good
    assert "http://[::1]:8770/identity/v3" in good


def test_a_first_start_that_dies_half_way_is_done_again_with_a_password_that_is_kept(tmp_path):
    class Died(Exception):
        pass

    async def story():
        store = await open_store(f"sqlite:///{tmp_path}/test.db")
        await migrate(store)
        identity = Identity(store, token_ttl_s=60)

        def dies(password):
            raise Died

        with pytest.raises(Died):
            await identity.first_start("", dies)
        kept = []
        assert await identity.first_start("", kept.append) == kept[0]
        assert await identity.by_password("admin", kept[0]) is not None
        assert await identity.first_start("", dies) is None, "it is done once"
        await store.close()

    asyncio.run(story())


def test_a_lost_file_comes_back_when_the_configuration_has_the_password(tmp_path):
    clouds.restore(config(tmp_path))
    assert not clouds.path(config(tmp_path)).exists()
    clouds.restore(config(tmp_path, admin_password="known"))
    assert "known" in clouds.path(config(tmp_path)).read_text()
