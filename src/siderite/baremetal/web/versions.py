"""The bare metal API's microversions: what each number brought, and who may ask for what since
when.

1.1 to 1.115 are numbered as Ironic numbers them; 1.900 on are our own.
"""

from siderite.core.microversion import Range

RANGE = Range("baremetal", major=1, low=1, upstream=115, ours=900)

VERSIONS = (
    "1.1 versioned API; maintenance has an address and a reason",
    "1.2 a node without a state is shown as available",
    "1.3 node: driver_internal_info",
    "1.4 state manageable; verbs manage and provide",
    "1.5 nodes have names",
    "1.6 inspection: states, verb, times",
    "1.7 node: clean_step",
    "1.8 lists and items can be cut to some fields",
    "1.9 nodes filtered by provision_state",
    "1.10 names may hold any unreserved URL character",
    "1.11 new nodes start in enroll",
    "1.12 RAID configuration",
    "1.13 verb abort, from clean wait",
    "1.14 links to states and to driver properties",
    "1.15 verb clean: manual cleaning",
    "1.16 nodes filtered by driver",
    "1.17 verb adopt",
    "1.18 port: internal_info",
    "1.19 port: local_link_connection, pxe_enabled",
    "1.20 node: network_interface",
    "1.21 node: resource_class, and the filter",
    "1.22 lookup and heartbeat for ramdisks",
    "1.23 portgroups",
    "1.24 portgroups of a node, ports of a portgroup",
    "1.25 chassis_uuid can be unset",
    "1.26 portgroup: mode, properties",
    "1.27 soft power off, soft reboot, timeouts",
    "1.28 VIFs",
    "1.29 inject NMI",
    "1.30 drivers show their interfaces",
    "1.31 node: the interface fields",
    "1.32 volumes",
    "1.33 node: storage_interface",
    "1.34 port: physical_network",
    "1.35 rebuild takes a config drive",
    "1.36 heartbeat: agent_version",
    "1.37 traits",
    "1.38 rescue: states, verbs, rescue_interface",
    "1.39 state inspect wait",
    "1.40 BIOS settings, bios_interface",
    "1.41 abort from inspect wait",
    "1.42 node: fault, and the filter",
    "1.43 detail as a query argument",
    "1.44 node: deploy_step",
    "1.45 a driver change can reset the interfaces",
    "1.46 node: conductor_group, and the filter",
    "1.47 node: automated_clean",
    "1.48 node: protected",
    "1.49 conductors; node: conductor, and the filter",
    "1.50 node: owner, and the filter",
    "1.51 node: description, and the filter",
    "1.52 allocations",
    "1.53 port: is_smartnic",
    "1.54 events from outside",
    "1.55 deploy templates",
    "1.56 a config drive can be an object",
    "1.57 allocations can be changed",
    "1.58 allocations can be made for a node in use",
    "1.59 config drive: vendor_data",
    "1.60 allocation: owner",
    "1.61 node: retired, and the filter",
    "1.62 agent token",
    "1.63 indicators",
    "1.64 local link: network_type",
    "1.65 node: lessee, and the filter",
    "1.66 node: network_data",
    "1.67 a VIF can name its port",
    "1.68 heartbeat: agent_verify_ca",
    "1.69 active and rebuild take deploy_steps",
    "1.70 clean takes disable_ramdisk",
    "1.71 roles scoped to system and project",
    "1.72 heartbeat: agent_status",
    "1.73 verbs deploy and undeploy",
    "1.74 BIOS registry",
    "1.75 node: boot_mode, secure_boot",
    "1.76 boot mode and secure boot can be set",
    "1.77 drivers can be cut to some fields",
    "1.78 node history",
    "1.79 an allocation prefers the node of its name",
    "1.80 project administrators make and remove own nodes",
    "1.81 node inventory",
    "1.82 shards",
    "1.83 parent and child nodes",
    "1.84 inspection continued by the ramdisk",
    "1.85 hold states, verb unhold",
    "1.86 firmware components, firmware_interface",
    "1.87 verb service and its states",
    "1.88 port: name",
    "1.89 virtual media can be attached",
    "1.90 local link of OVN gateways",
    "1.91 .json at the end of a path is part of the name",
    "1.92 runbooks",
    "1.93 virtual media can be read",
    "1.94 a port can be made with its node's name",
    "1.95 node: disable_power_off",
    "1.96 inspection rules",
    "1.97 port: description",
    "1.98 ~ and / in patched keys",
    "1.99 ports filtered by conductor groups",
    "1.100 port: vendor",
    "1.101 port: category",
    "1.102 portgroup: physical_network",
    "1.103 portgroup: category",
    "1.104 node: instance_name, and the filter",
    "1.105 local link of OVN gateways removed",
    "1.106 portgroups filtered by shard",
    "1.107 every answer has a request id header",
    "1.108 service takes disable_ramdisk",
    "1.109 node: health",
    "1.110 abort from wait call-back",
    "1.111 dynamic portgroups",
    "1.112 runbooks: traits, description",
    "1.113 history: project",
    "1.114 firmware: vendor, model, serial_number",
    "1.115 history: states and duration",
    "1.900 node: wait_reason, deadline, power_policy, power_state_reason; a power_state that is not"
    " known is shown as unknown; hooks and the holds they make;"
    " a node's timeline (Siderite's own)",
)

VERB_SINCE = {
    "active": 1, "rebuild": 1, "deleted": 1, "manage": 4, "provide": 4, "inspect": 6, "abort": 13,
    "clean": 15, "adopt": 17, "rescue": 38, "unrescue": 38, "deploy": 73, "undeploy": 73,
    "unhold": 85, "service": 87,
}  # fmt: skip

ABORT_SINCE = {"inspect wait": 41, "wait call-back": 110}
"""States from which `abort` came later than the verb itself."""

FILTER_SINCE = {
    "associated": 1, "maintenance": 1, "instance_uuid": 1, "chassis_uuid": 1, "limit": 1,
    "marker": 1, "sort_key": 1, "sort_dir": 1, "fields": 8, "provision_state": 9, "driver": 16,
    "resource_class": 21, "fault": 42, "detail": 43, "conductor_group": 46, "conductor": 49,
    "owner": 50, "description_contains": 51, "retired": 61, "lessee": 65, "project": 65,
    "shard": 82, "sharded": 82, "parent_node": 83, "include_children": 83, "instance_name": 104,
}  # fmt: skip
"""Query arguments of the list of nodes."""

_EVERY_LIST = {
    "limit": 1, "marker": 1, "sort_key": 1, "sort_dir": 1, "fields": 8, "detail": 43,
}  # fmt: skip

PORT_FILTER_SINCE = {
    **_EVERY_LIST, "node": 1, "node_uuid": 1, "address": 1, "portgroup": 24, "shard": 82,
    "description_contains": 97, "conductor_groups": 99,
}  # fmt: skip
"""Query arguments of the list of ports."""

CHASSIS_FILTER_SINCE = _EVERY_LIST
"""Query arguments of the list of chassis."""

PORTGROUP_FILTER_SINCE = {
    **_EVERY_LIST, "node": 1, "address": 1, "conductor_groups": 99, "shard": 106,
}  # fmt: skip
"""Query arguments of the list of portgroups."""

VOLUME_FILTER_SINCE = {**_EVERY_LIST, "detail": 1, "node": 1}
"""Query arguments of the lists of volume connectors and targets."""

PLAIN_FILTER_SINCE = {**_EVERY_LIST, "detail": 1}
"""Query arguments of the lists of deploy templates and runbooks."""

RULE_FILTER_SINCE = {**PLAIN_FILTER_SINCE, "phase": 1}
"""Query arguments of the list of inspection rules."""

ALLOCATION_FILTER_SINCE = {
    "limit": 1, "marker": 1, "sort_key": 1, "sort_dir": 1, "fields": 8, "node": 1,
    "resource_class": 1, "state": 1, "owner": 60,
}  # fmt: skip
"""Query arguments of the list of allocations."""
