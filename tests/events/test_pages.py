"""Pages of the log: what is in them, filters, going on to the end, and who sees what."""

import pytest

from siderite.core import eventlog
from siderite.core.eventlog import Wanted
from tests.events.log import ADDRESS
from tests.events.log import NODE
from tests.events.log import OTHER
from tests.events.log import fact
from tests.events.log import tell
from tests.support.domain import domain_person


def told(app, *facts):
    app.run(tell(app.app, *facts))


def page(app, query="", **how):
    answer = app.ask("GET", ADDRESS + query, **how)
    assert answer.status == 200, answer
    return answer.json


def numbers(app, query="", **how):
    return [event["seq"] for event in page(app, query, **how)["events"]]


def test_an_event_says_all_that_the_log_knows(app):
    told(app, fact(1))
    (event,) = page(app)["events"]
    assert event.pop("time").endswith("+00:00")
    assert len(event.pop("message_id")) == 36
    assert event == {
        "seq": 1,
        "event_type": "baremetal.node.update.end",
        "publisher_id": "ironic-api.here",
        "priority": "INFO",
        "request_id": "req-1",
        "resource": {"type": "node", "id": NODE},
        "payload": {"n": 1},
    }


def test_an_empty_log_has_an_empty_page(app):
    assert page(app) == {"events": [], "next": 0}
    assert app.ask("HEAD", ADDRESS).status == 200


def test_what_the_api_did_is_in_the_log(app):
    uuid = app.make_node(name="n1")
    told(app)
    types = [(e["event_type"], e["resource"]["id"]) for e in page(app)["events"]]
    assert types == [(f"baremetal.node.create.{s}", uuid) for s in ("start", "end")]


def test_pages_lead_to_the_end_without_gap_or_double(app):
    told(app, *(fact(n) for n in range(25)))
    seen, after = [], 0
    while (answer := page(app, f"?after={after}&limit=7"))["events"]:
        seen += [event["seq"] for event in answer["events"]]
        assert answer["next"] == seen[-1]
        after = answer["next"]
    assert seen == list(range(1, 26))
    assert answer["next"] == after == 25
    assert len(numbers(app)) == 25


def test_a_page_has_100_events_unless_more_are_asked_for(app):
    told(app, *(fact(n) for n in range(120)))
    assert page(app)["next"] == 100
    assert len(numbers(app, "?limit=1000")) == 120


def test_the_newest_are_found_from_the_end(app, monkeypatch):
    kinds = {4: "power_set.start", 9: "power_set.start"}
    told(app, *(fact(n, kind=kinds.get(n, "update.end")) for n in range(1, 13)))
    newest = page(app, "?last=3")
    assert ([event["seq"] for event in newest["events"]], newest["next"]) == ([10, 11, 12], 12)
    assert numbers(app, "?last=1000") == list(range(1, 13))
    assert numbers(app, "?last=5&type=*power_set*") == [4, 9]
    monkeypatch.setattr(eventlog, "MOST_LOOKED_AT", 5)
    assert numbers(app, "?last=5&type=*power_set*") == [4, 9]
    assert numbers(app, "?last=1&type=*power_set*") == [9]
    monkeypatch.setattr(eventlog, "FARTHEST_BACK", 7)
    assert numbers(app, "?last=5&type=*power_set*") == [9]
    for query in ("?last=0", "?last=3&after=1", "?last=3&limit=2"):
        assert app.ask("GET", ADDRESS + query).status == 400


FILTERS = [
    ("type=*.end", [1, 3]),
    ("type=baremetal.node.update.end", [1, 3]),
    ("type=baremetal.node.*", [1, 2, 3, 4]),
    ("type=*power_set*", [2]),
    ("type=*power?set.*", [2]),
    ("type=*power_se?.*", [2]),
    ("type=*.powe_set.*", []),
    (f"resource={OTHER}", [2, 3]),
    (f"resource={OTHER.upper()}&type=*.end", [3]),
    ("project=p", [3, 4]),
    ("project=p&after=3", [4]),
    ("project=nobody", []),
]


def test_filters_choose(app):
    told(
        app,
        fact(1),
        fact(2, kind="power_set.start", resource=OTHER),
        fact(3, resource=OTHER, project="p"),
        fact(4, kind="update.start", project="p"),
    )
    answers = {query: page(app, f"?{query}") for query, _ in FILTERS}
    assert [(q, [e["seq"] for e in a["events"]]) for q, a in answers.items()] == FILTERS
    assert {answer["next"] for answer in answers.values()} == {4}


def test_readers_of_fresh_facts_choose_as_the_database_does(app):
    kinds = ("update.end", "power_set.start", "powerxset.start", "console_restore.error")
    told(app, *(fact(1, kind=k, resource=r) for k in kinds for r in (NODE, OTHER)))
    entries = app.run(eventlog.read(app.app.program.store))
    for glob in ("*", "*.start", "*power_set*", "baremetal.node.p?wer_set.start", "*_*", "?"):
        for resource in (None, NODE):
            wanted = Wanted(glob, resource)
            rows, _ = app.run(
                eventlog.page(app.app.program.store, wanted, after=0, limit=99, end=8)
            )
            assert rows == [entry for entry in entries if wanted.matches(entry)], glob


def test_a_glob_of_many_stars_costs_no_more_than_others(app):
    told(app, *(fact(n, kind="console_restore.success") for n in range(20)))
    glob = "*?" * 100 + "*.error"
    assert page(app, f"?type={glob}") == {"events": [], "next": 20}
    entries = app.run(eventlog.read(app.app.program.store))
    assert not any(Wanted(glob).matches(entry) for entry in entries)
    assert page(app, f"?type={'*?' * 10}*.error")["events"] == []


def test_a_filtered_reader_gets_on_though_nothing_matches(app, monkeypatch):
    monkeypatch.setattr(eventlog, "MOST_LOOKED_AT", 5)
    told(app, *(fact(n) for n in range(12)), fact(12, kind="update.error"))
    steps, after = [], 0
    while (answer := page(app, f"?type=*.error&after={after}"))["next"] != after:
        after = answer["next"]
        steps.append((after, [event["seq"] for event in answer["events"]]))
    assert steps == [(5, []), (10, []), (13, [13])]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("after=2", "newest is 1"),
        ("after=999999999999999999", "newest is 1"),
        ("after=9999999999999999999", "after must be a number"),
        ("after=-1", "after must be a number"),
        ("after=", "after must be a number"),
        ("after=1.0", "after must be a number"),
        ("after=%D9%A1", "after must be a number"),
        ("after=0&after=1", "given twice"),
        ("limit=0", "from 1 to 1000"),
        ("limit=1001", "from 1 to 1000"),
        ("limit=ten", "from 1 to 1000"),
        ("marker=1", "no argument 'marker'"),
        ("resource=", "an id or a name"),
        ("resource=" + "n" * 300, "an id or a name"),
        ("resource=%00", "NUL"),
        ("project=", "project's id"),
        ("type=", "lower case words"),
        ("type=Baremetal.*", "lower case words"),
        ("type=baremetal..end", "lower case words"),
        ("type=baremetal.node.[ab]*", "lower case words"),
        ("type=%25", "lower case words"),
        ("type=*%00", "NUL"),
        ("type=" + "*" * 300, "lower case words"),
        ("type=weather.*", "No event has a type like"),
        ("type=baremetal.node.create.finished", "No event has a type like"),
    ],
)
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_what_cannot_be_is_said(one_fact, query, words, accept):
    answer = one_fact.ask("GET", f"{ADDRESS}?{query}", headers={"Accept": accept})
    assert answer.status == 400, answer
    assert words in answer.sentence
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("last", ["2", "x", "", "-1"])
def test_a_stream_cannot_go_on_from_what_is_no_number_of_the_log(one_fact, last):
    headers = {"Accept": "text/event-stream", "Last-Event-ID": last}
    assert one_fact.ask("GET", ADDRESS, headers=headers).status == 400


def test_a_stream_has_no_limit(one_fact):
    answer = one_fact.ask("GET", f"{ADDRESS}?limit=5", headers={"Accept": "text/event-stream"})
    assert (answer.status, "no limit" in answer.sentence) == (400, True)


@pytest.mark.parametrize("role", ["reader", "member"])
def test_a_project_sees_its_own_events_only(app, role):
    _, token, project = app.person(role)
    told(app, fact(1), fact(2, project=project), fact(3, project="them"), fact(4, project=project))
    assert numbers(app) == [1, 2, 3, 4]
    for query in ("", f"?project={project}", "?type=*.end", f"?resource={NODE}"):
        answer = page(app, query, token=token)
        assert [event["seq"] for event in answer["events"]] == [2, 4]
        assert answer["next"] == 4
    refused = app.ask("GET", f"{ADDRESS}?project=them", token=token)
    assert (refused.status, "your own project" in refused.sentence) == (403, True)


def test_a_token_for_no_project_sees_no_events(app):
    token = app.run(domain_person(app.app, "reader"))
    told(app, fact(1), fact(2, project="them"))
    for path in (ADDRESS, "/events/v1/search"):
        refused = app.ask("GET", path, token=token)
        assert (refused.status, "Get one for a project" in refused.sentence) == (403, True), refused


def test_services_see_all(app):
    _, token, _ = app.person("service")
    told(app, fact(1), fact(2, project="them"))
    assert numbers(app, token=token) == [1, 2]
    assert numbers(app, "?project=them", token=token) == [2]


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("token", ["", "bogus"])
def test_without_a_good_token_nothing_is_answered(one_fact, accept, token):
    answer = one_fact.ask("GET", ADDRESS, token=token, headers={"Accept": accept})
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Basic")


def test_the_log_is_only_read(app):
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert app.ask(method, ADDRESS, {}).status == 405
    assert app.ask("GET", "/events/v1").status == 404
    assert app.ask("GET", "/").json["events"] == "http://cloud.test/events/v1/events"
