"""The story of `siderite demo power-cut`: a rack goes dark, and the records follow."""

from siderite.cli.main import main
from tests.baremetal.workers.receiver import wait_for
from tests.support.server import running_server


def test_a_rack_without_power_is_unknown_then_off_and_nobody_switches_anything(tmp_path, capsys):
    options = {"power_watch_interval_s": "0.5"}
    with running_server(tmp_path, options=options) as server:
        headers = server.headers("1.10")
        nodes = []
        for rack in ("r1", "r1", "r2"):
            body = {"driver": "fake-hardware", "driver_info": {"rack": rack}}
            made = server.api.post("/baremetal/v1/nodes", json=body, headers=headers)
            nodes.append(f"/baremetal/v1/nodes/{made.json()['uuid']}")
        for node in nodes:
            wish = {"target": "power on"}
            taken = server.api.put(f"{node}/states/power", json=wish, headers=headers)
            assert taken.status_code == 202
        ours = server.headers("1.900")

        def shows(*power):
            return [
                server.api.get(node, headers=ours).json()["power_state"] for node in nodes
            ] == list(power)

        wait_for(lambda: shows("power on", "power on", "power on"))
        demo = ["demo", "--data", str(server.data)]
        assert main([*demo, "power-cut", "r1"]) == 0
        assert "the power is unknown" in capsys.readouterr().out
        wait_for(lambda: shows("unknown", "unknown", "power on"))
        assert main([*demo, "restore", "r1"]) == 0
        wait_for(lambda: shows("power off", "power off", "power on"))
        shown = server.api.get(nodes[0], headers=ours).json()
        assert (shown["maintenance"], shown["fault"]) == (False, None)
