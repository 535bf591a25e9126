"""Nodes and servers by the command: many at once, waiting, forms of output, exit codes."""

import base64
import io
import json
import shlex
from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from siderite.cli.cloud import Cloud
from siderite.cli.main import main
from siderite.cli.main import parser
from siderite.cli.server import gone
from siderite.cli.wait import Sight
from tests.cli.member import member
from tests.support.server import Server
from tests.support.server import running_server

OPTIONS = {
    "shutdown_retry_interval_s": "1", "shutdown_timeout_s": "600", "deadline_scale": "10",
}  # fmt: skip
QUICK = {"latency_s": {"*": 0}, "shutdown_s": 0.2}
HARD = ("--hard-shutdown", "--wait", "--timeout", "30")
Say = Callable[..., tuple[int, str, str]]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8P3L1vJm1sXl2Ck1r3o2yGkq0a1m7Vb8n9c0d1e2f3 me"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("cli")
    flags = ("--demo", "--demo-nodes", "4")
    with running_server(folder, flags=flags, options=OPTIONS) as made:
        made.script("all", ramdisk=False)
        made.api.put(
            "/simulated-hosts/v1/scripts/all", json=QUICK, headers=made.headers()
        ).raise_for_status()
        yield made


@pytest.fixture
def say(server: Server, capsys: pytest.CaptureFixture[str]) -> Say:
    """The exit code, and what was printed where."""

    def said(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([*words, "--data", str(server.data)])
        out, err = capsys.readouterr()
        return code, out, err

    return said


def _new_nodes(server: Server, *names: str) -> None:
    for name in names:
        server.api.post(
            "/baremetal/v1/nodes", json={"driver": "fake-hardware", "name": name},
            headers=server.headers("1.50"),
        ).raise_for_status()  # fmt: skip


def test_what_a_newcomer_is_told_to_try_stays_in_sight(server: Server, say: Say) -> None:
    assert say("node", "list", "--state", "active", "-o", "name")[0] == 0
    text = server.log.read_text()
    told = text.partition("Try, in another terminal:")
    assert len(told[0].splitlines()) <= 6
    assert not [line for line in told[2].splitlines() if "moved" in line]
    ours = [shlex.split(line) for line in told[2].splitlines() if line.startswith("  siderite ")]
    assert [parser().parse_args(words[1:]).verb for words in ours] == ["list", "create"]


def test_many_nodes_go_through_their_states_and_are_waited_for(server: Server, say: Say) -> None:
    _new_nodes(server, "a1", "a2")
    code, _, err = say("node", "provision", "manage", "a1", "a2", "--wait")
    assert code == 0, err
    assert "a1: manageable" in err
    assert say("node", "provision", "provide", "a1", "a2", "--wait")[0] == 0
    code, out, _ = say("node", "list", "--state", "available", "-o", "json")
    assert {"a1", "a2"} <= {node["name"] for node in json.loads(out)}
    code, out, _ = say("node", "show", "a1", "-o", "yaml")
    assert yaml.safe_load(out)["provision_state"] == "available"
    assert say("node", "power", "on", "a1", "a2", "--wait")[0] == 0
    code, out, _ = say("node", "list")
    [row] = [line for line in out.splitlines() if line.startswith("a1 ")]
    assert "power on" in row


def test_a_node_that_could_not_be_verified_needs_somebody(server: Server, say: Say) -> None:
    _new_nodes(server, "afar", "only-enrolled")
    uuid = say("node", "show", "afar", "-o", "name")[1].strip()
    server.script(f"node:{uuid}", unreachable=True)
    assert say("node", "provision", "manage", "afar", "--wait")[0] == 1
    _, out, _ = say("node", "list", "--attention")
    [row] = [line for line in out.splitlines() if line.startswith("afar ")]
    assert "verifying failed" in row
    assert "only-enrolled" not in out


def test_what_fails_on_the_way_is_told_with_its_reason(server: Server, say: Say) -> None:
    _new_nodes(server, "broken")
    uuid = say("node", "show", "broken", "-o", "name")[1].strip()
    server.script(f"node:{uuid}", fail={"*": "the PSU is broken"})
    assert say("node", "provision", "manage", "broken", "--wait")[0] == 0
    code, _, err = say("node", "provision", "provide", "broken", "--wait")
    assert code == 1
    assert "the PSU is broken" in err
    _, out, _ = say("node", "list", "--attention")
    [row] = [line for line in out.splitlines() if line.startswith("broken ")]
    assert "the PSU is broken" in row
    _, out, _ = say("events", "tail", "--last", "1", "--resource", "broken", "--no-follow")
    [line] = out.splitlines()
    assert "broken  cleaning → clean failed  cleaning failed" in line
    assert say("events", "tail", "--resource", "nobody", "--no-follow")[0] == 3


def test_a_node_is_rescued_with_a_password_from_elsewhere(
    server: Server, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    _new_nodes(server, "hurt")
    for verb in ("manage", "provide", "active"):
        assert say("node", "provision", verb, "hurt", "--wait")[0] == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("let me in\n"))
    words = ("hurt", "--rescue-password", "-", "--wait")
    assert say("node", "provision", "rescue", *words)[0] == 0
    assert say("node", "show", "hurt", "-o", "json")[1].count('"rescue"') == 1


def test_what_there_is_to_choose_from_is_told(say: Say) -> None:
    [image] = json.loads(say("image", "list", "-o", "json")[1])
    assert image["name"] == "tiny"
    code, _, err = say("server", "create", "x", "--flavor", "m1.huge", "--image", "tiny")
    assert (code, "there are m1.tiny, " in err) == (3, True), err
    code, _, err = say("server", "create", "x", "--flavor", "m1.tiny", "--image", "none")
    assert (code, "there are tiny" in err) == (3, True), err


def test_a_refusal_of_the_command_says_what_to_do(server: Server, say: Say) -> None:
    _new_nodes(server, "puzzled")
    code, _, err = say("node", "provision", "clean", "puzzled", "--steps", "{")
    assert (code, 'such as \'[{"interface": ' in err) == (1, True), err
    code, _, err = say("node", "provision", "rescue", "puzzled")
    assert (code, "needs --rescue-password" in err) == (1, True), err
    for verb in ("clean", "service"):
        code, _, err = say("node", "provision", verb, "hurt")
        assert (code, f"{verb} needs --steps" in err) == (1, True), err
    for words in (("--steps", "[]"), ("--rescue-password", "x")):
        code, _, err = say("node", "provision", "manage", "puzzled", *words)
        assert (code, f"{words[0]} is for " in err) == (1, True), err
    code, _, err = say("server", "stop", "nobody")
    assert (code, "`siderite server list` shows your project's" in err) == (3, True), err


def test_the_exit_code_says_what_kind_of_no_it_was(server: Server, say: Say) -> None:
    _new_nodes(server, "codes")
    assert say("node", "show", "nobody")[0] == 3
    assert say("node", "provision", "provide", "codes")[0] == 4
    _new_nodes(server, "scrubbed")
    uuid = say("node", "show", "scrubbed", "-o", "name")[1].strip()
    server.script(f"node:{uuid}", ramdisk=True, silent=True)
    assert say("node", "provision", "manage", "scrubbed", "--wait")[0] == 0
    assert say("node", "provision", "provide", "scrubbed", "--timeout", "1", "--wait")[0] == 5
    code, _, err = say("node", "power", "on", "scrubbed")
    assert (code, "or abort it" in err) == (4, True), err
    assert say("node", "provision", "clean", "codes", "--steps", "{")[0] == 1
    server.script("all", ramdisk=False, latency_s={"*": 4})
    try:
        code, _, err = say("node", "provision", "manage", "codes", "--wait", "--timeout", "0.2")
        assert (code, "is still verifying" in err) == (5, True), err
        assert say("node", "power", "on", "codes")[0] == 4
    finally:
        server.script("all", ramdisk=False)


def test_who_waits_longer_than_a_token_lives_gets_another(server: Server) -> None:
    _new_nodes(server, "patient")
    cloud = Cloud(str(server.data))
    cloud._token = "one that has expired"
    assert cloud.baremetal("GET", "/nodes/patient")["name"] == "patient"


def test_the_last_of_a_timeline_are_as_many_as_are_asked_for(
    server: Server, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("siderite.cli.timeline._PAGE", 3)
    _new_nodes(server, "busy")
    for switch in ("on", "off", "on"):
        assert say("node", "maintenance", switch, "busy")[0] == 0
    whole = say("node", "timeline", "busy")[1].splitlines()
    assert len(whole) > 6
    for limit in (1, 2, 4, 7, len(whole), 99 * 10**30):
        last = say("node", "timeline", "busy", "--limit", str(limit))[1].splitlines()
        assert last == whole[-limit:]
    for limit in ("0", "-1", "many"):
        with pytest.raises(SystemExit, match="2"):
            say("node", "timeline", "busy", f"--limit={limit}")


def test_maintenance_is_switched_for_many(server: Server, say: Say) -> None:
    _new_nodes(server, "m1", "m2")
    assert say("node", "maintenance", "on", "m1", "m2", "--reason", "new fans")[0] == 0
    _, out, _ = say("node", "list", "--maintenance", "-o", "json")
    assert {"m1", "m2"} <= {node["name"] for node in json.loads(out)}
    assert say("node", "maintenance", "off", "m1", "m2")[0] == 0


@pytest.fixture
def deaf(server: Server) -> Iterator[None]:
    """No guest hears a signal: whoever is not hard with it waits for long."""
    path, headers = "/simulated-hosts/v1/scripts/all", server.headers()
    script = {**QUICK, "guest": "ignores"}
    server.api.put(path, json=script, headers=headers).raise_for_status()
    yield
    server.api.put(path, json=QUICK, headers=headers).raise_for_status()


@pytest.mark.usefixtures("deaf")
def test_servers_live_their_life_by_name(say: Say) -> None:
    code, out, err = say(
        "server", "create", "web", "db", "--flavor", "m1.tiny", "--image", "tiny", "--wait"
    )
    assert code == 0, err
    ids = out.split()
    assert len(ids) == 2
    assert say("server", "stop", "web", ids[1], *HARD)[0] == 0
    assert say("server", "start", "web", "--wait")[0] == 0
    assert say("server", "start", "web")[0] == 4
    assert say("server", "reboot", "web", *HARD)[0] == 0
    assert say("server", "rescue", "web", *HARD)[0] == 0
    assert say("server", "unrescue", "web", "--wait")[0] == 0
    assert say("server", "resize", "web", "--flavor", "m1.small", *HARD)[0] == 0
    assert say("server", "confirm", "web", "--wait")[0] == 0
    assert say("server", "migrate", "web", *HARD)[0] == 0
    assert say("server", "revert", "web", "--wait")[0] == 0
    assert say("server", "shelve", "web", *HARD)[0] == 0
    assert say("server", "unshelve", "web", "--wait")[0] == 0
    _, out, _ = say("server", "list", "-o", "json")
    assert {one["name"]: one["status"] for one in json.loads(out)} == {
        "web": "ACTIVE",
        "db": "SHUTOFF",
    }
    code, _, err = say("server", "delete", "web", "db", "nobody", "--wait")
    assert (code, "there is no server 'nobody'" in err) == (3, True)
    assert say("server", "list", "-o", "name")[1] == ""


def test_a_host_that_cannot_do_it_does_not_keep_the_others_from_it(
    server: Server, say: Say
) -> None:
    _new_nodes(server, "metal")
    headers = {**server.headers("1.50"), "OpenStack-API-Version": "compute 2.901"}
    patch = [{"op": "add", "path": "/resource_class", "value": "iron"}]
    server.api.patch("/baremetal/v1/nodes/metal", json=patch, headers=headers).raise_for_status()
    for verb in ("manage", "provide"):
        assert say("node", "provision", verb, "metal", "--wait")[0] == 0
    assert say("host", "add", "metal", "baremetal:")[0] == 0
    flavor = {"name": "iron", "ram": 1, "vcpus": 1, "disk": 1, "id": "iron"}
    specs = {"extra_specs": {"resources:CUSTOM_IRON": "1"}}
    for path, body in (("", {"flavor": flavor}), ("/iron/os-extra_specs", specs)):
        server.api.post(
            f"/compute/v2.1/flavors{path}", json=body, headers=headers
        ).raise_for_status()
    for name, flavor_name in (("iron", "iron"), ("soft", "m1.tiny")):
        words = ("--flavor", flavor_name, "--image", "tiny", "--wait")
        assert say("server", "create", name, *words)[0] == 0
    code, _, err = say("server", "pause", "iron", "soft", "--wait")
    assert (code, "it can: " in err) == (1, True), err
    assert json.loads(say("server", "show", "soft", "-o", "json")[1])["status"] == "PAUSED"
    assert say("server", "delete", "iron", "soft", "--wait")[0] == 0
    assert say("host", "remove", "metal")[0] == 0


def test_workers_and_health_are_there(server: Server, say: Say) -> None:
    code, out, _ = say("worker", "list")
    assert code == 0, out
    assert "sim-1" in out
    groups = {one["group"] for one in json.loads(say("worker", "list", "-o", "json")[1])}
    assert groups == {None}, "a zone is no conductor group"
    code, out, _ = say("doctor")  # clouds.yaml says where it listens
    assert "Siderite answers at" in out, out
    assert "4 of 4 answer" in out
    assert "the one is up" in out


def test_a_script_is_for_a_node_by_its_name_and_a_rack_of_any(server: Server, say: Say) -> None:
    _new_nodes(server, "scripted")
    uuid = say("node", "show", "scripted", "-o", "name")[1].strip()
    assert say("demo", "script", "node:scripted", '{"fail": {"power": "broken"}}')[0] == 0
    assert say("demo", "script", "rack:row é", '{"unreachable": true}')[0] == 0
    scripts = json.loads(say("demo", "scripts")[1])
    assert {f"node:{uuid}", "rack:row é"} <= scripts.keys()
    assert say("demo", "script", "node:nobody", "{}")[0] == 3
    for scope in ("node:scripted", "rack:row é"):
        assert "There is no script" in say("demo", "script", scope, "{}")[1]
    scripts = json.loads(say("demo", "scripts")[1])
    assert not {f"node:{uuid}", "rack:row é"} & scripts.keys()


def test_a_power_cut_leaves_what_else_the_racks_script_says(server: Server, say: Say) -> None:
    mine = {"fail": {"deploy.write_image": "disk is gone"}}
    assert say("demo", "script", "rack:r01", json.dumps(mine))[0] == 0
    for verb, expected in (("power-cut", {**mine, "unreachable": True}), ("restore", mine)):
        assert say("demo", verb, "r01")[0] == 0
        assert json.loads(say("demo", "scripts")[1])["rack:r01"] == expected
    assert say("demo", "script", "rack:r01", "{}")[0] == 0
    assert say("demo", "power-cut", "r01")[0] == 0
    assert say("demo", "restore", "r01")[0] == 0
    assert "rack:r01" not in json.loads(say("demo", "scripts")[1])


def test_the_story_of_a_full_cloud(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--data", str(server.data), "power-cut", "r77"]) == 3
    assert "there is no rack r77: there are r01 to r" in capsys.readouterr().err
    for rack, is_known in (("r01", True), ("r77", False)):
        words = ["demo", "--data", str(server.data), "script", f"rack:{rack}"]
        assert main([*words, '{"ramdisk": false}']) == 0
        assert ("As yet there are none" in capsys.readouterr().out) is not is_known
        assert main([*words, "{}"]) == 0
        assert f"There is no script for rack:{rack} any more." in capsys.readouterr().out
    assert main(["demo", "--data", str(server.data), "full-cloud"]) == 0
    said = capsys.readouterr().out
    assert "It is PENDING, not ERROR" in said
    assert "paying is ACTIVE. Of the cheap ones 1 is left" in said


def test_the_story_of_a_lost_signal(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--data", str(server.data), "lost-signal", "--deaf-for", "2"]) == 0
    said = capsys.readouterr().out
    assert "the guest shut down after" in said
    assert "after 1 signals" not in said


def test_nodes_are_listed_by_what_they_are(server: Server, say: Say) -> None:
    _new_nodes(server, "kind-1", "kind-2")
    _, out, _ = say("node", "list", "--name", "^kind-[12]$", "--driver", "fake-hardware")
    assert [line.split()[0] for line in out.splitlines()[1:]] == ["kind-1", "kind-2"]
    headers = server.headers("1.50")
    [mine] = server.api.get("/identity/v3/projects?name=admin", headers=headers).json()["projects"]
    for path, value in (("owner", mine["id"]), ("resource_class", "gold")):
        change = [{"op": "replace", "path": f"/{path}", "value": value}]
        server.api.patch(
            "/baremetal/v1/nodes/kind-1", json=change, headers=headers
        ).raise_for_status()
    for words in (("--owner", "admin"), ("--owner", mine["id"]), ("--resource-class", "gold")):
        _, out, _ = say("node", "list", *words, "-f", "json")
        assert [node["name"] for node in json.loads(out)] == ["kind-1"], words
    assert json.loads(say("node", "list", "--owner", "somebody else", "--format", "json")[1]) == []
    _, out, _ = say("node", "list", "--long", "--resource-class", "gold")
    head, row = (line.split() for line in out.splitlines())
    assert {"CLASS", "DRIVER", "OWNER", "SINCE"} <= set(head)
    assert {"gold", "fake-hardware", mine["id"]} <= set(row)
    code, _, err = say("node", "list", "--name", "(")
    assert code == 1
    assert "--name is no regular expression" in err


def test_servers_are_listed_by_what_they_are(say: Say) -> None:
    words = ("--flavor", "m1.tiny", "--image", "tiny", "--wait")
    assert say("server", "create", "kin-1", "kin-2", "other", *words)[0] == 0
    _, out, _ = say("server", "list", "--name", "^kin-", "--project", "admin", "-f", "json")
    found = json.loads(out)
    assert sorted(one["name"] for one in found) == ["kin-1", "kin-2"]
    host = found[0]["OS-EXT-SRV-ATTR:host"]
    _, out, _ = say("server", "list", "--host", host, "--long")
    head, *rows = out.splitlines()
    assert {"PROJECT", "IMAGE", "ADDRESSES", "CREATED"} <= set(head.split())
    assert any(found[0]["id"] in row and found[0]["image"]["id"] in row for row in rows)
    address = next(iter(found[0]["addresses"].values()))[0]["addr"].replace(".", r"\.")
    _, out, _ = say("server", "list", "--ip", f"^{address}$", "-o", "name")
    assert out.split() == [found[0]["id"]]
    code, _, err = say("server", "list", "--project", "nobody's")
    assert code == 3
    assert "there is no project" in err


def test_servers_that_go_are_waited_for_though_another_is_not_there(say: Say) -> None:
    words = ("--flavor", "m1.tiny", "--image", "tiny", "--wait")
    assert say("server", "create", "goes", *words)[0] == 0
    code, _, err = say("server", "delete", "nobody", "goes", "--wait")
    assert code == 3
    assert "goes: gone" in err


def test_one_that_can_be_restored_is_waited_for_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {"server": {"status": "SOFT_DELETED", "OS-EXT-STS:task_state": None}}
    monkeypatch.setattr(Cloud, "compute", lambda *_: shown)
    assert gone(Cloud.__new__(Cloud), "a") == Sight("SOFT_DELETED", is_over=True)


def test_a_member_is_shown_no_servers_of_other_hosts_and_those_that_wait(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    member(server, tmp_path)
    mine = ("--data", str(tmp_path))
    words = ("server", "create", "anas", "--flavor", "m1.tiny", "--image", "tiny", "--wait")
    assert main([*words, *mine]) == 0
    capsys.readouterr()
    assert main(["server", "list", "--host", "nowhere", "-o", "name", *mine]) == 1
    out, err = capsys.readouterr()
    assert (out, "only administrators see which host" in err) == ("", True)
    assert main(["pending", "list", *mine]) == 0
    assert main(["server", "delete", "anas", "--wait", *mine]) == 0


def test_who_is_right_about_power_is_said_of_many_at_once(server: Server, say: Say) -> None:
    _new_nodes(server, "right-1", "right-2")
    assert say("node", "power-policy", "observe", "right-1", "right-2")[0] == 0
    shown = json.loads(say("node", "show", "right-1", "right-2", "-o", "json")[1])
    assert [node["power_policy"] for node in shown] == ["observe", "observe"]
    assert say("node", "power-policy", "default", "right-1", "nobody")[0] == 3
    assert json.loads(say("node", "show", "right-1", "-o", "json")[1])["power_policy"] is None


def test_doctor_looks_where_the_other_commands_do(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(server.data / "clouds.yaml"))
    main(["doctor", "-f", "json"])
    found = {one["what"]: one for one in json.loads(capsys.readouterr().out)}
    assert str(server.data) in found["database"]["found"]
    assert server.url in found["port"]["found"]


def test_a_server_gets_a_key_networks_and_what_its_first_start_is_to_do(
    server: Server, say: Say, tmp_path: Path
) -> None:
    file = tmp_path / "data"
    file.write_text("#cloud-config\n")
    headers = {**server.headers(), "OpenStack-API-Version": "compute 2.90"}
    key = {"keypair": {"name": "mine", "public_key": KEY, "type": "ssh"}}
    server.api.post("/compute/v2.1/os-keypairs", json=key, headers=headers).raise_for_status()
    size = ("--flavor", "m1.tiny", "--image", "tiny")
    more = ("--key-name", "mine", "--network", "private", "--user-data", str(file))
    assert say("server", "create", "whole", *size, *more, "--wait")[0] == 0
    made = json.loads(say("server", "show", "whole", "-f", "json")[1])
    assert (made["key_name"], list(made["addresses"])) == ("mine", ["private"])
    assert base64.b64decode(made["OS-EXT-SRV-ATTR:user_data"]) == b"#cloud-config\n"
    assert say("server", "create", "alone", *size, "--network", "none", "--wait")[0] == 0
    assert json.loads(say("server", "show", "alone", "-f", "json")[1])["addresses"] == {}
    code, _, err = say("server", "create", "lost", *size, "--network", "nowhere")
    assert code == 3
    assert "there is no network 'nowhere'; there are private." in err
    code, _, err = say("server", "create", "lost", *size, "--user-data", str(tmp_path / "gone"))
    assert code == 1
    assert "cannot read" in err
    assert say("server", "delete", "whole", "alone", "--wait")[0] == 0


def test_a_host_that_does_not_answer_says_so(say: Say) -> None:
    assert say("host", "add", "away", "http://127.0.0.1:1")[0] == 1
    _, out, _ = say("host", "list", "--long")
    [row] = [line for line in out.splitlines() if line.startswith("away ")]
    assert "it has not answered lately" in row
    assert say("host", "remove", "away")[0] == 0


def test_a_host_is_closed_to_new_servers_for_a_while(say: Say) -> None:
    assert say("host", "disable", "sim-4", "--reason", "a new disk") == (
        0, "sim-4: no new servers go there.\n", "",
    )  # fmt: skip
    _, out, _ = say("host", "list", "--long")
    [row] = [line for line in out.splitlines() if line.startswith("sim-4 ")]
    assert "a new disk" in row
    assert "0/131072" in row
    assert say("host", "enable", "sim-4")[:2] == (0, "sim-4: servers go there.\n")
    [host] = [one for one in json.loads(say("host", "list", "--long", "-f", "json")[1])
              if one["name"] == "sim-4"]  # fmt: skip
    assert (host["status"], host["disabled"], host["room"]["vcpus"]["used"]) == ("UP", False, 0)
    code, _, err = say("host", "disable", "nowhere")
    assert code == 3
    assert "there is no host 'nowhere'" in err


def test_a_node_is_enrolled_whole_or_not_at_all(
    server: Server, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--driver", "ipmi", "--driver-info", "ipmi_address=10.0.0.7",
             "--driver-info", "ipmi_password=-", "--resource-class", "gold")  # fmt: skip
    code, _, err = say("node", "create", "new-1", "--driver", "ipmi", "--port", "no address")
    assert code == 1, err
    assert say("node", "show", "new-1")[0] == 3
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
    code, out, err = say("node", "create", "new-1", *words, "--port", "52:54:00:12:34:56")
    assert code == 0, err
    made = json.loads(say("node", "show", "new-1", "-f", "json")[1])
    assert (made["uuid"], made["driver"], made["resource_class"]) == (out.strip(), "ipmi", "gold")
    assert made["driver_info"] == {"ipmi_address": "10.0.0.7", "ipmi_password": "******"}
    headers = server.headers("1.50")
    path = f"/baremetal/v1/ports?node={made['uuid']}"
    [port] = server.api.get(path, headers=headers).json()["ports"]
    assert port["address"] == "52:54:00:12:34:56"
    assert say("node", "create", "new-1", *words)[0] == 4
    assert say("node", "delete", "new-1", "nobody")[0] == 3
    assert say("node", "show", "new-1")[0] == 3
