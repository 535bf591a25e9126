"""Streams of the real process: framing on the wire, `kill -9`, a quick stop."""

import asyncio
import json
import socket

import httpx

from tests.crash.storm import Node
from tests.crash.storm import Storm
from tests.crash.storm import lead
from tests.events.log import ADDRESS
from tests.events.log import Parser
from tests.support.server import running_server

# What uvicorn says where it has waited in vain for clients to go.
CUT_OFF = "timeout graceful shutdown exceeded"
PATIENCE_S = 120.0


def log_of(server):
    """The whole log, by its pages."""
    events, after = [], 0
    while True:
        reply = server.api.get(f"{ADDRESS}?after={after}&limit=1000", headers=server.headers())
        reply.raise_for_status()
        events += reply.json()["events"]
        if reply.json()["next"] == after:
            return events
        after = reply.json()["next"]


def make_node(server, **fields):
    body = {"driver": "fake-hardware", **fields}
    reply = server.api.post("/baremetal/v1/nodes", json=body, headers=server.headers("1.109"))
    assert reply.status_code == 201, reply.text
    return reply.json()["uuid"]


async def follow(server, events):
    """A reader that remembers one number, and comes back with it whenever the stream is lost."""
    async with httpx.AsyncClient(base_url=server.url, timeout=30, trust_env=False) as client:
        while True:
            headers = server.headers() | {"Accept": "text/event-stream"}
            if events:
                headers["Last-Event-ID"] = str(events[-1]["seq"])
            try:
                async with client.stream("GET", ADDRESS, headers=headers) as answer:
                    assert answer.status_code == 200, await answer.aread()
                    parser = Parser()
                    async for line in answer.aiter_lines():
                        event = parser.line(line)
                        if event is not None and event.data:
                            events.append(json.loads(event.data))
            except httpx.TransportError:
                await asyncio.sleep(0.05)


async def until(claim):
    async with asyncio.timeout(PATIENCE_S):
        while not claim():
            await asyncio.sleep(0.02)


async def lead_and_kill(server, readers, *, nodes, kills):
    """Lead nodes through cycles, and kill the process whenever readers have got further."""
    storm = Storm(server, cycles=2)
    storm.nodes += [Node(make_node(server)) for _ in range(nodes)]
    tasks = [asyncio.create_task(follow(server, events)) for events in readers]
    async with httpx.AsyncClient(
        base_url=server.url, headers=server.headers("1.109"), timeout=30, trust_env=False
    ) as client:
        leaders = asyncio.gather(*(lead(storm, node, client) for node in storm.nodes))
        for _ in range(kills):
            seen = len(readers[0])
            await until(lambda seen=seen: len(readers[0]) >= seen + 5 * nodes)
            server.kill()
            await asyncio.get_running_loop().run_in_executor(storm.hand, server.start)
        async with asyncio.timeout(PATIENCE_S):
            await leaders
    log = log_of(server)
    await until(lambda: all(len(events) >= len(log) for events in readers))
    for task in tasks:
        assert not task.done(), task.exception()
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert storm.problems == []
    return log


def test_two_readers_that_come_back_after_kills_have_exactly_the_log(tmp_path, database_url):
    on_postgres = database_url.startswith("postgresql")
    with running_server(tmp_path, db=database_url if on_postgres else None) as server:
        readers = [[], []]
        # On PostgreSQL the leases of the dead process must run out first.
        kills = 1 if on_postgres else 3
        log = asyncio.run(lead_and_kill(server, readers, nodes=4, kills=kills))
        assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
        assert len({event["message_id"] for event in log}) == len(log)
        assert readers == [log, log]


def test_a_stream_on_the_wire_and_its_end_when_the_service_stops(tmp_path):
    with running_server(tmp_path) as server:
        make_node(server)
        headers = server.headers() | {"Accept": "text/event-stream"}
        with (
            httpx.Client(base_url=server.url, trust_env=False, timeout=30) as client,
            client.stream("GET", ADDRESS, headers=headers) as answer,
        ):
            lines = answer.iter_lines()
            first = [next(lines) for _ in range(7)]
            assert first[:3] == [": alive", "id: 0", ""]
            assert first[3:5] == ["id: 1", "event: baremetal.node.create.start"]
            assert json.loads(first[5].removeprefix("data: "))["seq"] == 1
            assert first[6] == ""
            assert server.stop() == 0
            assert CUT_OFF not in server.log.read_text()
            assert list(lines)[-1] == ""


def test_a_reader_that_does_not_read_does_not_hold_up_the_stop(tmp_path):
    with running_server(tmp_path) as server:
        for _ in range(120):
            make_node(server, extra={"much": "x" * 60_000})
        host, _, port = server.url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as connection:
            token = server.token()
            connection.sendall(
                f"GET {ADDRESS} HTTP/1.1\r\nHost: here\r\nAccept: text/event-stream\r\n"
                f"X-Auth-Token: {token}\r\n\r\n".encode()
            )
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
            # Still answered meanwhile, and of the log of 14 MiB only a part is in memory.
            assert server.api.get("/healthz").status_code == 200
            assert server.stop() == 0
            assert CUT_OFF not in server.log.read_text()


def test_the_head_of_a_stream_is_an_answer_of_its_own(tmp_path):
    with running_server(tmp_path) as server:
        headers = server.headers() | {"Accept": "text/event-stream"}
        reply = server.api.head(ADDRESS, headers=headers)
        assert (reply.status_code, reply.content) == (200, b"")
        assert reply.headers["content-type"] == "text/event-stream"
        assert server.api.get("/healthz").status_code == 200
