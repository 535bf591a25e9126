"""Nodes as Prometheus counts them: by state, power and maintenance."""

import re

import pytest

from siderite.core import census
from tests.support.app import Standing


def counted(app: Standing) -> tuple[dict[tuple[str, ...], float], dict[str, float]]:
    page = app.ask("GET", "/metrics").body.decode()
    there = re.findall(
        r'^siderite_machines\{machine="node",maintenance="(\w+)",power="([^"]+)",'
        r'state="([^"]+)"\} (\S+)', page, flags=re.M,
    )  # fmt: skip
    longest = re.findall(
        r'^siderite_longest_in_state_seconds\{machine="node",state="([^"]+)"\} (\S+)',
        page,
        flags=re.M,
    )
    return (
        {(state, power, held): float(count) for held, power, state, count in there},
        {state: float(age) for state, age in longest},
    )


def test_nodes_are_counted_by_state_power_and_maintenance(
    app: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(census, "_PAUSE", 0.0)
    old = "2020-01-01T00:00:00.000000+00:00"
    for _ in range(2):
        app.plant("deploy failed", power_state="power off", provision_updated_at=old)
    lost = app.plant("deploy failed", power_state=None)
    app.plant("clean failed", maintenance=True)
    there, longest = counted(app)
    assert there["deploy failed", "power off", "no"] == 2
    assert there["deploy failed", "unknown", "no"] == 1
    assert longest["deploy failed"] > 100_000_000
    assert "clean failed" not in longest, "somebody has it in hand"
    answer = app.ask("PUT", f"/v1/nodes/{lost}/maintenance", {"reason": "new disk"})
    assert answer.status == 202
    there, _ = counted(app)
    assert ("deploy failed", "unknown", "no") not in there
    assert there["deploy failed", "unknown", "yes"] == 1
