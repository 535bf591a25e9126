"""The kinds of actions: what each is called where, and what is announced when one does not end."""

import msgspec

from siderite.compute.domain import facts
from siderite.compute.domain.job import Job
from siderite.compute.domain.server import Server
from siderite.compute.domain.server_machine import V
from siderite.core.fact import Fact


class Kind(msgspec.Struct, frozen=True):
    """A kind of action: the machine's event, the work, and what it is called where.

    `action` is its name in the list of actions, `word` in refusals, `compute_event` in the
    action's list of events, `fact` in announcements. `ability` is what the driver must be able to
    do; a `clean` one lets the guest shut down first.
    """

    event: str
    action: str
    compute_event: str
    fact: str | None = None
    word: str | None = None
    ability: str | None = None
    ignores_lock: bool = False
    needs_host: bool = True
    clean: bool = False
    brings_away: bool = False
    """Whether it takes what is on the server's host to another one; refused while that is down."""


KINDS = {
    "start": Kind("start", "start", "compute_start_instance", "power_on"),
    "stop": Kind("stop", "stop", "compute_stop_instance", "power_off", clean=True),
    "force_stop": Kind("force_stop", "stop", "compute_stop_instance", "power_off", clean=True),
    "reboot": Kind("reboot", "reboot", "compute_reboot_instance", "reboot"),
    "reboot_hard": Kind("reboot_hard", "reboot", "compute_reboot_instance", "reboot", "reboot"),
    "pause": Kind("pause", "pause", "compute_pause_instance", "pause", ability="pause"),
    "unpause": Kind("unpause", "unpause", "compute_unpause_instance", "unpause", ability="pause"),
    "suspend": Kind("suspend", "suspend", "compute_suspend_instance", "suspend", ability="suspend"),
    "resume": Kind("resume", "resume", "compute_resume_instance", "resume", ability="suspend"),
    "rescue": Kind("rescue", "rescue", "compute_rescue_instance", "rescue", ability="rescue",
                   clean=True),
    "unrescue": Kind("unrescue", "unrescue", "compute_unrescue_instance", "unrescue",
                     ability="rescue"),
    "rebuild": Kind("rebuild", "rebuild", "compute_rebuild_instance", "rebuild", clean=True),
    "build": Kind("rebuild", "rebuild", "compute__do_build_and_run_instance", needs_host=False),
    "evacuate": Kind("evacuate", "evacuate", "compute_rebuild_instance", "evacuate"),
    "resize": Kind("resize", "resize", "compute_resize_instance", "resize", ability="resize",
                   clean=True, brings_away=True),
    "migrate": Kind("resize", "migrate", "compute_resize_instance", "resize", "migrate",
                    ability="resize", clean=True, brings_away=True),
    "confirm_resize": Kind("confirm_resize", "confirmResize", "compute_confirm_resize",
                           "resize_confirm", "confirmResize"),
    "revert_resize": Kind("revert_resize", "revertResize", "compute_revert_resize",
                          "resize_revert", "revertResize"),
    "live_migrate": Kind("live_migrate", "live-migration", "compute_live_migration",
                         "live_migration", "os-migrateLive", ability="live_migrate"),
    "create_image": Kind("create_image", "createImage", "compute_snapshot_instance", "snapshot",
                         "createImage", ability="snapshot", ignores_lock=True),
    "create_backup": Kind("create_backup", "createBackup", "compute_backup_instance", "snapshot",
                          "createBackup", ability="snapshot"),
    "shelve": Kind("shelve", "shelve", "compute_shelve_instance", "shelve", ability="snapshot",
                   clean=True),
    "shelve_offload": Kind("shelve_offload", "shelveOffload", "compute_shelve_offload_instance",
                           "shelve_offload", "shelveOffload", clean=True),
    "unshelve": Kind("unshelve", "unshelve", "compute_unshelve_instance", "unshelve",
                     needs_host=False),
    "change_password": Kind("change_password", "changePassword", "compute_set_admin_password",
                            "change_password", "changePassword", ability="password"),
    "restore": Kind("restore", "restore", "compute_restore_instance", "restore", needs_host=False),
    "soft_delete": Kind("soft_delete", "delete", "compute_soft_delete_instance", "soft_delete",
                        "delete", needs_host=False),
    "delete": Kind("delete", "delete", "compute_terminate_instance", "delete", needs_host=False),
}  # fmt: skip
"""By the kind of work, which is also what the worker finds its plan by."""


ASKED = "asked"
"""The argument of a live migration's work that says what it was told meanwhile."""
ABORT, FORCE = "abort", "force"
TOLD = {ABORT: "live_migration_abort", FORCE: "live_migration_force_complete"}
"""What that is called in announcements: it ends when the migration does."""


def work_kind(kind: str) -> str:
    """What work of this kind is called in its row."""
    return "server." + kind


def fact_of(kind: str, server: Server) -> str | None:
    """What an action is called in facts now: a server is created by whatever has it built, and one
    that is shelved already is being offloaded.
    """
    if kind == "build":
        return "create"
    if kind == "shelve" and server.vm_state == V.SHELVED:
        return "shelve_offload"
    return KINDS[kind].fact


def guest_stays(server: Server, job: Job, why: str) -> list[Fact]:
    """The guest's shutdown was begun and is not gone on with, if that is so."""
    plan = job.shutdown
    if plan is None or plan.began is None or plan.ended is not None:
        return []
    return [facts.phase("shutdown", "error", server, why=why)]


def given_up(kind: str, server: Server, job: Job, why: str) -> list[Fact]:
    """What was announced as begun and will not end."""
    name = fact_of(kind, server)
    if name is None or (kind == "build" and job.step == 0):
        return guest_stays(server, job, why)
    over = facts.phase(name, "error", server, why=why, asked=job.args)
    return [*guest_stays(server, job, why), over, *unheeded(server, job, why)]


def unheeded(server: Server, job: Job, why: str) -> list[Fact]:
    """What a migration was told, and will not do any more, if anything."""
    asked = job.args.get(ASKED)
    return [] if asked is None else [facts.phase(TOLD[asked], "error", server, why=why)]
