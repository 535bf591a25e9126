"""Images, with the `openstack` command and openstacksdk."""

import hashlib
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openstack as sdk
import pytest
from openstack import exceptions

from tests.clients.shell import Shell
from tests.image.mirror import Mirror
from tests.image.mirror import mirroring
from tests.support.server import Server
from tests.support.server import command

# The SDK warns of its own future.
pytestmark = pytest.mark.filterwarnings(
    "ignore::PendingDeprecationWarning", "ignore::openstack.warnings.OpenStackDeprecationWarning"
)
DATA = os.urandom(3_000_000)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Some bytes."""
    path = tmp_path / "disk.img"
    path.write_bytes(DATA)
    return path


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    """Somewhere to fetch images from."""
    with mirroring() as mirror:
        yield mirror


@pytest.fixture
def name() -> str:
    """A name that no other test has."""
    return f"image-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def cloud(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A connection, configured by the clouds.yaml that the server wrote."""
    for variable in set(os.environ) - set(server.client_environment()):
        monkeypatch.delenv(variable)
    for variable, value in server.client_environment().items():
        monkeypatch.setenv(variable, value)
    cloud = sdk.connect(cloud="siderite")
    yield cloud
    cloud.close()


def test_an_image_is_created_from_a_file_and_saved_again(
    openstack: Shell, file: Path, name: str, tmp_path: Path
) -> None:
    made = openstack.json(
        "image", "create", name, "--file", str(file), "--disk-format", "raw",
        "--container-format", "bare", "--property", "os_shutdown_timeout=90", "--tag", "blue",
        "--min-ram", "64",
    )  # fmt: skip
    assert made["name"] == name
    shown = openstack.json("image", "show", name)
    assert (shown["status"], shown["size"], shown["tags"]) == ("active", len(DATA), ["blue"])
    assert shown["checksum"] == hashlib.md5(DATA).hexdigest()
    assert shown["properties"]["os_shutdown_timeout"] == 90, "as the client prints it"
    assert shown["properties"]["os_hash_value"] == hashlib.sha512(DATA).hexdigest()
    assert name in openstack.column("Name", "image", "list")
    saved = tmp_path / "saved"
    openstack("image", "save", "--file", str(saved), name)
    assert saved.read_bytes() == DATA
    openstack("image", "delete", name)
    assert name not in openstack.column("Name", "image", "list")


def test_an_image_is_set_and_unset(openstack: Shell, name: str) -> None:
    openstack("image", "create", name, "--disk-format", "qcow2")
    openstack(
        "image", "set", name, "--property", "hw_vif_model=e1000", "--tag", "t", "--public",
        "--protected", "--min-disk", "5",
    )  # fmt: skip
    shown = openstack.json("image", "show", name)
    assert (shown["visibility"], shown["protected"], shown["min_disk"]) == ("public", True, 5)
    assert shown["properties"]["hw_vif_model"] == "e1000"
    assert "protected" in openstack.refused("image", "delete", name)
    openstack("image", "unset", name, "--property", "hw_vif_model", "--tag", "t")
    openstack("image", "set", name, "--unprotected", "--name", name + "-new")
    shown = openstack.json("image", "show", name + "-new")
    assert ("hw_vif_model" in shown["properties"], shown["tags"]) == (False, [])
    openstack("image", "delete", name + "-new")


def test_an_image_is_deactivated_and_activated(openstack: Shell, file: Path, name: str) -> None:
    openstack("image", "create", name, "--file", str(file))
    openstack("image", "set", "--deactivate", name)
    assert openstack.json("image", "show", name)["status"] == "deactivated"
    openstack("image", "set", "--activate", name)
    assert openstack.json("image", "show", name)["status"] == "active"
    openstack("image", "delete", name)


def test_an_image_is_shared_with_a_project(openstack: Shell, name: str) -> None:
    project = openstack.json("project", "create", name)["id"]
    openstack("image", "create", name, "--shared")
    openstack("image", "add", "project", name, project)
    assert openstack.column("Status", "image", "member", "list", name) == ["pending"]
    openstack("image", "set", "--accept", "--project", project, name)
    assert openstack.column("Status", "image", "member", "list", name) == ["accepted"]
    openstack("image", "remove", "project", name, project)
    assert openstack.column("Status", "image", "member", "list", name) == []
    openstack("image", "delete", name)


def test_an_image_is_imported_by_stage(openstack: Shell, file: Path, name: str) -> None:
    openstack("image", "create", name, "--file", str(file), "--import")
    assert openstack.json("image", "show", name)["size"] == len(DATA)
    openstack("image", "delete", name)


def test_an_image_is_imported_from_an_address(
    openstack: Shell, cloud: Any, name: str, mirror: Mirror
) -> None:
    """By the command and by the SDK; and what cannot be fetched is told of."""
    uri = mirror.at("/disk.img", DATA)
    how = {"disk_format": "raw", "container_format": "bare"}
    cloud.image.create_image(name, **how)
    openstack("image", "import", name, "--method", "web-download", "--uri", uri)
    by_command = cloud.image.wait_for_status(
        cloud.image.find_image(name), "active", failures=["queued"], interval=0.1, wait=60
    )
    assert by_command.checksum == hashlib.md5(DATA).hexdigest()
    (task,) = cloud.image.image_tasks(by_command)
    assert (task.status, task.type) == ("success", "api_image_import")
    assert openstack.json("image", "task", "show", task.id)["status"] == "success"
    assert task.id in openstack.column("ID", "image", "task", "list", "--status", "success")
    assert task.id in {one.id for one in cloud.image.tasks()}
    image = cloud.image.create_image(
        name + "-2", use_import=True, import_method="web-download", uri=uri, **how
    )
    cloud.image.wait_for_status(image, "active", failures=["queued"], interval=0.1, wait=60)
    assert cloud.image.download_image(image).content == DATA
    broken = cloud.image.create_image(name + "-3", **how)
    cloud.image.import_image(broken, method="web-download", uri=uri + ".gone")
    broken = cloud.image.wait_for_status(broken, "queued", failures=[], interval=0.1, wait=60)
    assert "404" in openstack.json("image", "show", broken.id)["properties"]["import_error"]
    refused = cloud.image.import_image(broken, method="web-download", uri="http://127.0.0.2/")
    assert (refused.status_code, "loopback" in refused.text) == (400, True), "the SDK raises not"
    for made in (by_command, image, broken):
        cloud.image.delete_image(made)


def test_lists_are_filtered_and_limited(openstack: Shell, name: str) -> None:
    for number in range(3):
        openstack("image", "create", f"{name}-{number}", "--property", f"group={name}")
    words = ("image", "list", "--property", f"group={name}")
    assert len(openstack.json(*words)) == 3
    assert openstack.column("Name", "image", "list", "--name", f"{name}-1") == [f"{name}-1"]
    assert len(openstack.json("image", "list", "--limit", "2")) == 2
    assert name in openstack.refused("image", "show", name)
    for number in range(3):
        openstack("image", "delete", f"{name}-{number}")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # its open file
def test_the_sdk_creates_finds_updates_downloads_and_deletes(
    cloud: Any, file: Path, name: str, tmp_path: Path
) -> None:
    how = {"disk_format": "raw", "container_format": "bare", "wait": True, "meta": {"a": "1"}}
    made = cloud.create_image(name, filename=str(file), validate_checksum=True, **how)
    assert made.status == "active"
    again = cloud.create_image(name, filename=str(file), validate_checksum=True, **how)
    assert again.id == made.id, "the checksums are the same, so nothing is uploaded"
    image = cloud.image.find_image(name)
    cloud.image.update_image(image, name=name, os_distro="debian")
    assert cloud.image.get_image(image.id).os_distro == "debian"
    cloud.image.add_tag(image, "x")
    assert [one.id for one in cloud.image.images(tag="x")] == [image.id]
    cloud.image.remove_tag(image, "x")
    target = tmp_path / "downloaded"
    cloud.image.download_image(image, stream=False, output=str(target))
    assert target.read_bytes() == DATA
    assert {one.name for one in cloud.image.images(limit=1)} >= {name}
    cloud.image.delete_image(image)
    with pytest.raises(exceptions.NotFoundException, match=image.id):
        cloud.image.get_image(image.id)


def test_our_own_command_brings_in_a_file(
    server: Server, openstack: Shell, tmp_path: Path, name: str
) -> None:
    path = tmp_path / f"{name}.qcow2"
    path.write_bytes(b"QFI\xfb\0\0\0\3" + bytes(504))
    words = [
        "image",
        "import",
        path,
        "--public",
        "--property",
        "os_distro=x",
        "--data",
        server.data,
    ]
    done = subprocess.run(
        [command("siderite"), *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    shown = openstack.json("image", "show", name)
    assert (shown["disk_format"], shown["visibility"], shown["size"]) == ("qcow2", "public", 512)
    assert shown["properties"]["os_distro"] == "x"
    openstack("image", "delete", name)


def test_our_own_command_has_an_address_fetched(
    server: Server, openstack: Shell, name: str, mirror: Mirror
) -> None:
    """And leaves no record of what it could not get."""
    uri = mirror.at(f"/{name}.img", DATA)
    for address, code, word in (
        (f"{uri}?signed=yes", 0, f"{len(DATA)} bytes"),
        (uri.replace(name, f"{name}-gone"), 1, "404"),
        ("http://127.0.0.2/other.iso", 1, "loopback"),
        (f"http://127.0.0.1:{mirror.port}/{name}", 1, "--disk-format"),
    ):
        words = [command("siderite"), "image", "import", address, "--data", server.data]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, word in done.stdout + done.stderr) == (code, True), done
    assert [n for n in openstack.column("Name", "image", "list") if n.startswith(name)] == [name]
    assert openstack.json("image", "show", name)["size"] == len(DATA)
    openstack("image", "delete", name)


def test_a_large_image_needs_little_memory(server: Server) -> None:
    """256 MiB in and out; the process may grow by a small part of it."""
    size, piece = 256 * 1024**2, bytes(4 * 1024**2)

    def pieces() -> Iterator[bytes]:
        for _ in range(size // len(piece)):
            yield piece

    headers = server.headers()
    record = {"name": "large", "disk_format": "raw", "container_format": "bare"}
    image = server.api.post("/image/v2/images", json=record, headers=headers).json()["id"]
    before = _peak_kib(server.pid)
    path = f"/image/v2/images/{image}/file"
    typed = {**headers, "content-type": "application/octet-stream"}
    answer = server.api.put(path, content=pieces(), headers=typed, timeout=300)
    assert answer.status_code == 204, answer.text
    got = 0
    with server.api.stream("GET", path, headers=headers, timeout=300) as download:
        for data in download.iter_raw():
            got += len(data)
    assert got == size
    assert _peak_kib(server.pid) - before < 40 * 1024
    assert server.api.delete(f"/image/v2/images/{image}", headers=headers).status_code == 204


def _peak_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1])
