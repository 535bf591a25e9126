"""The life of a real machine behind an IPMI BMC: no virtual media, so it boots by iPXE."""

import pytest

from tests.baremetal.real.life import Life
from tests.baremetal.real.life import image
from tests.baremetal.real.life import ramdisk_options
from tests.baremetal.real.life import ramdisk_params
from tests.lab.bmc import files_served
from tests.lab.bmc import ipmi_bmc
from tests.lab.iron import HERE
from tests.lab.iron import iron
from tests.support.server import running_server


@pytest.mark.parametrize("cleans", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_machine_is_deployed_over_the_network_used_and_offered_again(lab, tmp_path, cleans):
    served = tmp_path / "images"
    served.mkdir()
    name, checksum = image(served, "written over iPXE")
    with (
        running_server(tmp_path, options=ramdisk_options()) as server,
        files_served(served) as images,
    ):
        here = server.url.replace("127.0.0.1", HERE)
        machine = iron(lab, boot_url=f"{here}/boot/v1/boot.ipxe")
        guest = machine.guest
        with ipmi_bmc(tmp_path / "bmc", guest) as driver_info:
            append = ramdisk_params(machine.callback)
            node = Life.enrol(
                server,
                driver="ipmi",
                driver_info={**driver_info, "kernel_append_params": append},
                automated_clean=False,
            )
            node.add_port(guest.mac)
            node.verb("manage", "manageable")
            node.verb("provide", "available")
            node.patch(
                instance_info={
                    "image_source": f"{images.replace('127.0.0.1', HERE)}/{name}",
                    "image_os_hash_algo": "sha256",
                    "image_os_hash_value": checksum,
                }
            )
            assert node.verb("active", "active")["power_state"] == "power on"
            guest.wait_for("TINY GUEST ready written over iPXE")

            node.power("soft power off", "power off")
            node.patch(automated_clean=cleans)
            shown = node.verb("deleted", "available")
            assert (shown["power_state"], shown["instance_info"]) == ("power off", {})
            assert (guest.disk.read_bytes()[:512] == bytes(512)) is cleans
        guest.remove()
