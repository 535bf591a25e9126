"""Makes key pairs, by ssh-keygen. Called by the address of keypairs.

A pair takes a good part of a second of a whole CPU: so few are made at once, and those who wait for
theirs do so in a bounded queue that is fair by user. Else one user could have hundreds of processes
run, and nobody would be answered.
"""

import asyncio
import tempfile
from pathlib import Path

from siderite.core.errors import Unavailable
from siderite.core.fair_queue import FairQueue

AT_ONCE = 2
_MOST_WAITING = 100
_FULL = "Too many key pairs are being made; try again in a moment, or import a public key."
_WORDS = ("-q", "-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "", "-C", "made-by-siderite")


class KeyMaker:
    """The pairs that this process makes."""

    def __init__(self) -> None:
        self._queue = FairQueue(AT_ONCE, _MOST_WAITING, _FULL)

    async def make(self, user: str) -> tuple[str, str]:
        """A new pair for a user: the public key and the private one."""
        async with self._queue.turn(user):
            return await _made()


async def _made() -> tuple[str, str]:
    with tempfile.TemporaryDirectory(prefix="siderite-key-") as folder:
        path = Path(folder) / "key"
        try:
            process = await asyncio.create_subprocess_exec(
                "ssh-keygen", *_WORDS, "-f", str(path), stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            code = await process.wait()
        except FileNotFoundError as why:
            raise Unavailable("ssh-keygen is not installed here; import a public key.") from why
        if code:
            raise Unavailable("ssh-keygen failed; import a public key.")
        public = await asyncio.to_thread(path.with_suffix(".pub").read_text)
        return public, await asyncio.to_thread(path.read_text)
