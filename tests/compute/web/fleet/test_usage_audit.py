"""The log of usage audits, of which there are none."""

from collections.abc import Iterator
from datetime import UTC
from datetime import datetime
from urllib.parse import quote

import pytest

from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud

ALL = "/os-instance_usage_audit_log"


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with cloud(tmp_path_factory.mktemp("data"), hosts=0) as made:
        made.add_host("h1")
        yield made


def test_no_host_made_one_in_the_month_that_ended_last(one: Cloud) -> None:
    shown = one.ask("GET", ALL, version=1).json["instance_usage_audit_logs"]
    month = f"{datetime.now(UTC):%Y-%m}-01 00:00:00"
    assert shown.pop("period_ending") == month
    assert shown.pop("period_beginning") < month
    assert shown == {
        "num_hosts": 1, "num_hosts_done": 0, "num_hosts_running": 0, "num_hosts_not_run": 1,
        "hosts_not_run": ["h1"], "total_instances": 0, "total_errors": 0, "log": {},
        "overall_status": "0 of 1 hosts done. 0 errors.",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("before", "begin", "end"),
    [
        ("2016-12-10 13:59:59.999999", "2016-11-01", "2016-12-01"),
        ("2017-01-31 00:00:00", "2016-12-01", "2017-01-01"),
        ("2017-02-01 00:00:00", "2016-12-01", "2017-01-01"),
        ("2017-01-01 00:00:00", "2016-11-01", "2016-12-01"),
    ],
)
def test_it_is_asked_for_by_a_time(one: Cloud, before: str, begin: str, end: str) -> None:
    answer = one.ask("GET", f"{ALL}/{quote(before)}", version=1)
    assert answer.status == 200, answer
    shown = answer.json["instance_usage_audit_log"]
    assert shown["period_beginning"] == f"{begin} 00:00:00"
    assert shown["period_ending"] == f"{end} 00:00:00"


@pytest.mark.parametrize("before", ["soon", "2017-13-01 00:00:00", "0001-01-02 00:00:00"])
def test_what_is_no_such_time_is_refused(one: Cloud, before: str) -> None:
    answer = one.ask("GET", f"{ALL}/{quote(before)}", version=1)
    assert (answer.status, "2026-01-31" in str(answer.json)) == (400, True)


def test_it_is_for_administrators(one: Cloud) -> None:
    _, token, _ = one.app.person("member")
    for path in (ALL, f"{ALL}/{quote('2017-02-01 00:00:00')}"):
        assert one.ask("GET", path, token=token).status == 403
