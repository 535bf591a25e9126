"""What is shipped: the wheel has everything it needs, and the files around it are true."""

import base64
import json
import re
import shutil
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import httpx
import pytest
import yaml

from tests.support.ports import free_port
from tests.support.server import clean_environment
from tests.support.server import running_server

ROOT = Path(__file__).resolve().parents[1]
PACKAGING = ROOT / "packaging"
METRICS = ROOT / "docs" / "reference" / "metrics.md"


def test_the_wheel_has_migrations_and_the_console(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel] = tmp_path.glob("siderite-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    needed = [
        path
        for pattern in ("**/migrations/*.sql", "siderite/console/**/*")
        for path in source.glob(pattern)
        if path.is_file() and "__pycache__" not in path.parts
    ]
    assert len(needed) > 20
    assert {str(path.relative_to(source)) for path in needed} - names == set()


def test_a_run_of_all_tests_that_is_ended_from_outside_has_not_passed(tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    shutil.copy(ROOT / "scripts" / "test", scripts / "test")
    (scripts / "install").write_text("#!/bin/sh\nkill -TERM $PPID\n")
    (scripts / "install").chmod(0o755)
    done = subprocess.run([scripts / "test"], capture_output=True, text=True, check=False)
    assert "FAILED after" in done.stderr
    assert done.returncode != 0


def test_a_unit_of_type_notify_is_told_when_the_service_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as init:
        init.bind(str(address))
        init.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", str(address))
        with running_server(tmp_path) as server:
            assert init.recv(100) == b"READY=1"
            server.stop()
        assert init.recv(100) == b"STOPPING=1"


def test_units_start_words_that_there_are() -> None:
    from siderite.cli.main import parser

    units = sorted((PACKAGING / "systemd").glob("*.service"))
    assert units
    for unit in units:
        [line] = re.findall(r"^ExecStart=(.*)$", unit.read_text(), flags=re.M)
        parser().parse_args(line.split()[1:])
    if shutil.which("systemd-analyze"):
        done = subprocess.run(
            ["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False
        )
        complaints = [x for x in done.stderr.splitlines() if "is not executable" not in x]
        assert complaints == []


def test_no_unit_ends_a_start_that_brings_a_large_database_up_to_date() -> None:
    units = [unit.read_text() for unit in (PACKAGING / "systemd").glob("*.service")]
    told = [unit for unit in units if "\nType=notify\n" in unit]
    assert told
    assert [unit for unit in told if "\nTimeoutStartSec=infinity\n" not in unit] == []


def test_the_board_and_the_alerts_know_only_metrics_that_there_are() -> None:
    known = set(re.findall(r"`(siderite_\w+)`", METRICS.read_text()))
    known |= {f"{name}_{part}" for name in set(known) for part in ("count", "bucket", "sum")}
    used = set(re.findall(r"siderite_\w+", " ".join(asked_of_prometheus())))
    assert used
    assert used <= known


def test_the_board_and_the_alerts_count_once_what_each_process_says_all_of() -> None:
    shared = re.findall(r"`(siderite_\w+)`.* each process says all", METRICS.read_text())
    assert "siderite_work_due" in shared
    added = re.findall(r"sum(?: by \([^)]*\))? ?\((siderite_\w+)", " ".join(asked_of_prometheus()))
    assert set(added).isdisjoint(shared)


def asked_of_prometheus() -> list[str]:
    board = json.loads((PACKAGING / "monitoring" / "grafana.json").read_text())
    rules = yaml.safe_load((PACKAGING / "monitoring" / "alerts.yml").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return asked + [rule["expr"] for group in rules["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("end", ["", "/"])
@pytest.mark.parametrize(
    "path",
    ["/metrics", "/boot/v1/ipxe", "/boot/v1/boot.ipxe", "/baremetal/lookup", "/baremetal/v1/lookup",
     "/baremetal/v1/heartbeat/1234", "/baremetal/v1/continue_inspection"],
)  # fmt: skip
def test_the_example_of_a_proxy_keeps_back_what_asks_for_no_token_however_it_ends(
    path: str, end: str
) -> None:
    page = (ROOT / "docs" / "how-to" / "secure.md").read_text()
    kept = re.findall(r"^ *location (~|=) (\S+) +{ deny all; }", page, flags=re.M)
    assert kept
    asked = path + end  # to us the same as without; nginx has made one of several slashes
    assert any(re.search(what, asked) if how == "~" else what == asked for how, what in kept)


def test_the_example_of_a_receiver_takes_what_is_genuine_and_nothing_else(tmp_path: Path) -> None:
    secret = "whsec_" + base64.b64encode(b"k" * 32).decode()
    port = free_port()
    receiver = subprocess.Popen(
        [sys.executable, PACKAGING / "examples" / "webhook_receiver.py", str(port)],
        env=clean_environment() | {"SECRET": secret}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        with running_server(tmp_path, options={"webhook_allow": "127.0.0.0/8"}) as server:
            hook = {"name": "h", "url": f"http://127.0.0.1:{port}/", "secret": secret}
            made = server.api.post("/events/v1/webhooks", json=hook, headers=server.headers())
            assert made.status_code == 201, made.text
            _until_listening(port)
            forged = httpx.post(f"http://127.0.0.1:{port}/", content=b"{}", trust_env=False)
            assert forged.status_code == 401
            server.api.post(
                "/baremetal/v1/nodes", json={"driver": "fake-hardware"}, headers=server.headers()
            ).raise_for_status()
            assert receiver.stdout is not None
            assert "baremetal.node.create" in receiver.stdout.readline()
    finally:
        receiver.kill()
        receiver.communicate()


def _until_listening(port: int) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        else:
            return
