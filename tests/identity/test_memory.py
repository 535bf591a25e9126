"""What is remembered of tokens and passwords, and for how long."""

import time

import pytest

from siderite.identity.usecases import sessions
from tests.identity.world import PASSWORD
from tests.identity.world import URL
from tests.identity.world import World
from tests.identity.world import story


@story
async def test_a_known_token_does_not_ask_the_database(here: World) -> None:
    assert await here.identity.by_token(here.token) is not None
    await here.store.write("DELETE FROM identity_tokens RETURNING 1")
    here.now += 4.9
    assert await here.identity.by_token(here.token) is not None
    here.now += 0.2
    assert await here.identity.by_token(here.token) is None


@story
async def test_another_process_sees_a_revocation_within_five_seconds(here: World) -> None:
    other = here.another_process()
    assert await other.by_token(here.token) is not None
    await here.call("DELETE", "/v3/auth/tokens", x_subject_token=here.token)
    assert await here.identity.by_token(here.token) is None
    here.now += 5
    assert await other.by_token(here.token) is None


@story
async def test_a_clock_set_back_does_not_keep_old_answers_alive(here: World) -> None:
    other = here.another_process()
    assert await other.by_token(here.token) is not None
    await here.call("DELETE", "/v3/auth/tokens", x_subject_token=here.token)
    here.now -= 1000
    assert await other.by_token(here.token) is None


@story
async def test_the_memory_of_tokens_is_bounded(here: World) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sessions, "_MAX_REMEMBERED", 3)
        tokens = [await here.token_of("admin") for _ in range(5)]
        for token in tokens:
            assert await here.identity.by_token(token) is not None
        assert len(here.identity.sessions._known) == 3


@story
async def test_garbage_is_nobodys_token(here: World) -> None:
    for garbage in ("", "notused", "x" * 100_000, "\x00", "tökén", "\ud800"):
        assert await here.identity.by_token(garbage) is None


@story
async def test_a_token_speaks_for_its_user_project_and_roles(here: World) -> None:
    user, project = await here.member("mia", "reader")
    who = await here.identity.by_token(await here.token_of("mia", {"project": {"id": project}}))
    assert who is not None
    assert (who.user_id, who.user, who.project_id) == (user, "mia", project)
    assert who.roles == {"reader"}
    assert not who.system
    system = await here.identity.by_token(await here.token_of("admin", {"system": {"all": True}}))
    assert system is not None
    assert system.system
    assert system.project_id is None
    assert system.is_admin


@story
async def test_a_password_speaks_for_the_default_or_else_the_first_project(here: World) -> None:
    user, first = await here.member("mia")
    who = await here.identity.by_password("mia", PASSWORD)
    assert who is not None
    assert (who.user, who.project_id, who.roles) == ("mia", first, frozenset({"member", "reader"}))
    second = await here.new_project()
    await here.give(user, "reader", second)
    await here.call("PATCH", f"/v3/users/{user}", {"user": {"default_project_id": second}})
    who = await here.identity.by_password("mia", PASSWORD)
    assert who is not None
    assert (who.project_id, who.roles) == (second, frozenset({"reader"}))


@story
async def test_a_password_of_someone_without_projects_speaks_for_nothing(here: World) -> None:
    user = await here.new_user("mia")
    who = await here.identity.by_password("mia", PASSWORD)
    assert who is not None
    assert (who.project_id, who.roles, who.system) == (None, frozenset(), False)
    await here.give(user, "reader")
    who = await here.identity.by_password("mia", PASSWORD)
    assert who is not None
    assert who.system


@story
async def test_wrong_passwords_speak_for_nobody(here: World) -> None:
    for name, password in (
        ("admin", "wrong"),
        ("nobody", PASSWORD),
        ("", ""),
        ("admin\0", PASSWORD),
        ("\ud800", "\ud800"),
    ):
        assert await here.identity.by_password(name, password) is None


@story
async def test_a_good_password_is_hashed_once_a_minute(here: World) -> None:
    hashed = []
    passwords = here.identity._passwords
    real = passwords.matches

    async def counted(password: str, stored: str | None, name: str) -> bool:
        hashed.append(here.now)
        return await real(password, stored, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "matches", counted)
        for _ in range(13):
            assert await here.identity.by_password("admin", PASSWORD) is not None
            here.now += 5
    assert len(hashed) == 2
    assert PASSWORD not in str(vars(here.identity._basic))


@story
async def test_a_changed_password_is_not_taken_from_memory(here: World) -> None:
    user, _ = await here.member("mia")
    other = here.another_process()
    for process in (here.identity, other):
        assert await process.by_password("mia", PASSWORD) is not None
    await here.call("PATCH", f"/v3/users/{user}", {"user": {"password": "new"}})
    assert await here.identity.by_password("mia", PASSWORD) is None
    here.now += 5
    assert await other.by_password("mia", PASSWORD) is None
    assert await other.by_password("mia", "new") is not None


@story
async def test_http_basic_opens_the_api_too(here: World) -> None:
    users = URL + "/identity/v3/users"
    good = await here.http.get(users, auth=("admin", PASSWORD))
    assert good.status_code == 200
    for auth in (("admin", "wrong"), ("nobody", PASSWORD)):
        assert (await here.http.get(users, auth=auth)).status_code == 401
    for header in ("Basic", "Basic !!!", "Basic bm9jb2xvbg==", "Bearer x", "Basic /////w=="):
        answer = await here.http.get(users, headers={"authorization": header})
        assert answer.status_code == 401


@pytest.mark.serial
def test_a_remembered_token_costs_a_few_microseconds() -> None:
    @story
    async def tell(here: World) -> None:
        by_token, token = here.identity.by_token, here.token
        best = 1.0
        for _ in range(5):
            began = time.perf_counter()
            for _ in range(10_000):
                await by_token(token)
            best = min(best, (time.perf_counter() - began) / 10_000)
        assert best < 10e-6

    tell("sqlite://")
