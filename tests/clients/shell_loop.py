"""Runs `openstack` commands one after another in one interpreter: a program, see shell.py.

Starting the client takes seconds and running a command a fraction of one, so it is started once.
It is the unmodified client: what the `openstack` command itself calls, given the same words.
Reads and writes a JSON line for each command.
"""

import io
import json
import logging
import sys
from contextlib import redirect_stderr
from contextlib import redirect_stdout

import openstackclient.shell


def run(words: list[str]) -> dict[str, object]:
    """One command; what it printed and its exit code."""
    sys.argv = ["openstack", *words]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = openstackclient.shell.main(words)
        except SystemExit as end:
            code = end.code
    # Each command adds its own; a process would end with it.
    logging.getLogger().handlers.clear()
    return {"code": int(code or 0), "out": out.getvalue(), "err": err.getvalue()}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)
