"""Ramdisks: made, commanded once per run, and what a deploy must bring."""

import asyncio
import base64
import gzip
import json
import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from http.server import ThreadingHTTPServer
from ipaddress import ip_address
from urllib.parse import parse_qs
from urllib.parse import urlsplit

import pytest

from siderite.baremetal.domain.outcome import Done
from siderite.baremetal.domain.outcome import Failed
from siderite.baremetal.domain.outcome import Wait
from siderite.baremetal.domain.steps import Family
from siderite.baremetal.domain.steps import Step
from siderite.baremetal.drivers.agent import Agent
from siderite.baremetal.drivers.agent import Ramdisks
from siderite.baremetal.drivers.agent import RamdiskSettings
from siderite.baremetal.drivers.agent import fetch
from siderite.baremetal.drivers.agent import image
from siderite.baremetal.drivers.agent.iso import NoRamdisk
from siderite.baremetal.drivers.agent.iso import config_drive
from siderite.baremetal.drivers.agent.ramdisks import guard
from siderite.baremetal.drivers.contract import Endpoint
from siderite.core.clock import now
from siderite.core.guard import networks
from siderite.core.times import iso
from tests.lab.bmc import files_served
from tests.support.certificates import self_signed
from tests.support.serving import serving
from tests.support.trickling import trickling

TOKEN = "the ramdisk's own token"
STEP = Step("deploy", "erase_devices_metadata", 99, in_band=True)
HERE = guard(networks("127.0.0.0/8"))
"""Lets nodes name what is served on this machine."""


class Ramdisk:
    """Takes commands as ironic-python-agent does; the test says what becomes of them."""

    def __init__(self):
        self.commands = []
        self.given_params = []
        self.tokens = []
        self.becomes = {"command_status": "RUNNING"}
        self.answers = None

    def listed(self):
        return {"commands": [{**command, **self.becomes} for command in self.commands]}

    def given(self, body, query):
        self.tokens.append(query.get("agent_token"))
        command = {"id": str(len(self.commands)), "command_name": body["name"].split(".")[1]}
        self.commands.append(command)
        self.given_params.append(body["params"])
        return {**command, "command_status": "RUNNING", "command_error": None}


@contextmanager
def listening(certificate=None):
    ramdisk = Ramdisk()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked = parse_qs(urlsplit(self.path).query).get("agent_token")
            self.reply(ramdisk.listed() if asked == [TOKEN] else {"error": "no token"})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.reply(ramdisk.given(body, parse_qs(urlsplit(self.path).query)))

        def reply(self, value):
            status, text = ramdisk.answers or (200, json.dumps(value))
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        own.load_cert_chain(certificate)
        server.socket = own.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        scheme = "http" if certificate is None else "https"
        yield ramdisk, f"{scheme}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def at(url, memory=None):
    internal = {"agent_url": url, "agent_secret_token": TOKEN, "agent_last_heartbeat": "now"}
    return Endpoint("n1", {"redfish_password": "hush"}, {}, {}, {**internal, **(memory or {})})


def ask(url, token="op/0", memory=None):
    """Ask as a worker does: what is to be remembered is, and what is at once is asked at once."""
    memory = {} if memory is None else memory
    while True:
        step = Agent(timeout_s=5).step(at(url, memory), Family.CLEAN, STEP, token)
        outcome = asyncio.run(step)
        if not isinstance(outcome, Wait):
            return outcome
        memory |= outcome.remember
        if outcome.again_in:
            return outcome


def test_a_step_is_given_once_however_often_it_is_asked_for():
    memory = {}
    with listening() as (ramdisk, url):
        for _ in range(3):
            outcome = ask(url, memory=memory)
            assert isinstance(outcome, Wait)
            assert outcome.callback
        assert [c["command_name"] for c in ramdisk.commands] == ["execute_clean_step"]
        assert ramdisk.tokens == [[TOKEN]]
        assert "hush" not in json.dumps(ramdisk.given_params)
        ramdisk.becomes = {"command_status": "SUCCEEDED"}
        assert ask(url, memory=memory) == Done()
        ask(url, "op/1", memory)
        assert len(ramdisk.commands) == 2, "another run is another command"


@pytest.fixture
def certificate(tmp_path):
    """One that a ramdisk makes for itself, with its key."""
    return self_signed(tmp_path / "agent.pem")


def test_a_ramdisk_is_known_by_the_certificate_it_sent_which_is_read_once(certificate, monkeypatch):
    made = []
    make = ssl.create_default_context
    monkeypatch.setattr(
        ssl, "create_default_context", lambda **how: made.append(how) or make(**how)
    )
    memory = {"agent_verify_ca": certificate.read_text()}
    with listening(certificate) as (ramdisk, url):
        for _ in range(3):
            assert ask(url, memory=memory).callback
        assert len(ramdisk.commands) == 1
        assert len(made) == 1
        for other in ("", "no certificate", "\u00e4"):
            silent = ask(url, memory={"agent_verify_ca": other})
            assert "does not answer" in silent.reason
        assert len(ramdisk.commands) == 1


def test_a_step_given_right_before_a_crash_is_found_again_and_one_that_is_lost_given_anew():
    memory = {}
    with listening() as (ramdisk, url):
        ramdisk.given({"name": "clean.execute_clean_step", "params": {}}, {})  # of earlier work
        noted = asyncio.run(Agent().step(at(url), Family.CLEAN, STEP, "op/0")).remember
        ask(url, memory=dict(noted))  # and we are gone before we note the command
        assert len(ramdisk.commands) == 2
        ask(url, memory=(memory := dict(noted)))
        assert len(ramdisk.commands) == 2, "the new one is ours"
        ramdisk.commands.clear()  # the ramdisk has begun anew
        ask(url, memory=memory)
        assert len(ramdisk.commands) == 1


def test_a_failure_is_told_in_the_ramdisks_words():
    memory = {}
    with listening() as (ramdisk, url):
        ask(url, memory=memory)
        error = {"message": "Error performing step", "details": "disk \0sda is read-only"}
        ramdisk.becomes = {"command_status": "FAILED", "command_error": error}
        outcome = ask(url, memory=memory)
        assert isinstance(outcome, Failed)
        assert "disk sda is read-only" in outcome.reason


def test_a_failure_is_told_without_the_secrets_that_the_ramdisk_was_given():
    memory = {}
    step = Step("deploy", "write_image", args={"a": [{"api_token": "hush-hush"}], "b": "plain"})
    with listening() as (ramdisk, url):
        agent = Agent(timeout_s=5)
        for _ in range(2):
            outcome = asyncio.run(agent.step(at(url, memory), Family.DEPLOY, step, "op/0"))
            memory |= outcome.remember
        details = "cannot read http://u:hidden@host/image with hush-hush, plain"
        ramdisk.becomes = {"command_status": "FAILED", "command_error": {"details": details}}
        outcome = asyncio.run(agent.step(at(url, memory), Family.DEPLOY, step, "op/0"))
    assert isinstance(outcome, Failed)
    assert outcome.reason.endswith("cannot read http://u:******@host/image with ******, plain")


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ((409, "{}"), "busy with something else"),
        ((500, "oops"), "HTTP 500"),
        ((200, "<html>"), "not JSON"),
    ],
)
def test_a_ramdisk_that_makes_no_sense_is_asked_again(answers, words):
    with listening() as (ramdisk, url):
        ramdisk.answers = answers
        outcome = ask(url)
        assert isinstance(outcome, Wait)
        assert words in outcome.reason
        assert TOKEN not in outcome.reason


def test_a_ramdisk_whose_answer_does_not_end_is_asked_again():
    agent = Agent(timeout_s=0.2)

    async def asked(url):
        async with asyncio.timeout(30):
            return await agent.step(at(url, {}), Family.CLEAN, STEP, "op/0")

    with trickling(0.05) as url:
        outcome = asyncio.run(asked(url))
    assert isinstance(outcome, Wait)
    assert "does not answer" in outcome.reason


def test_what_is_no_command_among_a_ramdisks_commands_is_passed_over():
    with listening() as (ramdisk, url):
        ramdisk.listed = lambda: {"commands": [None, 7, *ramdisk.commands]}
        assert ask(url).callback
        assert len(ramdisk.commands) == 1


def test_a_ramdisk_that_is_gone_or_was_never_there_is_waited_for():
    assert isinstance(ask("http://127.0.0.1:1"), Wait)
    assert "has not said yet" in ask("").reason


@pytest.mark.parametrize(
    ("info", "words"),
    [
        ({}, "lacks image_source"),
        ({"image_source": "0b4c"}, "no http"),
        ({"image_source": "http://x/y"}, "lacks image_checksum"),
        ({"image_source": "http://x/y", "image_checksum": "f", "image_type": "partition"}, "whole"),
    ],
)
def test_a_deploy_says_beforehand_what_is_missing(info, words):
    assert words in image.problem(info)


def test_an_image_of_the_image_service_is_served_to_the_ramdisk_of_this_boot(tmp_path):
    (tmp_path / "data").write_bytes(b"image")
    asked = []

    async def images(uuid, project):
        asked.append((uuid, project))
        return image.LocalImage(tmp_path / "data", "raw", "sha512", "abc")

    uuid = "0b4c2f6e-1111-4222-8333-444455556666"
    made = Ramdisks(RamdiskSettings(tmp_path / "boot", "http://api", "http://media"), images)
    booted = {"ramdisk": {"secret": "s3cret"}}
    for source in (uuid, f"glance://{uuid}"):
        given = {"image_source": source}
        assert image.problem(given, by_id=True) is None
        assert "no http" in image.problem(given)
        told = asyncio.run(made.image_info(Endpoint("n1", {}, {}, given, booted, project="p1")))
        assert told["urls"] == ["http://api/boot/v1/files/n1/s3cret/image"]
        assert (told["os_hash_algo"], told["os_hash_value"]) == ("sha512", "abc")
    assert (tmp_path / "boot" / "n1" / "s3cret" / "image").read_bytes() == b"image"
    assert asked == [(uuid, "p1")] * 2


def test_an_image_is_described_as_the_ramdisk_wants_it():
    given = {"image_source": "http://x/os.qcow2?v=1", "image_checksum": "abc"}
    told = image.info("n1", given)
    assert (told["disk_format"], told["urls"], told["checksum"]) == (
        "qcow2", ["http://x/os.qcow2?v=1"], "abc",
    )  # fmt: skip
    assert "os_hash_value" not in told


def drive(value):
    return gzip.decompress(base64.b64decode(asyncio.run(config_drive(value, "n1"))))


def test_a_config_drive_in_parts_becomes_an_image():
    iso = drive({"meta_data": {"hostname": "iron"}, "user_data": "#!/bin/sh"})
    assert b"config-2" in iso
    assert b'{"uuid": "n1", "hostname": "iron"}' in iso
    assert b'{"uuid": "own"}' in drive({"meta_data": {"uuid": "own"}})
    assert asyncio.run(config_drive("http://x/drive", "n1")) == "http://x/drive"


@pytest.mark.parametrize("parts", [{}, {"user_data": "#!/bin/sh"}, {"meta_data": None}])
def test_a_config_drive_without_meta_data_gets_what_a_system_knows_it_by(parts):
    assert b'{"uuid": "n1"}' in drive(parts)


@pytest.mark.parametrize(("ago_s", "is_awaited"), [(10, False), (600, True)])
def test_a_silent_ramdisk_is_asked_again_and_one_that_no_longer_calls_is_waited_for(
    ago_s, is_awaited
):
    last = {"agent_last_heartbeat": iso(now() - ago_s)}
    outcome = ask("http://127.0.0.1:1", memory=last)
    assert (outcome.callback, outcome.again_in > 0) == (is_awaited, True)


@pytest.mark.parametrize("value", [7, ["a"], True, {"meta_data": "a"}])
def test_a_config_drive_that_is_none_fails_in_words(value):
    with pytest.raises(NoRamdisk, match="neither text nor an object"):
        asyncio.run(config_drive(value, "n1"))


def ramdisks(tmp_path, **options):
    return Ramdisks(RamdiskSettings(tmp_path / "boot", "http://api", "http://media", **options))


def node(**driver_info):
    return Endpoint("n1", driver_info, {}, {})


def test_an_iso_image_is_made_of_kernel_ramdisk_and_parameters(tmp_path):
    served = tmp_path / "served"
    served.mkdir()
    (served / "kernel").write_bytes(b"K" * 4096)
    (served / "ramdisk").write_bytes(b"R" * 4096)
    with files_served(served) as url:
        own = {"kernel": str(served / "kernel"), "params": "console=ttyS0"}
        made = ramdisks(tmp_path, **own, guard=HERE)
        info = node(deploy_ramdisk=f"{url}/ramdisk")
        assert made.lacks(info.driver_info, media=True) is None
        address = asyncio.run(made.iso(info, "s3cret"))
    assert address == "http://media/boot/v1/files/n1/s3cret/boot.iso"
    iso = (tmp_path / "boot" / "n1" / "s3cret" / "boot.iso").read_bytes()
    assert b"ipa-api-url=http://api/baremetal" in iso
    assert b"console=ttyS0" in iso
    assert b"R" * 4096 in iso
    assert b"linux ($root)/vmlinuz 'ipa-api-url=http://api/baremetal'" in iso
    catalogue = int.from_bytes(iso[17 * 2048 + 0x47 :][:4], "little") * 2048
    assert iso[catalogue : catalogue + 2] == b"\x01\x00", "BIOS machines boot from it"
    assert iso[catalogue + 64 : catalogue + 66] == b"\x91\xef", "and so do UEFI ones"
    asyncio.run(made.remove(node()))
    assert not any((tmp_path / "boot").iterdir())


@pytest.mark.parametrize("network", [None, {"links": []}])
def test_no_command_that_makes_a_medium_names_what_opens_it(tmp_path, monkeypatch, network):
    """Everybody on the computer can read the words of a command that runs."""
    for name in ("kernel", "ramdisk"):
        (tmp_path / name).touch()
    real, commands = asyncio.create_subprocess_exec, []

    async def noted(*words, **options):
        commands.append([str(word) for word in words])
        return await real(*words, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    made = ramdisks(tmp_path, kernel=str(tmp_path / "kernel"), ramdisk=str(tmp_path / "ramdisk"))
    at = Endpoint("n1", {}, {}, {}, network_data=network or {})
    asyncio.run(made.iso(at, "s3cret", token="t0ken"))
    assert b"t0ken" in (tmp_path / "boot" / "n1" / "s3cret" / "boot.iso").read_bytes()
    assert {words[0] for words in commands} == {"genisoimage", "mformat", "mmd", "mcopy"}
    said = " ".join(word for words in commands for word in words)
    assert "s3cret" not in said
    assert "t0ken" not in said


def test_a_medium_without_the_token_is_made_anew_and_one_with_it_only_once(tmp_path):
    """A worker of an older version may have been stopped when it had made the first."""
    for name in ("kernel", "ramdisk"):
        (tmp_path / name).touch()
    made = ramdisks(tmp_path, kernel=str(tmp_path / "kernel"), ramdisk=str(tmp_path / "ramdisk"))
    medium, seen = tmp_path / "boot" / "n1" / "s3cret" / "boot.iso", []
    for token in ("", "t0ken", "t0ken"):
        asyncio.run(made.iso(node(), "s3cret", token=token))
        seen.append((medium.stat().st_ino, b"t0ken" in medium.read_bytes()))
    assert [has_token for _, has_token in seen] == [False, True, True]
    assert seen[1] == seen[2]


API = "ipa-api-url={0}/baremetal"
CALLBACK = "ipa-inspection-callback-url={0}/baremetal/v1/continue_inspection"


@pytest.mark.parametrize(
    ("api", "options", "own", "words"),
    [
        ("https://api", {}, {}, [API]),
        ("http://api", {}, {}, [API, "ipa-insecure=1"]),
        ("https://api", {"token": "t"}, {}, [API, "ipa-agent-token=t"]),
        ("https://api", {"inspects": True}, {}, [API, CALLBACK]),
        ("https://api", {}, {"kernel_append_params": "a b"}, [API, "a", "b"]),
        ("https://api", {}, {"kernel_append_params": " a\nb\n"}, [API, "a", "b"]),
    ],
)
def test_a_ramdisk_is_told_by_its_kernels_parameters_where_we_are(
    tmp_path, api, options, own, words
):
    settings = RamdiskSettings(tmp_path, api, "http://media", params="" if own else "nofb")
    told = Ramdisks(settings).params(node(**own), **options)
    expected = [word.format(api) for word in words]
    assert told == " ".join(expected if own else [*expected, "nofb"])


def test_a_node_without_dhcp_finds_its_network_on_the_medium_it_boots_from(tmp_path):
    for name in ("kernel", "ramdisk"):
        (tmp_path / name).touch()
    made = ramdisks(tmp_path, kernel=str(tmp_path / "kernel"), ramdisk=str(tmp_path / "ramdisk"))
    network = {"links": [], "networks": [], "services": [{"type": "dns", "address": "10.0.0.1"}]}
    asyncio.run(made.iso(Endpoint("n1", {}, {}, {}, network_data=network), "s"))
    asyncio.run(made.iso(Endpoint("n2", {}, {}, {}), "s"))
    told, plain = ((tmp_path / "boot" / n / "s" / "boot.iso").read_bytes() for n in ("n1", "n2"))
    assert b"config-2" in told
    assert json.dumps(network).encode() in told
    assert b"config-2" not in plain


@pytest.mark.parametrize(("mode", "package"), [("uefi", "grub-efi"), ("bios", "isolinux")])
def test_a_missing_boot_loader_is_told_to_those_whose_machines_need_it(
    tmp_path, monkeypatch, mode, package
):
    for name in ("kernel", "ramdisk"):
        (tmp_path / name).touch()
    lost = {"uefi": "_GRUB", "bios": "_ISOLINUX"}[mode]
    monkeypatch.setattr(f"siderite.baremetal.drivers.agent.iso.{lost}", tmp_path / "none")
    made = ramdisks(tmp_path, kernel=str(tmp_path / "kernel"), ramdisk=str(tmp_path / "ramdisk"))
    with pytest.raises(NoRamdisk, match=f"install {package}"):
        asyncio.run(made.iso(Endpoint("n1", {}, {}, {}, boot_mode=mode), "s"))
    other = {"uefi": "bios", "bios": "uefi"}[mode]
    asyncio.run(made.iso(Endpoint("n2", {}, {}, {}, boot_mode=other), "s"))
    assert (tmp_path / "boot" / "n2" / "s" / "boot.iso").exists()


def test_a_node_cannot_have_just_any_file_of_the_server_served(tmp_path):
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "ok").write_text("ok")
    (tmp_path / "other").write_text("not for you")
    (allowed / "way-out").symlink_to(tmp_path / "other")
    made = ramdisks(tmp_path, boot_files=str(allowed))
    for bad in (f"file://{tmp_path}/other", f"{allowed}/../other", f"file://{allowed}/way-out"):
        with pytest.raises(NoRamdisk, match="local file"):
            asyncio.run(made.given_iso(node(), bad, "s"))
    asyncio.run(made.given_iso(node(), f"file://{allowed}/ok", "s"))
    with pytest.raises(NoRamdisk, match="no such file"):
        asyncio.run(made.given_iso(node(), f"file://{allowed}/none", "s2"))


def test_what_is_missing_for_a_ramdisk_is_told(tmp_path):
    assert "deploy_kernel" in ramdisks(tmp_path).lacks({}, media=True)
    assert ramdisks(tmp_path, iso="/x").lacks({}, media=True) is None
    assert ramdisks(tmp_path, iso="/x").lacks({}, media=False) is not None


def test_a_password_in_an_address_is_not_told_with_what_is_wrong_about_it(tmp_path):
    made = ramdisks(tmp_path)
    for source in ("http://me:hush@127.0.0.1:1/k.iso", "ftp://me:hush@files.invalid/k.iso"):
        at = Endpoint("n1", {"deploy_kernel": source, "deploy_ramdisk": source}, {}, {})
        with pytest.raises(NoRamdisk) as why:
            asyncio.run(made.pair(at, "s"))
        assert "me:******@" in str(why.value)
        assert "hush" not in str(why.value)
    wrong = image.problem({"image_source": "ftp://me:hush@files.invalid/image"})
    assert "is no http(s) address" in wrong
    assert "hush" not in wrong


@pytest.mark.parametrize(
    ("status", "passing"), [(503, True), (500, True), (429, True), (404, False), (403, False)]
)
def test_a_file_server_that_has_trouble_is_asked_again(tmp_path, status, passing):
    with listening() as (server, url):
        server.answers = status, ""
        with pytest.raises(NoRamdisk, match=f"HTTP {status}") as why:
            had(tmp_path, f"{url}/kernel", guard=HERE)
    assert why.value.passing is passing
    assert not list((tmp_path / "boot").rglob("vmlinuz*"))


def had(tmp_path, named, **options):
    """The kernel that a node's driver_info names."""
    made = ramdisks(tmp_path, ramdisk=__file__, **options)
    asyncio.run(made.pair(node(deploy_kernel=named), "s"))
    return (tmp_path / "boot" / "n1" / "s" / "vmlinuz").read_bytes()


@contextmanager
def redirecting(*to):
    """A server that sends those who ask it on to these addresses, one after the other."""
    left = list(to)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(302 if left else 200)
            if left:
                self.send_header("Location", left.pop(0))
            self.send_header("Content-Length", "6")
            self.end_headers()
            self.wfile.write(b"kernel")

        def log_message(self, *args):
            pass

    with serving(Handler) as url:
        yield url


@pytest.mark.parametrize(
    "source",
    ["http://127.0.0.1:{port}/k", "http://localhost:{port}/k", "http://[::ffff:7f00:1]:{port}/k",
     "http://169.254.169.254/latest/meta-data", "http://[fe80::1]/k"],
)  # fmt: skip
def test_a_node_cannot_have_what_only_this_machine_reaches_served(tmp_path, source):
    with redirecting() as url:
        named = source.format(port=urlsplit(url).port)
        with pytest.raises(NoRamdisk, match="which downloads of ramdisks may not call") as why:
            had(tmp_path, named)
        assert "an operator can allow it with ramdisk_allow" in str(why.value)
        assert not why.value.passing
        assert had(tmp_path, url, kernel=url) == b"kernel", "but what is configured may be here"


def test_a_ramdisk_may_be_at_an_address_that_is_allowed_and_at_a_private_one(tmp_path):
    with redirecting() as url:
        assert had(tmp_path, url, guard=HERE) == b"kernel"
    for private in ("10.1.2.3", "192.168.1.1", "fd12::1"):
        guard().check(ip_address(private))


def test_each_redirect_of_what_a_node_names_is_checked(tmp_path):
    outer = guard(networks("127.0.0.1/32"))
    with redirecting() as other:
        inner = other.replace("127.0.0.1", "127.0.0.2")
        with redirecting("/elsewhere", inner) as url, pytest.raises(NoRamdisk) as why:
            had(tmp_path, url, guard=outer)
        assert "127.0.0.2 is a loopback address" in str(why.value)
        with redirecting("/elsewhere", other) as url:
            assert had(tmp_path, url.replace("://", "://me:hush@"), guard=outer) == b"kernel"


@pytest.mark.parametrize(
    ("to", "words"),
    [
        (["ftp://files.invalid/k"], "no plain http"),
        (["http://u:p@files.invalid/k"], "no plain http"),
        (["/on"] * 6, "more than 5 times"),
    ],
)
def test_a_redirect_that_leads_nowhere_is_told(tmp_path, to, words):
    with redirecting(*to) as url, pytest.raises(NoRamdisk, match=words) as why:
        had(tmp_path, url, guard=HERE)
    assert not why.value.passing


def test_a_name_that_nobody_knows_yet_is_asked_for_again(tmp_path):
    with pytest.raises(NoRamdisk, match="cannot be fetched") as why:
        had(tmp_path, "http://files.invalid/kernel")
    assert why.value.passing


def test_what_is_too_large_for_a_ramdisk_does_not_fill_the_disk(tmp_path, monkeypatch):
    with redirecting() as url:
        for most, fits in ((5, False), (6, True)):
            monkeypatch.setattr(fetch, "MOST_BYTES", most)
            if fits:
                assert had(tmp_path, url, guard=HERE) == b"kernel"
                continue
            with pytest.raises(NoRamdisk, match="has more than"):
                had(tmp_path, url, guard=HERE)
            assert not list((tmp_path / "boot").rglob("vmlinuz*"))
