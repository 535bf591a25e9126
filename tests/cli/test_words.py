"""The command's words: quick to start, complete in a shell, and clear about what is wrong."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from siderite.cli import node
from siderite.cli import show
from siderite.cli import wait
from siderite.cli.cloud import Away
from siderite.cli.cloud import Missing
from siderite.cli.doctor import bmcs
from siderite.cli.doctor import unread
from siderite.cli.doctor import workers_of
from siderite.cli.main import main
from siderite.cli.wait import Sight
from siderite.cli.wait import each
from siderite.cli.wait import until_over

BUDGET_S = 0.15


def _quickest(*command: str) -> float:
    """The least of several runs, in seconds of a processor: others on the machine do not count."""
    took = []
    for _ in range(7):
        before = os.times()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        took.append(sum(after[2:4]) - sum(before[2:4]))
    return min(took)


def test_help_costs_little_more_than_the_interpreter() -> None:
    bare = _quickest(sys.executable, "-c", "pass")
    assert _quickest(sys.executable, "-m", "siderite.cli.main", "--help") - bare < BUDGET_S


def test_help_imports_nothing_that_it_does_not_need() -> None:
    script = (
        "import sys; from siderite.cli.main import parser; parser();"
        "print([n for n in ('asyncio', 'httpx', 'msgspec', 'rich', 'yaml') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_wrong_words_are_a_usage_error() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["node", "levitate"])
    assert ended.value.code == 2


@pytest.mark.parametrize(
    ("words", "offered"), [([], "free room for PENDING servers"), (["node"], "switch them")]
)
def test_who_does_not_say_what_to_do_is_told_what_there_is(words, offered, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert offered in capsys.readouterr().err


def test_a_wrong_flag_is_answered_with_the_usage_of_its_word(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["node", "list", "--levitate"])
    assert "usage: siderite node list" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("node", "show", ""), ("node", "maintenance", "off", "a", " "), ("node", "timeline", ""),
        ("server", "delete", ""), ("host", "remove", ""), ("events", "tail", "--resource", ""),
        ("demo", "script", "", "{}"), ("image", "import", ""),
    ],
)  # fmt: skip
def test_an_empty_name_is_not_taken_for_all_there_are(words, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert "must not be empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("node", "power", "on", "a", "--timeout", "nan"), ("reaper", "--limit", "-1"),
        ("node", "power", "on", "a", "--timeout=-5"), ("node", "timeline", "a", "--limit", "0"),
        ("demo", "lost-signal", "--deaf-for", "inf"),
    ],
)  # fmt: skip
def test_a_number_that_cannot_be_meant_is_a_usage_error(words, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert "from 0 on" in (said := capsys.readouterr().err) or "from 1 on" in said


@pytest.mark.parametrize("words", [("completion", "bash"), ("config", "show")])
def test_what_cannot_be_printed_is_told_in_a_sentence(words) -> None:
    command = [sys.executable, "-m", "siderite.cli.main", *words]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    told = "siderite: cannot print the answer: No space left on device.\n"
    assert (done.returncode, done.stderr) == (1, told)


def test_a_list_ends_where_the_terminal_does(monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    columns = (("name", lambda one: one["name"]), ("why", lambda one: one["why"]))
    show.rows([{"name": "n1", "why": "x" * 90}], columns, "table", name="name")
    assert [len(line) for line in capsys.readouterr().out.splitlines()] == [9, 60]
    ident = ("uuid", lambda one: "u" * 36)
    show.rows(
        [{"name": "n" * 20, "why": "x"}], (columns[0], ident, columns[1]), "table", name="name"
    )
    assert "UUID" not in capsys.readouterr().out
    show.rows(
        [{"name": name, "why": "x"} for name in ("n1", "n" * 200)], (columns[0], ident, columns[1]),
        "table", name="name",
    )  # fmt: skip
    head, *found = capsys.readouterr().out.splitlines()
    assert "UUID" in head, "a name that was cut does not say which"
    assert [line.partition(" ")[0] for line in found] == ["n1", "n" * 29 + "…"]
    monkeypatch.delenv("NO_COLOR")
    show.rows([{"name": "n1", "why": "deploy failed"}], columns, "table", name="name")
    assert "\x1b[31mdeploy failed" in capsys.readouterr().out


@pytest.mark.sampled
@pytest.mark.parametrize(
    "words", [["up"], ["up", "--db", "mysql://u:SECRET@x/y"], ["admin-password"]]
)
def test_a_database_that_cannot_be_used_is_said_in_a_sentence(tmp_path, words) -> None:
    (tmp_path / "siderite.db").write_bytes(b"no database" * 100)
    command = [sys.executable, "-m", "siderite.cli.main", *words, "--data", str(tmp_path)]
    done = subprocess.run(
        [*command, "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "database" in done.stderr
    assert "Traceback" not in done.stderr
    assert "SECRET" not in done.stderr


def test_an_option_that_a_room_refuses_is_said_in_a_sentence(tmp_path) -> None:
    command = [sys.executable, "-m", "siderite.cli.main", "up", "--data", str(tmp_path)]
    done = subprocess.run(
        [*command, "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=60,
        check=False, env={**os.environ, "SIDERITE_NETWORKS": "private"},
    )  # fmt: skip
    assert done.returncode == 2
    assert "siderite: networks: 'private' must be NAME=KIND" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_data_directory_without_a_cloud_is_refused_with_what_to_do(tmp_path, capsys) -> None:
    assert main(["node", "list", "--data", str(tmp_path)]) == 1
    assert "start `siderite up` first" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("siderite no", {"node"}),
        ("siderite node p", {"provision", "power", "power-policy"}),
        ("siderite node provision ma", {"manage"}),
        ("siderite server stop --ha", {"--hard-shutdown"}),
        ("siderite demo full", {"full-cloud"}),
    ],
)
def test_bash_completes_from_the_parser(words: str, wanted: set[str]) -> None:
    script = f"""
        eval "$({sys.executable} -m siderite.cli.main completion bash)"
        COMP_WORDS=({words}); COMP_CWORD={len(words.split()) - 1}
        _siderite; echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == wanted, done.stderr


@pytest.mark.parametrize(
    ("verb", "explained"),
    [("provision", "active: deploy it"), ("power-policy", "record: the machine is put back")],
)
def test_help_says_what_words_of_a_node_mean(verb: str, explained: str, capsys) -> None:
    with pytest.raises(SystemExit):
        main(["node", verb, "--help"])
    assert explained in " ".join(capsys.readouterr().out.split())


def test_doctor_finds_lost_bmcs_by_itself(tmp_path: Path, capsys) -> None:
    """While the service is down: one BMC takes connections, one is not there."""
    with closing(sqlite3.connect(tmp_path / "siderite.db")) as db, db:
        db.execute("CREATE TABLE hosts (doc TEXT)")
        db.execute("CREATE TABLE nodes (id INTEGER PRIMARY KEY, driver TEXT, doc TEXT)")
        with socket.create_server(("127.0.0.1", 0)) as gone:
            closed = gone.getsockname()[1]
        with socket.create_server(("127.0.0.1", 0)) as bmc:
            for name, port in (("there", bmc.getsockname()[1]), ("gone", closed)):
                info = {"redfish_address": f"https://127.0.0.1:{port}"}
                node = json.dumps({"uuid": name, "name": name, "driver_info": info})
                db.execute("INSERT INTO nodes (driver, doc) VALUES ('redfish', ?)", (node,))
            db.commit()
            listen = f"127.0.0.1:{closed}"
            assert main(["doctor", "--data", str(tmp_path), "--listen", listen, "-o", "json"]) == 1
    found = {one["what"]: one for one in json.loads(capsys.readouterr().out)}
    assert found["database"]["state"] == "well"
    assert found["port"]["state"] == "caution"
    assert found["BMCs"]["found"].startswith("1 cannot be read: gone (Redfish 127.0.0.1:")
    assert "check their power" in found["BMCs"]["remedy"]


def test_doctor_says_what_is_wrong_and_what_to_do(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("siderite.cli.doctor._HEALTH_S", 0.5)
    (tmp_path / "siderite.db").write_text("this is no database, however long it may be" * 99)
    with socket.create_server(("127.0.0.1", 0)) as another_program:
        listen = f"127.0.0.1:{another_program.getsockname()[1]}"
        assert main(["doctor", "--data", str(tmp_path), "--listen", listen]) == 1
    said = capsys.readouterr().out
    assert "wrong    port" in said
    assert "choose another with --listen" in said
    assert "wrong    database" in said
    assert "siderite restore" in said


def test_doctor_finds_bmcs_that_can_be_reached_and_not_read() -> None:
    well: dict[str, Any] = {"fault": None, "power_state": "power on", "power_state_reason": None}
    refused = {"power_state": "unknown", "power_state_reason": "it refuses the password"}
    nodes = [
        {"uuid": "1", "name": "well", **well},
        {"uuid": "2", "name": None, **well, **refused},
        {"uuid": "3", "name": "n3", **well, **refused},
        {"uuid": "4", "name": "new", **well, "power_state": "unknown"},
        {"uuid": "5", "name": "differs", **well, "power_state_reason": "the machine says off"},
        {"uuid": "6", "name": "given-up", **well, **refused, "fault": "power failure"},
    ]
    found = bmcs([], unread(nodes))
    assert found.state == "wrong"
    assert found.found == "3 cannot be read: 2, n3, given-up (it refuses the password)"
    assert "node list --attention" in found.remedy
    assert bmcs([], unread(nodes[:1])).state == "well"


def test_doctor_says_who_carries_out_work() -> None:
    up, down = {"hostname": "w1", "alive": True}, {"hostname": "w2", "alive": False}
    states = [workers_of(found).state for found in ([up, up], [up, down], [down], [])]
    assert states == ["well", "caution", "wrong", "wrong"]
    assert "1 of 2 are up; not heard of lately: w2" in workers_of([up, down]).found
    assert "siderite worker" in workers_of([down]).remedy


def test_doctor_knows_a_database_of_a_newer_version(tmp_path: Path, capsys) -> None:
    with closing(sqlite3.connect(tmp_path / "siderite.db")) as db, db:
        db.execute("CREATE TABLE migrations (name TEXT PRIMARY KEY)")
        db.execute("INSERT INTO migrations VALUES ('compute/9999_x.sql')")
    main(["doctor", "--data", str(tmp_path), "--listen", "127.0.0.1:1", "-o", "json"])
    found = {one["what"]: one for one in json.loads(capsys.readouterr().out)}
    assert "newer version (it has compute/9999_x.sql)" in found["database"]["found"]


def test_doctor_looks_at_the_database_whatever_its_directory_is_called(
    tmp_path: Path, capsys
) -> None:
    data = tmp_path / "50%20 #a?b"
    data.mkdir()
    (data / "siderite.db").write_bytes(b"no database " * 100)
    main(["doctor", "--data", str(data), "--listen", "127.0.0.1:1", "-o", "json"])
    found = {one["what"]: one for one in json.loads(capsys.readouterr().out)}
    assert "file is not a database" in found["database"]["found"]
    assert list(tmp_path.iterdir()) == [data]


def test_doctor_repeats_no_password(tmp_path: Path, capsys) -> None:
    url = "postgresql://user:SECRET/x@127.0.0.1/db"
    said = ["doctor", "--db", url, "--data", str(tmp_path), "--listen", "127.0.0.1:1"]
    assert main([*said, "-o", "json"]) == 1
    out = capsys.readouterr().out
    assert "SECRET" not in out
    assert "in a password, write" in out


def test_doctor_does_not_fall_over_what_it_may_not_read(
    tmp_path: Path, capsys, monkeypatch
) -> None:
    def forbidden(_path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "siderite.db").write_text("")
    monkeypatch.setattr(os, "access", lambda *_: False)  # tests may run as root
    monkeypatch.setattr(Path, "exists", forbidden)
    assert main(["doctor", "--data", str(tmp_path), "--listen", "127.0.0.1:1", "-o", "json"]) == 1
    found = {one["what"]: one for one in json.loads(capsys.readouterr().out)}
    assert "as the user that runs the service" in found["data"]["remedy"]
    assert "as the user that runs the service" in found["database"]["remedy"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("clouds: [", "is not YAML: while parsing"),
        ("clouds: {\udcff: {}}", "is not YAML: 'utf-8' codec can't decode"),
        ("clouds: {a: {}}", "names no cloud with an auth_url"),
        (
            "clouds: {a: {auth: {auth_url: 'http://127.0.0.1:9/identity/v3'}}}",
            ": Connection refused;",
        ),
    ],
)
def test_what_keeps_one_from_the_service_is_said_in_plain_words(
    tmp_path: Path, capsys, text: str, sentence: str
) -> None:
    (tmp_path / "clouds.yaml").write_text(text, errors="surrogateescape")
    assert main(["node", "list", "--data", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert sentence in said
    assert "<" not in said.replace("<stream end>", "").replace("<unicode string>", "")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"SSH-2.0-sshd\r\n", "cannot reach"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", "gave no token"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", "gave no token"),
        (b"HTTP/1.1 499 No\r\nContent-Length: 6\r\n\r\n<html>", "answers 499 No"),
    ],
)
def test_what_answers_and_is_not_siderite_is_said_in_a_sentence(
    answer, words, tmp_path, capsys
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        auth = {"auth_url": f"http://127.0.0.1:{listener.getsockname()[1]}/identity/v3"}
        (tmp_path / "clouds.yaml").write_text(json.dumps({"clouds": {"x": {"auth": auth}}}))

        def answered() -> None:
            link, _ = listener.accept()
            with link:
                link.sendall(answer)
                link.shutdown(socket.SHUT_WR)
                while link.recv(65536):
                    pass

        thread = Thread(target=answered)
        thread.start()
        assert main(["node", "list", "--data", str(tmp_path)]) == 1
        thread.join()
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_an_outage_is_told_once_however_often_it_was_seen() -> None:
    record = dict.fromkeys(node._FIELDS) | {"provision_state": "active", "maintenance": True}
    record["power_state_reason"] = "the BMC does not answer (3 readings in a row)"
    record["fault"] = "power failure"
    lost = "The power cannot be read: the BMC does not answer (6 readings in a row)."
    assert node._why(record | {"maintenance_reason": lost, "last_error": lost}) == (
        f"maintenance: {lost[:-1]}; power failure"
    )
    assert node._why(record | {"maintenance_reason": "a fan"}) == (
        "maintenance: a fan; power failure; the BMC does not answer (3 readings in a row)"
    )


def test_a_cloud_that_is_not_there_is_never_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "clouds.yaml"
    file.write_text("clouds: {siderite: {auth: {auth_url: http://127.0.0.1:9/identity/v3}}}\n")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(file))
    monkeypatch.setenv("OS_CLOUD", "production")
    assert main(["node", "power", "off", "web1"]) == 1
    said = capsys.readouterr().err
    assert "has no cloud 'production', which OS_CLOUD names; it has: siderite." in said


def test_a_data_directory_that_cannot_be_looked_into_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    beyond = "x" * 300  # no name of a file: as with another user's, but for root, too
    (tmp_path / "siderite-data").symlink_to(beyond)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", f"/{beyond}")
    monkeypatch.delenv("OS_CLIENT_CONFIG_FILE", raising=False)
    assert main(["node", "list"]) == 1
    assert "siderite: cannot read siderite-data/clouds.yaml: " in capsys.readouterr().err
    assert main(["doctor", "-o", "json"]) == 1
    found = {one["what"]: one for one in json.loads(capsys.readouterr().out)}
    assert found["database"]["state"] == "wrong"


def test_where_the_service_goes_away_it_is_said_who_was_asked_by_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def ask(name: str) -> None:
        if name == "n3":
            raise Away("cannot reach x: refused; is it running?")

    with pytest.raises(Away):
        each(["n1", "n2", "n3", "n4"], ask)
    assert "2 of 4 were asked, up to n2; n3 may have been" in capsys.readouterr().err


def test_who_stops_watching_is_told_that_it_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    def look(machine: int) -> Sight:
        if machine:
            raise KeyboardInterrupt
        return Sight("active", is_over=True)

    with pytest.raises(KeyboardInterrupt):
        until_over([("done", 0), ("web1", 1)], look, 5)
    assert "no longer watched, but it goes on: web1." in capsys.readouterr().err


def test_one_that_is_gone_does_not_end_the_watch_over_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen = []

    def look(machine: str) -> Sight:
        if machine == "deleted":
            raise Missing("Instance deleted could not be found.")
        seen.append(machine)
        return Sight("ACTIVE", is_over=True)

    code = until_over([("web1", "deleted"), ("web2", "there")], look, 5)
    assert (code, seen) == (Missing.exit_code, ["there"])
    assert "web1: Instance deleted could not be found." in capsys.readouterr().err


def test_at_a_terminal_the_bar_ends_with_what_became_of_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    ends = [("n1", "manageable"), ("n2", "manageable"), ("n3", "enroll")]
    assert until_over(ends, lambda state: Sight(state, is_over=True), 5) == 0
    last = capsys.readouterr().err.rpartition("\r")[2]
    assert "2 manageable, 1 enroll" in last


def test_a_name_gives_the_terminal_no_orders_while_it_is_waited_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    problem = "no \x1b[2Jroom"
    assert until_over([("a\x1b]0;b\x07", "")], lambda _: Sight("ERROR", True, problem), 5) == 1
    said = capsys.readouterr().err
    assert r"a\x1b]0;b\x07: ERROR" in said
    assert r"no \x1b[2Jroom" in said


def test_two_of_one_name_are_both_waited_for() -> None:
    seen = []

    def look(machine: str) -> Sight:
        seen.append(machine)
        problem = "no host had room" if machine == "first" else None
        return Sight("ACTIVE", is_over=True, problem=problem)

    assert until_over([("web", "first"), ("web", "second")], look, 5) == 1
    assert seen == ["first", "second"]


def test_a_service_that_is_away_for_a_while_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wait, "_PAUSE_S", 0.0)
    answers = [Away("cannot reach x: refused; is it running?")] * 2 + [Sight("ACTIVE", True)]

    def look(machine: int) -> Sight:
        said = answers.pop(0)
        if isinstance(said, Away):
            raise said
        return said

    assert until_over([("web", 0)], look, 60) == 0
    said = capsys.readouterr().err
    assert said.count("cannot reach x: refused; trying again.") == 1, said


def test_a_service_that_stays_away_ends_the_watch_in_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def look(machine: int) -> Sight:
        raise Away("cannot reach x: refused; is it running?")

    assert until_over([("web", 0)], look, 0) == 5
    assert "web was not seen within 0 seconds" in capsys.readouterr().err
