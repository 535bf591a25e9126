"""What those are told of servers who see their own project only: not on which host they are, nor
what other hosts there are.
"""

import json

import pytest

from tests.compute.cloud import cloud
from tests.events.hooking import ADDRESS as WEBHOOKS
from tests.events.log import ADDRESS
from tests.events.log import Stream
from tests.events.receiver import receiving
from tests.events.test_servers import until

HOST, OTHER = "wasp-host", "bee-host"
SEARCH = "/events/v1/search?type=server"


@pytest.fixture
def here(tmp_path, database_url):
    with cloud(tmp_path, database_url, hosts=0, webhook_allow="127.0.0.0/8") as made:
        made.add_host(HOST)
        made.add_host(OTHER, vcpus=0)
        yield made


def told(here, token):
    """A server that ran, and one that no host would take; of both, all that is in a page."""
    here.boot(token=token, name="mine")
    large = here.make_flavor(vcpus=64, ram=10**6)
    here.until(here.create(token=token, name="large", flavorRef=large), "ERROR")
    path = f"{ADDRESS}?limit=1000"
    is_all = lambda page: "select_destinations.error" in str(page)  # noqa: E731
    every = until(here.app, path, is_all)["events"]
    mine = here.app.ask("GET", path, version=None, token=token).json["events"]
    return every, mine


def names(text):
    """Whether hosts are spoken of."""
    return HOST in text or OTHER in text


def test_a_page_names_hosts_to_those_who_see_all_and_to_no_others(here):
    _, token, project = here.app.person("reader")
    _, member, _ = here.app.person("member", project)
    every, _ = told(here, member)
    mine = here.app.ask("GET", f"{ADDRESS}?limit=1000", version=None, token=token).json["events"]
    assert names(str(every)) and not names(str(mine))
    same = {one["seq"]: one for one in every}
    for one in mine:
        assert one | {"payload": {}} == same[one["seq"]] | {"payload": {}}
    (refused,) = [one for one in mine if "select_destinations.error" in one["event_type"]]
    assert refused["payload"]["nova_object.data"]["refusals"] == {}


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_stream_says_what_a_page_does(here, is_kept):
    _, token, _ = here.app.person("member")
    first = Stream.open(here.app.app)
    if is_kept:  # for those who listen the newest facts are kept at hand
        here.app.run(first.__aenter__())
    every, mine = told(here, token)

    async def heard(who, wanted):
        async with Stream.open(here.app.app, token=who) as stream:
            return [json.loads((await stream.event()).data) for _ in wanted]

    assert bool(here.app.app.program.hub._kept) is is_kept
    assert here.app.run(heard(token, mine)) == mine
    assert here.app.run(heard(None, every)) == every
    if is_kept:
        here.app.run(first.__aexit__(None, None, None))


def test_things_are_not_found_by_a_host_that_is_not_told(here):
    _, token, _ = here.app.person("member")
    told(here, token)
    by_host = (f"{SEARCH}&host={HOST}", f"{SEARCH}&q=wasp", f"{SEARCH}&q={HOST}%20mine")
    for query in by_host:
        assert len(until(here.app, query, lambda page: page["results"])["results"]) == 1
        assert here.app.ask("GET", query, version=None, token=token).json["results"] == []
    answer = here.app.ask("GET", f"{SEARCH}&q=mi&state=active", version=None, token=token)
    (found,) = answer.json["results"]
    assert (found["data"]["display_name"], found["data"]["host"]) == ("mine", None)


def test_a_projects_webhook_is_told_no_more_than_its_members(here):
    _, token, _ = here.app.person("member")
    _, mine = told(here, token)

    async def posted(who):
        async with receiving() as receiver:
            hook = {"url": receiver.url, "after": 0, "resource": mine[0]["resource"]["id"]}
            made = await here.app.app.ask("POST", WEBHOOKS, hook, version=None, token=who)
            assert made.status == 201, made
            return await receiver.until(lambda got: "create.end" in str(got))

    assert not names(str(here.app.run(posted(token))))
    assert names(str(here.app.run(posted(None))))
