"""One Chromium, and one service for the stories of a module."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from playwright.sync_api import Page
from playwright.sync_api import sync_playwright

from tests.support.server import Server
from tests.support.server import running_server

CHROMIUM = "/usr/lib/chromium/chromium-headless-shell"
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """The distribution's Chromium, built without windows: those of the whole browser take twice
    the work of the pages in them, seen or not. Its driver keeps an event loop running in this
    thread, so it must be gone before others want one.
    """
    with sync_playwright() as tool:
        made = tool.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield made
        made.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service whose cloud may be full."""
    options = {
        "use_pending_state": "true", "cpu_allocation_ratio": "1", "power_watch_interval_s": "1",
        "quota_instances": "-1", "quota_cores": "-1", "quota_ram_mib": "-1",
    }  # fmt: skip
    with running_server(tmp_path_factory.mktemp("console"), options=options) as made:
        yield made


@pytest.fixture(scope="module")
def session(server: Server) -> str:
    """What a tab keeps in which the administrator has logged in."""
    domain = {"id": "default"}
    user = {"name": "admin", "password": server.password, "domain": domain}
    auth = {
        "identity": {"methods": ["password"], "password": {"user": user}},
        "scope": {"project": {"name": "admin", "domain": domain}},
    }
    answer = server.api.post("/identity/v3/auth/tokens", json={"auth": auth}).raise_for_status()
    roles = [role["name"] for role in answer.json()["token"]["roles"]]
    token = answer.headers["X-Subject-Token"]
    return json.dumps({"token": token, "name": "admin", "project": "admin", "roles": roles})


class Eyes:
    """A page of the console, and everything that the browser complained of."""

    def __init__(self, page: Page, server: Server, session: str) -> None:
        self.page = page
        self.server = server
        self._session = session
        self.complaints: list[str] = []
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def log_in(self, user: str = "admin", password: str = "", project: str = "admin") -> None:
        """As a person would."""
        self.page.goto(self.server.url + "/console/")
        self.page.fill("input[name=user]", user)
        self.page.fill("input[name=password]", password or self.server.password)
        self.page.fill("input[name=project]", project)
        self.page.click("button:has-text('Log in')")

    def come_in(self) -> None:
        """As one who has logged in before, in a tab that still knows it: half the work."""
        key, kept = "'siderite-session'", json.dumps(self._session)
        keep = f"sessionStorage.getItem({key}) || sessionStorage.setItem({key}, {kept})"
        self.page.add_init_script(keep)
        self.page.goto(self.server.url + "/console/")

    def at(self, address: str) -> None:
        """Go to a page."""
        self.page.goto(f"{self.server.url}/console/#/{address}")

    def sees(self, text: str, within: str = "main") -> None:
        """Wait until this is on the page."""
        self.page.wait_for_selector(f"{within} >> text={text}")

    def photograph(self, name: str) -> None:
        """Keep a picture, if somebody wants them (SIDERITE_SCREENSHOTS names a folder)."""
        folder = os.environ.get("SIDERITE_SCREENSHOTS")
        if folder:
            self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.fixture
def eyes(browser: Browser, server: Server, session: str) -> Iterator[Eyes]:
    """A fresh browser session; whatever breaks in a script fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 850})
    seen = Eyes(context.new_page(), server, session)
    yield seen
    context.close()
    assert seen.complaints == []
