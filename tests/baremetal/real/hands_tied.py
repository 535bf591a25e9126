"""ironic-python-agent, unchanged, in a process that can do nothing to the machine it runs on.

Run by `real_agent` as nobody, without capabilities, with IPA's own packages on the path. Its
only hardware manager sees a machine made of files: one disk, a file that images are written to and
whose metadata is erased. No command is ever run; those that would read the disk's
identity find none.
"""

import os
import sys
from pathlib import Path

from ironic_python_agent import config  # noqa: F401 - others want its options at their import
from ironic_python_agent import hardware
from ironic_python_agent import tls_utils
from ironic_python_agent.cmd import agent
from ironic_python_agent.extensions import rescue
from ironic_python_agent.extensions import standby
from oslo_concurrency import processutils

_DISK = os.environ["PAPER_DISK"]
_MAC = os.environ["PAPER_MAC"]
_READS = {"lsblk": 'UUID="" PARTUUID=""\n', "hexdump": "0x00000000"}


def _never(*command, **_):
    if command[0] in _READS and _DISK in command:
        return _READS[command[0]], ""
    raise processutils.ProcessExecutionError(cmd=" ".join(map(str, command)), exit_code=127)


class Paper(hardware.GenericHardwareManager):
    """A machine of files."""

    def initialize(self):
        """There is nothing to wait for."""

    def _get_system_lshw_dict(self):
        return {}

    def list_network_interfaces(self):
        return [hardware.NetworkInterface("eth0", _MAC, ipv4_address="127.0.0.1", has_carrier=True)]

    def get_cpus(self):
        return hardware.CPU("paper", 1000, 4, "x86_64")

    def get_memory(self):
        return hardware.Memory(8 << 30, 8192)

    def list_block_devices(self, include_partitions=False, all_serial_and_wwn=False):
        return [hardware.BlockDevice(_DISK, "paper", Path(_DISK).stat().st_size, False)]

    def get_os_install_device(self, permit_refresh=False):
        return _DISK

    def get_system_vendor_info(self):
        firmware = hardware.SystemFirmware("Paper", "1", "2026")
        return hardware.SystemVendorInfo("Sheet", "S-1", "Paper Works", firmware)

    def get_bmc_address(self):
        return None

    get_bmc_mac = get_bmc_v6address = get_bmc_address

    def get_boot_info(self):
        return hardware.BootInfo("bios", _MAC)

    def get_usb_devices(self):
        return []

    def erase_devices_metadata(self, node, ports):
        with Path(_DISK).open("r+b") as disk:
            disk.write(bytes(1 << 20))

    def generate_tls_certificate(self, ip_address):
        """As the agent makes it, but in a folder of its own."""
        certificate, key = (str(Path.home() / name) for name in ("agent.crt", "agent.key"))
        text = tls_utils._generate_tls_certificate(certificate, key, "paper", ip_address)
        return tls_utils.TlsCertificate(text, certificate, key)

    def full_sync(self):
        """Files need none."""


processutils.execute = _never
paper = {"manager": Paper(), "support": hardware.HardwareSupport.SERVICE_PROVIDER}
hardware.get_managers_detail = lambda: [paper]
rescue.PASSWORD_FILE = str(Path.home() / "rescue-password")
standby._validate_partitioning = lambda device: None  # it would run parted
sys.exit(agent.run())
