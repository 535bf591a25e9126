"""Structured logs: one line of JSON or of `key=value` per fact, with fields, never f-strings.

log = get_logger("power")
log.info("power conflict", node=uuid, recorded="on", observed="off")
"""

import contextlib
import logging
import re
import sys
import time
import traceback
from typing import Any

import msgspec

from siderite.core.errors import Unavailable
from siderite.core.times import iso

_encode = msgspec.json.Encoder(enc_hook=str).encode


DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40
_NAMES = {DEBUG: "debug", INFO: "info", WARNING: "warning", ERROR: "error"}


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class _Sink:
    """Where lines go, from which level on and in which form."""

    level = WARNING
    as_json = False


class Logger:
    """A named source of log lines."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def debug(self, message: str, **fields: Any) -> None:
        if _Sink.level <= DEBUG:
            _say(DEBUG, self._name, message, fields)

    def info(self, message: str, **fields: Any) -> None:
        if _Sink.level <= INFO:
            _say(INFO, self._name, message, fields)

    def warning(self, message: str, **fields: Any) -> None:
        if _Sink.level <= WARNING:
            _say(WARNING, self._name, message, fields)

    def error(self, message: str, **fields: Any) -> None:
        if _Sink.level <= ERROR:
            _say(ERROR, self._name, message, fields)


def _say(level: int, name: str, message: str, fields: dict[str, Any]) -> None:
    """One line to standard error; the library's own loggers come through here too."""
    trace = fields.pop("trace", None)
    if isinstance(trace, Unavailable | OSError):
        # Something outside is away, and `error` says what: where that was noticed helps nobody,
        # and it is noticed everywhere at once.
        trace = None
    text = "".join(traceback.format_exception(trace)) if trace is not None else None
    shown = {key: _shown(value) for key, value in fields.items() if value is not None}
    stamp = iso(time.time())
    if _Sink.as_json:
        line = {"time": stamp, "level": _NAMES[level], "logger": name, "message": message, **shown}
        if text is not None:
            line["traceback"] = text
        try:
            out = _encode(line).decode()
        except UnicodeEncodeError:  # the name of a file, for one, need not be UTF-8
            out = _encode({key: _plain(str(value)) for key, value in line.items()}).decode()
    else:
        rest = "".join([f" {key}={value!r}" for key, value in shown.items()])
        out = f"{stamp} {_NAMES[level]:7} {name}: {_plain(message)}{rest}"
        if text is not None:
            out += "".join([f"\n  {_plain(part)}" for part in text.rstrip().split("\n")])
    with contextlib.suppress(OSError, ValueError):  # nobody listens: no reason to stop working
        sys.stderr.write(out + "\n")


def _plain(text: str) -> str:
    """Text that stays on its line and moves no cursor, whoever wrote it."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def get_logger(name: str) -> Logger:
    """The logger of a module."""
    return Logger(name)


class _Bridge(logging.Handler):
    """Lines of the libraries, in our form."""

    def emit(self, record: logging.LogRecord) -> None:
        level = max((known for known in _NAMES if known <= record.levelno), default=DEBUG)
        error = record.exc_info[1] if record.exc_info else None
        fields: dict[str, Any] = {"error": repr(error) if error else None}
        if level >= ERROR:
            fields["trace"] = error
        _say(level, record.name, record.getMessage(), fields)


def _shown(value: Any) -> Any:
    """Enums as their text."""
    return str(value) if isinstance(value, str) else value


def set_up(level: str, form: str) -> None:
    """Send all logs to standard error in the chosen form."""
    _Sink.level = {name: number for number, name in _NAMES.items()}[level.lower()]
    _Sink.as_json = form == "json"
    root = logging.getLogger()
    root.handlers[:] = [_Bridge()]
    root.setLevel(max(_Sink.level, WARNING))
