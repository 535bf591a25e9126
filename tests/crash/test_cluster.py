"""Several machines share the work: a small sample of what scripts/soak does for minutes."""

import subprocess
import sys

import pytest


@pytest.mark.serial
def test_machines_that_die_lose_nothing_and_never_drive_one_machine_together():
    command = [sys.executable, "-m", "tests.crash.cluster", "--seed", "11", "--no-cable"]
    done = subprocess.run(
        [*command, "--nodes", "10", "--seconds", "6"],
        check=False, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing lost, nothing doubled" in done.stdout
