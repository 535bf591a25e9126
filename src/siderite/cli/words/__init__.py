"""Which words there are, by what they are about. What a word does is imported when it is said."""

import argparse
import math


def data(command: argparse.ArgumentParser, *, default: str | None = None) -> None:
    """Where the cloud is."""
    command.add_argument(
        "--data", metavar="DIR", default=default,
        help="data directory whose clouds.yaml names the service (./siderite-data)",
    )  # fmt: skip


def form(command: argparse.ArgumentParser, *forms: str) -> None:
    """How to print; the first is the default. OpenStack's clients say -f."""
    but_last = ", ".join([f"{forms[0]} (default)", *forms[1:-1]])
    command.add_argument(
        "-o", "--output", "-f", "--format", choices=forms, default=forms[0], metavar="FORM",
        help=f"{but_last} or {forms[-1]}",
    )  # fmt: skip


def whole(text: str) -> int:
    """So many, or none."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 on, not {text[:40]!r}")
    return int(text)


def count(text: str) -> int:
    """So many, and one at least: none would be taken for all."""
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, not {text[:40]!r}")
    return int(text)


def name(text: str) -> str:
    """What something is called: nothing at all would be taken for all there are."""
    if not text.strip():
        raise argparse.ArgumentTypeError("must not be empty; is a variable of the shell not set?")
    return text


def seconds(text: str) -> float:
    """So long, and not for ever."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        raise argparse.ArgumentTypeError(f"must be seconds, from 0 on, not {text[:40]!r}")
    return found


def table(command: argparse.ArgumentParser) -> None:
    """The four forms of a list."""
    form(command, "table", "json", "yaml", "name")


def waiting(command: argparse.ArgumentParser) -> None:
    """For what goes on after the answer."""
    command.add_argument("--wait", action="store_true", help="until it is done; shows how far")
    command.add_argument(
        "--timeout", type=seconds, default=600.0, metavar="SECONDS",
        help="how long to wait (600); then the exit code is 5",
    )  # fmt: skip
