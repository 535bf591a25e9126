"""Writes small ISO 9660 images with Joliet names: what a config drive is. Pure.

Our own, because hosts and this machine then need no mkisofs, and the image is the same bytes each
time. Files are few and small, so all is laid out in memory: volume descriptors, path tables, folder
records, file contents; twice for names, in short upper case and in Joliet's UCS-2.
"""

import struct
from collections.abc import Mapping

import msgspec

SECTOR = 2048
_FIRST_FREE = 19  # after the unused area (16 sectors) and three descriptors
_JOLIET_ESCAPE = b"%/E"
_NO_DATE = bytes(7)
_NO_LONG_DATE = b"0" * 16 + b"\0"


class _Folder(msgspec.Struct):
    name: str
    parent: "_Folder | None" = None
    folders: "dict[str, _Folder]" = msgspec.field(default_factory=dict)
    files: "dict[str, _File]" = msgspec.field(default_factory=dict)


class _File(msgspec.Struct):
    name: str
    data: bytes
    sector: int = 0


def iso(label: str, files: Mapping[str, bytes]) -> bytes:
    """An image with the files, by their paths with slashes."""
    root = _tree(files)
    folders = _breadth_first(root)
    at = _FIRST_FREE
    trees = []
    for joliet in (False, True):
        tree = _Tree(folders, joliet=joliet)
        at = tree.place(at)
        trees.append(tree)
    contents = [file for folder in folders for file in folder.files.values()]
    for file in contents:
        file.sector = at
        at += _sectors(len(file.data))
    image = bytearray(at * SECTOR)
    for number, tree in enumerate(trees):
        _put(image, 16 + number, tree.descriptor(label, at))
        tree.write(image)
    _put(image, 18, b"\xffCD001\x01")
    for file in contents:
        _put(image, file.sector, file.data)
    return bytes(image)


class _Tree:
    """The folders once more, with one kind of names."""

    def __init__(self, folders: list[_Folder], *, joliet: bool) -> None:
        self._folders = folders
        self._joliet = joliet
        self._table_size = len(self._path_table("<", {id(f): 0 for f in folders}))
        self._tables = (0, 0)
        self._sectors: dict[int, int] = {}
        self._sizes: dict[int, int] = {}
        self._sizes = {id(folder): len(self._records(folder)) for folder in folders}

    def place(self, at: int) -> int:
        """Give everything its sector; the first one that is free afterwards."""
        length = _sectors(self._table_size)
        self._tables = (at, at + length)
        at += 2 * length
        for folder in self._folders:
            self._sectors[id(folder)] = at
            at += _sectors(self._sizes[id(folder)])
        return at

    def write(self, image: bytearray) -> None:
        """Path tables and folders."""
        for order, sector in zip("<>", self._tables, strict=True):
            _put(image, sector, self._path_table(order, self._sectors))
        for folder in self._folders:
            _put(image, self._sectors[id(folder)], self._records(folder))

    def descriptor(self, label: str, total: int) -> bytes:
        """The volume descriptor that leads to this tree."""
        kind = 2 if self._joliet else 1
        root = self._record(b"\0", self._folders[0])
        text = self._text
        body = struct.pack("<B5sBB", kind, b"CD001", 1, 0) + text("", 32) + text(label, 32)
        body += (
            bytes(8)
            + _both(total, "I")
            + (_JOLIET_ESCAPE if self._joliet else b"").ljust(32, b"\0")
        )
        body += _both(1, "H") + _both(1, "H") + _both(SECTOR, "H") + _both(self._table_size, "I")
        body += struct.pack("<II", self._tables[0], 0) + struct.pack(">II", self._tables[1], 0)
        body += root + text("", 128) * 4 + text("", 37) * 3
        body += _NO_LONG_DATE * 4 + b"\x01"
        return body.ljust(SECTOR, b"\0")

    def _text(self, words: str, size: int) -> bytes:
        if not self._joliet:
            return words.upper().encode("ascii", "replace").ljust(size, b" ")[:size]
        even = size // 2 * 2
        return (words.encode("utf-16-be") + b"\0 " * size)[:even].ljust(size, b"\0")

    def _name(self, name: str, *, is_folder: bool) -> bytes:
        if self._joliet:
            return (name if is_folder else f"{name};1").encode("utf-16-be")
        stem, _, ending = name.upper().partition(".")
        plain = "".join(c if c.isalnum() and c.isascii() else "_" for c in stem)[:27]
        if is_folder:
            return plain.encode()
        return f"{plain}.{ending[:3]};1".encode("ascii", "replace")

    def _record(self, name: bytes, of: "_Folder | _File") -> bytes:
        if isinstance(of, _Folder):
            sector, size = self._sectors.get(id(of), 0), _round(self._sizes.get(id(of), 0))
        else:
            sector, size = of.sector, len(of.data)
        flags = 2 if isinstance(of, _Folder) else 0
        body = b"\0" + _both(sector, "I") + _both(size, "I") + _NO_DATE
        body += struct.pack("<BBB", flags, 0, 0) + _both(1, "H") + bytes([len(name)]) + name
        if len(body) % 2 == 0:
            body += b"\0"
        return bytes([len(body) + 1]) + body

    def _entries(self, folder: _Folder) -> list[bytes]:
        named: list[tuple[bytes, _Folder | _File]] = [
            (self._name(name, is_folder=True), below) for name, below in folder.folders.items()
        ]
        named += [(self._name(name, is_folder=False), f) for name, f in folder.files.items()]
        own = [self._record(b"\0", folder), self._record(b"\1", folder.parent or folder)]
        return own + [
            self._record(name, of) for name, of in sorted(named, key=lambda pair: pair[0])
        ]

    def _records(self, folder: _Folder) -> bytes:
        """A record never crosses a sector's end."""
        out = bytearray()
        for entry in self._entries(folder):
            if len(out) % SECTOR + len(entry) > SECTOR:
                out += bytes(SECTOR - len(out) % SECTOR)
            out += entry
        return bytes(out)

    def _path_table(self, order: str, sectors: Mapping[int, int]) -> bytes:
        numbers = {id(folder): number for number, folder in enumerate(self._folders, 1)}
        out = b""
        for folder in self._folders:
            name = self._name(folder.name, is_folder=True) if folder.parent else b"\0"
            parent = numbers[id(folder.parent or folder)]
            out += struct.pack(f"{order}BBIH", len(name), 0, sectors[id(folder)], parent)
            out += name + b"\0" * (len(name) % 2)
        return out


def _tree(files: Mapping[str, bytes]) -> _Folder:
    root = _Folder("")
    for path, data in files.items():
        *above, name = path.split("/")
        folder = root
        for part in above:
            folder = folder.folders.setdefault(part, _Folder(part, folder))
        folder.files[name] = _File(name, data)
    return root


def _breadth_first(root: _Folder) -> list[_Folder]:
    """As path tables want them: level by level, by name within one."""
    found = [root]
    for folder in found:
        found.extend(folder.folders[name] for name in sorted(folder.folders))
    return found


def _both(number: int, kind: str) -> bytes:
    """Little-endian, then big-endian: the standard has it so."""
    return struct.pack(f"<{kind}", number) + struct.pack(f">{kind}", number)


def _sectors(size: int) -> int:
    return -(-size // SECTOR)


def _round(size: int) -> int:
    return _sectors(size) * SECTOR


def _put(image: bytearray, sector: int, data: bytes) -> None:
    image[sector * SECTOR : sector * SECTOR + len(data)] = data
