"""The OpenAPI document, and requests made up from it: never a 500, never an untold status."""

import itertools
import json
from pathlib import Path

import schemathesis
from hypothesis import HealthCheck
from hypothesis import Phase
from hypothesis import given
from hypothesis import settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance
from schemathesis.specs.openapi.checks import status_code_conformance

from tests.support.server import running_server

CHECKS = (not_a_server_error, status_code_conformance, response_schema_conformance)
SPARED = {"identity:DELETE /v3/auth/tokens"}
"""It would end the session that all requests share."""
EACH = settings(
    max_examples=2, database=None, derandomize=True, deadline=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@schemathesis.serializer("application/openstack-images-v2.1-json-patch")
def _as_json(context: object, value: object) -> bytes:
    return json.dumps(value).encode()


def _first(why: BaseException) -> str:
    while isinstance(why, BaseExceptionGroup):
        why = why.exceptions[0]
    return " ".join(str(why).split())[:400]


def test_requests_made_up_from_the_document_get_what_it_tells_of(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        answer = server.api.get("/openapi.json")
        assert answer.status_code == 200
        document = answer.json()
        assert document["openapi"] == "3.1.0"
        schema = schemathesis.openapi.from_dict(document)
        tried = 0
        wrong: list[str] = []
        for found in schema.get_all_operations():
            operation = found.ok()
            if operation.definition.raw["operationId"] in SPARED:
                continue

            @EACH
            @given(case=operation.as_strategy())
            def ask(case: schemathesis.Case) -> None:
                response = case.call(base_url=server.url, headers=server.headers())
                case.validate_response(response, checks=CHECKS)

            try:
                ask()
            except (Exception, BaseExceptionGroup) as why:
                wrong.append(f"{operation.label}: {_first(why)}")
            tried += 1
        assert not wrong, f"{len(wrong)} of {tried}:\n" + "\n".join(itertools.islice(wrong, 12))
        assert tried > 300, tried
