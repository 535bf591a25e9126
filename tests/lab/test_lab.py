"""The lab itself: hosts end with everything in them, and guests behave as their names say."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import libvirt
import pytest

from tests.lab import LabHost
from tests.lab import Mode
from tests.lab import lab_host
from tests.lab import tiny_guest
from tests.lab.guest import wait_until


def _qemu_pids(folder: Path) -> list[int]:
    """Processes whose command line names the folder; only QEMU's do."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if b"qemu-system" in words and str(folder).encode() in words:
            found.append(int(entry.name))
    return found


def test_a_graceful_guest_obeys_the_power_button(lab: LabHost) -> None:
    guest = tiny_guest(lab)
    guest.start()
    guest.wait_for("armed")
    guest.domain().shutdown()
    guest.wait_until_off()
    assert "power button, off" in guest.serial()
    guest.remove()


def test_a_guest_that_ignores_the_button_stays_on(lab: LabHost) -> None:
    guest = tiny_guest(lab, Mode.IGNORE)
    guest.start()
    guest.wait_for("ready")
    guest.domain().shutdown()
    guest.domain().destroy()
    assert "button" not in guest.serial()
    guest.remove()


def test_guests_power_off_and_reboot_themselves(lab: LabHost) -> None:
    off = tiny_guest(lab, Mode.SELFOFF, delay_s=1)
    again = tiny_guest(lab, Mode.SELFREBOOT, delay_s=1)
    off.start()
    again.start()
    off.wait_until_off()
    again.wait_for("ready", times=2)
    off.remove()
    again.remove()


def test_a_libvirtd_that_was_told_to_come_again_is_waited_for(lab: LabHost) -> None:
    first = lab.libvirtd()
    lab.kill_libvirtd()
    lab.start_libvirtd()
    assert lab.libvirtd() != first


@pytest.mark.serial
def test_a_host_goes_with_its_guests_and_leaves_nothing() -> None:
    with lab_host("gone") as host:
        guest = tiny_guest(host)
        guest.start()
        guest.wait_for("armed")
        assert _qemu_pids(host.folder) != []
        folder = host.folder
    assert _qemu_pids(folder) == []
    assert not folder.exists()


@pytest.mark.serial
def test_a_host_ends_even_when_its_owner_is_killed() -> None:
    command = [sys.executable, "-m", "tests.lab"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        uri = owner.stdout.readline().strip()
        folder = Path(uri.partition("socket=")[2]).parents[1]
        connection = libvirt.open(uri)
        assert connection.isAlive()
        connection.close()
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
    wait_until(lambda: _daemons(folder) == [], lambda: f"outlived its owner: {_daemons(folder)}")
    _remove_when_quiet(folder)


def _daemons(folder: Path) -> list[str]:
    """Processes that still have the host's folder mounted."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"{folder.name}/lib" in (entry / "mountinfo").read_text():
                found.append((entry / "comm").read_text().strip())
        except OSError:
            continue
    return found


def _remove_when_quiet(folder: Path) -> None:
    for _ in range(50):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)
    raise AssertionError(f"{folder} could not be removed")
