"""The OpenAPI 3.1 document of all services, from the tables of routes that they answer by.

What a table does not say (the exact body of each answer) the document leaves open; the paths,
methods, parameters, who may, the statuses and the bodies of refusals are those of the program.
"""

import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from siderite.core.http import Route
from siderite.core.http import Service

Json = dict[str, Any]
_PARAMETER = re.compile(r"\{(\w+)\}")
_ALIASES = {"compute": re.compile(r"/v2\.1/\{project_id\}"), "baremetal": re.compile(r"/(?!v1|$)")}
"""Second addresses of the same things, which would only make the document longer."""
_VERSIONS = {
    "baremetal": ("X-OpenStack-Ironic-API-Version", r"^([0-9]+\.[0-9]+|latest)$", "1.115"),
    "compute": ("OpenStack-API-Version", r"^compute ([0-9]+\.[0-9]+|latest)$", "compute 2.104"),
}
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
_ENVELOPES = {"baremetal": "WrappedError", "compute": "Fault", "network": "NeutronError"}


def document(
    services: Mapping[str, Service],
    *,
    url: str,
    version: str,
    queries: Mapping[str, Iterable[str]],
) -> Json:
    """Of the services by their prefixes; `queries` are arguments of lists, by their address."""
    paths: dict[str, Json] = {}
    for prefix, service in sorted(services.items()):
        for route in _told(prefix, service):
            address = f"/{prefix}{route.path}" if prefix else route.path
            address = address if prefix == "" else address.rstrip("/")
            operation = _operation(prefix or "root", route)
            if route.method == "GET":
                operation["parameters"] += [
                    {"name": name, "in": "query", "schema": _STRING}
                    for name in sorted(queries.get(address, ()))
                ]
            paths.setdefault(address, {})[route.method.lower()] = operation
    schemas = {
        "Error": _ERROR, "Fault": _FAULT, "NeutronError": _NETWORK, "WrappedError": _WRAPPED,
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
        "components": {"schemas": schemas, "securitySchemes": schemes},
    }  # fmt: skip


def _told(prefix: str, service: Service) -> Iterator[Route]:
    alias = _ALIASES.get(prefix)
    return (r for r in service.routes.routes if alias is None or not alias.match(r.path))


def _operation(service: str, route: Route) -> Json:
    about: Json = {
        "operationId": f"{service}:{route.method} {route.path}",
        "tags": [service],
        "summary": _summary(route),
        "parameters": _parameters(service, route),
        "responses": _responses(service, route),
    }
    if route.method in _WRITES:
        body: Json = {"application/json": {"schema": {}}}
        if service == "image" and route.path.endswith(("/file", "/stage")):
            body = {"application/octet-stream": {"schema": {}}}
        elif service == "image" and route.method == "PATCH":
            patch = "application/openstack-images-v2.1-json-patch"
            body = {patch: {"schema": {"type": "array"}}}
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


def _responses(service: str, route: Route) -> Json:
    """One line per status: success by its class, each refusal by its number."""
    reference = f"#/components/schemas/{_ENVELOPES.get(service, 'Error')}"
    refusal = {"application/json": {"schema": {"$ref": reference}}}
    found: Json = {"2XX": {"description": "Done, or under way."}}
    if route.path == "/" and service in ("compute", "identity", "image"):
        found["300"] = {"description": "Which versions there are."}
    for status in _refusals(service, route):
        found[str(int(status))] = {"description": status.phrase, "content": refusal}
    return found


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
    if route.method in _WRITES:
        yield HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        yield HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    yield HTTPStatus.SERVICE_UNAVAILABLE
