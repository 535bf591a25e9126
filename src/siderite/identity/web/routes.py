"""The identity API's table of contents: method, path, handler, and who may (policy.py)."""

from functools import partial

from siderite.core.http import Route
from siderite.core.shape import typed
from siderite.core.shape import wire
from siderite.identity.domain import Credential
from siderite.identity.domain import Domain
from siderite.identity.domain import Project
from siderite.identity.domain import Role
from siderite.identity.domain import User
from siderite.identity.web import credentials
from siderite.identity.web import grants
from siderite.identity.web import implied_roles
from siderite.identity.web import login
from siderite.identity.web import project_tags
from siderite.identity.web import projects
from siderite.identity.web import records
from siderite.identity.web import roles
from siderite.identity.web import tokens
from siderite.identity.web import users
from siderite.identity.web import versions
from siderite.identity.web import views
from siderite.identity.web.catalogue import Endpoint
from siderite.identity.web.catalogue import ServiceRecord
from siderite.identity.web.schemas import PasswordBody
from siderite.identity.web.schemas import TagsBody
from siderite.identity.web.schemas import form
from siderite.identity.web.schemas import items
from siderite.identity.web.schemas import listed
from siderite.identity.web.schemas import shown

ON_PROJECT = "/v3/projects/{project_id}/users/{user_id}/roles"
ON_DOMAIN = "/v3/domains/{domain_id}/users/{user_id}/roles"
ON_SYSTEM = "/v3/system/users/{user_id}/roles"
TAGS = "/v3/projects/{project_id}/tags"
CREDENTIALS = "/v3/users/{user_id}/application_credentials"

_PROJECT = shown("project", views.project, Project)
_PROJECTS = listed("projects", views.project, Project)
_USER = shown("user", views.user, User)
_USERS = listed("users", views.user, User)
_ROLE = shown("role", views.role, Role)
_ROLES = listed("roles", views.role, Role)
_CREDENTIAL = shown("application_credential", views.credential, Credential)
_NEW_CREDENTIAL = shown(
    "application_credential",
    lambda v3, one: {**views.credential(v3, one), "secret": ""},
    Credential,
)
_CREDENTIALS = listed("application_credentials", views.credential, Credential)
_DOMAIN = shown("domain", views.domain, Domain)
_DOMAINS = listed("domains", views.domain, Domain)
_SERVICE = shown("service", views.service, ServiceRecord)
_SERVICES = listed("services", views.service, ServiceRecord)
_ENDPOINT = shown("endpoint", views.endpoint, Endpoint)
_ENDPOINTS = listed("endpoints", views.endpoint, Endpoint)

# HEAD is answered wherever GET is.
ROUTES = (
    Route("GET", "/", versions.choices, gives=versions.choices_form),
    Route("GET", "/v3", versions.version, gives=versions.form),
    Route("POST", "/v3/auth/tokens", tokens.issue, takes=partial(typed, login.Body),
          gives=tokens.form),
    Route("GET", "/v3/auth/tokens", tokens.validate, "authenticated", gives=tokens.form),
    Route("DELETE", "/v3/auth/tokens", tokens.revoke, "authenticated"),
    Route("GET", "/v3/auth/catalog", tokens.catalog, "authenticated", gives=tokens.catalog_form),
    Route("GET", "/v3/auth/projects", projects.list_mine, "authenticated", gives=_PROJECTS),
    Route("GET", "/v3/auth/domains", grants.list_my_domains, "authenticated", gives=_DOMAINS),
    Route("GET", "/v3/auth/system", grants.list_my_system, "authenticated",
          gives=partial(items, "system", {"all": True})),
    Route("GET", "/v3/projects", projects.list_all, "reader", gives=_PROJECTS),
    Route(
        "POST",
        "/v3/projects",
        projects.create,
        "admin",
        takes=form("project", is_new=True),
        gives=_PROJECT,
    ),
    Route(
        "GET", "/v3/projects/{project_id}", projects.show, "own_project_or_reader", gives=_PROJECT
    ),
    Route(
        "PATCH",
        "/v3/projects/{project_id}",
        projects.update,
        "admin",
        takes=form("project"),
        gives=_PROJECT,
    ),
    Route("DELETE", "/v3/projects/{project_id}", projects.delete, "admin"),
    Route("GET", TAGS, project_tags.index, "own_project_or_reader", gives=project_tags.form),
    Route("PUT", TAGS, project_tags.replace, "admin", takes=partial(typed, TagsBody),
          gives=project_tags.form),
    Route("DELETE", TAGS, project_tags.clear, "admin"),
    Route("GET", TAGS + "/{tag}", project_tags.check, "own_project_or_reader"),
    Route("PUT", TAGS + "/{tag}", project_tags.add, "admin"),
    Route("DELETE", TAGS + "/{tag}", project_tags.remove, "admin"),
    Route("GET", "/v3/users", users.list_all, "reader", gives=_USERS),
    Route("POST", "/v3/users", users.create, "admin", takes=form("user", is_new=True), gives=_USER),
    Route("GET", "/v3/users/{user_id}", users.show, "self_or_reader", gives=_USER),
    Route("PATCH", "/v3/users/{user_id}", users.update, "admin", takes=form("user"), gives=_USER),
    Route("DELETE", "/v3/users/{user_id}", users.delete, "admin"),
    Route(
        "GET",
        "/v3/users/{user_id}/projects",
        projects.list_of_user,
        "self_or_reader",
        gives=_PROJECTS,
    ),
    Route(
        "POST",
        "/v3/users/{user_id}/password",
        users.change_password,
        "self_or_admin",
        takes=partial(typed, PasswordBody),
    ),
    Route("GET", CREDENTIALS, credentials.list_all, "self_or_reader", gives=_CREDENTIALS),
    Route("POST", CREDENTIALS, credentials.create, "self", takes=partial(typed, credentials.Body),
          gives=_NEW_CREDENTIAL),
    Route(
        "GET",
        CREDENTIALS + "/{credential_id}",
        credentials.show,
        "self_or_reader",
        gives=_CREDENTIAL,
    ),
    Route("DELETE", CREDENTIALS + "/{credential_id}", credentials.delete, "self_or_admin"),
    Route("GET", "/v3/users/{user_id}/access_rules", records.access_rules, "self_or_reader",
          gives=partial(items, "access_rules")),
    Route("GET", "/v3/users/{user_id}/groups", records.no_groups, "self_or_reader",
          gives=partial(items, "groups")),
    Route("GET", "/v3/groups", records.no_groups, "reader", gives=partial(items, "groups")),
    Route("GET", "/v3/groups/{group_id}", records.no_group, "reader"),
    Route("GET", "/v3/role_assignments", grants.list_all, "reader", gives=grants.form),
    Route("GET", ON_PROJECT, grants.list_on_project, "reader", gives=_ROLES),
    Route("GET", ON_PROJECT + "/{role_id}", grants.check_on_project, "reader"),
    Route("PUT", ON_PROJECT + "/{role_id}", grants.give_on_project, "admin"),
    Route("DELETE", ON_PROJECT + "/{role_id}", grants.take_on_project, "admin"),
    Route("GET", ON_DOMAIN, grants.list_on_domain, "reader", gives=_ROLES),
    Route("GET", ON_DOMAIN + "/{role_id}", grants.check_on_domain, "reader"),
    Route("PUT", ON_DOMAIN + "/{role_id}", grants.give_on_domain, "admin"),
    Route("DELETE", ON_DOMAIN + "/{role_id}", grants.take_on_domain, "admin"),
    Route("GET", ON_SYSTEM, grants.list_on_system, "reader", gives=_ROLES),
    Route("GET", ON_SYSTEM + "/{role_id}", grants.check_on_system, "reader"),
    Route("PUT", ON_SYSTEM + "/{role_id}", grants.give_on_system, "admin"),
    Route("DELETE", ON_SYSTEM + "/{role_id}", grants.take_on_system, "admin"),
    Route("GET", "/v3/roles", roles.list_all, "authenticated", gives=_ROLES),
    Route(
        "POST", "/v3/roles", roles.create, "admin", takes=partial(typed, roles.Body), gives=_ROLE
    ),
    Route("GET", "/v3/roles/{role_id}", roles.show, "authenticated", gives=_ROLE),
    Route(
        "PATCH",
        "/v3/roles/{role_id}",
        roles.update,
        "admin",
        takes=partial(typed, roles.Body),
        gives=_ROLE,
    ),
    Route("DELETE", "/v3/roles/{role_id}", roles.delete, "admin"),
    Route("GET", "/v3/role_inferences", implied_roles.index, "reader", gives=implied_roles.form),
    Route("GET", "/v3/roles/{role_id}/implies", implied_roles.of_role, "reader",
          gives=implied_roles.role_form),
    Route("GET", "/v3/roles/{role_id}/implies/{implied_id}", implied_roles.show, "reader",
          gives=implied_roles.one_form),
    Route("GET", "/v3/domains", records.domains, "authenticated", gives=_DOMAINS),
    Route("GET", "/v3/domains/{domain_id}", records.domain, "authenticated", gives=_DOMAIN),
    Route("GET", "/v3/regions", records.regions, "authenticated",
          gives=lambda: items("regions", views.region("", ""))),
    Route("GET", "/v3/regions/{region_id}", records.region, "authenticated",
          gives=lambda: wire({"region": views.region("", "")})),
    Route("GET", "/v3/services", records.services, "authenticated", gives=_SERVICES),
    Route("GET", "/v3/services/{service_id}", records.service, "authenticated", gives=_SERVICE),
    Route("GET", "/v3/endpoints", records.endpoints, "authenticated", gives=_ENDPOINTS),
    Route("GET", "/v3/endpoints/{endpoint_id}", records.endpoint, "authenticated", gives=_ENDPOINT),
)  # fmt: skip
