"""Ids and secrets that are made up."""

from siderite.core.ids import new_secret
from siderite.core.ids import new_uuid


def test_no_secret_is_taken_for_an_option_by_a_command():
    made = [new_secret(9) for _ in range(1000)]
    assert len(set(made)) == 1000
    assert not any(text.startswith("-") for text in made)


def test_ids_are_uuids_of_the_random_kind():
    made = {new_uuid() for _ in range(1000)}
    assert len(made) == 1000
    assert all(one[14] == "4" and one[19] in "89ab" for one in made)
