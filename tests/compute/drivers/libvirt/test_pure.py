"""The parts that need no host: descriptions, names, the config drive, image headers."""

import base64
import json
import struct
import subprocess
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as Xml

import libvirt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siderite.compute.drivers.contract import CLIENT_PATIENCE_S
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.contract import Nic
from siderite.compute.drivers.libvirt import interfaces
from siderite.compute.drivers.libvirt import library
from siderite.compute.drivers.libvirt import names
from siderite.compute.drivers.libvirt.config_drive import config_drive
from siderite.compute.drivers.libvirt.dialling import CannotDial
from siderite.compute.drivers.libvirt.dialling import dial
from siderite.compute.drivers.libvirt.dialling import ssh_of
from siderite.compute.drivers.libvirt.domain_xml import Files
from siderite.compute.drivers.libvirt.domain_xml import HostTraits
from siderite.compute.drivers.libvirt.domain_xml import Shape
from siderite.compute.drivers.libvirt.domain_xml import domain_xml
from siderite.compute.drivers.libvirt.image_file import inspect
from siderite.compute.drivers.libvirt.iso import iso
from siderite.compute.drivers.libvirt.names import Mark
from siderite.compute.drivers.libvirt.trouble import Refused
from siderite.compute.drivers.libvirt.trouble import cannot_connect
from siderite.compute.drivers.metadata import network_data
from siderite.compute.workers import talk
from tests.compute.drivers.libvirt.world import World
from tests.compute.drivers.libvirt.world import new_guest

FILES = Files(("/p/disk",), "/p/log", "/p/config")
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40)


def _describe(has_kvm: bool = False, files: Files = FILES, **fields: object) -> Xml.Element:
    shape = Shape(new_guest("i", **fields), HostTraits("x86_64", has_kvm), files, Mark("t", 3))
    return Xml.fromstring(domain_xml(shape))


def test_events_are_waited_for_again_after_that_failed() -> None:
    """The library's own loop cannot be made to fail, so this one is in its place."""
    waits = iter([None, libvirt.libvirtError("no memory"), None, KeyboardInterrupt()])

    def wait() -> None:
        if (error := next(waits)) is not None:
            raise error

    ours = SimpleNamespace(virEventRunDefaultImpl=wait, libvirtError=libvirt.libvirtError)
    with pytest.raises(KeyboardInterrupt):
        library._run(ours, pause_s=0.0)
    assert not list(waits)


def test_kvm_is_used_only_where_the_host_has_it() -> None:
    assert _describe(has_kvm=True).get("type") == "kvm"
    assert _describe(has_kvm=True).find("cpu[@mode='host-model']") is not None
    assert _describe().get("type") == "qemu"
    assert _describe().find("cpu") is None


def test_image_properties_choose_devices_and_bad_ones_are_passed_over() -> None:
    chosen = {"hw_disk_bus": "sata", "hw_vif_model": "e1000", "hw_machine_type": "q35"}
    nic = Nic("p", "n", "bridge", "br0", "fa:16:3e:00:00:01", "192.0.2.5", 24)
    root = _describe(image_properties=chosen, nics=(nic,))
    assert root.find("devices/disk[@device='disk']/target[@dev='sda']") is not None
    assert root.find("devices/disk[@device='cdrom']/target[@bus='sata']") is not None
    assert root.find("devices/interface[@type='bridge']/source[@bridge='br0']") is not None
    assert root.find("devices/interface/model[@type='e1000']") is not None
    odd = _describe(image_properties={"hw_disk_bus": "telepathy", "hw_firmware_type": "uefi"})
    assert odd.find("devices/disk/target[@bus='virtio']") is not None
    assert odd.find("os[@firmware='efi']") is not None


def test_a_kernel_of_its_own_is_booted_directly() -> None:
    files = Files(("/p/disk",), "/p/log", None, "/p/kernel", "/p/ramdisk")
    root = _describe(files=files, image_properties={"os_command_line": "a b"})
    words = [root.findtext(f"os/{tag}") for tag in ("kernel", "initrd", "cmdline")]
    assert words == ["/p/kernel", "/p/ramdisk", "a b"]
    assert root.find("devices/disk[@device='cdrom']") is None


@pytest.mark.parametrize("name", ["hw_machine_type", "hw_video_model", "os_command_line"])
@pytest.mark.parametrize("character", ["\x01", "\ufffe"])
def test_what_libvirt_cannot_read_is_refused_in_a_sentence(name: str, character: str) -> None:
    files = Files(("/p/disk",), "/p/log", None, "/p/kernel")
    with pytest.raises(Refused, match="has the character") as refused:
        _describe(files=files, image_properties={name: f"a{character}b"})
    assert "<domain" not in refused.value.reason and not refused.value.elsewhere


@given(TEXT, TEXT)
def test_whatever_a_server_is_called_libvirt_gets_well_formed_xml(name: str, word: str) -> None:
    properties = {"os_command_line": "".join(c for c in word if c.isprintable())}
    files = Files(("/p/disk",), "/p/log", None, "/p/kernel")
    text = domain_xml(
        Shape(
            new_guest("i", display_name=name, image_properties=properties),
            HostTraits("x86_64", False),
            files,
        )
    )
    title = Xml.fromstring(text).findtext("title")
    assert title is not None
    assert "\n" not in title


def test_the_mark_is_read_back_as_it_was_written() -> None:
    mark = Mark("token", 4, is_rescued=True)
    shape = Shape(new_guest("i"), HostTraits("x86_64", False), FILES, mark)
    assert names.mark_of(domain_xml(shape)) == mark
    assert names.mark_of("<domain/>") is None


def test_only_a_sealed_upload_counts_as_a_cached_image() -> None:
    base = names.new_base("an-image", "0abc", "qcow2", 1 << 30)
    other = names.new_base("an-image-2", "0abc", "raw", 5)
    assert names.sealed("an-image", [base.name]) is None
    assert names.sealed("an-image", [base.seal]) is None
    assert names.sealed("an-image", [other.seal, other.name, base.seal, base.name]) == base


def test_disks_and_the_way_back_are_told_by_their_names() -> None:
    assert names.generation_of(names.disk("u", 12)) == 12
    assert names.generation_of(names.further_disk("u", "rescue")) == 0
    assert names.way_back_of("u", ["x.back-to-1", names.way_back("u", 7)]) == 7
    assert names.way_back_of("u", ["u.disk-1.qcow2"]) is None


def _extract(image: bytes, path: str, folder: Path) -> bytes:
    file = folder / "drive.iso"
    file.write_bytes(image)
    command = ["isoinfo", "-J", "-i", file, "-x", f"/{path};1"]
    return subprocess.run(command, check=True, capture_output=True).stdout


def test_the_config_drive_is_an_iso_that_others_can_read(tmp_path: Path) -> None:
    guest = new_guest(
        "i",
        user_data=base64.b64encode(b"#cloud-config\n" * 300).decode(),
        public_key="ssh-ed25519 AAAA",
        key_name="mine",
        admin_password="pw",
        metadata={"colour": "røst"},
        launch_index=2,
        files=(("/etc/motd", base64.b64encode(b"hello").decode()),),
        nics=(Nic("p", "n", "user", "", "fa:16:3e:00:00:01", "10.0.0.9", 24, tag="front"),),
    )
    image = config_drive(guest)
    assert image[16 * 2048 + 40 : 16 * 2048 + 48] == b"CONFIG-2"
    meta = json.loads(_extract(image, "openstack/latest/meta_data.json", tmp_path))
    assert meta["uuid"] == guest.uuid
    assert meta["public_keys"] == {"mine": "ssh-ed25519 AAAA"}
    assert meta["meta"] == {"colour": "røst"}
    assert meta["admin_pass"] == "pw"
    assert meta["launch_index"] == 2
    assert meta["devices"] == [{"type": "nic", "mac": "fa:16:3e:00:00:01", "tags": ["front"]}]
    assert meta["files"] == [{"path": "/etc/motd", "content_path": "/content/0000"}]
    assert _extract(image, "openstack/content/0000", tmp_path) == b"hello"
    user_data = _extract(image, "openstack/latest/user_data", tmp_path)
    assert user_data == b"#cloud-config\n" * 300
    assert config_drive(guest) == image


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}/[a-z_.]{1,20}", fullmatch=True), st.binary()))
def test_an_iso_is_whole_sectors_and_has_every_file(files: dict[str, bytes]) -> None:
    image = iso("label", files)
    assert len(image) % 2048 == 0
    assert struct.unpack_from("<I", image, 16 * 2048 + 80)[0] == len(image) // 2048
    assert all(data in image for data in files.values())


def test_network_data_has_addresses_or_says_dhcp() -> None:
    fixed = Nic("p", "n", "network", "default", "fa:16:3e:00:00:01", "192.0.2.5", 24, "192.0.2.1")
    user = Nic("q", "m", "user", "", "fa:16:3e:00:00:02", "10.0.2.15", 24)
    first, second = network_data((fixed, user))["networks"]
    assert first["type"] == "ipv4"
    assert first["ip_address"] == "192.0.2.5/24"
    assert first["routes"][0]["gateway"] == "192.0.2.1"
    assert second["type"] == "ipv4_dhcp"


@pytest.mark.parametrize(
    ("head", "format"), [(b"KDMV", "vmdk"), (b"conectix", "vhd"), (b"vhdxfile", "vhdx")]
)
def test_other_formats_are_refused_with_the_way_to_convert_them(
    tmp_path: Path, head: bytes, format: str
) -> None:
    file = tmp_path / "image"
    file.write_bytes(head + bytes(600))
    with pytest.raises(Refused, match=f"is a {format} file; convert it"):
        inspect(file, "i")


def test_ssh_is_told_that_nobody_can_type_a_password(tmp_path: Path) -> None:
    asked = dial("qemu+ssh://u@h/system", {}, tmp_path)
    program = Path(asked.removeprefix("qemu+ssh://u@h/system?no_tty=1&command="))
    assert "BatchMode=yes" in program.read_text()
    assert dial("qemu:///system", {"keyfile": "/k"}, tmp_path) == "qemu:///system"


@pytest.mark.parametrize("scheme", ["qemu+ssh", "qemu+ext", "qemu+unix"])
def test_no_uri_makes_us_run_a_program(tmp_path: Path, scheme: str) -> None:
    with pytest.raises(CannotDial, match="names a command"):
        dial(f"{scheme}://h/system?command=/bin/sh", {}, tmp_path)


def test_a_screen_behind_ssh_is_reached_by_the_same_key() -> None:
    ssh = ssh_of("qemu+ssh://u@h:23/system?keyfile=/k%20y", {"known_hosts": "/known hosts"})
    assert ssh is not None
    words = ssh.to("::1", 5901)
    assert words[-4:] == ("-W", "[::1]:5901", "--", "h")
    assert words[words.index("-i") : words.index("-i") + 2] == ("-i", "/k y")
    assert 'UserKnownHostsFile="/known hosts"' in words
    assert words[words.index("-p") : words.index("-p") + 4] == ("-p", "23", "-l", "u")
    assert ssh_of("qemu+tls://h/system", {}) is None


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("Host key verification failed.", "known_hosts"),
        ("unable to connect to server at 'h:16509': Connection refused", "check host and port"),
        ("Failed to connect socket to '/x': No such file or directory", "is libvirtd running"),
        ("something new", "check the host and its URI"),
    ],
)
def test_why_a_host_cannot_be_reached_comes_with_a_remedy(said: str, remedy: str) -> None:
    text = cannot_connect("h1", "qemu+ssh://h/system", Exception(said))
    assert text.startswith("host h1 (qemu+ssh://h/system) cannot be reached: ")
    assert remedy in text


def test_libvirts_own_mock_host_has_a_capacity_and_a_pool(world: World) -> None:
    at = At("mock", "test:///default")
    offered = world.run(world.driver.life.capacity(at))
    assert isinstance(offered, list), offered
    assert offered[0].hypervisor_type == "TEST"
    keep = libvirt.open(at.uri)
    assert keep.isAlive()
    keep.close()


def test_a_client_is_told_of_a_guest_that_does_not_let_go_while_it_still_waits() -> None:
    look_again_s = interfaces._ASK_AGAIN_S
    assert interfaces.RELEASE_S + look_again_s < CLIENT_PATIENCE_S == talk.PATIENCE_S
