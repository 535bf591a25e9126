"""How many examples a property is tried with: few, and always the same, wherever the tests run;
scripts/soak asks for many times as many, and for others each time.
"""

import os

TIMES = int(os.environ.get("SIDERITE_EXAMPLES", "1"))
IS_SAME_EACH_TIME = TIMES == 1


def examples(few: int) -> int:
    """So many, or as many times more as were asked for."""
    return few * TIMES
