"""The life of a real machine behind a Redfish BMC, from enrolment to its next use."""

from siderite.core.ids import new_uuid
from tests.baremetal.real.life import Life
from tests.baremetal.real.life import image
from tests.baremetal.real.life import ramdisk_options
from tests.baremetal.real.life import ramdisk_params
from tests.baremetal.real.life import upload
from tests.baremetal.workers.receiver import receiving
from tests.baremetal.workers.receiver import wait_for
from tests.lab.bmc import redfish_bmcs
from tests.lab.bmc import with_pool
from tests.lab.iron import iron
from tests.support.server import running_server


def test_a_machine_is_deployed_from_virtual_media_used_cleaned_and_offered_again(lab, tmp_path):
    served = tmp_path / "images"
    served.mkdir()
    name, _ = image(served, "written by the ramdisk")
    machine = iron(lab)
    guest = machine.guest
    with (
        redfish_bmcs(tmp_path / "bmc", with_pool(lab)) as bmcs,
        receiving() as compute,
        running_server(
            tmp_path,
            options=ramdisk_options()
            | {"compute_endpoint": compute.url, "power_watch_interval_s": "2"},
        ) as server,
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

        instance = new_uuid()
        node.patch(
            instance_uuid=instance,
            instance_info={
                "image_source": upload(server, served / name),
                "configdrive": {"meta_data": {"hostname": "iron"}},
            },
        )
        node.verb("active", "wait call-back")
        server.kill()  # the ramdisk boots meanwhile, and the work goes on where it was
        server.start()
        shown = node.until(lambda node: node["provision_state"] == "active", "active")
        assert shown["power_state"] == "power on"
        assert "wait call-back" in [state for state, _, _ in node.seen]
        guest.wait_for("TINY GUEST ready written by the ramdisk")
        assert "AGENT has a config drive" in guest.serial()
        assert not {"agent_url", "ramdisk"} & set(shown["driver_internal_info"])

        wait_for(lambda: compute.taken[-1:] == [(instance, "POWER_ON")])
        told = len(compute.taken)
        guest.domain().destroy()  # behind our back
        node.until(lambda node: node["power_state"] == "power off", "the record follows")
        wait_for(lambda: len(compute.taken) > told)
        assert compute.taken[told:] == [(instance, "POWER_OFF")]

        node.power("power on", "power on")
        node.power("soft power off", "power off")
        assert "power button, off" in guest.serial()
        wait_for(lambda: len(compute.taken) >= told + 3)
        assert [tag for _, tag in compute.taken[told:]] == ["POWER_OFF", "POWER_ON", "POWER_OFF"]
        node.patch(automated_clean=True)
        shown = node.verb("deleted", "available")
        assert (shown["power_state"], shown["instance_info"]) == ("power off", {})
        assert "AGENT did erase_devices_metadata" in guest.serial()
        assert guest.disk.read_bytes()[:512] == bytes(512), "nothing is left of the image"
        assert not any((server.data / "boot").iterdir()), "no boot files are left behind"
    guest.remove()
