"""Volumes as values: how a node reaches remote storage, and what it finds there."""

from siderite.baremetal.domain.node import Json
from siderite.baremetal.domain.record import Record

CONNECTOR_TYPES = ("iqn", "ip", "mac", "wwnn", "wwpn", "port", "portgroup")
"""How a connector is known to the storage."""


class Connector(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A node's identity towards its storage."""

    node_uuid: str
    type: str
    connector_id: str
    extra: Json = {}


class Target(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A volume that a node may boot from or use; its properties may hold credentials."""

    node_uuid: str
    volume_type: str
    volume_id: str
    boot_index: int
    properties: Json = {}
    extra: Json = {}
