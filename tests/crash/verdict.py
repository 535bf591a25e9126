"""How a storm that is run by hand ends: what happened, what does not add up, and the exit code."""

from collections.abc import Sequence

_MOST_SHOWN = 20


def verdict(what: str, problems: Sequence[str], fine: str = "nothing lost, nothing doubled") -> int:
    """Print it all."""
    print(what)
    for problem in problems[:_MOST_SHOWN]:
        print(f"  {problem}")
    print(fine if not problems else f"{len(problems)} problems")
    return 1 if problems else 0
