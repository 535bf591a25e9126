"""What somebody says in the console's forms, and how its pages are addressed."""

from tests.console.conftest import Eyes
from tests.console.test_stories import make_node


def test_what_is_asked_of_a_node_is_said_to_be_taken(eyes: Eyes) -> None:
    uuid = make_node(eyes.server, "asked")
    eyes.log_in()
    eyes.sees("Attention")
    eyes.at(f"node/{uuid}")
    eyes.page.click("button:text-is('manage')")
    eyes.page.wait_for_selector("#toast :text('manage: taken.')")
