"""Where webhooks may call, whatever it is called, and for how long they listen."""

import asyncio
import contextlib
import ipaddress
import socket
import ssl
import subprocess

import pytest

from siderite.core.guard import Guard
from siderite.core.guard import Refused
from siderite.core.guard import networks
from tests.events.hooking import ADDRESS
from tests.events.hooking import runner
from tests.events.hooking import subscribed
from tests.events.receiver import receiving


@pytest.fixture
def run(tmp_path):
    """Run a story with the whole program at work, and a receiver."""
    return runner(tmp_path, "")


def test_an_address_is_checked_again_when_it_is_called(run):
    """Its name may have been another's when the webhook was made."""

    async def story(app, receiver):
        hook = await subscribed(app, receiver)
        app.program.app._services["events"].webhooks.guard._allowed = ()
        answer = (await app.ask("POST", f"{ADDRESS}/{hook['id']}/test")).json
        assert (answer["delivered"], answer["status"]) == (False, None)
        assert "loopback" in answer["error"]
        assert receiver.got == []

    run(story)


def test_a_name_is_called_only_if_none_of_its_addresses_is_forbidden(run, monkeypatch):
    """Neither when the webhook is made, nor when the name has come to mean this machine since; and
    the connection goes to the address that was checked.
    """
    found = ["192.0.2.1"]

    async def look_up(guard, host):
        assert host == "hooks.example"
        return [ipaddress.ip_address(text) for text in found]

    monkeypatch.setattr("siderite.core.guard.Guard._look_up", look_up)

    async def story(app, receiver):
        port = receiver.url.split(":")[2].partition("/")[0]
        body = {"url": f"http://hooks.example:{port}/hook"}
        made = await app.ask("POST", ADDRESS, body)
        assert made.status == 201, made
        for last in ("127.0.0.1", "::ffff:169.254.169.254", "fe80::1"):
            found[:] = ["192.0.2.1", last]
            refused = await app.ask("POST", ADDRESS, body)
            assert (refused.status, "webhooks may not call" in refused.sentence) == (400, True)
            answer = (await app.ask("POST", f"{ADDRESS}/{made.json['id']}/test")).json
            assert (answer["delivered"], answer["status"]) == (False, None)
            assert "webhooks may not call" in answer["error"]
        assert receiver.got == []
        app.program.app._services["events"].webhooks.guard._allowed = networks("127.0.0.0/8")
        found[:] = ["127.0.0.1"]
        answer = (await app.ask("POST", f"{ADDRESS}/{made.json['id']}/test")).json
        assert answer["delivered"] is True, answer
        assert receiver.got[0][2]["host"] == f"hooks.example:{port}"

    run(story, webhook_allow="")


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1", "192.168.1.1", "8.8.8.8", "fd00::1", "2001:db8::1", "127.0.0.9",
        "64:ff9b::808:808",
    ],
)  # fmt: skip
def test_other_addresses_may_be_called(address):
    Guard(networks("127.0.0.8/29")).check(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "::", "224.0.0.1", "2002:7f00:1::", "64:ff9b::a9fe:a9fe", "fd00:ec2::254",
        "240.0.0.1", "255.255.255.255", "0.0.0.0", "ff02::1", "100.100.100.200", "168.63.129.16",
    ],
)  # fmt: skip
def test_hidden_forms_of_forbidden_addresses_are_seen_through(address):
    with pytest.raises(Refused):
        Guard().check(ipaddress.ip_address(address))


def test_an_answer_that_trickles_is_not_waited_for(run):
    """Each piece comes in time, the whole never would."""

    async def story(app, receiver):
        left = asyncio.Event()

        async def trickle(reader, writer):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n")
            with contextlib.suppress(ConnectionError), contextlib.closing(writer):
                while not writer.is_closing():
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(0.05)
            left.set()

        async with await asyncio.start_server(trickle, "127.0.0.1", 0) as slow:
            receiver.url = f"http://127.0.0.1:{slow.sockets[0].getsockname()[1]}/"
            hook = await subscribed(app, receiver)
            async with asyncio.timeout(20):
                answer = (await app.ask("POST", f"{ADDRESS}/{hook['id']}/test")).json
                await left.wait()
        assert (answer["delivered"], answer["status"]) == (False, None)
        assert answer["error"] == "No answer within 2 s."

    run(story, webhook_timeout_s=2.0)


def test_where_one_address_of_a_name_is_down_the_next_is_called(run, monkeypatch):
    async def look_up(guard, host):
        return [ipaddress.ip_address(text) for text in ("127.0.0.2", "127.0.0.1")]

    monkeypatch.setattr("siderite.core.guard.Guard._look_up", look_up)

    async def story(app, receiver):
        receiver.url = receiver.url.replace("127.0.0.1", "hooks.example")
        hook = await subscribed(app, receiver)
        answer = (await app.ask("POST", f"{ADDRESS}/{hook['id']}/test")).json
        assert answer["delivered"] is True, answer
        assert len(receiver.got) == 1

    run(story)


def test_where_nobody_is_at_one_address_of_a_name_the_next_is_called_in_time(run, monkeypatch):
    """As with a name that has an address of IPv6 where that leads nowhere."""

    async def look_up(guard, host):
        return [ipaddress.ip_address(text) for text in ("127.0.0.2", "127.0.0.1")]

    monkeypatch.setattr("siderite.core.guard.Guard._look_up", look_up)

    async def story(app, receiver):
        port = int(receiver.url.split(":")[2].partition("/")[0])
        with contextlib.ExitStack() as stack:
            full = stack.enter_context(socket.socket())
            full.bind(("127.0.0.2", port))
            full.listen(0)  # who comes after the first is not answered at all
            for _ in range(2):
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(("127.0.0.2", port))
            receiver.url = receiver.url.replace("127.0.0.1", "hooks.example")
            hook = await subscribed(app, receiver)
            answer = (await app.ask("POST", f"{ADDRESS}/{hook['id']}/test")).json
            assert answer["delivered"] is True, answer

    run(story, webhook_timeout_s=6.0)


_SELF_SIGNED = (
    "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
    "-subj", "/CN=hooks", "-addext", "subjectAltName=DNS:hooks.example",
)  # fmt: skip


def test_over_tls_the_certificate_must_be_for_the_name_and_trusted(run, monkeypatch, tmp_path):
    """The name, though the connection goes to an address."""
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    words = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*_SELF_SIGNED, *words], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def look_up(guard, host):
        return [ipaddress.ip_address("127.0.0.1")]

    monkeypatch.setattr("siderite.core.guard.Guard._look_up", look_up)

    async def story(app, plain):
        async with receiving(ssl=context) as receiver:
            for name, trusted, words in (
                ("hooks.example", True, None),
                ("others.example", True, "certificate verify failed"),
                ("hooks.example", False, "certificate verify failed"),
            ):
                monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
                if not trusted:
                    monkeypatch.delenv("SSL_CERT_FILE")
                url = receiver.url.replace("127.0.0.1", name)
                hook = (await app.ask("POST", ADDRESS, {"url": url})).json
                answer = (await app.ask("POST", f"{ADDRESS}/{hook['id']}/test")).json
                assert answer["delivered"] is (words is None), answer
                assert words is None or words in answer["error"], answer
            assert len(receiver.got) == 1

    run(story)


def test_of_a_huge_answer_only_the_beginning_is_read(run):
    async def story(app, receiver):
        sent = 0

        async def flood(reader, writer):
            nonlocal sent
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\n")
            with contextlib.suppress(ConnectionError), contextlib.closing(writer):
                while sent < 999999999:
                    writer.write(b"x" * 65536)
                    await writer.drain()
                    sent += 65536

        async with await asyncio.start_server(flood, "127.0.0.1", 0) as server:
            receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            hook = await subscribed(app, receiver)
            answer = (await app.ask("POST", f"{ADDRESS}/{hook['id']}/test")).json
        assert (answer["delivered"], answer["status"]) == (True, 200), answer
        assert sent < 99999999

    run(story, webhook_timeout_s=30.0)
