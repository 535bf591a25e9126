"""The job in a server's work row: what is being done, how far it is, and the action that asked."""

from typing import Any

import msgspec

from siderite.compute.domain.shutdown import Shutdown


class ActionEvent(msgspec.Struct, frozen=True):
    """One line of an instance action, as it is stored."""

    event: str
    start_time: str
    finish_time: str | None = None
    result: str | None = None
    host: str | None = None
    details: str | None = None
    traceback: str | None = None
    """More of it, for administrators only."""


class Job(msgspec.Struct, frozen=True, omit_defaults=True):
    """A piece of durable work on a server."""

    op: str
    action: str
    request_id: str | None = None
    began: str = ""
    step: int = 0
    args: dict[str, Any] = {}
    shutdown: Shutdown | None = None
    events: list[ActionEvent] = []

    @property
    def token(self) -> str:
        """Names the run of the present step for drivers."""
        return f"{self.op}/{self.step}"

    def at_step(self, step: int) -> "Job":
        """The job at another of its steps."""
        return msgspec.structs.replace(self, step=step)

    def with_args(self, **more: Any) -> "Job":
        """The job with more to remember."""
        return msgspec.structs.replace(self, args={**self.args, **more})


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Job)


def job_text(job: Job) -> str:
    """A job as the work row keeps it."""
    return _encoder.encode(job).decode()


def job_of(text: str) -> Job:
    """The job of a work row."""
    return _decoder.decode(text)


def events_text(events: list[ActionEvent]) -> str:
    """An action's events as its row keeps them."""
    return _encoder.encode(events).decode()
