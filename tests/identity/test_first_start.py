"""What an empty database is given, once."""

import asyncio

from siderite.core.store import open_store
from siderite.core.store.migrations import migrate
from siderite.identity import Identity
from tests.identity.world import PASSWORD
from tests.identity.world import World
from tests.identity.world import story


@story
async def test_there_are_a_domain_five_roles_two_projects_and_an_admin(here: World) -> None:
    names = {}
    for noun in ("domains", "roles", "projects", "users"):
        found = (await here.call("GET", f"/v3/{noun}")).json()[noun]
        names[noun] = [one["name"] for one in found]
    assert names == {
        "domains": ["Default"],
        "roles": ["admin", "manager", "member", "reader", "service"],
        "projects": ["admin", "service"],
        "users": ["admin"],
    }


@story
async def test_admin_is_admin_of_its_project_and_of_the_system(here: World) -> None:
    project = await here.login(scope={"project": {"name": "admin", "domain": {"id": "default"}}})
    system = await here.login(scope={"system": {"all": True}})
    for answer in (project, system):
        roles = [role["name"] for role in answer.json()["token"]["roles"]]
        assert roles == ["admin", "manager", "member", "reader"]


@story
async def test_a_second_start_changes_nothing(here: World) -> None:
    assert await here.identity.first_start("another") is None
    assert await here.another_process().first_start("") is None
    assert (await here.login()).status_code == 201
    assert len((await here.call("GET", "/v3/users")).json()["users"]) == 1


@story
async def test_an_admin_that_was_renamed_does_not_come_back(here: World) -> None:
    admin = (await here.call("GET", "/v3/users?name=admin")).json()["users"][0]["id"]
    renamed = await here.call("PATCH", f"/v3/users/{admin}", {"user": {"name": "root"}})
    assert renamed.status_code == 200
    assert await here.identity.first_start("") is None
    assert (await here.login("admin")).status_code == 401
    assert (await here.login("root")).status_code == 201


def test_without_a_password_one_is_made_up_and_told_once(database_url: str) -> None:
    async def tell() -> None:
        store = await open_store(database_url)
        await migrate(store)
        identity = Identity(store, token_ttl_s=60)
        password = await identity.first_start("")
        assert password is not None
        assert len(password) >= 20
        assert await identity.first_start("") is None
        assert await identity.by_password("admin", password) is not None
        rows = await store.fetch("SELECT doc FROM identity_users")
        assert password not in str(rows)
        await store.close()

    asyncio.run(tell())


def test_two_processes_that_start_at_once_make_one_admin(postgres_url: str) -> None:
    async def tell() -> None:
        stores = [await open_store(postgres_url) for _ in range(2)]
        await migrate(stores[0])
        kept: list[str] = []
        made = await asyncio.gather(
            *(Identity(store, token_ttl_s=60).first_start("", kept.append) for store in stores)
        )
        users = await stores[0].fetch("SELECT uuid FROM identity_users")
        assert len(users) == 1
        assert [one for one in made if one] == kept, "nobody keeps a password that is nobody's"
        for store in stores:
            await store.close()

    asyncio.run(tell())


@story
async def test_a_given_password_is_not_returned(here: World) -> None:
    await here.store.write("DELETE FROM identity_users RETURNING 1")
    await here.store.write("DELETE FROM identity_projects RETURNING 1")
    assert await here.identity.first_start(PASSWORD) is None
    assert (await here.login()).status_code == 201
