"""Secrets that are shown as a mask: who writes back what was read does not destroy them."""

from typing import Any

import pytest

from siderite.baremetal.store import RUNBOOKS
from tests.baremetal.web.expect import footprint
from tests.baremetal.web.expect import refused
from tests.baremetal.web.kinds import KINDS
from tests.support.app import Standing

MASK = "******"


def test_a_mask_that_was_read_and_is_written_back_keeps_the_secret(lite: Standing) -> None:
    inner = {"redfish_password": "hush", "list": [{"token": "t"}], "redfish_address": "a"}
    uuid = lite.plant("manageable", driver_info=inner, instance_info={"configdrive": {"a": 1}})
    read = lite.ask("GET", f"/v1/nodes/{uuid}").json
    assert read["driver_info"]["redfish_password"] == MASK
    changed = {**read["driver_info"], "redfish_address": "b"}
    patch = [
        {"op": "replace", "path": "/driver_info", "value": changed},
        {"op": "replace", "path": "/instance_info", "value": read["instance_info"]},
    ]
    assert lite.ask("PATCH", f"/v1/nodes/{uuid}", patch).status == 200
    node = lite.node(uuid)
    assert node.driver_info == {**inner, "redfish_address": "b"}
    assert node.instance_info == {"configdrive": {"a": 1}}
    alone = [{"op": "add", "path": "/driver_info/redfish_password", "value": MASK}]
    assert lite.ask("PATCH", f"/v1/nodes/{uuid}", alone).status == 200
    assert lite.node(uuid).driver_info["redfish_password"] == "hush"


def test_what_lets_one_read_a_nodes_boot_files_is_masked(lite: Standing) -> None:
    kernel = "http://us/boot/v1/files/n/hush/vmlinuz"
    memory = {"ramdisk": {"secret": "hush", "phase": "on", "boot": {"kernel": kernel}}}
    uuid = lite.plant("clean wait", driver_internal_info=memory)
    shown = lite.ask("GET", f"/v1/nodes/{uuid}").json["driver_internal_info"]["ramdisk"]
    assert shown["boot"]["kernel"] == f"http://us/boot/v1/files/n/{MASK}/vmlinuz"
    assert "hush" not in str(shown)


def test_a_secret_in_a_text_is_masked_and_kept_when_the_text_is_written_back(
    lite: Standing,
) -> None:
    inner = {
        "redfish_address": "https://admin:hush@10.0.0.9:8443",
        "kernel_append_params": "quiet password=hush rd.x=1",
        "urls": ["http://a:hush@b/c", "http://nobody@b/c", "mailto:a@b"],
    }
    uuid = lite.plant("manageable", driver_info=inner)
    read = lite.ask("GET", f"/v1/nodes/{uuid}").json["driver_info"]
    assert "hush" not in str(read)
    assert read["redfish_address"] == f"https://admin:{MASK}@10.0.0.9:8443"
    assert read["urls"][1:] == inner["urls"][1:]
    patch = [{"op": "replace", "path": "/driver_info", "value": {**read, "more": 1}}]
    assert lite.ask("PATCH", f"/v1/nodes/{uuid}", patch).status == 200
    assert lite.node(uuid).driver_info == {**inner, "more": 1}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("quiet PASSWORD=hush rd.x=1", f"quiet PASSWORD={MASK} rd.x=1"),
        ("PassWord: hush", f"PassWord: {MASK}"),
        ("password='hush, hush' rd.x=1", f"password={MASK} rd.x=1"),
        ('{"password": "hush hush"}', f'{{"password": {MASK}}}'),
        ("{'ipmi_password': 'hush', 'a': 1}", f"{{'ipmi_password': {MASK}, 'a': 1}}"),
        ("http://a:hu@hush@b:80/c", f"http://a:{MASK}@b:80/c"),
        ("http://a@example.org:hush@b/c@d", f"http://a@example.org:{MASK}@b/c@d"),
        ("http://b:80/c@d http://b@c:80/", "http://b:80/c@d http://b@c:80/"),
    ],
)
def test_a_secret_in_a_text_is_masked_whole_however_it_is_written(
    lite: Standing, text: str, shown: str
) -> None:
    uuid = lite.plant("manageable", driver_info={"note": text})
    assert lite.ask("GET", f"/v1/nodes/{uuid}").json["driver_info"] == {"note": shown}
    patch = [{"op": "replace", "path": "/driver_info", "value": {"note": shown, "more": 1}}]
    assert lite.ask("PATCH", f"/v1/nodes/{uuid}", patch).status == 200
    assert lite.node(uuid).driver_info == {"note": text, "more": 1}


@pytest.mark.parametrize(
    "info",
    [
        {"ipmi_password": MASK}, {"a": {"token": MASK}}, {"list": [{"secret": MASK}] * 2},
        {"redfish_address": f"https://admin:{MASK}@10.0.0.10:8443"},
        {"kernel_append_params": f"quiet password={MASK} rd.x=1"},
    ],
)  # fmt: skip
def test_a_mask_that_stands_for_nothing_is_refused(lite: Standing, info: dict[str, Any]) -> None:
    had = {"list": [{"secret": "s"}], "ipmi_password": None}
    texts = {"redfish_address": "https://admin:hush@10.0.0.9:8443", "kernel_append_params": "quiet"}
    uuid = lite.plant("manageable", driver_info=had | texts)
    before = footprint(lite)
    said = "write the secret itself"
    refused(
        lite.ask("POST", "/v1/nodes", {"driver": "fake-hardware", "driver_info": info}), 400, said
    )
    patch = [{"op": "replace", "path": "/driver_info", "value": info}]
    refused(lite.ask("PATCH", f"/v1/nodes/{uuid}", patch), 400, said, "driver_info/")
    assert footprint(lite) == before


def test_what_is_not_masked_may_be_stars(lite: Standing) -> None:
    patch = [
        {"op": "add", "path": "/driver_info/motto", "value": MASK},
        {"op": "add", "path": "/extra/password", "value": MASK},
    ]
    uuid = lite.plant("manageable", driver_info={"motto": "password=hush"})
    assert lite.ask("PATCH", f"/v1/nodes/{uuid}", patch).status == 200
    node = lite.node(uuid)
    assert (node.driver_info["motto"], node.extra) == (MASK, {"password": MASK})


def test_the_steps_of_a_runbook_keep_their_secrets_too(lite: Standing) -> None:
    args = {"password": "hush", "settings": [{"name": "SetupPassword", "value": "hush"}]}
    step = {"interface": "bios", "step": "x", "order": 1, "args": args}
    kind = KINDS["runbook"]
    made = kind.make(lite, steps=[step])
    hidden = [{"name": "SetupPassword", "value": MASK}]
    assert made["steps"][0]["args"] == {"password": MASK, "settings": hidden}
    steps = [{**made["steps"][0], "order": 7}]
    assert kind.patch(lite, made["uuid"], ("replace", "/steps", steps)).status == 200
    stored = lite.run(RUNBOOKS.get(lite.app.program.store, made["uuid"]))
    assert stored is not None
    assert stored.steps == [{**step, "order": 7}]
