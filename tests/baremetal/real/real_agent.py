"""The real ironic-python-agent, from the package registry, as a process of its own.

It is installed once into a folder that any account can read, apart from the tests' own
environment, and runs as nobody without capabilities: `hands_tied` says what it sees.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.lab.cache import LabUnavailable
from tests.lab.cache import alone
from tests.lab.cache import run
from tests.support.ports import free_port

PACKAGE = "ironic-python-agent==13.0.0"
_PYTHON = Path("/usr/bin/python3.11")
_NOBODY = 65534


def packages() -> Path:
    """IPA's packages, installed by whoever needs them first."""
    folder = Path(tempfile.gettempdir()) / f"siderite-lab-{PACKAGE}"
    with alone("ipa"):
        if not folder.exists():
            part = folder.with_name(folder.name + ".part")
            shutil.rmtree(part, ignore_errors=True)
            run([sys.executable, "-m", "pip", "install", "--quiet", "--target", part, PACKAGE])
            part.rename(folder)
    return folder


@contextmanager
def agent(
    folder: Path, url: str, words: Sequence[str], *, mac: str, disk: Path, log: Path
) -> Iterator[None]:
    """A running agent whose machine has this disk and network card; `words` are more options."""
    if os.geteuid() != 0 or not _PYTHON.exists():
        raise LabUnavailable("to run ironic-python-agent as nobody takes root and Debian's python3")
    libraries = packages()
    folder.mkdir()
    script = Path(shutil.copy(Path(__file__).with_name("hands_tied.py"), folder))
    for path in (folder, script, disk):
        path.chmod(0o755)
        os.chown(path, _NOBODY, _NOBODY)
    port = str(free_port())
    command = [
        "setpriv", "--pdeathsig", "KILL", "--reuid", str(_NOBODY), "--regid", str(_NOBODY),
        "--clear-groups", "--no-new-privs", "--bounding-set", "-all", "--inh-caps", "-all",
        str(_PYTHON), str(script), "--api_url", f"{url}/baremetal",
        "--listen_host", "127.0.0.1", "--listen_port", port,
        "--advertise_host", "127.0.0.1", "--advertise_port", port, "--debug", *words,
    ]  # fmt: skip
    env = {
        "PATH": "/nowhere", "HOME": str(folder), "PYTHONPATH": str(libraries), "PAPER_MAC": mac,
        "PAPER_DISK": str(disk), "TMPDIR": str(folder),
    }  # fmt: skip
    with log.open("ab") as out:
        process = subprocess.Popen(
            [shutil.which(command[0]) or command[0], *command[1:]],
            env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield
    finally:
        process.kill()
        process.wait()
