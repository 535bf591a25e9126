"""Several processes on one PostgreSQL: one of them sweeps, and when it dies another does."""

import pytest

from tests.baremetal.workers.receiver import wait_for
from tests.support.server import running_server


@pytest.mark.serial
def test_the_sweep_runs_once_and_moves_when_its_process_is_killed(tmp_path, postgres, postgres_url):
    def sql(statement):
        import subprocess

        psql = [str(postgres.bin / "psql"), postgres_url, "--no-psqlrc", "-qAt", "-c", statement]
        done = subprocess.run(psql, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def holders():
        return sql("SELECT owner FROM leases WHERE name = 'power watch'").splitlines()

    machines = str(tmp_path / "machines.db")
    options = {"power_watch_interval_s": "0.5", "simulated_db": machines}
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with (
        running_server(tmp_path / "one", db=postgres_url, options=options) as first,
        running_server(tmp_path / "two", db=postgres_url, options=options) as second,
    ):
        headers = first.headers("1.10")
        body = {"driver": "fake-hardware", "driver_info": {"rack": "r1"}}
        made = first.api.post("/baremetal/v1/nodes", json=body, headers=headers).json()
        path = f"/baremetal/v1/nodes/{made['uuid']}"

        def power():
            return second.api.get(path, headers=headers).json()["power_state"]

        wait_for(lambda: power() == "power off")
        [holder] = holders()
        first.kill()
        wait_for(lambda: holders() and holders() != [holder], 60.0)
        wish = {"target": "power on"}
        put = second.api.put(f"{path}/states/power", json=wish, headers=headers)
        assert put.status_code == 202
        wait_for(lambda: power() == "power on", 60.0)
        cut = second.api.post("/simulator/v1/racks/r1/power-cut", headers=headers)
        assert cut.status_code < 300
        wait_for(lambda: power() == "power off", 60.0)
