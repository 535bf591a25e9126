"""A storage pool that several use at once."""

import os
import threading
import uuid
from typing import Any

import libvirt
import pytest

from siderite.compute.domain.outcome import Done
from siderite.compute.domain.outcome import Wait
from siderite.compute.domain.power import Power
from siderite.compute.drivers.contract import At
from siderite.compute.drivers.libvirt import volumes
from siderite.compute.drivers.libvirt.volumes import Pool
from tests.compute.drivers.libvirt.world import World
from tests.compute.drivers.libvirt.world import at_lab
from tests.lab import LabHost

_VOLUMES = 150


def test_no_volume_is_missing_from_the_list_while_others_are_made(lab: LabHost) -> None:
    pool = Pool(lab.connection(), {})
    ours = {f"{uuid.uuid4()}.ours" for _ in range(20)}
    others = {f"{uuid.uuid4()}.others" for _ in range(_VOLUMES)}
    for name in ours:
        pool.create(name, 0)
    making = threading.Thread(target=_make, args=(lab, others))
    making.start()
    missing: set[str] = set()
    while making.is_alive():
        missing |= ours - set(pool.names())
    making.join()
    for name in ours | others:
        pool.delete(name)
    assert missing == set()


def _make(lab: LabHost, names: set[str]) -> None:
    connection = libvirt.open(lab.uri)
    pool = Pool(connection, {})
    for name in names:
        pool.create(name, 0)
    connection.close()


def test_a_migration_waits_while_the_other_host_copies_a_large_disk(
    far: LabHost, at: At, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is neither refused, nor taken for failed when the guest is there already."""
    live: Any = world.driver.live_migrate
    guest, to = world.spawn(at), at_lab(far)
    original, *copies = (f"{uuid.uuid4()}.{what}" for what in ("original", "one", "another"))
    pool = Pool(far.connection(), {})
    pool.upload(original, os.urandom(64 << 20))
    ended = threading.Event()
    # Two at a time: one copies while the other begins anew.
    copying = [threading.Thread(target=_copy, args=(far, original, copy, ended)) for copy in copies]
    monkeypatch.setattr(volumes, "_BUSY_PATIENCE_S", 0.0)
    for thread in copying:
        thread.start()
    reasons = set()
    try:
        while not isinstance(said := world.run(live.live_migrate(at, guest, to, "token")), Done):
            assert isinstance(said, Wait), said
            reasons.add(said.reason)
            if any("storage pool is busy" in reason for reason in reasons):
                ended.set()
    finally:
        was_busy = ended.is_set()
        ended.set()
        for thread in copying:
            thread.join()
    assert was_busy, reasons
    assert world.state(to, guest) is Power.RUNNING
    world.done(world.driver.life.destroy, to, guest)
    for name in (original, *copies):
        pool.delete(name)


def _copy(host: LabHost, original: str, copy: str, ended: threading.Event) -> None:
    connection = libvirt.open(host.uri)
    pool = Pool(connection, {})
    while not ended.is_set():
        pool.clone(copy, original)
    connection.close()
