"""Management: what a machine is asked while the client waits, and what becomes of a bad BMC."""

from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from siderite.baremetal.drivers.simulated.scripts import Script
from tests.baremetal.web import odd
from tests.baremetal.web.expect import footprint
from tests.baremetal.web.expect import refused
from tests.baremetal.web.test_any_request import NODES
from tests.baremetal.web.test_any_request import check
from tests.baremetal.web.test_any_request import one_node
from tests.baremetal.web.test_any_request import repeatable
from tests.support.app import Answer
from tests.support.app import Standing
from tests.support.examples import examples

SINCE = [
    ("PUT", "states/boot_mode", {"target": "uefi"}, 76, 202),
    ("PUT", "states/secure_boot", {"target": True}, 76, 202),
    ("GET", "management/boot_device", None, 1, 200),
    ("PUT", "management/boot_device", {"boot_device": "pxe", "persistent": True}, 1, 204),
    ("GET", "management/boot_device/supported", None, 1, 200),
    ("PUT", "management/inject_nmi", {}, 29, 204),
    ("GET", "management/indicators", None, 63, 200),
    ("GET", "management/indicators/led@system", None, 63, 200),
    ("PUT", "management/indicators/led@system", {"state": "ON"}, 63, 204),
    ("GET", "vmedia", None, 93, 200),
    ("POST", "vmedia", {"device_type": "cdrom", "image_url": "http://a/b.iso"}, 89, 204),
    ("DELETE", "vmedia", None, 89, 204),
    ("GET", "vendor_passthru/methods", None, 1, 200),
    ("GET", "management/sensors", None, 900, 200),
]


def ask(app: Standing, method: str, node: str, path: str, body: Any = None, **how: Any) -> Answer:
    """The answer to a request below a node."""
    more = () if body is None else (body,)
    return app.ask(method, f"/v1/nodes/{node}/{path}", *more, **how)


def script(app: Standing, node: str, **how: Any) -> None:
    """Have the node's machine misbehave."""
    app.app.program.machines.scripts.set(f"node:{node}", Script(**how))


@pytest.mark.parametrize("case", SINCE, ids=lambda case: f"{case[0]}-{case[1]}")
def test_each_address_is_there_from_its_version_on(lite: Standing, case: Any) -> None:
    method, path, body, since, status = case
    node = lite.plant("manageable")
    if since > 1:
        before = since - 1 if since != 900 else 115
        refused(ask(lite, method, node, path, body, version=before), 404, "1.")
    answer = ask(lite, method, node, path, body, version=since)
    assert answer.status == status, answer


def test_the_boot_device_is_set_and_read(app: Standing) -> None:
    node = app.plant("manageable")
    path = "management/boot_device"
    assert ask(app, "GET", node, path).json == {"boot_device": "disk", "persistent": True}
    assert ask(app, "PUT", node, path, {"boot_device": "pxe"}).status == 204
    assert ask(app, "GET", node, path).json == {"boot_device": "pxe", "persistent": False}
    body = {"boot_device": "cdrom", "persistent": "true"}
    assert ask(app, "PUT", node, path, body).status == 204
    assert ask(app, "GET", node, path).json == {"boot_device": "cdrom", "persistent": True}
    supported = ask(app, "GET", node, path + "/supported").json
    assert supported == {"supported_boot_devices": ["pxe", "disk", "cdrom", "uefihttp"]}


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("management/boot_device", {"boot_device": "tape"}, "Invalid boot device"),
        ("management/boot_device", {"boot_device": "floppy"}, "can start from pxe"),
        ("management/boot_device", {}, "Missing mandatory parameter: boot_device"),
        ("management/boot_device", {"boot_device": "pxe", "x": 1}, "Unexpected arguments: x"),
        ("management/inject_nmi", {"x": 1}, "empty body"),
        ("management/indicators/led@system", {"state": "green"}, "can be on, off, blinking"),
        ("management/indicators/power@system", {"state": "on"}, "can only be read"),
        ("states/boot_mode", {"target": "cms"}, "Invalid boot mode"),
        ("states/secure_boot", {"target": "perhaps"}, "true or false"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    lite: Standing, path: str, body: Any, words: str
) -> None:
    refused(ask(lite, "PUT", lite.plant("manageable"), path, body), 400, words)


def test_lights_are_listed_with_their_links_and_set(lite: Standing) -> None:
    node = lite.plant("manageable")
    lights = ask(lite, "GET", node, "management/indicators").json["indicators"]
    assert [light["name"] for light in lights] == ["led@chassis", "led@system", "power@system"]
    link = f"http://cloud.test/baremetal/v1/nodes/{node}/management/indicators/led@chassis"
    assert lights[0]["links"][0] == {"href": link, "rel": "self"}
    path = "management/indicators/led@chassis"
    assert ask(lite, "GET", node, path).json == {"state": "off"}
    assert ask(lite, "PUT", node, path, {"state": "blinking"}).status == 204
    assert ask(lite, "GET", node, path).json == {"state": "blinking"}
    refused(ask(lite, "GET", node, "management/indicators/x@y"), 404, "has no indicator")


def test_virtual_media_go_in_and_out(lite: Standing) -> None:
    node = lite.plant("active")
    body = {"device_type": "cdrom", "image_url": "http://a/b.iso", "image_download_source": "http"}
    assert ask(lite, "POST", node, "vmedia", body).status == 204
    first = ask(lite, "GET", node, "vmedia").json[0]
    assert first == {"image": "http://a/b.iso", "inserted": True, "media_types": ["CD", "DVD"]}
    assert ask(lite, "DELETE", node, "vmedia?device_types=cdrom,floppy").status == 204
    assert ask(lite, "GET", node, "vmedia").json[0]["inserted"] is False
    for wrong in (
        {"device_type": "tape", "image_url": "http://a/b"},
        {"device_type": "cdrom", "image_url": "b.iso"},
        {"device_type": "disk", "image_url": "http://a/b"},
        {"device_type": "cdrom", "image_url": "http://a/b", "image_download_source": "tape"},
    ):
        refused(ask(lite, "POST", node, "vmedia", wrong), 400)
    refused(ask(lite, "DELETE", node, "vmedia?device_types=tape"), 400, "cdrom, disk, floppy")
    refused(ask(lite, "DELETE", node, "vmedia?x=1"), 400, "Unexpected arguments")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://us/boot/v1/files/n/hunter2/boot.iso", "http://us/boot/v1/files/n/******/boot.iso"),
        ("http://me:hunter2@a/b.iso", "http://***@a/b.iso"),
        ("http://a/b.iso?me&signature=hunter2", "http://a/b.iso?***"),
    ],
)
def test_a_medium_is_shown_without_what_lets_one_read_it(
    lite: Standing, url: str, shown: str
) -> None:
    node = lite.plant("active")
    body = {"device_type": "cdrom", "image_url": url}
    assert ask(lite, "POST", node, "vmedia", body).status == 204
    assert ask(lite, "GET", node, "vmedia").json[0]["image"] == shown


def test_an_unreachable_bmc_is_a_gateway_timeout_with_the_remedy(lite: Standing) -> None:
    node = lite.plant("manageable", driver_info={"sim_address": "10.1.2.3"})
    script(lite, node, unreachable=True)
    answer = ask(lite, "GET", node, "management/boot_device")
    assert answer.status == 504, answer
    assert "The BMC 10.1.2.3 of node" in answer.sentence
    assert "Check its address and credentials in driver_info" in answer.sentence


def test_a_bmc_that_refuses_is_a_bad_gateway(lite: Standing) -> None:
    node = lite.plant("manageable")
    script(lite, node, fail={"management.set_boot_device": "locked by its key"})
    answer = ask(lite, "PUT", node, "management/boot_device", {"boot_device": "pxe"})
    assert (answer.status, "locked by its key" in answer.sentence) == (502, True), answer


def test_a_slow_bmc_is_given_up(lite: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    node = lite.plant("manageable")
    monkeypatch.setattr(lite.app.program.baremetal.hardware, "_timeout_s", 0.01)
    script(lite, node, latency_s={"management": 60.0})
    answer = ask(lite, "GET", node, "management/sensors", version=900)
    assert (answer.status, "no answer within" in answer.sentence) == (504, True), answer


def test_a_machine_that_is_being_worked_on_is_left_alone(lite: Standing) -> None:
    node = lite.plant("deploying")
    before = footprint(lite)
    for method, path, body in [
        ("PUT", "management/boot_device", {"boot_device": "pxe"}),
        ("PUT", "management/inject_nmi", {}),
        ("PUT", "states/boot_mode", {"target": "bios"}),
        ("PUT", "states/secure_boot", {"target": True}),
        ("DELETE", "vmedia", None),
    ]:
        answer = ask(lite, method, node, path, body)
        refused(answer, 409, "deploying")
        assert answer.headers["retry-after"]
    assert footprint(lite) == before


def test_what_the_drivers_interface_lacks_is_refused(lite: Standing) -> None:
    node = lite.plant("manageable", raid_interface="no-raid")
    disks = {"logical_disks": [{"raid_level": "1", "size_gb": 100}]}
    refused(ask(lite, "PUT", node, "states/raid", disks), 404, "does not support raid")
    gone = lite.plant("manageable", driver="redfisch")
    refused(ask(lite, "GET", gone, "management/boot_device"), 400, "not there (any more)")
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        refused(ask(lite, method, node, "vendor_passthru/dance"), 400, "no vendor method")
        refused(ask(lite, method, node, "vendor_passthru?method=x"), 400, "no vendor method")
        refused(ask(lite, method, node, "vendor_passthru"), 400, "method")
    assert ask(lite, "GET", node, "vendor_passthru/methods").json == {}


GOOD = {"raid_level": "1", "size_gb": 100}


@pytest.mark.parametrize(
    ("path", "wish"),
    [
        ("states/power", {"target": "power on"}),
        ("states/boot_mode", {"target": "uefi"}),
        ("states/secure_boot", {"target": True}),
        ("states/console", {"enabled": True}),
    ],
)
def test_what_nobody_could_reach_the_bmc_for_is_refused_at_once(
    lite: Standing, path: str, wish: Any
) -> None:
    interfaces = lite.app.program.baremetal.cards["redfish"].fill_in({})
    uuid = lite.plant("manageable", driver="redfish", driver_info={}, **interfaces)
    gone = lite.plant("manageable", driver="gone")
    before = footprint(lite)
    refused(ask(lite, "PUT", uuid, path, wish), 400, "driver_info lacks redfish_address")
    assert ask(lite, "PUT", gone, path, wish).status == 400
    assert footprint(lite) == before


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ([], "must be an object"),
        ({"disks": []}, "logical_disks only"),
        ({"logical_disks": []}, "1 to 256"),
        ({"logical_disks": ["x"]}, "must be an object"),
        ({"logical_disks": [{"raid_level": "1"}]}, "lacks size_gb"),
        ({"logical_disks": [{**GOOD, "raid_level": "7"}]}, "raid_level must be one of"),
        ({"logical_disks": [{**GOOD, "size_gb": "100"}]}, "size_gb must be"),
        ({"logical_disks": [{**GOOD, "size_gb": True}]}, "size_gb must be"),
        ({"logical_disks": [{**GOOD, "colour": "red"}]}, "has no property"),
        ({"logical_disks": [{**GOOD, "is_root_volume": True}] * 2}, "Only one"),
    ],
)
def test_a_wrong_raid_configuration_is_refused(lite: Standing, config: Any, words: str) -> None:
    refused(ask(lite, "PUT", lite.plant("manageable"), "states/raid", config), 400, words)


def test_the_wanted_raid_configuration_is_recorded(app: Standing) -> None:
    node = app.plant("manageable")
    config = {"logical_disks": [{**GOOD, "is_root_volume": True}, {**GOOD, "size_gb": "MAX"}]}
    refused(ask(app, "PUT", node, "states/raid", config, version=11), 406)
    assert ask(app, "PUT", node, "states/raid", config, version=12).status == 204
    assert ask(app, "GET", node, "states").json["target_raid_config"] == config
    assert ask(app, "PUT", node, "states/raid", {}).status == 204
    assert app.node(node).target_raid_config == {}


def test_a_lessee_does_not_manage_the_hardware(lite: Standing) -> None:
    _, token, project = lite.person("member")
    node = lite.plant("active", lessee=project)
    refused(ask(lite, "GET", node, "management/boot_device", token=token), 403, "owner")
    refused(ask(lite, "GET", lite.plant("active"), "management/boot_device", token=token), 404)


def test_a_drivers_vendor_methods_are_none(lite: Standing) -> None:
    path = "/v1/drivers/fake-hardware/vendor_passthru"
    assert lite.ask("GET", f"{path}/methods").json == {}
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        refused(lite.ask(method, f"{path}?method=dance"), 400, "no vendor method 'dance'")
        refused(lite.ask(method, f"{path}/dance"), 400, "no vendor method")
    refused(lite.ask("GET", "/v1/drivers/nope/vendor_passthru/methods"), 404)


def test_passwords_in_the_address_of_an_image_are_not_shown(lite: Standing) -> None:
    node = lite.plant("manageable")
    for password in ("secret", "much@secret"):
        body = {"device_type": "cdrom", "image_url": f"http://me:{password}@images/x@1.iso"}
        assert ask(lite, "POST", node, "vmedia", body).status == 204
        shown = ask(lite, "GET", node, "vmedia").body.decode()
        assert "http://***@images/x@1.iso" in shown
        assert "secret" not in shown


EVENT = {
    "event": "network.bind_port", "port_id": odd.UUID, "mac_address": odd.MAC, "status": "ACTIVE",
}  # fmt: skip


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ([EVENT, {**EVENT, "device_id": None, "binding:host_id": odd.UUID}], 204),
        ([], 400),
        ([{**EVENT, "event": "network.dance"}], 400),
        ([{**EVENT, "mac_address": "x"}], 400),
        ([{**EVENT, "port_id": "x"}], 400),
        ([{**EVENT, "colour": "red"}], 400),
        ([{"event": "network.bind_port"}], 400),
        ("x", 400),
    ],
)
def test_a_network_service_tells_what_happened(lite: Standing, events: Any, status: int) -> None:
    answer = lite.ask("POST", "/v1/events", {"events": events}, version=54)
    assert answer.status == status, answer
    refused(lite.ask("POST", "/v1/events", {"events": events}, version=53), 404)


DISK = st.fixed_dictionaries(
    {"raid_level": st.just("1") | odd.SCALARS, "size_gb": st.just("MAX") | odd.SCALARS},
    optional={"physical_disks": odd.JSON, "is_root_volume": odd.SCALARS, "x": odd.SCALARS},
)
BODIES = {
    "states/raid": st.fixed_dictionaries({"logical_disks": st.lists(DISK | odd.JSON, max_size=3)}),
    "states/boot_mode": st.fixed_dictionaries({"target": st.just("bios") | odd.JSON}),
    "states/secure_boot": st.fixed_dictionaries({"target": st.booleans() | odd.JSON}),
    "states/console": st.fixed_dictionaries({"enabled": st.booleans() | odd.JSON}),
    "management/boot_device": st.fixed_dictionaries(
        {"boot_device": st.just("pxe") | odd.JSON}, optional={"persistent": odd.JSON}
    ),
    "management/indicators/led@chassis": st.fixed_dictionaries({"state": odd.JSON}),
    "vmedia": st.fixed_dictionaries(
        {"device_type": st.just("cdrom") | odd.JSON, "image_url": st.just("a://b") | odd.JSON},
        optional={"image_download_source": odd.SCALARS},
    ),
}


@hypothesis.settings(repeatable, max_examples=examples(20))
@given(data=st.data())
def test_no_wish_for_the_hardware_is_a_server_error(app: Standing, data: st.DataObject) -> None:
    with one_node(app, **data.draw(NODES)) as uuid:
        path = data.draw(st.sampled_from([*BODIES]))
        method = "POST" if path == "vmedia" else "PUT"
        body = odd.as_bytes(data.draw(BODIES[path]))
        check(app, method, f"/v1/nodes/{uuid}/{path}", body=body)
