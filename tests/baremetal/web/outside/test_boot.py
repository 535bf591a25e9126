"""What machines boot from: scripts by their address, files by a secret."""

import asyncio

import pytest

from tests.support.app import running

MAC = "52:54:00:12:34:56"


async def get(app, path, **how):
    return await app.ask("GET", f"/boot/v1/{path}", version=None, token="", **how)


async def booting(app, phase):
    boot = {"kernel": "http://k/vmlinuz", "ramdisk": "http://k/initrd", "params": "quiet a=b"}
    record = {"token": "t", "phase": phase, "secret": "s", "boot": boot}
    node = await app.plant("wait call-back", driver_internal_info={"ramdisk": record})
    made = await app.ask("POST", "/v1/ports", {"node_uuid": node, "address": MAC})
    assert made.status == 201, made


@pytest.mark.parametrize("phase", ["on", "lost", "up"])
def test_a_machine_whose_node_waits_for_a_ramdisk_boots_it(tmp_path, phase):
    async def story():
        async with running(tmp_path) as app:
            await booting(app, phase)
            for mac in (MAC, MAC.replace(":", "-"), MAC.upper()):
                said = (await get(app, f"ipxe/{mac}")).body.decode()
                assert said.startswith("#!ipxe\nkernel http://k/vmlinuz initrd=initrd quiet a=b\n")
                assert "initrd --name initrd http://k/initrd\nboot" in said

    asyncio.run(story())


def test_any_other_machine_goes_on_to_its_disk(tmp_path):
    async def story():
        async with running(tmp_path) as app:
            assert (await get(app, f"ipxe/{MAC}")).body == b"#!ipxe\nexit\n"
            await booting(app, "off")
            assert (await get(app, f"ipxe/{MAC}")).body == b"#!ipxe\nexit\n"
            assert (await get(app, "ipxe/nonsense")).status == 400
            assert b"/boot/v1/ipxe/${net0/mac}" in (await get(app, "boot.ipxe")).body

    asyncio.run(story())


def test_a_file_is_given_whole_or_in_part_to_who_knows_its_secret(tmp_path):
    async def story():
        async with running(tmp_path) as app:
            folder = tmp_path / "boot" / "n1" / "s3cret"
            folder.mkdir(parents=True)
            (folder / "boot.iso").write_bytes(bytes(range(256)) * 4096)
            whole = await get(app, "files/n1/s3cret/boot.iso")
            assert (whole.status, len(whole.body)) == (200, 1 << 20)
            part = await get(app, "files/n1/s3cret/boot.iso", headers={"range": "bytes=256-511"})
            assert (part.status, part.body) == (206, bytes(range(256)))
            assert part.headers["content-range"] == f"bytes 256-511/{1 << 20}"
            end = await get(app, "files/n1/s3cret/boot.iso", headers={"range": "bytes=1048575-"})
            assert end.body == b"\xff"
            last = await get(app, "files/n1/s3cret/boot.iso", headers={"range": "bytes=-2"})
            assert (last.status, last.body) == (206, b"\xfe\xff")
            all_of_it = await get(app, "files/n1/s3cret/boot.iso", headers={"range": "bytes=0-"})
            assert (all_of_it.status, len(all_of_it.body)) == (206, 1 << 20)
            assert all_of_it.headers["content-range"] == "bytes 0-1048575/1048576"
            beyond = await get(app, "files/n1/s3cret/boot.iso", headers={"range": "bytes=9999999-"})
            assert beyond.status == 416

    asyncio.run(story())


@pytest.mark.parametrize(
    "path",
    ["n1/other/boot.iso", "n1/s3cret/passwd", "../n1/boot.iso", "n1/..%2f..%2f/initrd",
     "%2e%2e/%2e%2e/boot.iso"],
)  # fmt: skip
def test_nothing_else_is_given(tmp_path, path):
    async def story():
        async with running(tmp_path) as app:
            folder = tmp_path / "boot" / "n1" / "s3cret"
            folder.mkdir(parents=True)
            (folder / "passwd").write_text("secret")
            (tmp_path / "boot" / "boot.iso").write_text("secret")
            answer = await get(app, f"files/{path}")
            assert answer.status == 404
            assert b"secret" not in answer.body

    asyncio.run(story())
