"""`siderite image import`: a plain file, and a record only if it gets its data."""

import argparse
import contextlib
import os
from pathlib import Path
from typing import Any
from typing import NoReturn

import pytest

from siderite.cli import image
from siderite.cli.cloud import Refused


class _Taker:
    """A cloud that takes an upload."""

    def __init__(self) -> None:
        self.taken = b""

    def ask(self, *_: Any) -> tuple[Any, None]:
        """Any question is fine."""
        return {"id": "i"}, None

    def open(self, *_: Any, data: Any, **__: Any) -> Any:
        """Read it as an HTTP client does."""
        while part := data.read(8192):
            self.taken += part
        return contextlib.nullcontext()


class _Interrupted:
    """A cloud whose user gives up during the upload."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def ask(self, method: str, path: str, body: Any = None) -> tuple[Any, None]:
        """Any question is fine."""
        self.asked.append(f"{method} {path}")
        return {"id": "i"}, None

    def open(self, *_: Any, **__: Any) -> NoReturn:
        """Ctrl-C."""
        raise KeyboardInterrupt


def _said(path: Path) -> argparse.Namespace:
    return argparse.Namespace(
        path=str(path), name=None, disk_format=None, property=None, public=False, data=""
    )


def test_only_a_plain_file_is_brought_in(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/null"), tmp_path / "none"):
        cloud = _Interrupted()
        with pytest.raises(Refused):
            image._import(cloud, _said(path))  # type: ignore[arg-type] - all it needs of a cloud
        assert cloud.asked == []


@pytest.mark.parametrize("address", ["ftp://host/disk.img", "file:///disk.img", "s3://b/disk"])
def test_an_address_that_nothing_is_fetched_by_is_said_with_those_that_are(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = _Interrupted()
    monkeypatch.setattr(image, "Cloud", lambda _: cloud)
    said = argparse.Namespace(**vars(_said(Path())) | {"verb": "import", "path": address})
    with pytest.raises(Refused, match="begins with https:// or http://"):
        image.run(said)
    assert cloud.asked == []


@pytest.mark.parametrize("path", ["HTTPS://host/disk.img", "http://host/" + "x" * 300])
def test_an_address_is_known_however_it_is_spelt(path: str) -> None:
    assert image._is_address(path)
    assert not image._is_address(f"./{path}")


def test_a_record_that_gets_no_data_goes(tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(b"x")
    cloud = _Interrupted()
    with pytest.raises(KeyboardInterrupt):
        image._import(cloud, _said(tmp_path / "disk"))  # type: ignore[arg-type] - as above
    assert cloud.asked == ["POST /image/v2/images", "DELETE /image/v2/images/i"]


def test_who_looks_sees_how_much_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    (tmp_path / "disk").write_bytes(b"x" * (3 << 20))
    cloud = _Taker()
    image._import(cloud, _said(tmp_path / "disk"))  # type: ignore[arg-type] - as above
    assert len(cloud.taken) == 3 << 20
    assert "3.0/3.0 MiB" in capsys.readouterr().err
