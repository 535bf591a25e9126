"""Which resource a reader of the log means: by id, or by a name."""

import json

from siderite.core.fact import Fact
from tests.events.hooking import ADDRESS as WEBHOOKS
from tests.events.log import ADDRESS as LOG
from tests.events.log import NODE
from tests.events.log import OTHER
from tests.events.log import tell
from tests.events.test_search import current
from tests.events.test_search import fleet


def test_the_log_is_asked_for_by_the_names_that_resources_have_now(run):
    async def story(app):
        one, two = await fleet(app)
        await tell(app, Fact("flavor.create", "nova-api", "flavor", "4", '{"name":"m1.tiny"}'))
        await current(app)
        for said, uuid in (
            (one.upper(), one), ("r01-n01", one), ("r01-n02", two), ("4", "4"), ("m1.tiny", "4"),
        ):  # fmt: skip
            answer = await app.ask("GET", f"{LOG}?resource={said}&last=100")
            told = {event["resource"]["id"] for event in answer.json["events"]}
            assert (answer.status, told) == (200, {uuid}), said
        renamed = [{"op": "replace", "path": "/name", "value": "new"}]
        assert (await app.ask("PATCH", f"/v1/nodes/{one}", renamed)).status == 200
        await current(app)
        assert (await app.ask("GET", f"{LOG}?resource=new")).json["events"]
        for said in ("r01-n01", "R01-N02", "r01", "none"):
            answer = await app.ask("GET", f"{LOG}?resource={said}")
            assert (answer.status, "no resource with" in answer.sentence) == (404, True), said

    run(story)


def test_a_name_that_several_have_or_that_is_anothers_is_not_taken_for_one(run):
    async def story(app):
        _, token, project = await app.person("reader")
        twice = (("a" * 8 + NODE[8:], project), (NODE, None), (OTHER, None))
        for uuid, whose in twice:
            text = json.dumps({"display_name": "web", "uuid": uuid})
            told = Fact("instance.create.end", "nova-api", "server", uuid, text, project=whose)
            await tell(app, told)
        await current(app)
        answer = await app.ask("GET", f"{LOG}?resource=web")
        assert (answer.status, NODE in answer.sentence) == (400, True), answer
        mine = await app.ask("GET", f"{LOG}?resource=web", token=token)
        assert [event["resource"]["id"] for event in mine.json["events"]] == [twice[0][0]]
        await tell(app, Fact("flavor.create", "nova-api", "flavor", "4", '{"name":"secret"}'))
        await current(app)
        for said in ("secret", "4"):
            assert (await app.ask("GET", f"{LOG}?resource={said}", token=token)).status == 404

    run(story)


def test_a_webhook_is_for_what_has_the_name_now_and_stays_with_it(run):
    async def story(app):
        one, two = await fleet(app)
        await current(app)
        body = {"url": "https://192.0.2.1/", "resource": "r01-n01", "enabled": False}
        made = await app.ask("POST", WEBHOOKS, body)
        assert (made.status, made.json["resource"]) == (201, one), made
        at = f"{WEBHOOKS}/{made.json['id']}"
        for said, meant in (("r01-n02", two), (one.upper(), one), (None, None)):
            changed = await app.ask("PATCH", at, {"resource": said})
            assert (changed.status, changed.json["resource"]) == (200, meant), changed
        for said in ("nobody", ""):
            assert (await app.ask("PATCH", at, {"resource": said})).status == 400

    run(story)
