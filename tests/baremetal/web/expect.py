"""What every answer must be like, whatever was asked."""

import json
from typing import Any

from tests.support.app import Answer
from tests.support.app import Standing

RECORDS = (
    "ports", "portgroups", "chassis", "volume_connectors", "volume_targets", "deploy_templates",
    "runbooks", "inspection_rules", "allocations", "hooks",
)  # fmt: skip
"""The tables of all that is kept beside nodes."""


def refused(answer: Answer, status: int, *words: str) -> str:
    """The sentence of a refusal with this status, which says all these words."""
    assert answer.status == status, answer
    in_form(answer)
    for word in words:
        assert word in answer.sentence, answer
    return answer.sentence


def in_form(answer: Answer) -> None:
    """An error is JSON in its API's form, with a sentence for people."""
    assert answer.headers["content-type"] == "application/json", answer
    body = answer.json
    if "error_message" in body:
        assert list(body) == ["error_message"], answer
        inner = json.loads(body["error_message"])
        if "faultstring" in inner:
            assert set(inner) == {"faultcode", "faultstring", "debuginfo"}, answer
            assert inner["faultcode"] == "Client", answer
            assert inner["debuginfo"] is None, answer
        else:
            assert set(inner) == {"code", "title", "description"}, answer
            assert inner["code"] == answer.status, answer
    assert len(answer.sentence.split()) >= 3, answer
    assert "Traceback" not in answer.sentence, answer


def sane(answer: Answer, method: str) -> None:
    """No answer is a server's fault, and each is a whole HTTP message."""
    assert 200 <= answer.status < 500, answer
    for name, value in answer.fields:
        assert name == name.lower(), answer
        assert value.isprintable(), answer
    if answer.status == 204:
        assert answer.body == b"", answer
        assert "content-length" not in answer.headers, answer
        return
    if method == "HEAD":
        assert answer.body == b"", answer
        return
    assert int(answer.headers["content-length"]) == len(answer.body), answer
    if answer.status >= 400:
        in_form(answer)
    elif answer.body and answer.headers["content-type"] == "application/json":
        json.loads(answer.body, parse_constant=_refuse)


def _refuse(word: str) -> Any:
    raise AssertionError(f"{word} is not JSON")


_SUMS = (
    "SELECT count(*), sum(version), max(id), max(updated_at) FROM nodes",
    "SELECT count(*), min(fence), max(fence), max(deadline), max(due) FROM work",
    "SELECT sum(taken) FROM chassis",
    *(f"SELECT count(*), sum(version), max(id) FROM {name}" for name in RECORDS),
)
_FOOTPRINT = "SELECT * FROM " + ", ".join(f"({sql}) s{n}" for n, sql in enumerate(_SUMS))


def footprint(app: Standing) -> list[Any]:
    """All that a refused request must leave as it was: every resource, the work and the scripts.

    Every change of a resource counts its version up.
    """

    async def read() -> list[Any]:
        (found,) = await app.app.program.store.fetch(_FOOTPRINT)
        return [*found, app.app.program.machines.scripts.every()]

    return app.run(read())
