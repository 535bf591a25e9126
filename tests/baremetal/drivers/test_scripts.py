"""Scripts of simulated machines: the nearest that speaks wins."""

import contextlib
import sqlite3

import pytest

from siderite.baremetal.drivers.contract import Endpoint
from siderite.baremetal.drivers.simulated.machines import Machines
from siderite.baremetal.drivers.simulated.scripts import Script
from siderite.core import simulation
from siderite.core.errors import Invalid


def parse(document):
    return simulation.parse(document, Script, "machines")


def at(node="n", rack="r1"):
    return Endpoint(node, {"rack": rack}, {}, {})


def test_a_nodes_script_beats_its_racks_beats_everybodys():
    machines = Machines()
    machines.scripts.set("all", parse({"latency_s": {"*": 1}, "ramdisk": True}))
    machines.scripts.set("rack:r1", parse({"latency_s": {"clean": 2}, "unreachable": True}))
    machines.scripts.set("node:n", parse({"latency_s": {"deploy.write_image": 3}}))
    script = machines.script(at())
    assert script.latency(0, "deploy.write_image", "deploy") == 3
    assert script.latency(0, "deploy.erase", "clean") == 2
    assert script.latency(0, "x.y", "inspect") == 1
    assert (script.ramdisk, script.unreachable) == (True, True)
    assert machines.script(at("other", "r2")).unreachable is None
    machines.close()


def test_a_latency_may_be_a_range():
    script = parse({"latency_s": {"*": [1, 3]}})
    assert (script.latency(0.0, "x"), script.latency(0.5, "x")) == (1, 2)


@pytest.mark.parametrize(
    "document",
    [[], {"speed": 1}, {"latency_s": {"*": -1}}, {"latency_s": {"*": [3, 1]}},
     {"latency_s": {"*": "slow"}}, {"fail": {"x": 1}}, {"ramdisk": "yes"}],
)  # fmt: skip
def test_a_script_that_makes_no_sense_is_refused(document):
    with pytest.raises(Invalid):
        parse(document)


def test_a_refusal_of_a_script_says_what_it_may_have():
    with pytest.raises(Invalid, match=r"`speed`.* any of latency_s, fail, .*ramdisk, silent"):
        parse({"speed": 1})


def test_machines_remember_their_power_and_scripts_over_a_restart(tmp_path):
    path = str(tmp_path / "simulated.db")
    first = Machines(path)
    first.set_power(at(), "power on")
    first.scripts.set("rack:r1", parse({"unreachable": True}))
    first.close()
    second = Machines(path)
    assert second.power(at()) == "power on"
    assert second.script(at()).unreachable
    second.cut_power("r1")
    assert second.power(at()) == "power off"
    second.set_power(at(), "power on")
    assert second.power(at()) == "power on"
    second.close()


def test_a_file_of_an_earlier_release_goes_on(tmp_path):
    path = str(tmp_path / "simulated.db")
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.executescript(
            "CREATE TABLE machines (node TEXT PRIMARY KEY, rack TEXT, power TEXT, since REAL);"
            "CREATE TABLE runs (token TEXT PRIMARY KEY, node TEXT, what TEXT, began REAL,"
            " ends REAL, calls INTEGER, asked INTEGER, last_asked REAL, ended INTEGER);"
            "INSERT INTO runs VALUES ('op/0', 'n', 'deploy.write_image', 5, 7, 0, 1, 5, 0);"
        )
    machines = Machines(path, clock=lambda: 6.0)
    known = machines.run(at(), "deploy.write_image", "op/0", 0.0, calls=False)
    assert (known.began, known.ends, known.ended) == (5.0, 7.0, False)
    new = machines.run(at(), "deploy.write_image", "op/1", 0.0, calls=False)
    assert (new.began, new.ended) == (6.0, True)
    machines.close()


def test_one_token_is_one_run_however_often_it_is_asked_for():
    clock = [100.0]
    machines = Machines(clock=lambda: clock[0])
    run = machines.run(at(), "x", "op/0", 5.0, calls=False)
    assert (run.ended, run.ends) == (False, 105.0)
    clock[0] = 103.0
    assert machines.run(at(), "x", "op/0", 99.0, calls=False).ends == 105.0
    clock[0] = 105.0
    assert machines.run(at(), "x", "op/0", 99.0, calls=False).ended
    machines.close()


def test_machines_go_on_when_the_clock_is_set_back():
    now = [9000.0]
    machines = Machines(clock=lambda: now[0])
    machines.cut_power("r1")
    now[0] += 1
    machines.set_power(at(), "power on")
    machines.run(at(), "deploy", "t", 5.0, calls=False)
    now[0] -= 3600.0
    machines.shift(3600.0)
    assert machines.power(at()) == "power on"
    run = machines.run(at(), "deploy", "t", 5.0, calls=False)
    assert (run.ends - now[0], run.ended, run.lost) == (5.0, False, False)
    machines.close()
