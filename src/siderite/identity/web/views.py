"""What clients read, in Keystone's shapes: values and the base URL in, JSON values out. Pure."""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from siderite.core.times import iso
from siderite.identity.domain import DEFAULT
from siderite.identity.domain import Credential
from siderite.identity.domain import Domain
from siderite.identity.domain import Grant
from siderite.identity.domain import Project
from siderite.identity.domain import Role
from siderite.identity.domain import ScopeKind
from siderite.identity.domain import Session
from siderite.identity.domain import User
from siderite.identity.domain import role_id
from siderite.identity.web.catalogue import Catalogue
from siderite.identity.web.catalogue import Endpoint
from siderite.identity.web.catalogue import ServiceRecord

View = dict[str, Any]

_DOMAIN: View = {"id": DEFAULT.id, "name": DEFAULT.name}


def version(v3: str) -> View:
    """The one version there is."""
    return {
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": f"{v3}/"}],
        "media-types": [
            {"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}
        ],
    }


def listing(
    v3: str, path: str, noun: str, items: Iterable[View], following: str | None = None
) -> View:
    """A list, and the address with the query that goes on behind it if that was not all."""
    there = f"{v3}{path}"
    after = None if following is None else f"{there}?{following}"
    more = {} if after is None else {"truncated": True}
    return {noun: list(items), "links": {"self": there, "previous": None, "next": after}, **more}


def session(one: Session, catalogue: Sequence[View] | None) -> View:
    """A token's meaning. Without a scope there are neither roles nor a catalogue."""
    body: View = {
        "methods": one.methods,
        "user": {
            "id": one.user_id,
            "name": one.user,
            "domain": _DOMAIN,
            "password_expires_at": None,
        },
        "audit_ids": one.audit_ids,
        "issued_at": _time(one.issued_at),
        "expires_at": _time(one.expires_at),
    }
    if one.credential is not None:
        body["application_credential"] = {
            "id": one.credential.id,
            "name": one.credential.name,
            "restricted": not one.credential.unrestricted,
        }
    match one.scope.kind:
        case ScopeKind.UNSCOPED:
            return {"token": body}
        case ScopeKind.PROJECT:
            body["project"] = {"id": one.scope.target_id, "name": one.project, "domain": _DOMAIN}
            body["is_domain"] = False
        case ScopeKind.DOMAIN:
            body["domain"] = _DOMAIN
        case ScopeKind.SYSTEM:
            body["system"] = {"all": True}
    body["roles"] = [{"id": role_id(name), "name": name} for name in sorted(one.roles)]
    if catalogue is not None:
        body["catalog"] = catalogue
    return {"token": body}


def catalogue(known: Catalogue) -> list[View]:
    """The catalogue as tokens carry it."""
    return [
        {
            "id": service.id,
            "type": service.type,
            "name": service.name,
            "endpoints": [
                {
                    "id": one.id,
                    "interface": one.interface,
                    "region": one.region,
                    "region_id": one.region,
                    "url": one.url,
                }
                for one in known.of_service(service.id)
            ],
        }
        for service in known.services
    ]


def project(v3: str, one: Project) -> View:
    """A project."""
    return {
        "tags": [],
        "options": {},
        **one.extra,
        "id": one.uuid,
        "name": one.name,
        "domain_id": one.domain_id,
        "description": one.description,
        "enabled": one.enabled,
        "parent_id": one.domain_id,
        "is_domain": False,
        "links": {"self": f"{v3}/projects/{one.uuid}"},
    }


def user(v3: str, one: User) -> View:
    """A user, without the password."""
    view = {
        "options": {},
        **one.extra,
        "id": one.uuid,
        "name": one.name,
        "domain_id": one.domain_id,
        "enabled": one.enabled,
        "password_expires_at": None,
        "links": {"self": f"{v3}/users/{one.uuid}"},
    }
    if one.default_project_id is not None:
        view["default_project_id"] = one.default_project_id
    return view


def credential(v3: str, one: Credential) -> View:
    """An application credential, without its secret."""
    return {
        "id": one.uuid,
        "name": one.name,
        "description": one.description,
        "project_id": one.project_id,
        "roles": [{"id": role_id(name), "name": name, "domain_id": None} for name in one.roles],
        # Without a zone, unlike a token's: gophercloud reads no other form here.
        "expires_at": None if one.expires_at is None else _time(one.expires_at).removesuffix("Z"),
        "unrestricted": one.unrestricted,
        "links": {"self": f"{v3}/users/{one.user_id}/application_credentials/{one.uuid}"},
    }


def domain(v3: str, one: Domain) -> View:
    """The domain."""
    return {
        "id": one.id,
        "name": one.name,
        "description": "The one domain.",
        "enabled": True,
        "tags": [],
        "options": {},
        "links": {"self": f"{v3}/domains/{one.id}"},
    }


def role(v3: str, one: Role) -> View:
    """A role."""
    return {
        "id": one.id,
        "name": one.name,
        "domain_id": None,
        "description": one.description,
        "options": {},
        "links": {"self": f"{v3}/roles/{one.id}"},
    }


def region(v3: str, name: str) -> View:
    """The region."""
    return {
        "id": name,
        "description": "",
        "parent_region_id": None,
        "links": {"self": f"{v3}/regions/{name}"},
    }


def service(v3: str, one: ServiceRecord) -> View:
    """A service of the catalogue."""
    return {
        "id": one.id,
        "type": one.type,
        "name": one.name,
        "enabled": True,
        "links": {"self": f"{v3}/services/{one.id}"},
    }


def endpoint(v3: str, one: Endpoint) -> View:
    """An endpoint of the catalogue."""
    return {
        "id": one.id,
        "service_id": one.service_id,
        "interface": one.interface,
        "region": one.region,
        "region_id": one.region,
        "url": one.url,
        "enabled": True,
        "links": {"self": f"{v3}/endpoints/{one.id}"},
    }


def grant(v3: str, one: Grant, *, has_names: bool) -> View:
    """A role assignment."""
    held = role_id(one.role)
    target = one.scope.target_id
    who: View = {"id": one.user_id}
    what: View = {"id": held}
    where: View = {"id": target}
    if has_names:
        who |= {"name": one.user, "domain": _DOMAIN}
        what |= {"name": one.role}
        where |= {"name": one.project, "domain": _DOMAIN}
    match one.scope.kind:
        case ScopeKind.SYSTEM:
            scope: View = {"system": {"all": True}}
            path = "system"
        case ScopeKind.DOMAIN:
            scope = {"domain": dict(_DOMAIN) if has_names else where}
            path = f"domains/{target}"
        case _:
            scope = {"project": where}
            path = f"projects/{target}"
    link = f"{v3}/{path}/users/{one.user_id}/roles/{held}"
    return {"role": what, "user": who, "scope": scope, "links": {"assignment": link}}


def _time(at: float) -> str:
    return iso(at).replace("+00:00", "Z")
