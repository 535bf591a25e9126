"""Webhooks of a program in this process, and a receiver for them."""

import asyncio

from tests.events.receiver import receiving
from tests.support.app import running

ADDRESS = "/events/v1/webhooks"


def runner(tmp_path, database_url):
    """What runs a story with the whole program at work, and a receiver."""

    def begin(story, **options):
        async def all_of_it():
            options.setdefault("webhook_allow", "127.0.0.0/8")
            async with (
                receiving() as receiver,
                running(tmp_path, database_url, work=True, **options) as app,
            ):
                await story(app, receiver)

        asyncio.run(all_of_it())

    return begin


async def subscribed(app, receiver, **fields):
    """A new webhook, as it is shown."""
    answer = await app.ask("POST", ADDRESS, {"url": receiver.url, **fields})
    assert answer.status == 201, answer
    return answer.json
