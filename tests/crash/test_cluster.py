"""Several machines share the work: a small sample of what scripts/soak does for minutes."""

import subprocess
import sys

SAMPLE = (
    "--seed", "11", "--apis", "2", "--workers", "2", "--nodes", "6", "--servers", "3",
    "--seconds", "2", "--no-cable", "--no-bus",
)  # fmt: skip


def test_machines_that_die_lose_nothing_and_never_drive_one_machine_together():
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.cluster", *SAMPLE],
        check=False, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing lost, nothing doubled" in done.stdout
