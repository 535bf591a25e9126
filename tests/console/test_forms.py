"""What somebody says in the console's forms, and how its pages are addressed."""

import pytest

from tests.console.conftest import Eyes
from tests.console.test_stories import iron
from tests.console.test_stories import make_node
from tests.console.test_stories import wait_for
from tests.support.server import Server

STEPS = '[{"interface": "deploy", "step": "erase_devices"}]'


def end_session(eyes: Eyes) -> None:
    """The token is revoked, which the browser finds out when it must begin its stream anew."""
    kept = "JSON.parse(sessionStorage.getItem('siderite-session')).token"
    headers = {**eyes.server.headers(), "X-Subject-Token": eyes.page.evaluate(kept)}
    eyes.server.api.delete("/identity/v3/auth/tokens", headers=headers).raise_for_status()
    eyes.server.kill()
    eyes.server.start()
    eyes.sees("Your session has ended", within=".login")


def log_in_again(eyes: Eyes) -> None:
    eyes.page.fill("input[name=password]", eyes.server.password)
    eyes.page.click("button:has-text('Log in')")


def add_user(server: Server, name: str) -> None:
    """With the role admin, in the project admin."""

    def ask(method: str, path: str, body: object = None) -> dict:
        where = f"/identity/v3{path}"
        answer = server.api.request(method, where, json=body, headers=server.headers())
        return answer.raise_for_status().json() if answer.content else {}

    made = ask("POST", "/users", {"user": {"name": name, "password": server.password}})
    [project] = ask("GET", "/projects?name=admin")["projects"]
    [role] = ask("GET", "/roles?name=admin")["roles"]
    ask("PUT", f"/projects/{project['id']}/users/{made['user']['id']}/roles/{role['id']}")


def half_said(eyes: Eyes, name: str) -> None:
    """Somebody has begun to say how a node is to be cleaned."""
    uuid = make_node(eyes.server, name)
    iron(eyes.server, "PUT", f"/nodes/{uuid}/states/provision", {"target": "manage"})
    wait_for(eyes.server, uuid, provision_state="manageable")
    eyes.at(f"node/{uuid}")
    eyes.page.click("button:text-is('clean')")
    eyes.page.fill("dialog textarea", STEPS)


def test_what_is_asked_of_a_node_is_said_to_be_taken(eyes: Eyes) -> None:
    uuid = make_node(eyes.server, "asked")
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at(f"node/{uuid}")
    eyes.page.click("button:text-is('manage')")
    eyes.page.wait_for_selector("#toast :text('manage: taken.')")


def test_what_was_half_said_when_a_session_ended_waits_for_its_user(eyes: Eyes) -> None:
    eyes.log_in()
    eyes.sees("Attention")
    half_said(eyes, "half-said")
    end_session(eyes)
    assert not eyes.page.locator("dialog[open]").count(), "nobody could log in beneath it"
    log_in_again(eyes)
    eyes.page.wait_for_selector("dialog[open]")
    assert eyes.page.input_value("dialog textarea") == STEPS
    eyes.page.click("dialog button:text-is('Go on')")
    eyes.page.wait_for_selector("#toast :text('clean: taken.')")


def test_steps_that_are_not_json_are_still_there_to_be_mended(eyes: Eyes) -> None:
    eyes.come_in()
    eyes.sees("Attention")
    half_said(eyes, "mistyped")
    eyes.page.fill("dialog textarea", STEPS[:-1])
    eyes.page.click("dialog button:text-is('Go on')")
    eyes.page.wait_for_selector("dialog .trouble:has-text('not JSON')")
    assert eyes.page.input_value("dialog textarea") == STEPS[:-1]
    eyes.page.fill("dialog textarea", '[{"step": "erase_devices"}]')
    eyes.page.click("dialog button:text-is('Go on')")
    eyes.page.wait_for_selector("#toast .bad:has-text('clean: ')")
    eyes.page.click("button:text-is('clean')")
    assert eyes.page.input_value("dialog textarea") == '[{"step": "erase_devices"}]'
    eyes.page.fill("dialog textarea", STEPS)
    eyes.page.click("dialog button:text-is('Go on')")
    eyes.page.wait_for_selector("#toast :text('clean: taken.')")


def test_what_was_half_said_is_not_for_another_user(eyes: Eyes) -> None:
    add_user(eyes.server, "another")
    eyes.log_in()
    eyes.sees("Attention")
    half_said(eyes, "not-for-others")
    end_session(eyes)
    eyes.page.fill("input[name=user]", "another")
    log_in_again(eyes)
    eyes.page.wait_for_selector("h1:has-text('not-for-others')")
    eyes.page.wait_for_selector("dialog", state="detached")
    eyes.page.click("button:text-is('clean')")
    assert eyes.page.input_value("dialog textarea") != STEPS


def test_who_logs_in_again_goes_on_typing_when_the_end_of_a_session_is_told_twice(
    eyes: Eyes,
) -> None:
    eyes.log_in()
    eyes.sees("Attention")
    end_session(eyes)
    eyes.page.fill("input[name=user]", "another")
    eyes.page.evaluate("window.dispatchEvent(new Event('hashchange'))")
    assert eyes.page.input_value("input[name=user]") == "another"


def test_what_was_typed_when_a_session_ended_is_there_again(eyes: Eyes) -> None:
    add_user(eyes.server, "typist")
    eyes.log_in("typist")
    eyes.sees("Attention")
    eyes.at("webhooks")
    eyes.page.fill("input[name=url]", "https://hooks.example/long")
    end_session(eyes)
    assert eyes.page.input_value("input[name=user]") == "typist"
    log_in_again(eyes)
    eyes.page.wait_for_selector("h1:text-is('Webhooks')")
    assert eyes.page.input_value("input[name=url]") == "https://hooks.example/long"


def test_a_question_is_called_off_when_one_goes_to_another_page(eyes: Eyes) -> None:
    eyes.come_in()
    eyes.sees("Attention")
    half_said(eyes, "left-alone")
    eyes.page.go_back()
    eyes.sees("What needs somebody")
    assert not eyes.page.locator("dialog").count(), "it would be asked of a node out of sight"
    eyes.page.go_forward()
    eyes.page.click("button:text-is('clean')")
    eyes.page.wait_for_selector("dialog[open]")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("node/%E0%A4%A", "It is not there"),
        ("node/a%2Fb", "It is not there"),
        ("node", "There is no page node"),
        ("constructor", "There is no page constructor"),
        ("fleet/constructor", "There is no page fleet/constructor"),
    ],
)
def test_an_address_that_leads_nowhere_says_so(eyes: Eyes, address: str, said: str) -> None:
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at(address)
    eyes.sees(said)


def test_a_node_that_is_addressed_by_its_name_is_live_too(eyes: Eyes) -> None:
    uuid = make_node(eyes.server, "by-name")
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("node/by-name")
    eyes.page.wait_for_selector("h1:has-text('by-name') .tag:text-is('enroll')")
    iron(eyes.server, "PUT", f"/nodes/{uuid}/states/provision", {"target": "manage"})
    eyes.page.wait_for_selector("h1 .tag:text-is('manageable')")
    assert eyes.page.url.endswith(f"#/node/{uuid}")


def test_each_command_is_copied_by_itself(eyes: Eyes) -> None:
    uuid = make_node(eyes.server, "by-hand")
    eyes.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at(f"node/{uuid}")
    eyes.page.click("summary:text-is('As commands')")
    eyes.page.click(".command:has-text('node provision manage') button")
    eyes.page.wait_for_selector("#toast :text('Copied.')")
    copied = eyes.page.evaluate("navigator.clipboard.readText()")
    assert copied == "siderite node provision manage by-hand --wait"


CONTRAST = """one => {
    const light = (text) => text.match(/[0-9.]+/g).slice(0, 3).map((part) => part / 255)
        .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
        .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
    const both = [getComputedStyle(one, '::placeholder').color,
        getComputedStyle(one).backgroundColor].map(light);
    return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_a_field_is_for_can_be_read(eyes: Eyes, scheme: str) -> None:
    eyes.page.emulate_media(color_scheme=scheme)
    eyes.come_in()
    eyes.sees("Attention")
    eyes.at("fleet/node")
    eyes.page.wait_for_selector("input[name=owner]")
    assert eyes.page.eval_on_selector("input[name=owner]", CONTRAST) >= 4.5
