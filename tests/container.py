"""The container file, built and run without any registry of images: Debian's own packages make the
base, a folder of wheels takes the place of the package index. As root, with Debian's buildah and
debootstrap:

    python -m tests.container        (scripts/soak)
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.support.ports import free_port
from tests.support.server import clean_environment

ROOT = Path(__file__).resolve().parents[1]
SUITE = "bookworm"
PYTHON = "python3,python3-venv,python-is-python3,ca-certificates"
PATIENCE_S = 120.0
TOOLS = ("ipmitool", "ssh-keygen", "genisoimage", "mformat")
LOADERS = (
    "/usr/lib/ISOLINUX/isolinux.bin",
    "/usr/lib/syslinux/modules/bios/ldlinux.c32",
    "/usr/lib/grub/x86_64-efi/monolithic/gcdx64.efi",
)


class Builder:
    """buildah with a store of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        where = ["--root", str(folder / "store"), "--runroot", str(folder / "run")]
        self._command = ["buildah", *where, "--storage-driver", "vfs"]

    def words(self, *words: str | Path) -> list[str]:
        """A whole command."""
        return [*self._command, *map(str, words)]

    def __call__(self, *words: str | Path) -> str:
        done = subprocess.run(
            self.words(*words), env=clean_environment(), stdout=subprocess.PIPE, text=True,
            check=True,
        )  # fmt: skip
        return done.stdout.strip()

    def inside(self, container: str, *words: str) -> list[str]:
        """A command in the container: its files and its user, this machine's network."""
        chroot = ("--isolation", "chroot", "--network", "host")
        return self.words("run", *chroot, container, "--", *words)

    def said(self, container: str, *words: str) -> str:
        """What a command in the container says."""
        done = subprocess.run(self.inside(container, *words), capture_output=True, check=False)
        assert done.returncode == 0, (words, done.stderr.decode()[-2000:])
        return done.stdout.decode().strip()


def base(build: Builder) -> str:
    """An image with Debian's Python."""
    root = build.folder / "base"
    command = ["debootstrap", "--variant=minbase", f"--include={PYTHON}", SUITE, str(root)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    container = build("from", "scratch")
    build("copy", "--quiet", container, root, "/")
    build("commit", "--quiet", "--rm", container, "siderite-base")
    shutil.rmtree(root)
    return "siderite-base"


def wheels(build: Builder) -> Path:
    """A folder with what the container file installs, as this machine's pip finds it."""
    house = build.folder / "wheels"
    house.mkdir()
    pinned = (ROOT / "requirements" / "test.txt").read_text()
    found = re.search(r"^libvirt-python==.*?[^\\]$", pinned, re.M | re.S)
    assert found
    binding = build.folder / "libvirt.txt"
    binding.write_text(found[0] + "\n")
    for file in (ROOT / "requirements" / "build.txt", ROOT / "requirements" / "run.txt", binding):
        pip = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps"]
        words = ["--no-build-isolation", "--require-hashes", "--dest", str(house), "-r", str(file)]
        subprocess.run([*pip, *words], check=True, stderr=subprocess.DEVNULL)
    (build.folder / "pip.conf").write_text("[global]\nno-index = true\nfind-links = /wheels\n")
    return house


def built(build: Builder) -> dict[str, Any]:
    """The image's configuration, once it is built."""
    image, house = base(build), wheels(build)
    build(
        "build", "--quiet", "--isolation", "chroot", "--network", "host", "--pull-never",
        "--format", "docker", "--build-arg", f"BASE={image}", "--volume", f"{house}:/wheels:ro",
        "--volume", f"{build.folder / 'pip.conf'}:/etc/pip.conf:ro",
        "--file", ROOT / "packaging" / "Containerfile", "--tag", "siderite", ROOT,
    )  # fmt: skip
    about: dict[str, Any] = json.loads(build("inspect", "--type", "image", "siderite"))
    found: dict[str, Any] = about["Docker"]["config"]
    return found


@contextmanager
def up(build: Builder, container: str, command: Sequence[str]) -> Iterator[httpx.Client]:
    """What the image starts by itself, until it is told to stop; that must go well too."""
    port = free_port()
    words = build.inside(container, "env", f"SIDERITE_LISTEN=0.0.0.0:{port}", *command)
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as api:
            _until_it_answers(api, process)
            yield api
        os.kill(_innermost(process.pid), signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, process.returncode
    finally:
        if process.poll() is None:
            os.kill(_innermost(process.pid), signal.SIGKILL)
            process.wait()


def _until_it_answers(api: httpx.Client, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        assert process.poll() is None, f"it ended: {process.returncode}"
        try:
            if api.get("/healthz").json() == {"status": "ok"}:
                return
        except (httpx.HTTPError, ValueError):
            pass
        assert time.monotonic() < deadline, "it does not answer"
        time.sleep(0.2)


def _innermost(pid: int) -> int:
    """The process that the others only wait for."""
    while True:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        children = [int(one) for task in tasks for one in (task / "children").read_text().split()]
        if not children:
            return pid
        pid = children[0]


def _logged_in(build: Builder, container: str, api: httpx.Client) -> dict[str, str]:
    """With the administrator's password, as the container's file has it."""
    assert build.said(container, "stat", "-c", "%U %a", "/data/clouds.yaml") == "siderite 600"
    text = build.said(container, "cat", "/data/clouds.yaml")
    cloud = yaml.safe_load(text)["clouds"]["siderite"]["auth"]
    assert cloud["auth_url"].startswith(f"{api.base_url}".rstrip("/")), cloud["auth_url"]
    answer = api.post("/identity/v3/auth/tokens", json=_asked(text))
    assert answer.status_code == httpx.codes.CREATED, answer.text
    return {"X-Auth-Token": answer.headers["X-Subject-Token"]}


def _asked(clouds: str) -> dict[str, Any]:
    """What logs in with a clouds.yaml."""
    cloud = yaml.safe_load(clouds)["clouds"]["siderite"]["auth"]
    who = {"name": cloud["username"], "domain": {"id": "default"}, "password": cloud["password"]}
    identity = {"methods": ["password"], "password": {"user": who}}
    scope = {"project": {"name": "admin", "domain": {"id": "default"}}}
    return {"auth": {"identity": identity, "scope": scope}}


def look(build: Builder, about: dict[str, Any]) -> None:
    """Start it, use it, stop it, and start it again on the same data."""
    command = [*about["Entrypoint"], *about["Cmd"]]
    container = build("from", "--pull-never", "siderite")
    assert build.said(container, "id", "-un") == about["User"] == "siderite"
    build.said(container, "python", "-c", "import libvirt")
    build.said(container, "sh", "-c", f"which {' '.join(TOOLS)} && ls {' '.join(LOADERS)}")
    left = build.said(container, "sh", "-c", "ls -d /src /opt/build 2>&1 || true")
    assert left.count("No such file") == 2, left
    with up(build, container, command) as api:
        headers = _logged_in(build, container, api)
        made = api.post("/baremetal/v1/nodes", json={"driver": "fake-hardware"}, headers=headers)
        assert made.status_code == httpx.codes.CREATED, made.text
        kind, *check = about["Healthcheck"]["Test"]
        assert kind == "CMD-SHELL", kind
        [line] = check
        port = str(api.base_url.port)
        build.said(container, "sh", "-c", line.replace("8770", port))
        assert "<title" in api.get("/console/").text
        stays = build.said(container, "cat", "/data/clouds.yaml")
    with up(build, container, command) as api:
        assert _asked(build.said(container, "cat", "/data/clouds.yaml")) == _asked(stays)
        headers = _logged_in(build, container, api)
        nodes = api.get("/baremetal/v1/nodes", headers=headers).json()["nodes"]
        assert [node["uuid"] for node in nodes] == [made.json()["uuid"]]


def main() -> int:
    """Build it, and look at it."""
    for tool in ("buildah", "debootstrap"):
        if shutil.which(tool) is None:
            print(f"{tool} is missing; as root: apt-get install buildah debootstrap")
            return 1
    folder = Path(tempfile.mkdtemp(prefix="siderite-container-", dir=os.environ.get("TMPDIR")))
    try:
        build = Builder(folder)
        begun = time.monotonic()
        about = built(build)
        print(f"built in {time.monotonic() - begun:.0f} s")
        look(build, about)
        print("the container answers, stops when told to, and keeps what it has")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
