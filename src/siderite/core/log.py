"""Structured logs: one line of JSON or of `key=value` per fact, with fields, never f-strings.

log = get_logger("power")
log.info("power conflict", node=uuid, recorded="on", observed="off")
"""

import logging
import sys
import traceback
from typing import Any

import msgspec

from siderite.core.times import iso

_encode = msgspec.json.Encoder(enc_hook=str).encode


class Secret(str):
    """Text that never shows itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "***"


class Logger:
    """A named source of log lines."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger("siderite." + name)

    def debug(self, message: str, **fields: Any) -> None:
        self._say(logging.DEBUG, message, fields)

    def info(self, message: str, **fields: Any) -> None:
        self._say(logging.INFO, message, fields)

    def warning(self, message: str, **fields: Any) -> None:
        self._say(logging.WARNING, message, fields)

    def error(self, message: str, **fields: Any) -> None:
        self._say(logging.ERROR, message, fields)

    def _say(self, level: int, message: str, fields: dict[str, Any]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, message, extra={"fields": fields})


def get_logger(name: str) -> Logger:
    """The logger of a module."""
    return Logger(name)


class _Form(logging.Formatter):
    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._json = as_json

    def format(self, record: logging.LogRecord) -> str:
        fields = dict(getattr(record, "fields", {}))
        trace = fields.pop("trace", None)
        if isinstance(trace, BaseException):
            fields["traceback"] = "".join(traceback.format_exception(trace))
        elif record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        line = {
            "time": iso(record.created),
            "level": record.levelname.lower(),
            "logger": record.name.removeprefix("siderite."),
            "message": record.getMessage(),
            **{key: _shown(value) for key, value in fields.items() if value is not None},
        }
        if self._json:
            return _encode(line).decode()
        trace_text = line.pop("traceback", None)
        head = (
            f"{line.pop('time')} {line.pop('level'):7} {line.pop('logger')}: {line.pop('message')}"
        )
        text = head + "".join(f" {key}={value!r}" for key, value in line.items())
        return text if trace_text is None else f"{text}\n{trace_text}"


def _shown(value: Any) -> Any:
    if isinstance(value, Secret):
        return "***"
    return str(value) if isinstance(value, str) else value


def set_up(level: str, form: str) -> None:
    """Send all logs to standard error in the chosen form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Form(as_json=form == "json"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("uvicorn.error").setLevel("WARNING")
