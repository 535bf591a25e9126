"""How long a reader of the log waits for more of it."""

import pytest

from siderite.core import eventlog
from siderite.events.follower import BREATH_S
from siderite.events.follower import BUSY
from siderite.events.follower import MANY
from siderite.events.follower import Follower


async def no_ops(entries):
    return []


@pytest.mark.parametrize(
    ("count", "pause_s"),
    [
        pytest.param(0, 0.4, id="nothing"),
        pytest.param(MANY - 1, 0.4, id="a few"),
        pytest.param(MANY, 0.4 * BUSY, id="many"),
        pytest.param(5999, 0.4 * BUSY, id="nearly a batch"),
        pytest.param(6000, BREATH_S, id="a batch, and perhaps more"),
    ],
)
def test_a_reader_that_may_be_late_gathers_more_in_a_busy_time(count, pause_s):
    late = Follower(object(), "late", eventlog.heads, no_ops, batch=6000, gather_s=0.4)
    assert late._pause(count) == pytest.approx(pause_s)


def test_a_reader_that_may_not_be_late_never_gathers():
    prompt = Follower(object(), "prompt", eventlog.read, no_ops, batch=500)
    assert [prompt._pause(count) for count in (0, MANY, 499)] == [0, 0, 0]
