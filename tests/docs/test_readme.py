"""The README as a newcomer reads it: its commands, word for word, and those that `up` prints.

The packages are there: scripts/install is not run again. All else is as in a fresh checkout.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError
from importlib.metadata import distribution
from pathlib import Path

from tests.support.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
FIRST_RUN_S = 60.0
"""From the start to a server ACTIVE and a node deployed, once the packages are there."""


def _blocks() -> list[str]:
    start = (ROOT / "README.md").read_text().partition("## Start")[2].partition("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", start, flags=re.S)


def _checkout(folder: Path) -> Path:
    (folder / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "up", folder / "scripts" / "up")
    install = folder / "scripts" / "install"
    install.write_text("#!/bin/sh\n")
    install.chmod(0o755)
    (folder / ".venv").symlink_to(Path(sys.prefix))
    return folder


@contextmanager
def _terminal(folder: Path, text: str, environment: dict[str, str]) -> Iterator[Path]:
    """A terminal in which commands run until they are interrupted; what they printed."""
    printed = folder / "printed"
    with printed.open("wb") as out:
        shell = subprocess.Popen(
            ["bash", "-ec", f"exec {text}"], cwd=folder, env=environment,
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + FIRST_RUN_S
        while "is ready at" not in printed.read_text():
            assert shell.poll() is None, printed.read_text()
            assert time.monotonic() < deadline, printed.read_text()
            time.sleep(0.1)
        yield printed
    finally:
        shell.send_signal(signal.SIGINT)
        shell.wait(60)


def _run(text: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-exc", text],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_command_of_the_first_run_does_what_it_says(tmp_path: Path) -> None:
    start, ours, theirs = _blocks()
    folder = _checkout(tmp_path / "a checkout")
    environment = {
        "HOME": str(tmp_path), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
        # Not 8770, which may be taken here; all else follows from it.
        "SIDERITE_LISTEN": f"127.0.0.1:{free_port()}",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }  # fmt: skip
    began = time.monotonic()
    with _terminal(folder, start.strip(), environment) as printed:
        said = _run(ours, folder, environment)
        took = time.monotonic() - began
        assert "deploying → active" in said or "→ active" in said, said
        shown = "\n".join(re.findall(r"^  (\S.*)$", printed.read_text(), flags=re.M))
        assert "siderite server create" in shown
        blocks = ('export PATH="$PWD/.venv/bin:$PATH"\n' + theirs, shown)
        with ThreadPoolExecutor() as terminals:  # one does not need the other
            done = terminals.map(lambda block: _run(block, folder, environment), blocks)
            for said, seen in zip(done, (r"status\s+\| ACTIVE", r"\| r01-n01 "), strict=True):
                assert re.search(seen, said), said
    assert took < FIRST_RUN_S


def test_nothing_that_a_newcomer_is_told_to_install_is_compiled() -> None:
    pages = [ROOT / "README.md", ROOT / "docs" / "tutorial.md"]
    told = {
        what or "run"
        for page in pages
        for what in re.findall(r"^scripts/(?:up|install *(\w*))", page.read_text(), flags=re.M)
    }
    assert told == {"run", "client"}
    for what in told:
        pinned = (ROOT / "requirements" / f"{what}.txt").read_text()
        names = re.findall(r"^([\w.-]+)==", pinned, flags=re.M)
        assert len(names) > 20
        assert [name for name in names if _is_compiled_here(name)] == []


def _is_compiled_here(name: str) -> bool:
    try:
        wheel = distribution(name).read_text("WHEEL") or ""
    except PackageNotFoundError:  # for another platform
        return False
    # Published ones say what they run on: manylinux_2_17_x86_64.
    return "-linux_" in wheel
