"""Log lines: one per fact, whatever somebody else wrote into it."""

import json
import logging

import pytest

from siderite.core import log

HOSTILE = "evil\n2026-11-16T00:00:00+00:00 info    http: forged\x1b[2J\u202e\x9b\ud800"


@pytest.fixture(params=["text", "json"])
def form(request, monkeypatch):
    """A form of log lines, for one test only."""
    monkeypatch.setattr(log._Sink, "level", log.INFO)
    monkeypatch.setattr(log._Sink, "as_json", request.param == "json")
    return request.param


def test_hostile_text_makes_no_line_of_its_own_and_moves_no_cursor(form, capsys):
    logger = log.get_logger("test")
    logger.info("seen", path=HOSTILE, deep={"key": HOSTILE})
    # Not through the root logger: what the test run keeps of it goes between processes as UTF-8.
    log._Bridge().emit(logging.LogRecord("library", logging.ERROR, "", 0, HOSTILE, None, None))
    try:
        raise ValueError(HOSTILE)
    except ValueError as why:
        logger.error("failed", error=repr(why), trace=why)
    lines = capsys.readouterr().err.splitlines()
    assert len([line for line in lines if not line.startswith("  ")]) == 3
    assert not any(ord(letter) < 32 or letter in "\u202e\x9b" for letter in "".join(lines))
    if form == "json":
        assert [json.loads(line)["logger"] for line in lines] == ["test", "library", "test"]
