"""The `siderite` command: which words there are. What a word does is imported when it is said.

Exit codes: 0 done, 1 refused, 2 usage, 3 not found, 4 conflict, 5 timeout, 130 Ctrl-C.
"""

import argparse
import errno
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from siderite import __version__

TYPE_CHECKING = False  # as in `typing`, which is slow to load
if TYPE_CHECKING:
    from typing import Any
    from typing import NoReturn


class _Words(argparse.ArgumentParser):
    """What a word does not know is refused with that word's own usage, not the whole command's."""

    def parse_known_args(  # type: ignore[override]  # its overloads need `typing`, which is slow to load
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        said, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return said, rest

    def error(self, message: str) -> "NoReturn":
        """Who did not say what to do is told what there is."""
        if message.endswith((": COMMAND", ": VERB")):
            self.print_help(sys.stderr)
            self.exit(2)
        super().error(message)


def parser() -> argparse.ArgumentParser:
    """Every word and flag."""
    from siderite.cli.words import machines
    from siderite.cli.words import service
    from siderite.cli.words import things

    top = _Words(
        prog="siderite",
        description="Runs servers, virtual and physical.",
        epilog="Exit codes: 0 done, 1 refused, 2 usage, 3 not found, 4 conflict, 5 timeout.",
    )
    top.add_argument("--version", action="version", version=f"siderite {__version__}")
    words = top.add_subparsers(dest="word", required=True, metavar="COMMAND")
    for group in (service, machines, things):
        group.add(words)
    return top


def _loaded(module: str) -> "Any":
    """What does the word. All that is loaded stays: no cycles are looked for while it comes, which
    would take a sixth of a start, and none in it later.
    """
    gc.disable()
    try:
        return import_module(module)
    finally:
        gc.freeze()
        gc.enable()


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the words say; the exit code."""
    _print_anything()
    try:
        said = parser().parse_args(argv)
        code: int = _loaded(said.run).run(said)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _print_no_more()
        return 141
    except UnicodeEncodeError as why:  # the shell gave us bytes that are no text
        odd = why.object[why.start : why.end]
        print(f"siderite: what was typed has {odd!a}, which is not UTF-8.", file=sys.stderr)
        return 2
    except Exception as why:
        if isinstance(why, OSError) and why.errno in _FULL and why.filename is None:
            _print_no_more()
            print(f"siderite: cannot print the answer: {why.strerror}.", file=sys.stderr)
            return 1
        # `cloud.Refused` and its kind, which is not imported before somebody needs it.
        refusal: int | None = getattr(why, "exit_code", None)
        if refusal is None:
            raise
        print(f"siderite: {why}", file=sys.stderr)
        return refusal
    return code


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _print_anything() -> None:
    """A name that the terminal's encoding has no letters for is no reason to fall over, nor is a
    standard output that somebody has closed.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - as long as the process
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _print_no_more() -> None:
    """What could not be printed must not be tried again at the end of the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
