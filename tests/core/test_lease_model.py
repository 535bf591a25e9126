"""The protocol of leases and take-over, in every interleaving of a small model (spin)."""

import subprocess
from pathlib import Path

import pytest

MODEL = Path(__file__).with_name("lease.pml")


def search(folder, **settings):
    """What spin's exhaustive search of the model printed."""

    def run(*command):
        return subprocess.run(
            command, cwd=folder, check=True, capture_output=True, text=True, timeout=240
        ).stdout

    run("spin", "-a", *(f"-D{name}={value}" for name, value in settings.items()), MODEL)
    run("gcc", "-O1", "-w", "-DSAFETY", "-o", "pan", "pan.c")
    return run("./pan", "-m100000")


def test_a_machine_never_has_two_drivers_and_only_its_holder_reports(tmp_path):
    printed = search(tmp_path)
    assert "errors: 0" in printed, printed
    assert "Search not completed" not in printed, printed


@pytest.mark.sampled
@pytest.mark.parametrize("settings", [{"GRACE": 0}, {"NEVER_DONE": 1}])
def test_the_model_can_fail(tmp_path, settings):
    """Without the grace period clocks that differ do harm; and jobs do get done."""
    assert "assertion violated" in search(tmp_path, **settings)
