"""Nothing has to be pushed sideways to be read, on any screen, whatever things are called."""

from collections.abc import Iterator

import pytest

from tests.console.conftest import Eyes
from tests.console.test_pages import nova
from tests.console.test_servers import bootable
from tests.console.test_stories import iron
from tests.console.test_stories import make_node
from tests.support.server import Server
from tests.support.server import running_server

NAMES = ("web", "x" * 200, "a-server-with-a-name-of-many-words", "雪の降る町", "خادم الويب")
LINK = f"see https://tickets.example/{'0' * 200}"
PAGES = (
    "attention", "fleet/node", "fleet/server", "pending", "events", "webhooks", "images",
    "capacity", "health",
)  # fmt: skip
HOSTS = 14
WIDTHS = (390, 701, 768, 800, 900, 1024, 1280)
TELEPHONE, TWO_LINES = 700, 60
TALLEST = "Math.max(...[...document.querySelectorAll('tbody tr')].map((one) => one.offsetHeight))"
PARTS = "html, .scroll, table.fleet th"
WIDER = f"""[...document.querySelectorAll('{PARTS}')]
    .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.outerHTML)"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service with things of all kinds of names."""
    options = {"quota_instances": "-1", "quota_cores": "-1"}
    with running_server(tmp_path_factory.mktemp("widths"), options=options) as made:
        for number in range(HOSTS):
            host = {"name": f"host-{number}-of-a-rather-long-name.example", "uri": "simulated:"}
            nova(made, "hosts", {"host": host})
        flavor = {"name": "m1.medium-with-a-long-name", "vcpus": 1, "ram": 64, "disk": 1}
        size = nova(made, "flavors", {"flavor": flavor})["flavor"]["id"]
        image = bootable(made, "i" * 200)
        for name in NAMES:
            asked = {"name": name, "flavorRef": size, "imageRef": image, "networks": "none"}
            nova(made, "servers", {"server": asked})
        for name in ("n1", "n" * 200):
            uuid = make_node(made, name, resource_class="baremetal-gold-with-a-long-name")
            iron(made, "PUT", f"/nodes/{uuid}/maintenance", {"reason": LINK})
        hook = {"name": "pager", "url": "https://hooks.example/in", "type": "baremetal.node.*"}
        made.api.post("/events/v1/webhooks", json=hook, headers=made.headers()).raise_for_status()
        yield made


def test_every_list_is_as_wide_as_its_window_at_most(eyes: Eyes) -> None:
    eyes.come_in()
    eyes.sees("Attention")
    for name in PAGES:
        eyes.at(name)
        eyes.page.wait_for_selector(f"#nav a[href='#/{name}'][aria-current=page]")
        eyes.page.wait_for_selector("main table tbody tr, main .empty")
        for width in WIDTHS:
            eyes.page.set_viewport_size({"width": width, "height": 850})
            assert eyes.page.evaluate(WIDER) == [], (name, width)
            if name == "fleet/server" and width > TELEPHONE:
                tall = eyes.page.evaluate(TALLEST)
                assert tall < TWO_LINES, "a host's name is cut, not broken into many lines"
            eyes.photograph(f"long-{name.replace('/', '-')}-{width}")


def test_the_head_of_the_page_leaves_the_page_its_room(eyes: Eyes) -> None:
    eyes.come_in()
    eyes.sees("Attention")
    eyes.page.wait_for_selector("#who:text-is('admin')")
    for width, most in ((1280, 60), (390, 170)):
        eyes.page.set_viewport_size({"width": width, "height": 850})
        assert eyes.page.eval_on_selector("#top", "one => one.offsetHeight") <= most, width
    cards = "[...document.querySelectorAll('.card')].filter((one) => one.offsetHeight)"
    told = eyes.page.evaluate(f"{cards}.map((one) => one.innerText.split('\\n')[0])")
    assert told == ["2"], "on a telephone what needs nobody takes no room"


def test_a_question_fits_into_its_dialog(eyes: Eyes) -> None:
    eyes.come_in()
    eyes.sees("Attention")
    eyes.page.set_viewport_size({"width": 390, "height": 850})
    eyes.at("fleet/server")
    eyes.page.click("button:text-is('New server')")
    eyes.page.wait_for_selector("dialog select[aria-label=Image]")
    eyes.photograph("long-new-server-390")
    wide = "one => [one.scrollWidth, one.clientWidth]"
    needs, has = eyes.page.eval_on_selector("dialog", wide)
    assert needs <= has


def test_on_a_telephone_nothing_is_named_where_nothing_is_said(eyes: Eyes) -> None:
    eyes.come_in()
    eyes.sees("Attention")
    eyes.page.set_viewport_size({"width": 390, "height": 850})
    bare = "all => all.filter((one) => !one.childNodes.length && one.offsetHeight).length"
    for name in ("capacity", "health"):
        eyes.at(name)
        eyes.page.wait_for_selector("main td[data-label=State] .tag")
        assert eyes.page.eval_on_selector_all("td[data-label]", bare) == 0, name
