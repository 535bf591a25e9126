"""The compute API's microversions: what each number brought.

2.1 to 2.104 are numbered as Nova numbers them; 2.900 on are our own.
"""

import re

from siderite.core.errors import Invalid
from siderite.core.errors import NotAcceptable
from siderite.core.errors import NotFound
from siderite.core.microversion import Range

RANGE = Range("compute", major=2, low=1, upstream=104, ours=901)
PENDING = 900
SHUTDOWN_TYPE = 901
_FORM = re.compile(r"[1-9]\d{0,5}\.(?:[1-9]\d{0,5}|0)\Z")


def parse(asked: str | None) -> int:
    """The minor number of what a header asks for; nothing asked is the oldest."""
    if asked and asked.strip().lower() != "latest" and not _FORM.match(asked.strip()):
        raise Invalid(
            f"API Version String {asked.strip()[:40]!r} is of invalid format. Must be of format"
            " MajorNum.MinorNum."
        )
    try:
        return RANGE.parse(asked)
    except NotAcceptable as why:
        raise NotAcceptable(
            f"Version {(asked or '').strip()} is not supported by the API. Minimum is"
            f" {RANGE.text(RANGE.low)} and maximum is {RANGE.text(RANGE.upstream)}; versions of our"
            f" own are {RANGE.text(PENDING)} to {RANGE.text(RANGE.ours)}."
        ) from why


def not_there(remedy: str) -> NotFound:
    """The refusal of an address, in the words that clients know."""
    return NotFound(f"The resource could not be found. {remedy}")


def check(version: int, since: int, until: int) -> None:
    """Refuse what a version does not have yet, or not any more."""
    if version < since:
        raise not_there(f"It is there from API version {RANGE.text(since)} on.")
    if version > until:
        raise not_there(f"It is there up to API version {RANGE.text(until)}.")


VERSIONS = (
    "2.1 the API as it began, strictly checked",
    "2.2 keypairs have a type; 201 and 204 for them",
    "2.3 more server attributes for administrators",
    "2.5 servers filtered by ip6",
    "2.6 remote-consoles",
    "2.7 no access list for public flavors (409)",
    "2.9 server: locked",
    "2.10 keypairs of other users, for administrators",
    "2.11 services: forced_down",
    "2.13 server groups show project and user",
    "2.14 evacuate: no onSharedStorage, no adminPass",
    "2.15 soft affinity and anti-affinity",
    "2.16 server: host_status, for administrators",
    "2.17 trigger_crash_dump",
    "2.18 no project in the URL needed",
    "2.19 server: description",
    "2.21 actions of deleted servers",
    "2.22 force_complete of a live migration",
    "2.23 migrations of a server",
    "2.24 abort of a live migration",
    "2.25 live migration: block_migration auto",
    "2.26 server tags",
    "2.27 header OpenStack-API-Version",
    "2.28 hypervisor: cpu_info is an object",
    "2.29 evacuate: force",
    "2.30 live migration: force",
    "2.32 device tags at create",
    "2.33 hypervisors in pages",
    "2.34 live migration checks are made later",
    "2.35 keypairs in pages",
    "2.36 no proxies to other services",
    "2.37 server create needs networks: a list, auto or none",
    "2.38 an unknown status filter is an error",
    "2.39 no image metadata proxy",
    "2.40 usage in pages",
    "2.41 aggregate: uuid",
    "2.42 device tags again",
    "2.43 no os-hosts",
    "2.44 no fixed and floating IP actions",
    "2.45 createImage and createBackup answer with image_id",
    "2.46 header X-OpenStack-Request-ID",
    "2.47 server: the flavor as it was, inline",
    "2.48 diagnostics in a standard form",
    "2.49 tags of interfaces and volumes when attached",
    "2.50 quota classes without network keys",
    "2.51 event volume-extended; owners see events of actions",
    "2.52 tags at server create",
    "2.53 services and hypervisors by UUID",
    "2.54 rebuild: key_name",
    "2.55 flavor: description, and PUT",
    "2.56 migrate: host",
    "2.57 no personality; rebuild: user_data",
    "2.58 actions in pages; updated_at",
    "2.59 migrations in pages; uuid",
    "2.61 flavor: extra_specs",
    "2.62 action events: host, hostId",
    "2.63 trusted_image_certificates",
    "2.64 server group: policy and rules",
    "2.66 changes-before",
    "2.67 block devices: volume_type",
    "2.68 no force for evacuate and live migration",
    "2.69 partial results for cells that are down",
    "2.70 tags in attachments",
    "2.71 server: server_groups",
    "2.72 ports with resource requests",
    "2.73 lock has a reason; servers filtered and sorted by locked",
    "2.74 server create: host, hypervisor_hostname",
    "2.75 unknown parameters are errors; update and rebuild show all",
    "2.76 event power-update",
    "2.77 unshelve: availability_zone",
    "2.78 topology",
    "2.79 volume attach: delete_on_termination",
    "2.80 migrations: user and project",
    "2.82 event accelerator-request-bound",
    "2.83 more server filters for everybody",
    "2.84 action events: details",
    "2.86 extra specs are checked",
    "2.87 rescue of volume-backed servers",
    "2.88 hypervisor: uptime inline, no statistics",
    "2.89 volume attachment: attachment_id, bdm_uuid",
    "2.90 hostname can be set",
    "2.91 unshelve: host",
    "2.92 keypairs: import only",
    "2.93 event volume-reimaged",
    "2.94 hostname may be a full domain name",
    "2.95 evacuated servers end stopped",
    "2.96 server: pinned_availability_zone",
    "2.98 server: image properties",
    "2.99 console spice-direct",
    "2.100 server: scheduler_hints",
    "2.101 volume attach answers 202",
    "2.102 flavors filtered by name; unknown queries are errors",
    "2.103 no os-volumes_boot",
    "2.104 update: pinned_availability_zone",
    "2.900 state PENDING; fault in every state; wait_reason, deadline, refusals",
    "2.901 shutdown_type for stop, rescue, rebuild, resize, shelve, shelveOffload, migrate;"
    " claimPending: making_room, node; hypervisors: kept, is_available, why_not",
)
"""What each number brought, as far as it shows here."""
