"""Every option there is, once: name, default, meaning. A value comes from a flag, else the
environment (`SIDERITE_<OPTION>`), else the configuration file, else the default; `origin`
remembers which.
"""

import os
import re
import socket
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from dataclasses import fields
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from siderite.core.config_checks import BadOption
from siderite.core.config_checks import check

__all__ = ["BadOption", "Config", "Loaded", "load", "show"]


def _option(default: Any, meaning: str, *, secret: bool = False) -> Any:
    return field(default=default, metadata={"meaning": meaning, "secret": secret})


@dataclass(frozen=True, slots=True)
class Config:
    """The options. Times are in seconds."""

    data: str = _option("./siderite-data", "Directory for the database, the keys and clouds.yaml.")
    listen: str = _option(
        "127.0.0.1:8770",
        "Address and port of the one listener; every address is 0.0.0.0, with IPv6 [::].",
    )
    db: str = _option("", "Database URL (postgresql://…); empty: SQLite in the data directory.")
    public_url: str = _option(
        "",
        "URL that clients reach the listener by; empty: http://<listen>, or if that is every"
        " address (0.0.0.0), http://127.0.0.1.",
    )
    demo: bool = _option(False, "Fill an empty database with a simulated fleet.")
    demo_nodes: int = _option(200, "How many nodes the simulated fleet has.")
    host: str = _option(socket.gethostname(), "Name of this process's machine in facts and leases.")
    region: str = _option("RegionOne", "Region name in the service catalogue.")
    log_level: str = _option("info", "debug, info, warning or error.")
    log_format: str = _option("text", "text or json.")
    admin_password: str = _option(
        "", "Password of the first admin, used at first start; empty: a random one.", secret=True
    )
    token_ttl_s: int = _option(86400, "How long a token is good for.")
    notification_url: str = _option(
        "", "Message broker for notifications (rabbit://user:password@host:5672/); empty: none."
    )
    notification_level: str = _option(
        "info", "Lowest priority that goes to the broker: debug, info, warning, error or critical."
    )
    notification_queues: str = _option(
        "durable", "How missing exchanges and queues are made: durable, quorum or transient."
    )
    events_keep_s: float = _option(2592000.0, "How long the event log is kept; 0: for ever.")
    events_keep_unread_s: float = _option(
        7776000.0, "How long what a bus, webhook or index has not had is kept; 0: for ever."
    )
    operation_overdue_s: float = _option(
        7200.0, "After how long without progress the monitor calls an operation overdue."
    )
    webhook_history_s: float = _option(604800.0, "How long past deliveries are shown for.")
    webhook_allow: str = _option(
        "", "Networks, such as 127.0.0.0/8, that webhooks may call though they are this machine's."
    )
    webhook_timeout_s: float = _option(10.0, "How long a webhook may take to answer.")
    webhook_give_up_s: float = _option(86400.0, "How long a delivery to a webhook is tried for.")
    baremetal_auth: str = _option(
        "token", "token (HTTP basic is taken too), or none: no auth, only when bound to loopback."
    )
    max_connections: int = _option(
        10000, "Connections at once; beyond, idle ones are closed, and if there are none, new ones."
    )
    max_limit: int = _option(1000, "Largest page of a list.")
    worker_slots: int = _option(500, "Jobs that one process carries at once.")
    worker_groups: str = _option(
        "",
        "Conductor groups whose nodes and compute hosts this process acts on, with commas; empty:"
        " all (and for an `api`, that of no host).",
    )
    drain_s: float = _option(60.0, "How long a process that stops waits for steps under way.")
    simulated_db: str = _option(
        "",
        "File of the simulated machines, with guests beside it; empty: in the data directory.",
    )
    power_off_verified: bool = _option(
        False, "Switch a node off before it becomes manageable, unless it has an instance_uuid."
    )
    automated_clean: bool = _option(True, "Clean nodes on provide and after delete.")
    allow_deleting_available_nodes: bool = _option(
        True, "Whether an available node may be deleted."
    )
    callback_timeout_s: float = _option(1800.0, "How long a node in a wait state may be silent.")
    deadline_scale: float = _option(1.0, "Factor on the deadline of every active state.")
    soft_power_off_timeout_s: float = _option(600.0, "How long a soft power off may take.")
    soft_power_off_then_hard: bool = _option(
        True, "Switch hard what did not go off softly in time; false: that is an error."
    )
    power_timeout_s: float = _option(60.0, "How long a power change may take.")
    power_wait_s: float = _option(
        3.0, "How long a verb waits for its node's power to be changed, before a 409."
    )
    enabled_hardware_types: str = _option(
        "fake-hardware,redfish,ipmi", "Drivers that nodes may have, with commas between."
    )
    bmc_calls: int = _option(32, "Calls to BMCs of one kind that may be under way at once.")
    ramdisk_url: str = _option(
        "", "URL that ramdisks and booting machines reach the listener by; empty: public_url."
    )
    deploy_kernel: str = _option("", "Kernel of the ramdisk: a file here, or an http(s) address.")
    deploy_ramdisk: str = _option("", "The ramdisk itself: a file here, or an http(s) address.")
    deploy_iso: str = _option("", "A bootable image of the ramdisk, in place of the two.")
    kernel_append_params: str = _option("", "More parameters for the ramdisk's kernel.")
    boot_files: str = _option(
        "", "Folder of files that a node's driver_info may name as file://…; empty: none."
    )
    ramdisk_allow: str = _option(
        "", "Networks of this machine that driver_info may name kernels and ramdisks in."
    )
    console_address: str = _option(
        "127.0.0.1", "Address for nodes' consoles: whoever reaches it reaches them, unasked."
    )
    console_ports: str = _option("", "Ports for nodes' consoles, LOW:HIGH; empty: any free one.")
    agent_require_tls: bool = _option(
        True, "Whether a ramdisk's agent must be reached by https: its token travels there."
    )
    hardware_timeout_s: float = _option(
        30.0, "How long a BMC may take to answer while a client waits."
    )
    networks: str = _option(
        "private=user@10.88.0.0/16",
        "Networks that hosts offer: NAME=KIND[:TARGET]@CIDR, …; kinds are user, network, bridge.",
    )
    cpu_allocation_ratio: float = _option(4.0, "Virtual CPUs given out per CPU of a host.")
    ram_allocation_ratio: float = _option(1.0, "Memory given out per memory of a host.")
    disk_allocation_ratio: float = _option(1.0, "Disk given out per disk of a host.")
    shutdown_timeout_s: int = _option(
        60, "How long a server may take to shut down before it is powered off; 0: no signal at all."
    )
    shutdown_retry_interval_s: int = _option(10, "How often the shutdown signal is sent again.")
    shelved_offload_time_s: int = _option(
        0, "How long a shelved server stays on its host; 0: not at all, -1: for ever."
    )
    reclaim_interval_s: int = _option(
        0, "How long a deleted server can be restored; 0: it is gone at once."
    )
    deleted_servers_keep_s: float = _option(
        3456000.0,
        "How long deleted servers stay on record, and count in what a project used; 0: for ever.",
    )
    image_cache_keep_s: int = _option(
        86400,
        "How long a host keeps an image that no guest stands on, and image-cache one that no host"
        " asked for; 0: for ever.",
    )
    pending_timeout_s: float = _option(
        0.0, "How long a server may be PENDING before it is an ERROR; 0: for ever."
    )
    wake_pending: bool = _option(
        False, "Whether a PENDING server that nobody takes care of is built once a host has room."
    )
    sync_power_state_interval_s: float = _option(
        600.0, "How often the power of all servers is compared with their hosts'; 0: never."
    )
    sync_power_state_in_flight: int = _option(
        50, "Hosts and servers that the comparison of power deals with at once."
    )
    server_power_policy: str = _option(
        "hardware", "Who is right about a server's power: hardware, record or observe."
    )
    use_pending_state: bool = _option(
        False, "Whether a server that no host has room for becomes PENDING in place of ERROR."
    )
    console_token_ttl_s: float = _option(600.0, "How long the URL of a console can be opened.")

    keystone_url: str = _option(
        "", "A Keystone whose tokens are good here too (https://…/v3); empty: only our own."
    )
    keystone_user: str = _option("", "Our account there, which may validate tokens.")
    keystone_password: str = _option("", "Its password.", secret=True)
    keystone_project: str = _option("service", "Its project.")
    keystone_domain: str = _option("Default", "The domain of the account and of its project.")
    quota_instances: int = _option(10, "Servers that a project may have; -1: without limit.")
    quota_cores: int = _option(20, "VCPUs that a project's servers may have; -1: without limit.")
    quota_ram_mib: int = _option(51200, "Memory of a project's servers; -1: without limit.")
    quota_image_gib: int = _option(
        -1, "GiB of data that a project's images may have together; -1: without limit."
    )
    image_url: str = _option(
        "", "A Glance that servers boot from (needs keystone_url); empty: our own image service."
    )
    image_dir: str = _option("", "Directory for images' data; empty: images in the data directory.")
    image_max_gib: int = _option(1024, "Largest image that is taken, in GiB.")
    image_import_methods: str = _option("glance-direct,web-download", "Ways to import images.")
    image_import_allow: str = _option("", "Networks of this machine that web-download may call.")
    image_import_deny: str = _option("", "Networks that web-download may not call either.")
    power_policy: str = _option(
        "hardware", "Who is right about power where a node does not say: hardware, record, observe."
    )
    power_watch_interval_s: float = _option(
        60.0, "Longest time between two readings of a node's power; 0: power is not watched."
    )
    power_watch_in_flight: int = _option(100, "Readings of power that are under way at once.")
    power_read_timeout_s: float = _option(15.0, "How long one reading of power may take.")
    power_unknown_after: int = _option(3, "Failed readings in a row until power is unknown.")
    compute_endpoint: str = _option(
        "own", "Compute API to tell of nodes' power: its URL, own, or empty: nobody is told."
    )
    compute_auth_url: str = _option(
        "", "Keystone v3 address for another compute service; empty: without a token."
    )
    compute_username: str = _option("", "User who tells it; needs the role service there.")
    compute_password: str = _option("", "Password of that user.", secret=True)
    compute_project: str = _option("service", "Project of that user.")
    compute_domain: str = _option("Default", "Domain of that user and project, by name.")
    baremetal_auth_url: str = _option(
        "", "Keystone v3 address for hosts that are an Ironic elsewhere; empty: without a token."
    )
    baremetal_username: str = _option("", "User who asks that Ironic; needs the role admin there.")
    baremetal_password: str = _option("", "Password of that user.", secret=True)
    baremetal_project: str = _option("service", "Project of that user.")
    baremetal_domain: str = _option("Default", "Domain of that user and project, by name.")
    power_failure_after: int = _option(
        6, "Failed readings in a row until the node is in maintenance with a power failure."
    )

    @property
    def loopback(self) -> bool:
        """Whether the listener can only be reached from this machine."""
        host = self.listen.rpartition(":")[0].strip("[]")
        return host in ("localhost", "::1") or host.startswith("127.")

    @property
    def url(self) -> str:
        """The listener's public URL, without a slash at the end."""
        return (self.public_url or self.near_url).rstrip("/")

    @property
    def near_url(self) -> str:
        """The listener's URL for who is on this machine."""
        host, _, port = self.listen.rpartition(":")
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bare := host.strip("[]"), bare)  # noqa: S104
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def groups(self) -> list[str]:
        """The conductor groups that this process serves, spelt as nodes have them; none: all."""
        return self.worker_groups.lower().replace(",", " ").split()

    @property
    def database(self) -> str:
        """The database URL in force."""
        return self.db or "sqlite:///" + str(Path(self.data) / "siderite.db")


_PASSWORD = re.compile(r"(?<=://)([^:@/]*):\S+(?=@)|(\w*pass\w*)=[^&\s]+")
"""Of a URL: before the last @ whatever is in it, or among its arguments."""


class Loaded(msgspec.Struct, frozen=True):
    """The configuration, and where each value came from."""

    config: Config
    origin: Mapping[str, str]


def load(
    flags: Mapping[str, Any], environ: Mapping[str, str] | None = None, file: str | None = None
) -> Loaded:
    """The configuration from flags, environment and file, in this order of weight."""
    environ = os.environ if environ is None else environ
    path = file or environ.get("SIDERITE_CONFIG")
    written = _read(path) if path else {}
    known = {option.name: option for option in fields(Config)}
    for name in written:
        if name not in known:
            raise BadOption(
                f"{path}: there is no option {name!r}; `siderite config show` lists them."
            )
    values, origin = {}, {}
    for name, option in known.items():
        variable = "SIDERITE_" + name.upper()
        if flags.get(name) is not None:
            values[name], origin[name] = flags[name], "flag"
        elif variable in environ:
            values[name], origin[name] = environ[variable], f"environment {variable}"
        elif name in written:
            values[name], origin[name] = written[name], f"file {path}"
        else:
            values[name], origin[name] = option.default, "default"
        values[name] = _typed(name, values[name], type(option.default), origin[name])
    config = Config(**values)
    check(config)
    return Loaded(config, origin)


def _read(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as why:
        raise BadOption(f"cannot read the configuration file {path}: {why.strerror}.") from why
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as why:
        raise BadOption(f"{path} is not TOML: {why}.") from why


def _typed(name: str, value: Any, kind: type, origin: str) -> Any:
    if isinstance(value, str) and kind is bool:
        word = value.strip().lower()
        if word in ("1", "true", "yes", "on"):
            return True
        if word in ("0", "false", "no", "off"):
            return False
    elif isinstance(value, str) and kind in (int, float):
        try:
            number: float = kind(value)
            if isfinite(number):
                return number
        except ValueError:
            pass
    elif kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    elif type(value) is kind and not (isinstance(value, float) and not isfinite(value)):
        return value
    shown = "***" if Config.__dataclass_fields__[name].metadata["secret"] else _hidden(repr(value))
    raise BadOption(f"{name} = {shown} ({origin}) must be {_KINDS[kind]}.")


_KINDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def _hidden(text: str) -> str:
    return _PASSWORD.sub(lambda at: f"{at[2]}=***" if at[2] else f"{at[1]}:***", text)


def show(loaded: Loaded) -> list[tuple[str, str, str, str]]:
    """Name, value (secrets hidden), origin and meaning of every option."""
    rows = []
    for option in fields(Config):
        value = getattr(loaded.config, option.name)
        shown = "***" if option.metadata["secret"] and value else _hidden(str(value))
        rows.append((option.name, shown, loaded.origin[option.name], option.metadata["meaning"]))
    return rows
