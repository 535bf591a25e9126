"""Servers leave the log by the same ways as nodes: on Nova's topic, counted, and found."""

import asyncio

import pytest

from tests.compute.cloud import cloud
from tests.events.listening import listening

pytestmark = [
    pytest.mark.filterwarnings(r"ignore:\s*Eventlet is deprecated"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
TOPIC = {"exchange": "nova", "topic": "versioned_notifications"}


def until(app, path, is_so):
    """An answer, once it is so."""

    async def look():
        async with asyncio.timeout(30):
            while True:
                answer = (await app.app.ask("GET", path, version=None)).json
                if is_so(answer):
                    return answer
                await asyncio.sleep(0.02)

    return app.run(look())


def test_a_server_is_heard_of_counted_and_found(tmp_path, database_url, broker):
    with cloud(tmp_path, database_url, notification_url=broker.url()) as made:
        app = made.app
        until(app, "/events/v1/log", lambda log: "bus" in str(log["readers"]))
        uuid = made.boot(name="web-1")
        page = f"/events/v1/events?resource={uuid}&limit=1000"
        is_made = lambda answer: "instance.create.end" in str(answer)  # noqa: E731
        log = until(app, page, is_made)["events"]
        query = "/events/v1/search?type=server&q=web-1"
        (found,) = until(app, query, lambda answer: "active" in str(answer["results"]))["results"]
        assert (found["id"], found["data"]["display_name"]) == (uuid, "web-1")
        assert "num_instances" not in found["data"], "what was asked for is not what it is"
        by_field = f"{query}&state=active&flavor.vcpus=1"
        assert len(until(app, by_field, bool)["results"]) == 1
        until(app, "/events/v1/log", lambda log: all(not r["behind"] for r in log["readers"]))
        counted = app.ask("GET", "/events/v1/monitor", version=None).json["operations"]
        create = next(row for row in counted if row["operation"] == "instance.create")
        assert (create["started"], create["ended"], create["open"]) == (1, 1, 0)
    with listening(broker.url("rabbit"), **TOPIC) as consumer:
        told = consumer.until(lambda told: any("create.end" in one["event_type"] for one in told))
    ours = [one for one in told if one["message_id"] in {event["message_id"] for event in log}]
    assert [one["event_type"] for one in ours] == [event["event_type"] for event in log]
    assert {one["payload"]["nova_object.namespace"] for one in ours} == {"nova"}
    sources = {one["publisher_id"].partition(":")[0] for one in ours}
    assert {"nova-compute", "nova-scheduler"} <= sources
