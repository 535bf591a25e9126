"""A storage pool that several use at once."""

import threading
import uuid

import libvirt

from siderite.compute.drivers.libvirt.volumes import Pool
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
