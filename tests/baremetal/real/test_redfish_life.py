"""The life of a real machine behind a Redfish BMC, from enrolment to its next use."""

from tests.baremetal.real.life import Life
from tests.baremetal.real.life import image
from tests.baremetal.real.life import ramdisk_options
from tests.baremetal.real.life import ramdisk_params
from tests.lab.bmc import files_served
from tests.lab.bmc import redfish_bmcs
from tests.lab.bmc import with_pool
from tests.lab.iron import HERE
from tests.lab.iron import iron
from tests.support.server import running_server


def test_a_machine_is_deployed_from_virtual_media_used_cleaned_and_offered_again(lab, tmp_path):
    served = tmp_path / "images"
    served.mkdir()
    name, checksum = image(served, "written by the ramdisk")
    machine = iron(lab)
    guest = machine.guest
    with (
        redfish_bmcs(tmp_path / "bmc", with_pool(lab)) as bmcs,
        files_served(served) as images,
        running_server(tmp_path, options=ramdisk_options()) as server,
    ):
        node = Life.enrol(
            server,
            driver="redfish",
            driver_info=bmcs.driver_info(
                guest.uuid, kernel_append_params=ramdisk_params(machine.callback)
            ),
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
                "configdrive": {"meta_data": {"hostname": "iron"}},
            }
        )
        shown = node.verb("active", "active")
        assert shown["power_state"] == "power on"
        assert "wait call-back" in [state for state, _, _ in node.seen]
        guest.wait_for("TINY GUEST ready written by the ramdisk")
        assert "AGENT has a config drive" in guest.serial()
        assert not {"agent_url", "ramdisk"} & set(shown["driver_internal_info"])

        node.power("soft power off", "power off")
        assert "power button, off" in guest.serial()
        node.patch(automated_clean=True)
        shown = node.verb("deleted", "available")
        assert (shown["power_state"], shown["instance_info"]) == ("power off", {})
        assert "AGENT did erase_devices_metadata" in guest.serial()
        assert guest.disk.read_bytes()[:512] == bytes(512), "nothing is left of the image"
        assert not any((server.data / "boot").iterdir()), "no boot files are left behind"
    guest.remove()
