"""Servers on the nodes of an Ironic elsewhere, whose Keystone gives no token."""

import asyncio
from asyncio import StreamReader
from asyncio import StreamWriter
from types import SimpleNamespace
from typing import Any

from siderite.compute.domain.outcome import Wait
from siderite.compute.drivers.baremetal import baremetal_driver
from siderite.compute.drivers.contract import At
from siderite.core.config import Config
from siderite.wiring.baremetal_apis import baremetal_apis

IRONIC = At("ironic", "http://127.0.0.1:9/v1", {})


def _ask(keystone: str) -> Any:
    base: Any = SimpleNamespace(config=Config(baremetal_auth_url=keystone))
    return baremetal_driver(baremetal_apis(base)).life.capacity(IRONIC)


async def _refuse(reader: StreamReader, writer: StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    writer.close()


def test_a_host_whose_keystone_is_away_is_asked_again_later() -> None:
    answer = asyncio.run(_ask("http://127.0.0.1:9/v3"))
    assert isinstance(answer, Wait)
    assert answer.reason.startswith("http://127.0.0.1:9/v3/auth/tokens cannot be reached")


def test_a_keystone_that_refuses_us_is_told_of_with_the_option_to_look_at() -> None:
    async def story() -> Any:
        async with await asyncio.start_server(_refuse, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await _ask(f"http://127.0.0.1:{port}/v3")

    answer = asyncio.run(story())
    assert isinstance(answer, Wait)
    assert answer.reason.endswith("gave no token (401): check baremetal_username")
