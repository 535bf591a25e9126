"""A storm that is run by hand: where it takes place, and how it ends: what happened, what does not
add up, and the exit code.
"""

import tempfile
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.postgres import running_postgres

_MOST_SHOWN = 20


def verdict(what: str, problems: Sequence[str], fine: str = "nothing lost, nothing doubled") -> int:
    """Print it all."""
    print(what)
    for problem in problems[:_MOST_SHOWN]:
        print(f"  {problem}")
    print(fine if not problems else f"{len(problems)} problems")
    return 1 if problems else 0


@contextmanager
def place(db: str) -> Iterator[tuple[Path, str | None]]:
    """A directory for the service's data, and a database unless it is to be there."""
    with tempfile.TemporaryDirectory() as data:
        if db == "sqlite":
            yield Path(data), None
            return
        with running_postgres() as server, server.fresh_database() as url:
            yield Path(data), url
