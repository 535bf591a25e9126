"""Projects by their names: what is not sure is said, not guessed."""

from typing import Any

import pytest

from siderite.cli.cloud import Away
from siderite.cli.cloud import Missing
from siderite.cli.cloud import Refused
from siderite.cli.projects import project

ID = "0123456789abcdef0123456789abcdef"


class Identity:
    """A cloud of which only the identity service is asked."""

    identity = "http://keystone.test/v3"

    def __init__(self, *found: str, refuses: Refused | None = None) -> None:
        self.found = found
        self.refuses = refuses

    def ask(self, _method: str, path: str, *, base: str) -> tuple[Any, Any]:
        assert base == self.identity
        if self.refuses is not None:
            raise self.refuses
        if "?name=" not in path:
            raise Missing("not found")
        return {"projects": [{"id": one} for one in self.found]}, {}


def test_a_name_that_several_domains_know_is_not_taken_for_one_of_them() -> None:
    cloud: Any = Identity("a", "b")
    with pytest.raises(Refused, match="several projects are called 'mine'"):
        project(cloud, "mine")


def test_who_may_not_look_a_name_up_is_told_so_and_names_the_id() -> None:
    cloud: Any = Identity(refuses=Refused("You are not authorized."))
    assert project(cloud, ID) == ID
    with pytest.raises(Refused, match=r"look for the project 'mine': .* Name it by its id"):
        project(cloud, "mine")
    assert project(cloud, "mine", is_known=False) == "mine"


def test_an_identity_service_that_is_away_is_no_answer() -> None:
    cloud: Any = Identity(refuses=Away("cannot reach it"))
    with pytest.raises(Away):
        project(cloud, ID)
