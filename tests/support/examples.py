"""How many examples a property is tried with: few, and always the same, wherever the tests run;
scripts/soak asks for many times as many, and for others each time. `python -m
tests.support.examples` does beforehand what else each process of a first run would do.
"""

import os

from hypothesis import strategies

TIMES = int(os.environ.get("SIDERITE_EXAMPLES", "1"))
IS_SAME_EACH_TIME = TIMES == 1


def examples(few: int) -> int:
    """So many, or as many times more as were asked for."""
    return few * TIMES


def main() -> None:
    """Find out which characters there are: it takes seconds, and is kept for whoever comes next."""
    strategies.text().validate()


if __name__ == "__main__":
    main()
