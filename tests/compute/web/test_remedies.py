"""What is refused says what to do next, after the sentence that clients know."""

import re
from collections.abc import Iterator
from itertools import chain
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from tests.compute.cloud import Cloud
from tests.compute.cloud import cloud

NOBODY = "11111111-2222-4333-8444-555555555555"
CONSOLE = {"remote_console": {"protocol": "vnc", "type": "novnc"}}


def asked(cloud: Cloud) -> Iterator[tuple[str, str, Any, str]]:
    uuid = cloud.boot()
    new = {"name": "n", "flavorRef": cloud.flavor, "imageRef": cloud.image, "networks": "none"}
    yield "GET", f"/servers/{NOBODY}", None, f"Instance {NOBODY} could not be found."
    yield "GET", "/flavors/nope", None, "Flavor nope could not be found."
    yield "GET", "/os-keypairs/nope", None, "Keypair nope not found for user"
    yield "GET", f"/servers?marker={NOBODY}", None, f"marker [{NOBODY}] not found"
    yield "GET", "/os-aggregates/77", None, "Aggregate 77 could not be found."
    yield "GET", f"/os-server-groups/{NOBODY}", None, f"Instance group {NOBODY} could not be found."
    yield "GET", f"/os-hypervisors/{NOBODY}", None, "Hypervisor with ID"
    actions = f"/servers/{uuid}/os-instance-actions"
    yield "GET", f"{actions}/req-none", None, "Action req-none could not be found"
    yield "PUT", f"/os-services/{NOBODY}", {"status": "enabled"}, f"Service {NOBODY} not found."
    yield "GET", "/servers?status=nope", None, "Invalid status value: nope. It is one of ACTIVE, "
    yield "GET", "/hosts/nope", None, "Compute host nope could not be found."
    yield "POST", f"/servers/{uuid}/remote-consoles", CONSOLE, "Unavailable console type novnc."
    for path in ("/images", "/os-hosts", "/os-hypervisors/x/search", "/none/servers"):
        yield "GET", path, None, "The resource could not be found."
    yield "GET", "/servers?sort_key=nope", None, "Invalid input for query parameters sort_key."
    yield "GET", "/servers?sort_dir=up", None, "Invalid input for query parameters sort_dir."
    made = cloud.ask("POST", "/os-aggregates", {"aggregate": {"name": f"rack-{uuid}"}})
    rack = made.json["aggregate"]["id"]
    out = {"remove_host": {"host": "nope"}}
    yield "POST", f"/os-aggregates/{rack}/action", out, f"Aggregate {rack} has no host nope."
    same = {"resize": {"flavorRef": cloud.flavor}}
    yield "POST", f"/servers/{uuid}/action", same, "When resizing, instances must change flavor!"
    here = {"migrate": {"host": cloud.show(uuid)["OS-EXT-SRV-ATTR:host"]}}
    yield "POST", f"/servers/{uuid}/action", here, "Cannot migrate to the host where the server is"
    many = {"metadata": {str(n): "x" for n in range(129)}}
    metadata = "Maximum number of metadata items exceeds 128"
    yield "POST", f"/servers/{uuid}/metadata", many, metadata
    yield "GET", f"/servers/{uuid}/metadata/none", None, "Metadata item was not found: none"
    for field, value, known in (
        ("key_name", "nope", "Invalid key_name provided."),
        ("availability_zone", "nope", "The requested availability zone is not available"),
        ("host", "nope", "Compute host nope could not be found."),
        ("imageRef", NOBODY, f"Can not find requested image {NOBODY}."),
        ("networks", [{"uuid": NOBODY}], f"Network {NOBODY} could not be found."),
    ):
        yield "POST", "/servers", {"server": {**new, field: value}}, known
    quota = f"/os-quota-sets/{cloud.show(uuid)['tenant_id']}"
    few = {"quota_set": {"instances": 0, "force": True}}
    assert cloud.ask("PUT", quota, few).status == 200
    known = "Quota exceeded for instances: Requested 1, but already used"
    yield "POST", "/servers", {"server": new}, known
    assert cloud.ask("DELETE", quota).status == 202


def asked_of_old(cloud: Cloud) -> Iterator[tuple[str, str, Any, str]]:
    image = f"/images/{cloud.image}/metadata"
    many = {"metadata": {str(n): "x" for n in range(129)}}
    for path in (f"/images/{NOBODY}", f"/images/{NOBODY}/metadata"):
        yield "GET", path, None, f"Image {NOBODY} could not be found."
    yield "DELETE", f"/images/{NOBODY}", None, f"Image {NOBODY} could not be found."
    yield "POST", f"/images/{NOBODY}/metadata", many, f"Image {NOBODY} could not be found."
    yield "GET", "/images?status=nope", None, "Invalid status value: nope. It is one of ACTIVE, "
    yield "POST", image, many, "Image metadata limit exceeded."
    yield "GET", f"{image}/none", None, "Metadata item was not found: none"
    yield "DELETE", f"{image}/none", None, "Metadata item was not found: none"
    yield "GET", f"/servers/{NOBODY}/topology", None, "The resource could not be found."
    yield "GET", "/os-hosts/nope", None, "Compute host nope could not be found."


def test_a_refusal_says_what_to_do_after_the_words_that_clients_know(lite: Cloud) -> None:
    new, old = zip(asked(lite), repeat("2.901")), zip(asked_of_old(lite), repeat("2.35"))
    for (method, path, body, known), version in chain(new, old):
        answer = lite.ask(method, path, *(() if body is None else (body,)), version=version)
        assert 400 <= answer.status < 500, (path, answer)
        [fault] = answer.json.values()
        assert fault["message"].startswith(known), fault
        assert re.search("[.!] ", fault["message"]), f"no remedy: {fault}"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/servers/detail?all_tenants=1"),
        ("GET", "/os-keypairs?user_id=other"),
        ("GET", "/os-quota-sets/other"),
        ("GET", "/limits?tenant_id=other"),
        ("GET", "/os-server-groups?all_projects=true"),
        ("GET", "/os-simple-tenant-usage/other"),
        ("GET", "/os-services"),
    ],
)
def test_who_lacks_a_role_is_told_which(lite: Cloud, method: str, path: str) -> None:
    _, token, _ = lite.app.person("member")
    answer = lite.ask(method, path, token=token)
    said = answer.json["forbidden"]["message"]
    assert "to be performed: it needs the role admin. Ask an administrator" in said, said


def test_a_resize_of_bare_metal_is_not_told_to_want_a_larger_disk(lite: Cloud) -> None:
    lite.add_host(resource_class="CUSTOM_IRON")
    flavor = lite.make_flavor(disk=50)
    specs = {"extra_specs": {"resources:CUSTOM_IRON": "1"}}
    lite.ask("POST", f"/flavors/{flavor}/os-extra_specs", specs)
    uuid = lite.boot(flavorRef=flavor)
    answer = lite.act(uuid, "resize", {"flavorRef": lite.flavor})
    said = "A bare metal server cannot be resized; rebuild or replace it."
    assert answer.json["badRequest"]["message"] == said


@pytest.mark.parametrize("task", ["pausing", None])
def test_a_server_that_cannot_do_it_now_says_what_it_can(lite: Cloud, task: str | None) -> None:
    uuid = lite.boot()
    if task:
        lite.script(f"server:{uuid}", latency_s={"pause": 20})
        lite.act(uuid, "pause")
        said = lite.act(uuid, "os-stop").json["conflictingRequest"]["message"]
        assert said.endswith(" while it is in task_state pausing. Try again when that is done.")
    else:
        said = lite.act(uuid, "unpause").json["conflictingRequest"]["message"]
        assert ". Legal here: " in said
        assert said.endswith(", suspend, delete.")


def test_a_server_without_a_host_says_so_where_its_host_would_be_asked(tmp_path: Path) -> None:
    with cloud(tmp_path, hosts=0) as none:
        uuid = none.create()
        none.until(uuid, "ERROR")
        answers = (
            none.act(uuid, "os-getConsoleOutput", {}),
            none.ask("GET", f"/servers/{uuid}/diagnostics"),
        )
        for answer in answers:
            said = answer.json["conflictingRequest"]["message"]
            known = f"Instance {uuid} is not ready. "
            assert said == known + "It has no host; see its state and fault.", answer


def test_what_is_legal_can_be_asked_for(lite: Cloud) -> None:
    uuid = lite.boot()
    assert lite.act(uuid, "pause").status == 202
    lite.until(uuid, "PAUSED")
    said = lite.act(uuid, "os-stop").json["conflictingRequest"]["message"]
    assert "unpause" in said and "force_stop" not in said
