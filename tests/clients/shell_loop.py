"""Runs `openstack` and `baremetal` commands, each in a fork of one process: see shell.py.

Starting the client takes seconds and running a command a fraction of one, so it is loaded once. It
is the unmodified client: what the `openstack` command itself calls, given the same words. Each
connection to the Unix socket named on the command line is one command, in and out as JSON; any
number may be under way at once.
"""

import importlib
import io
import json
import logging
import os
import signal
import socket
import sys
from contextlib import redirect_stderr
from contextlib import redirect_stdout

import ironicclient.shell
import openstackclient.shell

PROGRAMS = {"openstack": openstackclient.shell.main, "baremetal": ironicclient.shell.main}


def run(
    words: list[str], program: str = "openstack", environment: dict[str, str] | None = None
) -> dict[str, object]:
    """One command; what it printed and its exit code."""
    sys.argv = [program, *words]
    if environment is not None:
        os.environ.clear()
        os.environ.update(environment)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = PROGRAMS[program](words)
        except SystemExit as end:
            code = end.code
    return {"code": int(code or 0), "out": out.getvalue(), "err": err.getvalue()}


def answer(connection: socket.socket) -> None:
    """Read what to run, run it, and write what came of it."""
    with connection, connection.makefile("rw") as line:
        json.dump(run(**json.loads(line.readline())), line)


def serve(address: str) -> None:
    """Fork for each connection, for ever."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen(64)
        print("ready", flush=True)
        while True:
            connection, _ = door.accept()
            if os.fork() == 0:
                answer(connection)
                os._exit(0)
            connection.close()


if __name__ == "__main__":
    own_address = sys.argv[1]
    # The client imports late: have it done before the forks. No command is run here that talks to
    # the service, for its connection would be kept and used by every fork.
    run(["baremetal", "node", "list", "--help"])
    for module in ("ironicclient.v1.client", "keystoneauth1.identity.generic", "openstack"):
        importlib.import_module(module)
    logging.getLogger().handlers.clear()
    serve(own_address)
