"""The screen of a real guest, in a browser: VNC over our own WebSocket."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.console.conftest import Eyes
from tests.console.test_pages import make_image
from tests.console.test_pages import nova
from tests.console.test_stories import COMPUTE
from tests.lab import LabHost
from tests.lab import Mode
from tests.lab import tiny_disk
from tests.lab.guest import wait_until
from tests.support.server import Server
from tests.support.server import running_server

_ALT_UP = bytes([4, 0, 0, 0, 0, 0, 0xFF, 0xE9])
_LIT = """() => {
  const canvas = document.getElementById("screen"), paint = canvas.getContext("2d");
  const pixels = paint.getImageData(0, 0, canvas.width, canvas.height).data;
  let lit = 0;
  for (let at = 0; at < pixels.length; at += 4) lit += pixels[at] + pixels[at + 1] > 100;
  return lit;
}"""


@pytest.fixture(scope="module")
def server(
    lab: LabHost, far: LabHost, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A service with two real hosts, one of them reached over ssh."""
    folder: Path = tmp_path_factory.mktemp("screen")
    assert far.doors is not None
    with running_server(folder) as made:
        for name, uri, options in (
            ("lab", lab.uri, {}),
            ("far", far.doors.ssh_uri, far.doors.ssh_options),
        ):
            host = {"name": name, "uri": uri, "options": options}
            assert nova(made, "hosts", {"host": host})["host"]["problem"] is None
        yield made


def _boot(server: Server, folder: Path, host: str) -> str:
    image = make_image(server, f"tiny-{host}")
    octets = {**server.headers(), "Content-Type": "application/octet-stream"}
    data = tiny_disk(folder / host, Mode.GRACEFUL).read_bytes()
    file = f"/image/v2/images/{image}/file"
    server.api.put(file, content=data, headers=octets).raise_for_status()
    small = {"name": f"small-{image}", "vcpus": 1, "ram": 16, "disk": 1}
    flavor = nova(server, "flavors", {"flavor": small})["flavor"]["id"]
    wish = {"name": f"seen-{host}", "flavorRef": flavor, "imageRef": image, "host": host}
    made: Any = nova(server, "servers", {"server": {**wish, "networks": "none"}})
    return str(made["server"]["id"])


def _until_lit(screen: Page) -> None:
    """Until something is to be seen: the firmware's words."""
    wait_until(lambda: screen.evaluate(_LIT) > 0, lambda: screen.inner_text("#said"))


@pytest.mark.sampled
@pytest.mark.parametrize("host", ["lab", "far"])
def test_the_screen_of_a_real_guest_is_seen_and_typed_to(
    eyes: Eyes, tmp_path: Path, host: str
) -> None:
    uuid = _boot(eyes.server, tmp_path, host)
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at(f"server/{uuid}")
    eyes.page.wait_for_selector(f"h1:has-text('seen-{host}') .tag:text-is('ACTIVE')")
    with eyes.page.expect_popup() as opened:
        eyes.page.click("button:text-is('Open its screen')")
    screen = opened.value
    screen.wait_for_selector("#said:has-text('Connected: QEMU')")
    _until_lit(screen)
    _until_said(eyes.server, uuid, "armed", times=1)
    screen.click("#cad")  # the firmware hears it, and starts the guest anew
    _until_said(eyes.server, uuid, "armed", times=2)
    _action(eyes.server, uuid, {"os-stop": None})
    screen.wait_for_selector("#said:has-text('The console was closed. Ask for a new one.')")
    eyes.page.wait_for_selector(f"h1:has-text('seen-{host}') .tag:text-is('SHUTOFF')")
    eyes.page.click("button:text-is('Open its screen')")
    eyes.page.wait_for_selector("#toast .bad:has-text('screen:')")
    _action(eyes.server, uuid, {"forceDelete": None})


def test_a_key_that_comes_up_elsewhere_does_not_stay_down(eyes: Eyes, tmp_path: Path) -> None:
    uuid, frames = _boot(eyes.server, tmp_path, "lab"), list[str | bytes]()
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at(f"server/{uuid}")
    eyes.page.wait_for_selector("h1:has-text('seen-lab') .tag:text-is('ACTIVE')")
    asked = {"remote_console": {"protocol": "vnc", "type": "novnc"}}
    opened = nova(eyes.server, f"servers/{uuid}/remote-consoles", asked)
    screen = eyes.page

    def keep(sent: str | bytes) -> None:
        frames.append(sent)

    screen.on("websocket", lambda way: way.on("framesent", keep))
    screen.goto(opened["remote_console"]["url"])
    screen.wait_for_selector("#said:has-text('Connected: QEMU')")
    screen.keyboard.down("Alt")
    screen.focus("#cad")  # as by Alt+Tab
    # Frames are only told of while the page is asked for something.
    wait_until(lambda: bool(screen.title()) and _ALT_UP in frames, lambda: str(frames[-3:]))
    _action(eyes.server, uuid, {"forceDelete": None})


def _action(server: Server, uuid: str, asked: dict[str, Any]) -> str:
    path, headers = f"/compute/v2.1/servers/{uuid}/action", {**server.headers(), **COMPUTE}
    return server.api.post(path, json=asked, headers=headers).raise_for_status().text


def _until_said(server: Server, uuid: str, words: str, times: int) -> None:
    """Until the guest has written this so many times."""

    def said() -> str:
        return _action(server, uuid, {"os-getConsoleOutput": {}})

    wait_until(lambda: said().count(words) >= times, said)
