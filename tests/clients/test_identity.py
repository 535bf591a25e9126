"""Identity and the ways to log in, with the `openstack` command."""

import json

import pytest

from tests.clients.nodes import Nodes
from tests.clients.shell import Shell
from tests.clients.shell import process
from tests.support.server import Server
from tests.support.server import clean_environment


def test_a_token_is_issued_for_the_users_project(openstack: Shell) -> None:
    token = openstack.json("token", "issue")
    projects = {row["Name"]: row["ID"] for row in openstack.json("project", "list")}
    users = {row["Name"]: row["ID"] for row in openstack.json("user", "list")}
    assert token["project_id"] == projects["admin"]
    assert token["user_id"] == users["admin"]
    assert token["id"]


def test_the_catalogue_names_both_services(openstack: Shell, server: Server) -> None:
    catalogue = {row["Type"]: row["Endpoints"] for row in openstack.json("catalog", "list")}
    assert {"identity", "baremetal"} <= set(catalogue)
    addresses = {(one["interface"], one["url"]) for one in catalogue["baremetal"]}
    url = f"{server.url}/baremetal"
    assert addresses == {("public", url), ("internal", url), ("admin", url)}
    assert {one["region_id"] for one in catalogue["baremetal"]} == {"RegionOne"}


def test_the_first_projects_users_and_roles_are_listed(openstack: Shell) -> None:
    assert {"admin", "service"} <= set(openstack.column("Name", "project", "list"))
    assert "admin" in openstack.column("Name", "user", "list")
    roles = openstack.column("Name", "role", "list")
    assert {"admin", "manager", "member", "reader", "service"} <= set(roles)
    assert "Default" in openstack.column("Name", "domain", "list")
    assert openstack.json("project", "show", "admin")["name"] == "admin"
    assert openstack.json("user", "show", "admin")["name"] == "admin"
    types = openstack.column("Service Type", "endpoint", "list")
    assert {"identity", "baremetal"} <= set(types)


def test_a_reader_sees_the_nodes_of_its_project_and_changes_none(
    openstack: Shell, nodes: Nodes, server: Server
) -> None:
    project = openstack.json("project", "create", "laboratory")["id"]
    password = "a reader's pass phrase"
    openstack("user", "create", "mia", "--password", password)
    openstack("role", "add", "--project", "laboratory", "--user", "mia", "reader")
    mine, other = nodes.make(owner=project), nodes.make()
    mia = (
        "--os-username", "mia", "--os-password", password, "--os-project-name", "laboratory",
    )  # fmt: skip
    listed = openstack.column("uuid", *mia, "baremetal", "node", "list")
    assert listed == [mine["uuid"]]
    assert "could not be found" in openstack.refused(
        *mia, "baremetal", "node", "show", other["uuid"]
    )
    said = openstack.refused(*mia, "baremetal", "node", "manage", mine["uuid"])
    assert "(HTTP 403)" in said
    assert nodes.show(mine["uuid"])["provision_state"] == "enroll"


def test_a_wrong_password_is_refused_in_words(openstack: Shell) -> None:
    said = openstack.refused("--os-password", "wrong", "baremetal", "node", "list")
    assert "(HTTP 401)" in said


@pytest.mark.parametrize("interface", ["public", "internal", "admin"])
def test_every_interface_of_the_catalogue_leads_to_the_service(
    openstack: Shell, nodes: Nodes, interface: str
) -> None:
    node = nodes.make()
    words = ("--os-interface", interface, "--os-region-name", "RegionOne")
    assert node["uuid"] in openstack.column("uuid", *words, "baremetal", "node", "list")


def test_the_openstack_command_works_as_a_process_of_its_own(server: Server, nodes: Nodes) -> None:
    node = nodes.make()
    environment = server.client_environment()
    done = process("openstack", "baremetal", "node", "list", "-f", "json", environment=environment)
    assert done.returncode == 0, done.stderr
    assert node["name"] in [row["name"] for row in json.loads(done.stdout)]


def test_the_openstack_command_reads_commands_from_its_standard_input(
    server: Server, nodes: Nodes
) -> None:
    name = nodes.name()
    typed = (
        f"baremetal node create --driver fake-hardware --name {name} -f value -c provision_state\n"
        f"baremetal node manage {name}\n"
        f"baremetal node show {name} -f value -c uuid\n"
    )
    done = process("openstack", environment=server.client_environment(), typed=typed)
    node = nodes.until(name, "manageable")
    assert "enroll" in done.stdout
    assert node["uuid"] in done.stdout


def test_the_stand_alone_baremetal_command_works_too(server: Server, nodes: Nodes) -> None:
    node = nodes.make()
    # Unlike `openstack` it takes the type `none` where clouds.yaml names no other.
    environment = server.client_environment()
    done = process("baremetal", "node", "show", node["name"], "-f", "json", environment=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["uuid"] == node["uuid"]


@pytest.mark.parametrize("end", ["/baremetal", "/baremetal/v1"])
def test_http_basic_authentication_needs_no_identity_service(
    openstack: Shell, server: Server, nodes: Nodes, end: str
) -> None:
    node = nodes.make()
    environment = clean_environment() | {
        "HOME": str(server.data.parent),
        "OS_AUTH_TYPE": "http_basic",
        "OS_ENDPOINT": server.url + end,
        "OS_USERNAME": "admin",
        "OS_PASSWORD": server.password,
    }
    shown = openstack.like(environment=environment).json("baremetal", "node", "show", node["name"])
    assert shown["uuid"] == node["uuid"]


def test_authentication_of_type_none_is_refused_unless_configured(
    openstack: Shell, server: Server
) -> None:
    environment = clean_environment() | {
        "HOME": str(server.data.parent),
        "OS_AUTH_TYPE": "none",
        "OS_ENDPOINT": f"{server.url}/baremetal",
    }
    done = openstack.like(environment=environment).run("baremetal", "node", "list")
    assert done.code == 1
    assert "(HTTP 401)" in done.err


def test_an_application_credential_is_made_used_and_deleted(
    openstack: Shell, server: Server
) -> None:
    made = openstack.json("application", "credential", "create", "robot", "--role", "reader")
    assert "robot" in openstack.column("Name", "application", "credential", "list")
    environment = {
        **clean_environment(), "HOME": str(server.data.parent),
        "OS_AUTH_TYPE": "v3applicationcredential", "OS_AUTH_URL": f"{server.url}/identity/v3",
        "OS_APPLICATION_CREDENTIAL_ID": made["ID"],
        "OS_APPLICATION_CREDENTIAL_SECRET": made["Secret"],
    }  # fmt: skip
    robot = openstack.like(environment=environment)
    assert isinstance(robot.json("image", "list"), list)
    assert "member" in robot.refused("image", "create", "no")
    openstack("application", "credential", "delete", "robot")
    assert "401" in robot.refused("image", "list")


def test_people_and_their_roles_are_managed(openstack: Shell) -> None:
    openstack("project", "create", "wing", "--description", "east")
    openstack("user", "create", "wilma", "--password", "pass phrase", "--project", "wing")
    openstack("role", "add", "--project", "wing", "--user", "wilma", "member")
    words = ("role", "assignment", "list", "--user", "wilma", "--names")
    assert openstack.column("Role", *words) == ["member"]
    assert openstack.column("Project", *words) == ["wing@Default"]
    openstack("role", "remove", "--project", "wing", "--user", "wilma", "member")
    assert openstack.json(*words) == []
    openstack("project", "set", "wing", "--disable")
    assert openstack.json("project", "show", "wing")["enabled"] is False
    openstack("user", "set", "wilma", "--name", "betty", "--disable")
    assert openstack.json("user", "show", "betty")["enabled"] is False
    assert openstack.json("group", "list") == []
    openstack("user", "delete", "betty")
    openstack("role", "create", "auditor", "--description", "looks")
    assert openstack.json("role", "show", "auditor")["description"] == "looks"
    openstack("role", "delete", "auditor")
    openstack("project", "delete", "wing")
    token = openstack.json("token", "issue")["id"]
    openstack("token", "revoke", token)
