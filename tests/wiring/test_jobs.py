"""Everything that goes on by itself, by name: what runs once however many processes there are, and
what each process does without harm to the others. A new job has to be put into one of the lists.
"""

import asyncio
from functools import partial

import pytest

from siderite import wiring
from siderite.core.config import Config
from siderite.core.singleton import Singleton
from siderite.wiring import Role

ONCE = {
    "power watch",
    "compute.host_watch",
    "compute.image_caches",
    "compute.lifecycle",
    "compute.power_sync",
    "compute.tidying",
    "events.bus",
    "events.monitor",
    "events.retention",
    "events.search",
    "events.webhooks",
    "image.sweep",
}
"""Under a lease; another process takes over when it ends (tests/crash/test_takeover.py)."""

EVERYWHERE = {
    "Worker.run": "claims are leases: a machine has one worker at a time",
    "Machines.call_back": "a call back of a simulated ramdisk only wakes work that waits",
    "Consoles.run": "each process carries consoles of its own, and takes those of homes that died",
    "BootFiles.run": "each has a folder of its own, and what no node knows of is over for all",
    "stay": "each process says of itself that it is there",
    "ComputeApi.keep_open": "a connection of its own to the compute API",
    "_place_facts": "a lock on the log's head lets one at a time give out numbers",
    "Hub.run": "reads the log for streams of its own clients",
    "Keystone.run": "a memory of its own of tokens that are good",
    "GlanceImages.run": "a cache of its own of images from elsewhere",
    "ImageCache.tidy": "what another removed from a cache that they share is gone just so",
    "PostgresStore.listen": "hears the others",
    "Clock.keep": "asks the database for the time",
}
"""And why that does no harm."""


def _name(job):
    owner = getattr(job, "__self__", None)
    if isinstance(owner, Singleton):
        return owner.name
    if isinstance(job, partial):
        return _name(job.func)
    return job.__qualname__


def _jobs(role, folder, database, **options):
    async def names():
        config = Config(
            data=str(folder), db=database, admin_password="x", listen="127.0.0.1:1",
            image_url="http://127.0.0.1:1", keystone_url="http://127.0.0.1:1/v3",
            keystone_user="u", keystone_password="p", **options,
        )  # fmt: skip
        program = await wiring.build(config, role)
        found = [_name(job) for job in program.jobs]
        await program.close()
        return found

    found = asyncio.run(names())
    assert len(found) == len(set(found))
    return set(found)


BUS = {"notification_url": "rabbit://u:p@127.0.0.1:1/"}


@pytest.mark.parametrize("role", Role)
def test_every_job_runs_once_or_does_no_harm_in_each_process(role, tmp_path, postgres_url):
    serving = {"Hub.run", "GlanceImages.run"}
    expected = {
        Role.ALL: ONCE | set(EVERYWHERE),
        Role.WORKER: (ONCE | set(EVERYWHERE)) - serving,
        Role.API: serving | {"_place_facts", "Keystone.run", "PostgresStore.listen", "Clock.keep"},
    }
    assert _jobs(role, tmp_path, postgres_url, **BUS) == expected[role]


@pytest.mark.parametrize("role", Role)
def test_a_process_without_a_bus_sees_whether_others_feed_it(role, tmp_path, postgres_url):
    """It forgets a place only when nobody has gone on from it for long: any number may look."""
    without = _jobs(role, tmp_path, postgres_url)
    others = _jobs(role, tmp_path, postgres_url, **BUS) - {"events.bus"}
    assert without - others == ({"Unfollowed.run"} if role.works else set())
