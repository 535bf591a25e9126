"""The OpenAPI 3.1 document of all services, from the tables of routes that they answer by.

Paths, methods, parameters, who may, the statuses and the bodies are those of the program: the
forms of bodies come from the checks of requests and from the views (`core.shape`). They are those
of all microversions at once: an older one has fewer keys.
"""

import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

import msgspec

from siderite.core.http import Route
from siderite.core.http import Service

Json = dict[str, Any]
_PARAMETER = re.compile(r"\{(\w+)\}")
_ALIASES = {
    "compute": re.compile(r"/v2\.1/\{project_id\}|/v2/"),
    "baremetal": re.compile(r"/(?!v1|$)"),
}
"""Second addresses of the same things, which would only make the document longer."""
_VERSIONS = {
    "baremetal": ("X-OpenStack-Ironic-API-Version", r"^([0-9]+\.[0-9]+|latest)$", "1.115"),
    "compute": ("OpenStack-API-Version", r"^compute ([0-9]+\.[0-9]+|latest)$", "compute 2.104"),
}
_JSON = "application/json"
_BYTES = "application/octet-stream"
_LARGE = 6
_UNNAMEABLE = re.compile(r"[^a-zA-Z0-9._-]+")
_WRITES = ("POST", "PUT", "PATCH")
_STRING = {"type": "string"}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "object", "required": ["code", "message"],
                             "properties": {"message": _STRING}}},
}  # fmt: skip
_FAULT = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": {"type": "object", "required": ["code", "message"],
                             "properties": {"code": {"type": "integer"}, "message": _STRING}},
}  # fmt: skip
_WRAPPED = {
    "type": "object",
    "required": ["error_message"],
    "properties": {"error_message": {
        "type": "string", "contentMediaType": "application/json",
        "description": "JSON again, with the sentence as faultstring or description."}},
}  # fmt: skip
_NETWORK = {
    "type": "object",
    "required": ["NeutronError"],
    "properties": {"NeutronError": {"type": "object", "required": ["message", "type"],
                                    "properties": {"message": _STRING}}},
}  # fmt: skip
_ENVELOPES = {
    "baremetal": "WrappedError", "boot": "Text", "compute": "Fault", "network": "NeutronError",
}  # fmt: skip
_ACTIONS = "/v2.1/servers/{id}/action"
_HOSTS_CHOICE = re.compile(r"/v2\.1/(servers/\{id\}/action|os-hosts/\{host\}.*|.*/uptime)")
"""What not every host can do."""


def document(
    services: Mapping[str, Service],
    *,
    url: str,
    version: str,
    queries: Mapping[str, Iterable[str]],
) -> Json:
    """Of the services by their prefixes; `queries` are arguments of lists, by their address."""
    paths: dict[str, Json] = {}
    parts = _Parts()
    for prefix, service in sorted(services.items()):
        for route in _told(prefix, service):
            address = f"/{prefix}{route.path}" if prefix else route.path
            address = address if prefix == "" else address.rstrip("/")
            operation = _operation(prefix or "root", route, parts)
            if route.method == "GET":
                operation["parameters"] += [
                    {"name": name, "in": "query", "schema": _STRING}
                    for name in sorted(queries.get(address, ()))
                ]
            paths.setdefault(address, {})[route.method.lower()] = operation
    schemas = {
        "Error": _ERROR, "Fault": _FAULT, "NeutronError": _NETWORK, "Text": _STRING,
        "WrappedError": _WRAPPED, **parts.named,
    }  # fmt: skip
    schemes = {
        "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
        "basic": {"type": "http", "scheme": "basic"},
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Siderite", "version": version, "license": {"name": "Apache 2.0"},
            "description": "Servers, virtual and physical, by Nova's and Ironic's APIs.",
        },
        "servers": [{"url": url}],
        "tags": [{"name": prefix or "root"} for prefix in sorted(services)],
        "paths": paths,
        "components": {"schemas": schemas, "responses": _refused(), "securitySchemes": schemes},
    }  # fmt: skip


class _Parts:
    """Large objects of bodies, each once: most are there in several answers."""

    def __init__(self) -> None:
        self.named: dict[str, Json] = {}
        self._names: dict[bytes, str] = {}

    def taken(self, schema: Any, word: str) -> Any:
        """The schema with references in the place of large objects, which `word` names."""
        if isinstance(schema, list):
            return [self.taken(one, word) for one in schema]
        if not isinstance(schema, dict):
            return schema
        made = {k: self.taken(value, word) for k, value in schema.items() if k != "properties"}
        found = schema.get("properties", {})
        if found:
            made["properties"] = {key: self.taken(value, key) for key, value in found.items()}
        if len(found) >= _LARGE:
            return {"$ref": f"#/components/schemas/{self._name(made, word)}"}
        return made

    def _name(self, schema: Json, word: str) -> str:
        text = msgspec.json.encode(schema, order="sorted")
        if text not in self._names:
            noun = _UNNAMEABLE.sub("-", word)
            numbers = ("", *range(2, 100))
            name = next(f"{noun}{n}" for n in numbers if f"{noun}{n}" not in self.named)
            self._names[text], self.named[name] = name, schema
        return self._names[text]


def _told(prefix: str, service: Service) -> Iterator[Route]:
    alias = _ALIASES.get(prefix)
    return (r for r in service.routes.routes if alias is None or not alias.match(r.path))


def _operation(service: str, route: Route, parts: _Parts) -> Json:
    noun = next(one for one in (*reversed(route.path.split("/")), service) if one and one[0] != "{")
    about: Json = {
        "operationId": f"{service}:{route.method} {route.path}",
        "tags": [service],
        "summary": _summary(route),
        "parameters": _parameters(service, route),
        "responses": _responses(service, route, partial(parts.taken, word=noun)),
    }
    if route.method in _WRITES:
        form = parts.taken(route.takes(), f"{noun}-asked") if route.takes else {}
        body: Json = {_JSON: {"schema": form}}
        if service == "image" and route.path.endswith(("/file", "/stage")):
            body = {_BYTES: {"schema": {}}}
        elif service == "image" and route.method == "PATCH":
            patch = "application/openstack-images-v2.1-json-patch"
            body = {patch: body[_JSON]}
        about["requestBody"] = {"content": body}
    if route.policy != "public":
        about["security"] = [{"token": []}, {"basic": []}]
        about["x-policy"] = route.policy
    if route.since:
        about["x-since"] = f"{1 if service == 'baremetal' else 2}.{route.since}"
    return about


def _summary(route: Route) -> str:
    first = (route.handler.__doc__ or "").strip().split("\n")[0]
    return first.partition(": ")[2] or first or f"{route.method} {route.path}"


def _parameters(service: str, route: Route) -> list[Json]:
    found: list[Json] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAMETER.findall(route.path)
    ]
    if service in _VERSIONS:
        name, pattern, example = _VERSIONS[service]
        schema = {"type": "string", "pattern": pattern}
        found.append({"name": name, "in": "header", "schema": schema, "example": example})
    return found


def _responses(service: str, route: Route, taken: Callable[[Json], Any]) -> Json:
    """One line per status: success by its class, each refusal by its number."""
    envelope = _ENVELOPES.get(service, "Error")
    found: Json = {"2XX": {"description": "Done, or under way."}}
    if route.gives is None and route.media == _JSON:
        some = "Some actions answer with a body, most do not."
        more = some if route.path == _ACTIONS else "There is no body."
        found["2XX"]["description"] += f" {more}"
    if route.gives is not None:
        found["2XX"]["content"] = {route.media: {"schema": taken(route.gives())}}
    elif route.media != _JSON:
        found["2XX"]["content"] = {route.media: {"schema": {}}}
    if route.path == "/" and service in ("compute", "identity", "image"):
        found["300"] = {**found["2XX"], "description": "Which versions there are."}
    for status in _refusals(service, route):
        found[str(int(status))] = {"$ref": f"#/components/responses/{envelope}.{int(status)}"}
    return found


def _refused() -> Json:
    """Every refusal in every form."""
    made: Json = {}
    for envelope in {"Error", *_ENVELOPES.values()}:
        media = "text/plain" if envelope == "Text" else _JSON
        form = {media: {"schema": {"$ref": f"#/components/schemas/{envelope}"}}}
        for status in _REFUSALS:
            made[f"{envelope}.{int(status)}"] = {"description": status.phrase, "content": form}
    return {name: made[name] for name in sorted(made)}


_REFUSALS = (
    HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_ACCEPTABLE, HTTPStatus.CONFLICT, HTTPStatus.GONE,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, HTTPStatus.NOT_IMPLEMENTED,
    HTTPStatus.SERVICE_UNAVAILABLE,
)  # fmt: skip


def _refusals(service: str, route: Route) -> Iterator[HTTPStatus]:
    yield HTTPStatus.BAD_REQUEST
    if route.policy != "public" or service in ("identity", "simulator", "simulated-hosts"):
        yield HTTPStatus.UNAUTHORIZED
        yield HTTPStatus.FORBIDDEN
    yield HTTPStatus.NOT_FOUND
    if service in _VERSIONS:
        yield HTTPStatus.METHOD_NOT_ALLOWED  # at an older version than the method's own
        yield HTTPStatus.NOT_ACCEPTABLE
    if route.method != "GET":
        yield HTTPStatus.CONFLICT
    if route.path.endswith("/servers/{id}/action"):
        yield HTTPStatus.GONE
    if route.method in _WRITES:
        yield HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        yield HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    if route.media == _BYTES:
        yield HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
    if service == "compute" and _HOSTS_CHOICE.fullmatch(route.path):
        yield HTTPStatus.NOT_IMPLEMENTED
    yield HTTPStatus.SERVICE_UNAVAILABLE
