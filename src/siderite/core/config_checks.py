"""What options may be: ranges, words and addresses, each refused with a sentence."""

import re
from dataclasses import fields
from ipaddress import ip_network
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from siderite.core.config import Config


class BadOption(Exception):
    """An option's name or value is wrong; the text says which, where and what would be right."""


_AT_LEAST_1 = (
    "power_watch_in_flight", "sync_power_state_in_flight", "power_unknown_after",
    "power_failure_after", "shutdown_retry_interval_s", "max_limit", "worker_slots", "bmc_calls",
    "token_ttl_s", "max_connections", "image_max_gib",
)  # fmt: skip
_MORE_THAN_0 = (
    "webhook_timeout_s", "hardware_timeout_s", "power_read_timeout_s", "power_timeout_s",
    "deadline_scale", "console_token_ttl_s", "cpu_allocation_ratio", "ram_allocation_ratio",
    "disk_allocation_ratio",
)  # fmt: skip
_MOST, _MOST_FACTOR = 2**31 - 1, 1_000_000
"""Seconds beyond are no time of a calendar any more, and numbers beyond none of a database."""
_URLS = (
    "public_url", "ramdisk_url", "keystone_url", "image_url", "compute_endpoint",
    "compute_auth_url", "baremetal_auth_url",
)  # fmt: skip


def check(config: "Config") -> None:
    """Refuse what cannot be meant."""
    host, _, port = config.listen.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 0 <= int(port) <= 65535:  # noqa: PLR2004
        raise BadOption(f"listen = {config.listen!r} must be ADDRESS:PORT, such as 127.0.0.1:8770.")
    if config.baremetal_auth not in ("token", "none"):
        raise BadOption(f"baremetal_auth = {config.baremetal_auth!r} must be token or none.")
    if config.baremetal_auth == "none" and not config.loopback:
        raise BadOption(
            f"baremetal_auth = 'none' is only allowed on a loopback address, not on"
            f" {config.listen}; "
            "listen on 127.0.0.1 or use tokens."
        )
    for name in ("power_policy", "server_power_policy"):
        if getattr(config, name) not in ("hardware", "record", "observe"):
            raise BadOption(
                f"{name} = {getattr(config, name)!r} must be hardware, record or observe."
            )
    _check_numbers(config)
    _check_urls(config)
    if config.image_url and not config.keystone_url:
        raise BadOption("image_url needs keystone_url: the account that fetches images is there.")
    if config.keystone_url and not config.keystone_user:
        raise BadOption(
            "keystone_url needs keystone_user and keystone_password: our account there."
        )
    if config.log_level.lower() not in ("debug", "info", "warning", "error"):
        raise BadOption(f"log_level = {config.log_level!r} must be debug, info, warning or error.")
    if config.log_format not in ("text", "json"):
        raise BadOption(f"log_format = {config.log_format!r} must be text or json.")
    _check_networks(config)
    _check_notifications(config)


def _check_networks(config: "Config") -> None:
    for name in ("webhook_allow", "image_import_allow", "image_import_deny", "ramdisk_allow"):
        try:
            for text in filter(None, getattr(config, name).split(",")):
                ip_network(text.strip())
        except ValueError as why:
            raise BadOption(f"{name} must be networks with commas between them: {why}.") from why
    methods = config.image_import_methods.replace(",", " ").split()
    if not {"glance-direct", "web-download"}.issuperset(methods):
        raise BadOption("image_import_methods may have glance-direct and web-download only.")


def _check_notifications(config: "Config") -> None:
    if config.notification_url and not _are_brokers(config.notification_url):
        raise BadOption(
            "notification_url must be a URL such as rabbit://user:password@host:5672/; in a"
            " password, write : / ? # [ ] , and % as %3A %2F %3F %23 %5B %5D %2C %25."
        )
    levels = ("debug", "info", "warning", "error", "critical")
    if config.notification_level not in levels:
        raise BadOption(
            f"notification_level = {config.notification_level!r} must be one of"
            f" {', '.join(levels)}."
        )
    if config.notification_queues not in ("durable", "quorum", "transient"):
        raise BadOption(
            f"notification_queues = {config.notification_queues!r} must be durable, quorum or"
            " transient."
        )


_BROKER = re.compile(r"([^][]*@)?([^][:@]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")


def _are_brokers(url: str) -> bool:
    """Whether a URL names brokers, and not half of a password in place of one: what is said of it
    would be that half.
    """
    kind, _, rest = url.partition("://")
    where, *others = re.split("[/?#]", rest, maxsplit=1)
    places = [place for place in where.split(",") if place]
    is_whole = "@" in where or "@" not in "".join(others)
    is_in_order = "@" not in where or "@" in places[0]
    can_be = bool(places and re.fullmatch("[a-z0-9+]+", kind)) and "#" not in rest
    return can_be and is_whole and is_in_order and all(map(_BROKER.fullmatch, places))


def _check_numbers(config: "Config") -> None:
    for option in fields(config):
        name, value = option.name, getattr(config, option.name)
        if not isinstance(value, int | float):
            continue
        if name in _AT_LEAST_1 and value < 1:
            raise BadOption(f"{name} = {value} must be at least 1.")
        if name in _MORE_THAN_0 and value <= 0:
            raise BadOption(f"{name} = {value} must be more than 0.")
        least = -1 if "-1:" in option.metadata["meaning"] else 0
        if value < least:
            raise BadOption(f"{name} = {value} must be {least} or more.")
        most = _MOST_FACTOR if name.endswith(("_ratio", "_scale")) else _MOST
        if value > most:
            raise BadOption(f"{name} = {value} must be {most} or less.")


def _check_urls(config: "Config") -> None:
    for name in _URLS:
        url = getattr(config, name)
        if url and url != "own" and not re.match(r"https?://[^/\s]+[^\s]*$", url):
            raise BadOption(f"{name} must be an address such as https://cloud.example.org.")
