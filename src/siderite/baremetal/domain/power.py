"""Power states and what may be asked of a node's power."""

from enum import StrEnum


class PowerState(StrEnum):
    """What is known of a node's power. UNKNOWN is never taken for off; on the wire it is null."""

    ON = "power on"
    OFF = "power off"
    UNKNOWN = "unknown"

    @property
    def wire(self) -> str | None:
        """As the API and the record show it."""
        return None if self is PowerState.UNKNOWN else self.value


class PowerTarget(StrEnum):
    """What a client may ask for."""

    ON = "power on"
    OFF = "power off"
    REBOOT = "rebooting"
    SOFT_OFF = "soft power off"
    SOFT_REBOOT = "soft rebooting"

    @property
    def leads_to(self) -> PowerState:
        """The state that the node has when it is done."""
        off = (PowerTarget.OFF, PowerTarget.SOFT_OFF)
        return PowerState.OFF if self in off else PowerState.ON

    @property
    def is_soft(self) -> bool:
        """Whether the operating system is asked first."""
        return self in (PowerTarget.SOFT_OFF, PowerTarget.SOFT_REBOOT)

    @property
    def hard(self) -> "PowerTarget":
        """The same without asking the operating system."""
        soft = {PowerTarget.SOFT_OFF: PowerTarget.OFF, PowerTarget.SOFT_REBOOT: PowerTarget.REBOOT}
        return soft.get(self, self)

    @property
    def is_reboot(self) -> bool:
        """Whether the node goes off in between."""
        return self in (PowerTarget.REBOOT, PowerTarget.SOFT_REBOOT)
