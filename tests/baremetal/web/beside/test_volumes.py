"""Volume connectors and targets: when they may be changed."""

import pytest

from tests.baremetal.web.expect import footprint
from tests.baremetal.web.expect import refused
from tests.baremetal.web.kinds import KINDS
from tests.baremetal.web.told import types
from tests.support.app import Standing

BAD = ("start", "error")


def test_a_volume_is_changed_only_while_its_node_is_off(lite: Standing) -> None:
    for name in ("connector", "target"):
        kind = KINDS[name]
        powers = (("power on", None), (None, None), ("power off", "power on"), (None, "power on"))
        for power, target in powers:
            node = lite.plant("manageable", power_state=power, target_power_state=target)
            uuid = kind.make(lite, node=node)["uuid"]
            before = footprint(lite)
            said = f'"volume {name} update" can not be performed on node "{node}"'
            state = "power on" if power else "unknown power"
            told = kind.patch(lite, uuid, ("add", "/extra/a", 1))
            refused(told, 400, said, f'in state "{state}"', "power it off")
            said = f'"volume {name} deletion" can not be performed on node "{node}"'
            refused(lite.ask("DELETE", f"{kind.path}/{uuid}"), 400, said)
            assert footprint(lite) == before
            assert types(lite, uuid)[-1].endswith("delete.error")
    href = "http://cloud.test/baremetal/v1/volume/targets"
    assert lite.ask("GET", "/v1/volume").json["targets"][0] == {"href": href, "rel": "self"}
    node = lite.make_node()
    found = lite.ask("GET", f"/v1/nodes/{node}/volume").json
    assert set(found) == {"links", "connectors", "targets"}
    assert found["links"][0]["href"].endswith(f"/v1/nodes/{node}/volume")
    refused(lite.ask("GET", f"/v1/nodes/{node}/volume", version=31), 404, "1.32")


@pytest.mark.parametrize("name", ["connector", "target"])
def test_a_volume_is_changed_as_soon_as_its_node_is_off(lite: Standing, name: str) -> None:
    """409, as where Ironic still has the lock: clients ask again after it, and not after a 400."""
    kind = KINDS[name]
    for power in ("power on", None):
        node = lite.plant("manageable", power_state=power, target_power_state="power off")
        uuid = kind.make(lite, node=node)["uuid"]
        before = footprint(lite)
        refused(kind.patch(lite, uuid, ("add", "/extra/a", 1)), 409, node, "retry")
        refused(lite.ask("DELETE", f"{kind.path}/{uuid}"), 409, node, "retry")
        assert footprint(lite) == before
        each = [f"{action}.{status}" for action in ("update", "delete") for status in BAD]
        assert [word.partition(".")[2] for word in types(lite, uuid)][2:] == each, "once each"
