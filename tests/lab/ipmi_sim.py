"""A whole IPMI BMC: OpenIPMI's `ipmi_sim`, with sensors, FRU data, a light and a serial line.

    with ipmi_sim(folder) as sim:
        node = make_node(driver="ipmi", driver_info=sim.driver_info)

No machine stands behind it but files: `sim.says("power")` is what the BMC was last told of it. The
other end of its serial line asks for a login at Enter, and puts what else is typed in brackets. It
knows no NMI.
"""

import asyncio
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.lab.bmc import USERNAME
from tests.lab.bmc import listens
from tests.lab.cache import LabUnavailable
from tests.lab.guest import PATIENCE_S
from tests.lab.guest import wait_until
from tests.support.ports import free_port

_GREETING = b"machine login: "
_PASSWORD = "correct-horse"  # its configuration cannot hold a space
_LAN = """
name "bmc"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_admin md5
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "{folder}/chassis 0x20"
  user 2 true "{username}" "{password}" admin 10 md5
  sol "tcp:127.0.0.1:{serial}" 115200
"""
# Called with `0x20 get power boot …` or `0x20 set power 1`; keeps each in a file.
_CHASSIS = """#!/bin/sh
cd {folder}/state
shift
case $1 in
get) shift; for name; do echo "$name:$(cat "$name")"; done ;;
set) shift; name=$1; shift; echo "$*" >"$name"; [ "$name" != shutdown ] || echo 0 >power ;;
esac
"""
_START = {"power": "0", "boot": "none", "identify": "0 0"}
# Number, kind of sensor, unit (both as IPMI numbers them), name, (factor, its power of ten), raw.
_SENSORS = (
    (1, 0x01, 1, "Inlet Temp", (1, 0), 21),
    (2, 0x04, 18, "Fan 1", (60, 0), 50),
    (3, 0x02, 4, "12V", (6, -2), 200),
    (4, 0x0B, 6, "PSU draw", (2, 0), 60),
)
_EVENTS = "enable scanning per-state" + 4 * " 000111111000000"
_BOARD = ("Siderite", "Lab board", "BOARD-1", "PART-1", "")
_PRODUCT = ("Siderite Works", "Iron 1000", "PART-7", "2", "SERIAL-42", "ASSET-9", "")


@dataclass(frozen=True, slots=True)
class IpmiSim:
    """A running simulator."""

    folder: Path
    driver_info: dict[str, str | int]

    def says(self, name: str) -> str:
        """What the BMC was last told of `power`, `boot` or `identify`."""
        return (self.folder / "state" / name).read_text().strip()


async def greeted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Press Enter until the machine asks for a login: this BMC takes the first key of a session for
    a repeat of the last session's.
    """
    heard = b""
    async with asyncio.timeout(PATIENCE_S):
        while _GREETING not in heard:
            writer.write(b"\r")
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    while _GREETING not in heard:
                        said = await reader.read(4096)
                        if not said:
                            raise AssertionError(f"the line ended after {heard!r}")
                        heard += said


@contextmanager
def ipmi_sim(folder: Path) -> Iterator[IpmiSim]:
    """A simulator on loopback, on a free port."""
    if shutil.which("ipmi_sim") is None:
        raise LabUnavailable("ipmi_sim is missing; as root: apt-get install openipmi")
    port = free_port(socket.SOCK_DGRAM)
    with socket.create_server(("127.0.0.1", 0)) as line:
        threading.Thread(target=_answer, args=[line], daemon=True).start()
        _write(folder, port=port, serial=line.getsockname()[1])
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "ipmi_sim", "-n", "-c", folder / "lan.conf",
                 "-f", folder / "bmc.emu", "-s", folder],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        try:
            wait_until(
                lambda: process.poll() is not None or listens(port),
                lambda: "ipmi_sim does not listen",
            )
            if process.poll() is not None:
                raise LabUnavailable(f"ipmi_sim did not start:\n{(folder / 'log').read_text()}")
            yield IpmiSim(folder, _driver_info(port))
        finally:
            process.kill()
            process.wait()


def _driver_info(port: int) -> dict[str, str | int]:
    return {
        "ipmi_address": "127.0.0.1",
        "ipmi_port": port,
        "ipmi_username": USERNAME,
        "ipmi_password": _PASSWORD,
        "ipmi_cipher_suite": 3,
    }


def _answer(line: socket.socket) -> None:
    """The machine's end of the serial line."""
    with suppress(OSError):  # closed with the simulator
        while True:
            peer, _ = line.accept()
            with peer, suppress(OSError):
                while typed := peer.recv(4096):
                    for part in re.split(rb"(\r+)", typed):  # a slow line brings keys together
                        if part:
                            peer.sendall(_GREETING if b"\r" in part else b"[" + part + b"]")


def _write(folder: Path, *, port: int, serial: int) -> None:
    (folder / "state").mkdir(parents=True)
    for name, value in _START.items():
        (folder / "state" / name).write_text(f"{value}\n")
    chassis = folder / "chassis"
    chassis.write_text(_CHASSIS.format(folder=folder))
    chassis.chmod(0o755)
    (folder / "lan.conf").write_text(
        _LAN.format(port=port, serial=serial, folder=folder, username=USERNAME, password=_PASSWORD)
    )
    fru = _fru()
    (folder / "fru").write_bytes(fru)
    lines = [
        "mc_setbmc 0x20",
        "mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02",
        "sel_enable 0x20 50 0x0a",
    ]
    for number, kind, unit, name, (factor, exponent), raw in _SENSORS:
        scale = [factor, 0, 0, 0, 0, (exponent & 15) << 4]
        record = _record(number, kind, unit, scale, name)
        lines += [
            "main_sdr_add 0x20 " + " ".join(f"0x{byte:02x}" for byte in record),
            f"sensor_add 0x20 0 {number} {kind} 0x01",
            f"sensor_set_value 0x20 0 {number} {raw} 0",
            f"sensor_set_event_support 0x20 0 {number} {_EVENTS}",
        ]
    lines += [f'mc_add_fru_data 0x20 0 {len(fru)} file 0 "{folder}/fru"', "mc_enable 0x20"]
    (folder / "bmc.emu").write_text("\n".join(lines) + "\n")


def _record(number: int, kind: int, unit: int, scale: list[int], name: str) -> list[int]:
    """A full sensor record of IPMI 2.0 (table 43-1)."""
    owner = [0x20, 0, number, 7, 1, 0x7F, 0x68, kind, 1]
    masks = [0x80, 0x0A, 0x80, 0x7A, 0x38, 0x38]
    units = [0, unit, 0, 0, *scale]
    limits = [0, 0, 0, 0, 0xFF, 0, 0xFF, 0xF0, 0xE0, 0, 0, 0, 0, 0, 0, 0, 0]
    body = [*owner, *masks, *units, *limits, 0xC0 | len(name), *name.encode()]
    return [0, 0, 0x51, 1, len(body), *body]


def _fru() -> bytes:
    """FRU data with a board and a product area (Platform Management FRU Information Storage)."""
    board = _area([1, 0, 25, 0, 0, 0], _BOARD)
    product = _area([1, 0, 25], _PRODUCT)
    return _summed([1, 0, 0, 1, 1 + len(board) // 8, 0, 0]) + board + product


def _area(head: list[int], fields: tuple[str, ...]) -> bytes:
    body = [*head]
    for field in fields:
        body += [0xC0 | len(field), *field.encode()]
    body.append(0xC1)
    body += [0] * (-(len(body) + 1) % 8)
    body[1] = (len(body) + 1) // 8
    return _summed(body)


def _summed(body: list[int]) -> bytes:
    """With the byte that makes the sum zero."""
    return bytes([*body, -sum(body) % 256])
