"""A host's storage pool: volumes made, filled, read and deleted over the libvirt connection, so
that a remote host needs nothing but libvirt. Blocking; called in a host's threads.
"""

import contextlib
import errno
import os
import time
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from typing import BinaryIO
from typing import TypeVar
from xml.etree import ElementTree as Xml

import msgspec

from siderite.compute.domain.outcome import Wait
from siderite.compute.drivers.libvirt.library import library
from siderite.compute.drivers.libvirt.names import POOL
from siderite.compute.drivers.libvirt.names import POOL_PATH
from siderite.compute.drivers.libvirt.trouble import MAKE_ROOM
from siderite.compute.drivers.libvirt.trouble import HostError
from siderite.compute.drivers.libvirt.trouble import Refused
from siderite.compute.drivers.libvirt.trouble import code

_CHUNK = 256 * 1024
_MIB = 1 << 20
NO_ROOM = 16 * _MIB
"""Bytes; a disk with less is full, as far as disks of guests go."""
_BLOCK = 512  # what st_blocks counts
_BUSY_PATIENCE_S = 60.0
_BUSY_AGAIN_S = 5.0
_TAKEN = ("is still in use", "is still being allocated")
"""What libvirt says while somebody else begins to fill, read or make the same volume."""
Progress = Callable[[int], None]
T = TypeVar("T", bytes, bytes | int)


class _Shape(msgspec.Struct, frozen=True):
    """What a volume is to be: bytes that it can hold, and those that it takes at once."""

    size: int
    form: str
    backing: tuple[str, str] | None = None
    mode: str = "0600"
    allocation: int = 0


class Changed(OSError):
    """A volume was not what it had been when its copy began."""


class Pool:
    """The pool of one host."""

    def __init__(self, connection: Any, options: Mapping[str, str]) -> None:
        self._connection = connection
        self._pool = _pool(
            connection, options.get("pool", POOL), options.get("pool_path", POOL_PATH)
        )
        self.made: set[str] = set()
        """Volumes that were not there before."""

    def info(self) -> tuple[int, int]:
        """Bytes it can hold, and bytes that are free."""
        _, capacity, _, free = self._pool.info()
        return int(capacity), int(free)

    def names(self, wanted: str | None = None) -> list[str]:
        """Its volumes. After an upload libvirt reads the folder anew, and volumes can be missing
        from its list meanwhile: when the one that is wanted is, it is asked to look again.
        """
        found = self._listed()
        if wanted is not None and wanted not in found:
            self.refresh()
            found = self._listed()
        return found

    def _listed(self) -> list[str]:
        """In one call. `listVolumes` makes two, the first to know how many there are: any of them
        may be left out if somebody makes another one in between.
        """
        return [volume.name() for volume in self._pool.listAllVolumes()]

    def refresh(self) -> None:
        """See files that others made, and what is in those that were copied."""
        # Refused while a volume is being made by somebody.
        _patiently(self._pool.refresh, "asynchronous jobs")

    def find(self, name: str) -> Any | None:
        """libvirt's handle, if there is such a volume."""
        try:
            return self._pool.storageVolLookupByName(name)
        except library().libvirtError as why:
            if code(why, "VIR_ERR_NO_STORAGE_VOL"):
                return None
            raise

    def path(self, name: str) -> str:
        """Where a volume is, or would be, on the host."""
        return f"{self._target()}/{name}"

    def create(self, name: str, size: int, *, mode: str = "0600") -> Any:
        """An empty raw volume, or the one that is there."""
        return self._create(name, _Shape(size, "raw", mode=mode))

    def reserve(self, name: str, size: int, *, mode: str = "0600") -> Any:
        """The same with room for all its bytes. To run out of it later would be worse: libvirt may
        neither take nor refuse the rest of a stream that it cannot write, and lose the connection.
        """
        return self._create(name, _Shape(size, "raw", mode=mode, allocation=size))

    def create_disk(self, name: str, size: int, backing: tuple[str, str] | None = None) -> Any:
        """A qcow2 disk, empty or on top of a backing file (path and format)."""
        return self._create(name, _Shape(size, "qcow2", backing))

    def clone(self, name: str, source: str) -> Any:
        """A flat qcow2 copy of a disk that nobody writes to."""
        self.delete(name)
        original = self._must_find(source)
        text = _volume_xml(name, _Shape(original.info()[1], "qcow2"))
        return self._pool.createXMLFrom(text, original, 0)

    def upload(self, name: str, data: bytes) -> None:
        """A raw volume with these bytes; an older one is replaced."""
        self.delete(name)
        self.reserve(name, len(data))
        self.receive(name, len(data), [data])

    def upload_file(self, name: str, source: Path, progress: Progress) -> None:
        """A raw volume with a file's bytes, readable by all guests."""
        size, used = source.stat().st_size, source.stat().st_blocks * _BLOCK
        if used < size:  # its holes take no room there either
            self._must_have_room(name, used)
            self.create(name, size, mode="0644")
        else:
            self.reserve(name, size, mode="0644")
        with source.open("rb") as file:
            self.receive(name, size, told(_extents(file, size), progress))

    def download(self, name: str, target: Path, progress: Progress) -> None:
        """A volume's bytes as a file here."""
        with target.open("wb") as file:
            for chunk in told(self.chunks(name), progress):
                file.write(chunk)

    def chunks(self, name: str, offset: int = 0, size: int = 0) -> Iterator[bytes]:
        """A volume's bytes from an offset on, that many or all."""
        volume = self._must_find(name)

        def begin() -> Any:
            stream = self._connection.newStream(0)
            volume.download(stream, offset, size, 0)
            return stream

        stream = _patiently(begin, *_TAKEN)
        try:
            while chunk := stream.recv(_CHUNK):
                yield chunk
        except BaseException:
            _abort(stream)
            raise
        stream.finish()

    def receive(self, name: str, size: int, chunks: Iterable[bytes | int]) -> None:
        """Fill a volume; a number is that many zeros, which are not sent."""

        def begin() -> Any:
            stream = self._connection.newStream(0)
            sparse = library().VIR_STORAGE_VOL_UPLOAD_SPARSE_STREAM
            self._must_find(name).upload(stream, 0, size, sparse)
            return stream

        stream, got = _patiently(begin, *_TAKEN), 0
        try:
            for chunk in chunks:
                got += _send(stream, chunk)
            if got != size:
                raise Changed(5, f"{name} changed its size while it was copied")
        except BaseException:
            _abort(stream)
            raise
        stream.finish()

    def grow(self, name: str, size: int) -> None:
        """Make a disk larger, if it is smaller."""
        volume = self._must_find(name)
        if volume.info()[1] < size:
            volume.resize(size, 0)

    def size(self, name: str) -> int | None:
        """How long a raw volume is now."""
        volume = self.find(name)
        return None if volume is None else int(volume.info()[1])

    def file_size(self, name: str) -> int:
        """How many bytes the volume's file has."""
        volume = self._must_find(name)
        physical = Xml.fromstring(volume.XMLDesc(0)).findtext("physical")  # noqa: S314
        return int(physical or volume.info()[2])

    def backing(self, name: str) -> tuple[str, str] | None:
        """Path and format of what a disk stands on."""
        store = Xml.fromstring(self._must_find(name).XMLDesc(0)).find("backingStore")  # noqa: S314
        path = None if store is None else store.findtext("path")
        if store is None or not path:
            return None
        form = store.find("format")
        return path, "raw" if form is None else form.get("type", "raw")

    def backing_if_any(self, name: str) -> tuple[str, str] | None:
        """The same of a disk that may go while one looks."""
        try:
            return self.backing(name)
        except FileNotFoundError:
            return None
        except library().libvirtError as why:
            if code(why, "VIR_ERR_NO_STORAGE_VOL"):
                return None
            raise

    def delete(self, name: str) -> None:
        """It need not be there."""
        volume = self.find(name)
        if volume is None:
            return
        try:
            volume.delete(0)
        except library().libvirtError as why:
            if not code(why, "VIR_ERR_NO_STORAGE_VOL"):
                raise

    def _must_have_room(self, name: str, size: int) -> None:
        self.refresh()
        _, free = self.info()
        if free < size:
            raise Refused(
                f"there is no room for {name}, which takes {-(-size // _MIB)} MiB where"
                f" {free // _MIB} are left; {MAKE_ROOM}"
            )

    def _create(self, name: str, shape: "_Shape") -> Any:
        existing = self.find(name)
        if existing is not None:
            return existing
        try:
            new = self._pool.createXML(_volume_xml(name, shape), 0)
        except library().libvirtError as why:
            # Its file may be there without the pool knowing: others put files there too.
            is_file = code(why, "VIR_ERR_OPERATION_INVALID") and "already exists" in str(why)
            if not (is_file or code(why, "VIR_ERR_STORAGE_VOL_EXIST")):
                raise
            self.refresh()
            return self._pool.storageVolLookupByName(name)
        self.made.add(name)
        return new

    def _must_find(self, name: str) -> Any:
        volume = self.find(name)
        if volume is None:
            raise FileNotFoundError(2, f"there is no volume {name} in the host's pool")
        return volume

    def _target(self) -> str:
        text = self._pool.XMLDesc(0)
        return Xml.fromstring(text).findtext("target/path") or POOL_PATH  # noqa: S314


def told(chunks: Iterable[T], progress: Progress) -> Iterator[T]:
    """The same, with how many bytes went by after each."""
    done = 0
    for chunk in chunks:
        yield chunk
        done += chunk if isinstance(chunk, int) else len(chunk)
        progress(done)


def _extents(file: BinaryIO, size: int) -> Iterator[bytes | int]:
    """A file's bytes, and the lengths of its holes."""
    at = 0
    while at < size:
        try:
            data = os.lseek(file.fileno(), at, os.SEEK_DATA)
        except OSError as why:
            if why.errno != errno.ENXIO:
                raise
            data = size  # nothing but a hole is left
        if data > at:
            yield data - at
            at = data
            continue
        hole = os.lseek(file.fileno(), at, os.SEEK_HOLE)
        chunk = os.pread(file.fileno(), min(_CHUNK, hole - at), at)
        if not chunk:
            return
        yield chunk
        at += len(chunk)


def _send(stream: Any, chunk: bytes | int) -> int:
    if isinstance(chunk, int):
        stream.sendHole(chunk, 0)
        return chunk
    sent = 0
    while sent < len(chunk):
        sent += stream.send(chunk[sent : sent + _CHUNK])
    return sent


def _pool(connection: Any, name: str, path: str) -> Any:
    """The pool, made if missing and started if it is not."""
    try:
        pool = connection.storagePoolLookupByName(name)
    except library().libvirtError as why:
        if not code(why, "VIR_ERR_NO_STORAGE_POOL"):
            raise
        pool = _make(connection, name, path)
    if not pool.isActive():
        _start(pool)
    return pool


def _start(pool: Any) -> None:
    try:
        pool.build(0)
        pool.create(0)
    except library().libvirtError:
        # Two of us may have come at once, and the other was first.
        if not pool.isActive():
            raise


def _make(connection: Any, name: str, path: str) -> Any:
    root = Xml.Element("pool", type="dir")
    Xml.SubElement(root, "name").text = name
    target = Xml.SubElement(root, "target")
    Xml.SubElement(target, "path").text = path
    permissions = Xml.SubElement(target, "permissions")
    Xml.SubElement(permissions, "mode").text = "0711"
    try:
        pool = connection.storagePoolDefineXML(Xml.tostring(root, encoding="unicode"), 0)
        pool.setAutostart(1)
    except library().libvirtError:
        # Two of us may have come at once; then it is there now.
        pool = connection.storagePoolLookupByName(name)
    return pool


def _volume_xml(name: str, shape: _Shape) -> str:
    root = Xml.Element("volume")
    Xml.SubElement(root, "name").text = name
    Xml.SubElement(root, "capacity", unit="bytes").text = str(shape.size)
    Xml.SubElement(root, "allocation", unit="bytes").text = str(shape.allocation)
    target = Xml.SubElement(root, "target")
    Xml.SubElement(target, "format", type=shape.form)
    Xml.SubElement(Xml.SubElement(target, "permissions"), "mode").text = shape.mode
    if shape.backing is not None:
        store = Xml.SubElement(root, "backingStore")
        Xml.SubElement(store, "path").text = shape.backing[0]
        Xml.SubElement(store, "format", type=shape.backing[1])
    return Xml.tostring(root, encoding="unicode")


def _patiently(call: Callable[[], Any], *refusals: str) -> Any:
    """What comes of a call that libvirt refuses in such words for a moment."""
    deadline = time.monotonic() + _BUSY_PATIENCE_S
    while True:
        try:
            return call()
        except library().libvirtError as why:
            if not any(words in str(why) for words in refusals):
                raise
            if time.monotonic() >= deadline:
                busy = f"the host's storage pool is busy with other disks ({why})"
                raise HostError(Wait(busy, _BUSY_AGAIN_S)) from why
            time.sleep(0.1)


def _abort(stream: Any) -> None:
    """Give a transfer up; one that is broken already has nothing to say."""
    with contextlib.suppress(library().libvirtError):
        stream.abort()
