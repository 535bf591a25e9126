"""Requests to a name with several addresses: which is called, and for how long."""

import asyncio
import ipaddress

import httpx
import pytest

from siderite.core.guard import Guard
from siderite.core.guarded_http import GuardedTransport

ADDRESSES = ("192.0.2.1", "192.0.2.2", "192.0.2.3")


class Network:
    """Whoever is up answers; nobody is at the others."""

    def __init__(self, *up):
        self.up = up
        self.called = []

    async def handle_async_request(self, request):
        self.called.append((request.url.host, request.extensions["timeout"]["connect"]))
        if request.url.host not in self.up:
            raise httpx.ConnectTimeout("nobody is there")
        return httpx.Response(204)

    async def aclose(self):
        pass


async def ask(network, times):
    async def look_up(_host):
        return [ipaddress.ip_address(address) for address in ADDRESSES]

    guard = Guard()
    guard._look_up = look_up
    transport = GuardedTransport(guard)
    transport._inner["http"] = network
    async with httpx.AsyncClient(transport=transport, timeout=6.0) as client:
        for _ in range(times):
            await client.get("http://hooks.example/")


def test_each_address_has_its_part_of_the_time_and_the_one_that_answered_is_asked_first():
    network = Network("192.0.2.2")
    asyncio.run(ask(network, 2))
    assert network.called == [("192.0.2.1", 2.0), ("192.0.2.2", 2.0), ("192.0.2.2", 2.0)]


def test_where_nobody_is_at_any_address_that_is_said():
    network = Network()
    with pytest.raises(httpx.ConnectTimeout):
        asyncio.run(ask(network, 1))
    assert [host for host, _ in network.called] == list(ADDRESSES)
