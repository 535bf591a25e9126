"""Servers as Prometheus counts them: by state and power."""

import pytest

from siderite.core import census
from tests.compute.cloud import Cloud


def test_servers_are_counted_by_state_and_power(
    both: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(census, "_PAUSE", 0.0)

    def counted() -> list[str]:
        page = both.app.ask("GET", "/metrics", version=None).body.decode().splitlines()
        return [line for line in page if line.startswith('siderite_machines{machine="server"')]

    running = 'siderite_machines{machine="server",maintenance="no",power="running",state="active"}'
    first, _ = both.boot(), both.boot()
    assert counted() == [f"{running} 2.0"]
    both.act(first, "os-stop")
    both.until(first, "SHUTOFF")
    stopped = running.replace("running", "shutdown").replace("active", "stopped")
    assert sorted(counted()) == [f"{running} 1.0", f"{stopped} 1.0"]
