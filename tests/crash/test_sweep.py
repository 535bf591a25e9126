"""A small sample of the sweep that scripts/soak measures."""

from tests.crash.sweep import sweep


def test_a_sweep_reads_every_node_while_requests_are_answered(tmp_path):
    found = sweep(tmp_path, nodes=300)
    assert found.resident_mb < 400
    assert found.asked > 0
