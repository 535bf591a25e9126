"""`siderite export`: everything as JSON lines, whole or not at all."""

import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs
from urllib.parse import urlsplit

import pytest

from siderite.cli import export
from siderite.cli.cloud import Away
from siderite.cli.cloud import Cloud
from siderite.cli.cloud import Gone
from siderite.cli.main import main
from tests.cli.member import member
from tests.support.server import Server
from tests.support.server import running_server

MANY = 5
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHQ9dGh1bWJzIHVwIGZvciB0ZXN0IGtleXMgMTIz someone@here"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("export")
    flags = ("--demo", "--demo-nodes", str(MANY))
    with running_server(folder, flags=flags, options={"max_limit": "2"}) as made:
        node = {"driver": "ipmi", "name": "secret", "driver_info": {"ipmi_password": "hunter2"}}
        made.api.post(
            "/baremetal/v1/nodes", json=node, headers=made.headers("1.50")
        ).raise_for_status()
        yield made


def _lines(text: str) -> list[tuple[str, Any]]:
    return [(line["kind"], line["value"]) for line in map(json.loads, text.splitlines())]


def _of(text: str, kind: str) -> list[Any]:
    return [value for one, value in _lines(text) if one == kind]


def test_everything_is_in_it_though_pages_are_short_and_the_last_line_counts_it(
    server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "all.jsonl"
    assert main(["export", str(file), "--data", str(server.data)]) == 0
    text = file.read_text()
    nodes, flavors = _of(text, "node"), _of(text, "flavor")
    assert len(nodes) == len({node["uuid"] for node in nodes}) == MANY + 1
    assert all("power_policy" in node for node in nodes)  # as the newest version shows them
    assert len({flavor["id"] for flavor in flavors}) == len(flavors) == 4
    assert [project["name"] for project in _of(text, "project")] == ["admin", "service"]
    events = _of(text, "event")
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    kind, counts = _lines(text)[-1]
    assert (kind, counts["node"], counts["event"]) == ("end", MANY + 1, len(events))
    assert sum(counts.values()) == len(_lines(text)) - 1
    assert "hunter2" not in text
    assert (file.stat().st_mode & 0o777, list(tmp_path.iterdir())) == (0o600, [file])


def test_what_is_hidden_and_what_comes_on_pages_without_links_is_in_it_too(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    def make(path: str, body: Any) -> None:
        headers = server.headers() | {"OpenStack-API-Version": "compute 2.104"}
        server.api.post(path, json=body, headers=headers).raise_for_status()

    make("/image/v2/images", {"name": "old", "os_hidden": True})
    names = [f"made-{number}" for number in range(MANY)]
    for name in names:
        group = {"name": name, "policy": "affinity"}
        make("/compute/v2.1/os-server-groups", {"server_group": group})
        make("/compute/v2.1/os-keypairs", {"keypair": {"name": name, "public_key": KEY}})
    assert main(["export", "-", "--no-events", "--data", str(server.data)]) == 0
    text = capsys.readouterr().out
    assert [one["name"] for one in _of(text, "image")].count("old") == 1
    assert [one["name"] for one in _of(text, "server_group")] == names
    assert [one["name"] for one in _of(text, "keypair")] == names


def test_it_goes_to_standard_output_and_without_the_log(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "-", "--no-events", "--data", str(server.data)]) == 0
    text = capsys.readouterr().out
    assert (len(_of(text, "node")), _of(text, "event")) == (MANY + 1, [])


def test_who_may_not_see_everything_is_told_what_is_left_out(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    member(server, tmp_path)
    assert main(["export", str(tmp_path / "mine"), "--data", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "not shown to ana, and so left out:" in said
    assert "host" in said
    kinds = {kind for kind, _ in _lines((tmp_path / "mine").read_text())}
    assert "flavor" in kinds
    assert "host" not in kinds


class _Cut(Cloud):
    """A service that goes away in the middle."""

    def ask(self, method: str, path: str, *more: Any, **others: Any) -> tuple[Any, Any]:
        """All but the second page of nodes."""
        if "nodes" in path and "marker" in path:
            raise Away("cannot reach it")
        return super().ask(method, path, *more, **others)


def test_a_file_that_would_not_be_whole_is_not_left(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "Cloud", _Cut)
    old = tmp_path / "all.jsonl"
    old.write_text("of yesterday")
    assert main(["export", str(old), "--data", str(server.data)]) == 1
    assert (old.read_text(), list(tmp_path.iterdir())) == ("of yesterday", [old])


def test_a_place_that_cannot_be_written_to_is_said(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(tmp_path / "no" / "all"), "--data", str(server.data)]) == 1
    assert "No such file or directory" in capsys.readouterr().err


def test_what_is_no_file_is_not_replaced_by_one(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As root would do to /dev/null."""
    os.mkfifo(tmp_path / "pipe")
    assert main(["export", str(tmp_path / "pipe"), "--data", str(server.data)]) == 1
    assert "is not a plain file" in capsys.readouterr().err
    assert (tmp_path / "pipe").is_fifo()


def test_what_a_link_leads_to_is_written(server: Server, tmp_path: Path) -> None:
    link = tmp_path / "newest"
    link.symlink_to("monday")
    assert main(["export", str(link), "--no-events", "--data", str(server.data)]) == 0
    assert link.is_symlink()
    assert _lines((tmp_path / "monday").read_text())[-1][0] == "end"


def test_two_exports_at_once_do_not_write_into_one_file(tmp_path: Path) -> None:
    with export._file(str(tmp_path / "all")) as one:
        one.write("one\n")
        with export._file(str(tmp_path / "all")) as other:
            other.write("other\n")
        assert (tmp_path / "all").read_text() == "other\n"
    assert (tmp_path / "all").read_text() == "one\n"


def test_standard_output_is_json_though_the_terminal_has_fewer_letters(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.api.post(
        "/image/v2/images", json={"name": "Łódź"}, headers=server.headers()
    ).raise_for_status()
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="latin-1"))
    assert main(["export", "-", "--no-events", "--data", str(server.data)]) == 0
    assert "Łódź" in [image["name"] for image in _of(written.getvalue().decode(), "image")]


class _Pruned(Cloud):
    """A log of six events that has lost the first four when its second page is asked for."""

    def __init__(self) -> None:
        self.left = range(1, 7)

    def ask(self, method: str, path: str, *more: Any, **others: Any) -> tuple[Any, Any]:
        """Two events, as the service answers."""
        after = int(parse_qs(urlsplit(path).query)["after"][0])
        if after:
            self.left = range(5, 7)
        if 0 < after < self.left[0] - 1:
            raise Gone("What came after it is no longer all in the log.")
        seen = [seq for seq in self.left if seq > after][:2]
        return {"events": [{"seq": seq} for seq in seen], "next": (seen or [after])[-1]}, None


def test_it_goes_on_with_what_is_left_though_the_log_was_pruned_past_its_place() -> None:
    events = export._Export(_Pruned(), io.StringIO())._events()
    assert [event["seq"] for event in events] == [1, 2, 5, 6]


class _Hasty(Cloud):
    """While it is read, somebody deletes a node that the next page would come after."""

    idle: tuple[str, ...] = ()
    """Nodes that nothing is done to: those of the demo come to life meanwhile."""
    gone = ""

    def ask(self, method: str, path: str, *more: Any, **others: Any) -> tuple[Any, Any]:
        """As asked, and once a node is deleted first."""
        marker = path.partition("marker=")[2].partition("&")[0]
        if marker in self.idle and not self.gone:
            self.gone = marker
            super().ask("DELETE", f"/baremetal/v1/nodes/{marker}")
        return super().ask(method, path, *more, **others)


def test_it_goes_on_though_what_a_page_comes_after_was_deleted(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    for number in range(MANY):
        node = {"driver": "fake-hardware", "name": f"more-{number}"}
        answer = server.api.post("/baremetal/v1/nodes", json=node, headers=server.headers("1.50"))
        made.append(answer.raise_for_status().json()["uuid"])
    monkeypatch.setattr(_Hasty, "idle", tuple(made))
    monkeypatch.setattr(export, "Cloud", _Hasty)
    assert main(["export", "-", "--no-events", "--data", str(server.data)]) == 0
    nodes = _of(capsys.readouterr().out, "node")
    assert {f"more-{number}" for number in range(MANY)} <= {node["name"] for node in nodes}
    left = [server.api.get(f"/baremetal/v1/nodes/{node['uuid']}", headers=server.headers("1.50"))
            for node in nodes]  # fmt: skip
    assert [answer.status_code for answer in left].count(404) == 1
