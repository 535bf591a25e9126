"""What may be asked of the step `bios.apply_configuration`: which setting gets which value."""

from collections.abc import Mapping
from typing import Any

from siderite.baremetal.domain.hardware import BiosSetting
from siderite.baremetal.domain.secrets import is_secret
from siderite.core.errors import Invalid

Value = str | int | float | bool | None

_MOST = 1000
_LONGEST_NAME = 255


def settings(wanted: Any) -> dict[str, Value]:
    """The argument `settings` of the step, by name; Invalid says what is wrong with it."""
    if not isinstance(wanted, list) or not 0 < len(wanted) <= _MOST:
        raise Invalid(
            f"bios.apply_configuration takes args.settings, a list of 1 to {_MOST} objects such as"
            ' {"name": "NumLock", "value": "Off"}.'
        )
    found: dict[str, Value] = {}
    for one in wanted:
        if not isinstance(one, dict) or not {"name", "value"} <= set(one):
            raise Invalid(
                "Each of bios.apply_configuration's settings is an object with name and value."
            )
        name, value = one["name"], one["value"]
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
            raise Invalid(
                "name of a BIOS setting must be text of 1 to"
                f" {_LONGEST_NAME} characters, as the node's BIOS settings list it."
            )
        if not isinstance(value, Value):
            raise Invalid(
                f"value of BIOS setting {name[:80]!r} must be text, a number, true, false or null."
            )
        if name in found and found[name] != value:
            raise Invalid(f"BIOS setting {name[:80]!r} is asked for twice, with different values.")
        found[name] = value
    return found


def hidden(wanted: dict[str, Value]) -> list[str]:
    """The values among these settings that are secret."""
    return [str(value) for name, value in wanted.items() if value and is_secret(name)]


def is_password(setting: BiosSetting) -> bool:
    """Whether the value of a setting is none to show. Most BMCs show none of themselves. What has
    such a name and is chosen from a list, or counted, only tells of one.
    """
    kind = setting.attribute_type
    return kind == "Password" or (kind in (None, "String") and is_secret(setting.name))


def differing(wanted: Mapping[str, Value], shown: Mapping[str, str | None]) -> str | None:
    """Which of the settings shows another value than is wanted, in words. What is not shown, as a
    password is not, cannot be told.
    """
    for name, value in wanted.items():
        said = shown.get(name)
        if said is not None and not is_secret(name) and said.lower() != str(value).lower():
            return f"BIOS setting {name[:80]!r} shows {said[:80]!r}, not {str(value)[:80]!r}"
    return None


def is_pending(wanted: Mapping[str, Value], pending: Mapping[str, Any]) -> bool:
    """Whether a machine has all of the settings to take at its next start. What is not shown there
    cannot be told, and is not taken for granted.
    """
    return all(
        name in pending and str(pending[name]).lower() == str(value).lower()
        for name, value in wanted.items()
    )
