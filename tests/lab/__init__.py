"""The test lab: real hypervisor hosts and real guests, small enough for every test run.

    with lab_host() as host:                          # a private libvirtd
        guest = tiny_guest(host, Mode.GRACEFUL)       # a defined domain, 512 bytes of guest
        guest.start()
        guest.wait_for("armed")                       # on its serial line
        guest.domain().shutdown()
        guest.wait_until_off()

`host.py` the hosts, `tiny.py` the 512-byte guest, `linux.py` a Linux kernel with an initramfs of
ours, `guest.py` domains of the tiny guest. In pytest: the fixture `lab`, one host per test
process. By hand: `python -m tests.lab` serves a host until Ctrl-C and prints its URI.
"""

from tests.lab.cache import LabUnavailable
from tests.lab.guest import Guest
from tests.lab.guest import tiny_guest
from tests.lab.host import LabHost
from tests.lab.host import lab_host
from tests.lab.linux import LinuxBoot
from tests.lab.linux import linux_boot
from tests.lab.tiny import Mode
from tests.lab.tiny import tiny_disk

__all__ = [
    "Guest",
    "LabHost",
    "LabUnavailable",
    "LinuxBoot",
    "Mode",
    "lab_host",
    "linux_boot",
    "tiny_disk",
    "tiny_guest",
]
