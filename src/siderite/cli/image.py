"""`siderite image …`: bringing in images and seeing which there are, over HTTP."""

import argparse
import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from typing import BinaryIO

from siderite.cli import show
from siderite.cli.cloud import Cloud
from siderite.cli.cloud import Refused
from siderite.cli.pairs import pairs
from siderite.cli.wait import Sight
from siderite.cli.wait import until_over

_UPLOAD_TIMEOUT_S = 3600.0
"""The answer to an upload comes when all of it is on the service's disk."""
_FETCH_TIMEOUT_S = 86400.0
"""The service gives up then, too."""
_ENDINGS = {
    "img": "raw", "raw": "raw", "iso": "iso", "qcow2": "qcow2", "vmdk": "vmdk", "vhd": "vhd",
    "vhdx": "vhdx", "vdi": "vdi",
}  # fmt: skip
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.I)
_MAGIC = ((0, b"QFI\xfb", "qcow2"), (0, b"KDMV", "vmdk"), (0x8001, b"CD001", "iso"))


_COLUMNS: tuple[show.Column, ...] = (
    ("name", lambda image: image["name"]),
    ("id", lambda image: image["id"]),
    ("status", lambda image: image["status"]),
    ("format", lambda image: image["disk_format"]),
    ("bytes", lambda image: image["size"]),
    ("seen by", lambda image: image["visibility"]),
)


def run(said: argparse.Namespace) -> int:
    """Make an image of a file or of what an address has, or show those there are."""
    cloud = Cloud(said.data)
    if said.verb == "list":
        show.rows(every(cloud), _COLUMNS, said.output, name="id")
    elif _is_address(said.path):
        return _fetch(cloud, said)
    else:
        print(_import(cloud, said))
    return 0


def _is_address(path: str) -> bool:
    """Whether the service is to fetch it, and not this machine's disk to be read."""
    scheme = _SCHEME.match(path)
    if scheme is None:
        return False
    if scheme[1].lower() not in ("http", "https"):
        raise Refused(
            f"nothing is fetched by {scheme[0]}; name a file of this machine by its path, or an"
            " address that begins with https:// or http://."
        )
    return True


def every(cloud: Cloud) -> list[dict[str, Any]]:
    """All images, page after page."""
    found: list[dict[str, Any]] = []
    path = "/v2/images?limit=1000"
    while path:
        page, _ = cloud.ask("GET", f"/image{path}")
        found += page["images"]
        path = page.get("next", "")
    return found


def _import(cloud: Cloud, said: argparse.Namespace) -> str:
    path = Path(said.path)
    try:
        if path.exists() and not path.is_file():
            raise Refused(f"{path} is not a plain file; copy what is in it into one first.")
        file = path.open("rb")
    except OSError as why:
        raise Refused(f"cannot read {path}: {why.strerror}.") from why
    with file:
        record = _record(said, path.stem, said.disk_format or _format(file))
        size = path.stat().st_size
        image, _ = cloud.ask("POST", "/image/v2/images", record)
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        try:
            with _shown(file, size) as data, cloud.open(
                f"/image/v2/images/{image['id']}/file", headers,
                method="PUT", data=data, timeout_s=_UPLOAD_TIMEOUT_S,
            ):  # fmt: skip
                pass
        except BaseException:  # Ctrl-C too: the record would stay, and never get its data
            with contextlib.suppress(Refused):
                cloud.ask("DELETE", f"/image/v2/images/{image['id']}")
            raise
    return f"{image['id']}  {record['name']}  {record['disk_format']}, {size} bytes"


@contextlib.contextmanager
def _shown(file: BinaryIO, size: int) -> Iterator[BinaryIO]:
    """The file; while somebody looks, with a bar of how much of it was sent."""
    if not sys.stderr.isatty():
        yield file
        return
    from rich.console import Console
    from rich.progress import BarColumn
    from rich.progress import DownloadColumn
    from rich.progress import Progress
    from rich.progress import TimeRemainingColumn

    columns = (BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        yield bars.wrap_file(file, total=size)


def _fetch(cloud: Cloud, said: argparse.Namespace) -> int:
    """The service fetches it; wait for that."""
    file = said.path.partition("?")[0].rstrip("/").rpartition("/")[2]
    stem, _, ending = file.rpartition(".")
    disk_format = said.disk_format or _ENDINGS.get(ending.lower())
    if disk_format is None:
        raise Refused(f"{file!r} does not say what it is; name it with --disk-format.")
    record = _record(said, stem or file, disk_format)
    image, _ = cloud.ask("POST", "/image/v2/images", record)
    path = f"/image/v2/images/{image['id']}"
    try:
        method = {"name": "web-download", "uri": said.path}
        cloud.ask("POST", f"{path}/import", {"method": method})
    except Refused:
        with contextlib.suppress(Refused):
            cloud.ask("DELETE", path)
        raise
    code = until_over([(record["name"], path)], lambda at: _sight(cloud, at), _FETCH_TIMEOUT_S)
    if code == Refused.exit_code:
        with contextlib.suppress(Refused):
            cloud.ask("DELETE", path)
    elif not code:
        size = cloud.ask("GET", path)[0]["size"]
        print(f"{image['id']}  {record['name']}  {disk_format}, {size} bytes")
    return code


def _sight(cloud: Cloud, path: str) -> Sight:
    image, _ = cloud.ask("GET", path)
    if image["status"] != "importing":
        problem = None if image["status"] == "active" else image.get("import_error", "It failed.")
        return Sight(image["status"], True, problem)
    told = cloud.ask("GET", f"{path}/tasks")[0]["tasks"]
    return Sight(told[0]["message"] if told and told[0]["message"] else "importing")


def _record(said: argparse.Namespace, name: str, disk_format: str) -> dict[str, Any]:
    return {
        **pairs(said.property, "--property"),
        "name": said.name or name,
        "disk_format": disk_format,
        "container_format": "bare",
        "visibility": "public" if said.public else "shared",
    }


def _format(file: BinaryIO) -> str:
    """What the first bytes say; a disk without a header is raw."""
    found = "raw"
    for at, magic, name in _MAGIC:
        file.seek(at)
        if file.read(len(magic)) == magic:
            found = name
    file.seek(0)
    return found
