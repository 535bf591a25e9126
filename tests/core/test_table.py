"""A row whose document was spoilt by a hand or a bug: the others are not."""

import pytest

from siderite.baremetal.store import NODES
from siderite.baremetal.usecases.power import power_watch
from siderite.core import metrics
from siderite.core.store import Op
from tests.compute.cloud import cloud
from tests.support.known import empty_mind


@pytest.fixture
def unseen(monkeypatch):
    monkeypatch.setattr(NODES, "_told", set())


def test_one_spoilt_record_is_named_and_takes_nothing_else_down(tmp_path, unseen):
    with cloud(tmp_path) as made:
        app, store = made.app, made.app.app.program.store
        bad, good = app.plant("active", name="bad"), app.plant("active", name="good")
        spoilt = f'{{"uuid":"{bad}","version":"one"}}'
        app.run(store.commit([Op("UPDATE nodes SET doc = ? WHERE uuid = ?", (spoilt, bad), 1)]))
        empty_mind(store)
        app.run(store.commit([Op("UPDATE hosts SET doc = '{' WHERE id = 1", (), 1)]))

        names = [node["name"] for node in app.ask("GET", "/v1/nodes").json["nodes"]]
        assert names == ["bad", "good"]
        answer = app.ask("PUT", f"/v1/nodes/{bad}/maintenance", {"reason": "x"})
        assert answer.status == 500
        assert f"The record {bad} in the table nodes cannot be read" in answer.sentence
        assert "restore a backup" in answer.sentence
        assert app.ask("PUT", f"/v1/nodes/{good}/maintenance", {"reason": "x"}).status == 202

        watched = app.run(power_watch.look(app.app.program.baremetal, [bad, good]))
        assert [one.node.uuid for one in watched] == [good]
        services = app.ask("GET", "/compute/v2.1/os-services")
        assert len(services.json["services"]) == 1
        assert b'siderite_unreadable_records{table="nodes"}' in metrics.page()[0]
