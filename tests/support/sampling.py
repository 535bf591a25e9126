"""Which cases of a test every run tries, where each of them takes long.

A test that is marked `sampled`, or that is tried on PostgreSQL with many values, has one case in
every run: the one that its name picks, which is always the same. The others are marked `soak`, and
scripts/soak tries them all.
"""

from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Iterator
from zlib import crc32

import pytest


def others(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """The cases that are not in every run."""
    tests = defaultdict(list)
    for item in items:
        name, _, case = item.nodeid.partition("[")
        if item.get_closest_marker("sampled") or "postgresql" in case:
            tests[name].append(item)
    for name, cases in tests.items():
        chosen = crc32(name.encode()) % len(cases)
        yield from (case for number, case in enumerate(cases) if number != chosen)
