"""The drivers that the configuration enables; what a driver needs is imported only for it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from siderite.baremetal.drivers.console_ports import ConsolePorts
from siderite.baremetal.drivers.contract import Driver
from siderite.baremetal.drivers.simulated import Machines
from siderite.baremetal.drivers.simulated import SimulatedConsole
from siderite.baremetal.drivers.simulated import simulated_driver
from siderite.core.config import BadOption
from siderite.core.config import Config
from siderite.core.errors import SideriteError
from siderite.core.guard import networks
from siderite.core.who import Who
from siderite.image import Images

if TYPE_CHECKING:
    from siderite.baremetal.drivers.agent.image import LocalImage

_KNOWN = ("fake-hardware", "redfish", "ipmi")


class Fleet(msgspec.Struct, frozen=True):
    """Drivers by their names, the folder of what machines boot, and what to close in the end."""

    drivers: dict[str, Driver]
    boot_folder: Path
    closers: tuple[Callable[[], None], ...]


def drivers(config: Config, data: Path, machines: Machines, images: Images | None) -> Fleet:
    """The drivers that are enabled; `images` are those that nodes are given by their ids."""
    names = enabled(config)
    folder = data / "boot"
    found: dict[str, Driver] = {}
    closers: list[Callable[[], None]] = []
    if "fake-hardware" in names:
        lines = SimulatedConsole(machines, console_ports(config))
        found["fake-hardware"] = simulated_driver(machines, lines)
        closers.append(lines.close)
    if "redfish" in names or "ipmi" in names:
        _real(config, folder, names, found, closers, images=images)
    return Fleet(found, folder, tuple(closers))


def enabled(config: Config) -> list[str]:
    """The names of the drivers that nodes may have."""
    names = [name.strip() for name in config.enabled_hardware_types.split(",") if name.strip()]
    if not names or not set(_KNOWN).issuperset(names):
        raise BadOption(
            f"enabled_hardware_types = {config.enabled_hardware_types!r} must be some of"
            f" {', '.join(_KNOWN)}, with commas between."
        )
    return names


def console_ports(config: Config) -> ConsolePorts:
    """Where those who connect to consoles are listened for."""
    if not config.console_ports:
        return ConsolePorts(config.console_address)
    low, _, high = config.console_ports.partition(":")
    if not (low.isdigit() and high.isdigit() and 0 < int(low) <= int(high) < 65536):  # noqa: PLR2004
        raise BadOption(
            f"console_ports = {config.console_ports!r} must be LOW:HIGH, such as 10000:10999."
        )
    return ConsolePorts(config.console_address, tuple(range(int(low), int(high) + 1)))


async def _image(images: Images, uuid: str, project: str | None) -> "LocalImage":
    """An image of our own image service, as the project of a node sees it."""
    from siderite.baremetal.drivers.agent.image import LocalImage
    from siderite.baremetal.drivers.agent.image import NoImage

    who = Who("", "baremetal", project, None, frozenset({"member"}))
    try:
        shown = await images.show(uuid, who)
        path = await images.path(uuid, who)
    except SideriteError as why:
        raise NoImage(why.sentence) from why
    return LocalImage(path, shown["disk_format"], shown["os_hash_algo"], shown["os_hash_value"])


def ramdisk_url(config: Config) -> str:
    """By which ramdisks reach the listener."""
    return (config.ramdisk_url or config.url).rstrip("/")


def _real(
    config: Config,
    folder: Path,
    names: list[str],
    found: dict[str, Driver],
    closers: list[Callable[[], None]],
    *,
    images: Images | None,
) -> None:
    from siderite.baremetal.drivers import ipmi
    from siderite.baremetal.drivers import redfish
    from siderite.baremetal.drivers.agent import Agent
    from siderite.baremetal.drivers.agent import Ramdisks
    from siderite.baremetal.drivers.agent import RamdiskSettings
    from siderite.baremetal.drivers.agent.ramdisks import guard

    ramdisks = Ramdisks(
        RamdiskSettings(
            folder=folder,
            api_url=ramdisk_url(config),
            media_url=config.url,
            kernel=config.deploy_kernel,
            ramdisk=config.deploy_ramdisk,
            iso=config.deploy_iso,
            params=config.kernel_append_params,
            boot_files=config.boot_files,
            guard=guard(networks(config.ramdisk_allow)),
        ),
        None if images is None else partial(_image, images),
    )
    agent = Agent(timeout_s=config.hardware_timeout_s)
    tool = ipmi.IpmiTool(at_once=config.bmc_calls, timeout_s=config.hardware_timeout_s)
    consoles = ipmi.SerialOverLan(tool, console_ports(config))
    closers.append(consoles.close)
    if "redfish" in names:
        lines = redfish.Lines(threads=config.bmc_calls, timeout_s=config.hardware_timeout_s)
        found["redfish"] = redfish.redfish_driver(lines, ramdisks, agent, consoles)
        closers.append(lines.close)
    if "ipmi" in names:
        found["ipmi"] = ipmi.ipmi_driver(tool, consoles, ramdisks, agent)
