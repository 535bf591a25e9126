"""Every test has a case in every run."""

from itertools import product

import pytest

from tests.support.sampling import others


class Case:
    def __init__(self, nodeid: str, *, is_sampled: bool) -> None:
        self.nodeid = nodeid
        self.is_sampled = is_sampled

    def get_closest_marker(self, name: str) -> bool:
        assert name == "sampled"
        return self.is_sampled


@pytest.mark.parametrize("name", ["test_a", "test_b", "test_c"])
def test_of_many_values_all_are_tried_on_sqlite_and_one_on_postgresql(name: str) -> None:
    ways = product(["sqlite", "postgresql"], range(5))
    cases = [Case(f"tests/x.py::{name}[{db}-{value}]", is_sampled=False) for db, value in ways]
    left_out = list(others(cases))  # type: ignore[arg-type]
    assert len(left_out) == 4
    assert all("postgresql" in case.nodeid for case in left_out)


def test_what_is_sampled_has_one_case_on_whichever_database() -> None:
    ways = product(["sqlite", "postgresql"], range(5))
    cases = [Case(f"tests/x.py::test_d[{db}-{value}]", is_sampled=True) for db, value in ways]
    assert len(list(others(cases))) == 9  # type: ignore[arg-type]


def test_what_has_no_cases_is_tried() -> None:
    assert not list(others([Case("tests/x.py::test_e", is_sampled=False)]))  # type: ignore[list-item]
