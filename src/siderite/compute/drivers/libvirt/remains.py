"""What a libvirtd that was killed in a live migration left in QEMU, and the next one does not know
of: copies of disks, and QEMU's nodes for the other host's disks. Blocking; called in a host's
threads.

Either has a name that is given only once: while one is there, the guest cannot be sent anywhere.
"""

import json
from typing import Any

from siderite.compute.drivers.libvirt.library import monitor

_COPY = "drive-"
"""So the names of libvirt's copies for a migration begin; those of its other jobs do not."""
_NODE = "migration-"
_NODES = ("-format", "-storage")  # the first stands on the second
_IN_THE_WAY = (f"Duplicate nodes with node-name='{_NODE}", f"Job ID '{_COPY}")


def are_in_the_way(why: Exception) -> bool:
    """Whether a migration was refused because of it."""
    return any(words in str(why) for words in _IN_THE_WAY)


def clear(domain: Any) -> bool:
    """Remove what can be removed now, of a guest that libvirt does not migrate; whether it goes. A
    copy ends in its own time.
    """
    jobs = [job for job in _ask(domain, "query-jobs")["return"] if job["id"].startswith(_COPY)]
    found = _ask(domain, "query-named-block-nodes", {"flat": True})["return"]
    nodes = [node["node-name"] for node in found if node["node-name"].startswith(_NODE)]
    for job in jobs:
        _end(domain, job)
    answers = [
        _ask(domain, "blockdev-del", {"node-name": node})
        for end in _NODES
        for node in nodes
        if node.endswith(end)
    ]
    return bool(jobs) or any("error" not in answer for answer in answers)


def _end(domain: Any, job: dict[str, Any]) -> None:
    if job["status"] == "concluded":
        _ask(domain, "job-dismiss", {"id": job["id"]})
    else:
        _ask(domain, "block-job-cancel", {"device": job["id"], "force": True})


def _ask(domain: Any, command: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    text = json.dumps({"execute": command, "arguments": arguments or {}})
    answer: dict[str, Any] = json.loads(monitor().qemuMonitorCommand(domain, text, 0))
    return answer
