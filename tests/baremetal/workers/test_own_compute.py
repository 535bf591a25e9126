"""Both halves at one address: what happens to a machine's power reaches the server on it."""

from tests.baremetal.workers.receiver import wait_for
from tests.support.server import running_server

COMPUTE = "/compute/v2.1"


def boot(api, headers):
    """The id of an active server on a simulated host."""
    ours = {**headers, "OpenStack-API-Version": "compute 2.900"}
    host = {"host": {"name": "h1", "uri": "simulated:", "options": {}}}
    assert api.post(f"{COMPUTE}/hosts", json=host, headers=ours).status_code < 300
    image = {
        "name": "tiny", "disk_format": "raw", "container_format": "bare", "visibility": "public",
    }  # fmt: skip
    made = api.post("/image/v2/images", json=image, headers=headers).json()["id"]
    octets = {**headers, "Content-Type": "application/octet-stream"}
    api.put(f"/image/v2/images/{made}/file", content=b"boot" * 128, headers=octets)
    flavor = {"flavor": {"name": "small", "ram": 512, "vcpus": 1, "disk": 1}}
    size = api.post(f"{COMPUTE}/flavors", json=flavor, headers=ours).json()["flavor"]["id"]
    wish = {"name": "s", "flavorRef": size, "imageRef": made, "networks": "auto"}
    asked = api.post(f"{COMPUTE}/servers", json={"server": wish}, headers=ours)
    assert asked.status_code == 202, asked.text
    return asked.json()["server"]["id"]


def test_a_power_cut_behind_our_back_stops_the_server_and_its_end_starts_it(tmp_path):
    options = {"power_watch_interval_s": "0.5"}
    with running_server(tmp_path, options=options) as server:
        api, headers = server.api, server.headers("1.900")

        def status():
            server = api.get(f"{COMPUTE}/servers/{uuid}", headers=headers).json()["server"]
            return "busy" if server["OS-EXT-STS:task_state"] else server["status"]

        uuid = boot(api, headers)
        wait_for(lambda: status() == "ACTIVE")
        body = {"driver": "fake-hardware", "driver_info": {"rack": "r1"}, "instance_uuid": uuid}
        old = server.headers("1.10")
        node = api.post("/baremetal/v1/nodes", json=body, headers=old).json()["uuid"]
        path = f"/baremetal/v1/nodes/{node}"

        def switch(to):
            put = api.put(f"{path}/states/power", json={"target": to}, headers=headers)
            return put.status_code == 202

        def told():
            lines = api.get(f"{path}/timeline", headers=headers).json()["timeline"]
            return [
                (line["to"], line["status"]) for line in lines if line["what"] == "power_update"
            ]

        wait_for(lambda: switch("power on"))
        wait_for(lambda: told()[-1:] == [("POWER_ON", "end")])  # it may have been told of off, too
        wait_for(lambda: status() == "ACTIVE")
        assert api.post("/simulator/v1/racks/r1/power-cut", headers=headers).status_code < 300
        wait_for(lambda: status() == "SHUTOFF")
        assert api.get(path, headers=headers).json()["power_state"] == "power off"
        wait_for(lambda: switch("power on"))
        wait_for(lambda: status() == "ACTIVE")
        wait_for(lambda: told()[-2:] == [("POWER_OFF", "end"), ("POWER_ON", "end")])
