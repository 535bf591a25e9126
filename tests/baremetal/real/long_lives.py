"""Lives that take too long for every run: `python -m tests.baremetal.real.long_lives`.

The real ironic-python-agent looks its node up, inspects, writes an image and cleans; a UEFI machine
is deployed from virtual media and boots what was written; a machine with an IPMI BMC is inspected
by its ramdisk; machines are rescued over Redfish and over IPMI; a BMC that does everything by tasks
begins anew three times in a deploy and a clean; sushy-emulator flashes a BIOS.
"""

import sys
import tempfile
import time
from pathlib import Path

from siderite.baremetal.drivers.agent.crypt import sha512_crypt
from tests.baremetal.real.life import Life
from tests.baremetal.real.life import ramdisk_options
from tests.baremetal.real.life import ramdisk_params
from tests.baremetal.real.life import upload
from tests.baremetal.real.real_agent import agent
from tests.lab import Mode
from tests.lab import lab_host
from tests.lab import tiny_disk
from tests.lab import tiny_guest
from tests.lab.bmc import ipmi_bmc
from tests.lab.bmc import redfish_bmcs
from tests.lab.bmc import with_pool
from tests.lab.ipmi_sim import ipmi_sim
from tests.lab.iron import HERE
from tests.lab.iron import iron
from tests.lab.redfish_front import emulated
from tests.lab.redfish_front import redfish_front
from tests.lab.uefi_disk import uefi_disk
from tests.support.server import running_server

PASSWORD = "let me in, 17 times"


def a_uefi_machine_boots_ramdisk_and_disk(lab, folder):
    machine = iron(lab, uefi=True)
    guest = machine.guest
    image = uefi_disk(folder / "image.raw", "written by the ramdisk")
    with (
        redfish_bmcs(folder / "bmc", with_pool(lab)) as bmcs,
        running_server(folder, options=ramdisk_options()) as server,
    ):
        info = bmcs.driver_info(guest.uuid, kernel_append_params=ramdisk_params(machine.callback))
        node = Life.enrol(server, driver="redfish", driver_info=info, automated_clean=False)
        node.add_port(guest.mac)
        assert node.verb("manage", "manageable")["boot_mode"] == "uefi"
        node.verb("provide", "available")
        node.patch(instance_info={"image_source": upload(server, image)})
        node.verb("active", "active")
        guest.wait_for("UEFI DISK ready written by the ramdisk")
    guest.remove()


def a_machine_is_inspected_by_its_ramdisk(lab, folder):
    with running_server(folder, options=ramdisk_options()) as server:
        boot_url = f"{server.url.replace('127.0.0.1', HERE)}/boot/v1/boot.ipxe"
        machine = iron(lab, boot_url=boot_url)
        guest = machine.guest
        with ipmi_bmc(folder / "bmc", guest) as info:
            info["kernel_append_params"] = ramdisk_params(machine.callback)
            node = Life.enrol(server, driver="ipmi", driver_info=info)
            node.add_port(guest.mac)
            node.verb("manage", "manageable")
            node.verb("inspect", "inspect wait")
            shown = node.until(lambda node: node["provision_state"] == "manageable", "inspected")
            assert (shown["properties"]["cpus"], shown["properties"]["cpu_arch"]) == ("1", "x86_64")
            assert shown["power_state"] == "power off"
            inventory = node.ask("GET", "/inventory", status=200).json()["inventory"]
            assert inventory["interfaces"][0]["mac_address"] == guest.mac
            assert inventory["disks"][0]["size"] == guest.disk.stat().st_size
            assert "AGENT told what it found" in guest.serial()
        guest.remove()


def machines_are_rescued_over_redfish_and_ipmi(lab, folder):
    """We are killed while the ramdisk boots, unless it comes from us; the disk is as it was."""
    with (
        running_server(folder, options=ramdisk_options()) as server,
        redfish_bmcs(folder / "bmc", with_pool(lab)) as bmcs,
    ):
        here = server.url.replace("127.0.0.1", HERE)
        for driver, boot_url in (("redfish", None), ("ipmi", f"{here}/boot/v1/boot.ipxe")):
            machine = iron(lab, boot_url=boot_url)
            guest = machine.guest
            own = tiny_disk(folder / f"{driver}.raw", Mode.GRACEFUL, tag="my own disk")
            with guest.disk.open("r+b") as disk:
                disk.write(own.read_bytes())
            with ipmi_bmc(folder / driver, guest) as ipmi:
                info = ipmi if driver == "ipmi" else bmcs.driver_info(guest.uuid)
                info["kernel_append_params"] = ramdisk_params(machine.callback)
                node = Life.enrol(server, driver=driver, driver_info=info, rescue_interface="agent")
                node.add_port(guest.mac)
                node.verb("manage", "manageable")
                node.verb("adopt", "active")
                node.verb("rescue", "rescue wait", rescue_password=PASSWORD)
                if driver == "redfish":
                    server.kill()
                    server.start()
                shown = node.until(lambda node: node["provision_state"] == "rescue", "rescue")
                guest.wait_for("AGENT has a rescue password")
                assert shown["power_state"] == "power on"
                assert "rescue_password" not in shown["instance_info"]
                assert guest.is_on()
                node.verb("unrescue", "active")
                guest.wait_for("TINY GUEST ready my own disk")
                assert guest.serial().count("AGENT found node") == 1
            guest.remove()


def a_bmc_begins_anew_in_a_deploy_and_a_clean(lab, folder):
    """Connections are refused for 30 s, then sessions and tasks are forgotten, then all is well."""
    machine = iron(lab)
    guest = machine.guest
    image = tiny_disk(folder / "image.raw", Mode.GRACEFUL, tag="written by the ramdisk")
    with (
        redfish_bmcs(folder / "bmc", with_pool(lab)) as bmcs,
        redfish_front(emulated(bmcs.url)) as front,
        running_server(folder, options=ramdisk_options()) as server,
    ):
        info = bmcs.driver_info(guest.uuid, kernel_append_params=ramdisk_params(machine.callback))
        info |= front.driver_info
        node = Life.enrol(server, driver="redfish", driver_info=info, automated_clean=False)
        node.add_port(guest.mac)
        node.verb("manage", "manageable")
        node.verb("provide", "available")
        node.patch(instance_info={"image_source": upload(server, image)}, automated_clean=True)
        front.by_task = lambda method, path: True

        def anew_once(holds, what):
            node.until(lambda node: holds(), what)
            front.stop()
            time.sleep(30)  # the time it takes, not one to wait for something
            front.start()

        node.ask("PUT", "/states/provision", {"target": "active"}, 202)
        anew_once(lambda: front.told("InsertMedia"), "a medium")
        anew_once(lambda: "AGENT begins write_image" in guest.serial(), "the image")
        node.until(lambda node: node["provision_state"] == "active", "active")
        guest.wait_for("TINY GUEST ready written by the ramdisk")
        node.ask("PUT", "/states/provision", {"target": "deleted"}, 202)
        anew_once(lambda: "AGENT begins erase_devices_metadata" in guest.serial(), "cleaning")
        node.until(lambda node: node["provision_state"] == "available", "available")
        said = guest.serial()
        for once in ("begins write_image", "begins erase_devices_metadata"):
            assert said.count(f"AGENT {once}") == 1, f"{once}: {said.count(once)} times"
        assert said.count("AGENT found node") == 2, "each work has booted one ramdisk"
        assert any("could not be reached" in str(why) for _, _, why in node.seen)
        assert any("has a task for" in str(why) for _, _, why in node.seen)
    guest.remove()


def a_bios_is_flashed_by_the_emulator(lab, folder):
    """It wants to know the target, has no list of tasks, and flashes at once."""
    guest = tiny_guest(lab)
    with (
        redfish_bmcs(folder / "bmc", with_pool(lab)) as bmcs,
        running_server(folder) as server,
    ):
        node = Life.enrol(server, driver="redfish", driver_info=bmcs.driver_info(guest.uuid))
        node.verb("manage", "manageable")

        def version():
            parts = node.ask("GET", "/firmware", status=200).json()["firmware"]
            return next(part for part in parts if part["component"] == "bios")

        major, minor, *rest = version()["current_version"].split(".")
        image = {"component": "bios", "url": "http://files.invalid/bios.bin"}
        step = {"interface": "firmware", "step": "update", "args": {"settings": [image]}}
        shown = node.verb("clean", "manageable", clean_steps=[step])
        after = ".".join([major, str(int(minor) + 1), *rest])
        assert (version()["current_version"], version()["last_version_flashed"]) == (after, after)
        assert (shown["power_state"], guest.is_on()) == ("power off", False)
    guest.remove()


def ironic_python_agent_inspects_deploys_and_cleans(lab, folder):
    """The agent itself, with a machine of files below it; it runs while the BMC says power on."""
    disk, mac = folder / "disk", "52:54:00:77:00:01"
    with disk.open("wb") as file:
        file.truncate(64 << 20)
    folder.chmod(0o755)
    for name in ("kernel", "ramdisk"):
        (folder / name).touch()
    options = {
        "deploy_kernel": str(folder / "kernel"),
        "deploy_ramdisk": str(folder / "ramdisk"),
        "kernel_append_params": "",
    }
    image = tiny_disk(folder / "image.raw", Mode.GRACEFUL, tag="written by the agent")
    (folder / "bmc").mkdir()
    log = folder / "agent.log"

    with ipmi_sim(folder / "bmc") as bmc, running_server(folder, options=options) as server:
        node = Life.enrol(
            server, driver="ipmi", driver_info=bmc.driver_info, automated_clean=False,
            rescue_interface="agent",
        )  # fmt: skip
        node.add_port(mac)
        node.verb("manage", "manageable")

        def through(target, waits, end, *words, **more):
            """A verb, with an agent that runs as long as it is waited for."""
            node.verb(target, waits, **more)
            assert bmc.says("power") == "1"
            with agent(folder / target, server.url, words, mac=mac, disk=disk, log=log):
                try:
                    return node.until(lambda node: node["provision_state"] == end, end)
                except AssertionError as why:
                    raise AssertionError(f"{why}\n{log.read_text()[-6000:]}") from None

        look = f"{server.url}/baremetal/v1/continue_inspection"
        shown = through("inspect", "inspect wait", "manageable", "--inspection_callback_url", look)
        assert (shown["properties"]["cpus"], shown["properties"]["memory_mb"]) == ("4", "8192")
        node.verb("provide", "available")
        node.patch(instance_info={"image_source": upload(server, image)})
        through("active", "wait call-back", "active")
        assert disk.read_bytes()[: 1 << 20] == image.read_bytes()
        through("rescue", "rescue wait", "rescue", rescue_password=PASSWORD)
        kept = (folder / "rescue" / "rescue-password").read_text()
        assert kept == sha512_crypt(PASSWORD, kept.split("$")[2])
        node.verb("unrescue", "active")
        node.patch(automated_clean=True)
        through("deleted", "clean wait", "available")
        assert disk.read_bytes()[: 1 << 20] == bytes(1 << 20)


def main():
    for life in (
        ironic_python_agent_inspects_deploys_and_cleans,
        a_uefi_machine_boots_ramdisk_and_disk,
        a_machine_is_inspected_by_its_ramdisk,
        machines_are_rescued_over_redfish_and_ipmi,
        a_bmc_begins_anew_in_a_deploy_and_a_clean,
        a_bios_is_flashed_by_the_emulator,
    ):
        if sys.argv[1:] and life.__name__ not in sys.argv[1:]:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="siderite-life-") as folder, lab_host() as lab:
            life(lab, Path(folder))
        print(f"{life.__name__.replace('_', ' ')}: {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
