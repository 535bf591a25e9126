"""The body of states/provision: a verb and what goes with it, in the order in which Ironic checks
it.
"""

import binascii
import re
from collections import Counter
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import msgspec

from siderite.baremetal.domain import bios
from siderite.baremetal.domain import firmware
from siderite.baremetal.domain.node_machine import VERBS
from siderite.baremetal.domain.steps import NOT_ON_CHILDREN
from siderite.baremetal.domain.steps import ORDER
from siderite.baremetal.domain.steps import Json
from siderite.baremetal.usecases.life.provision import Ask
from siderite.baremetal.web.versions import VERB_SINCE
from siderite.core import shape
from siderite.core.check import is_whole
from siderite.core.errors import Invalid
from siderite.core.errors import NotAcceptable
from siderite.core.http import MIB
from siderite.core.ids import is_uuid

_KEYS = {
    "target", "configdrive", "clean_steps", "deploy_steps", "service_steps", "rescue_password",
    "disable_ramdisk", "runbook",
}  # fmt: skip
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*\Z")
_MOST_STEPS = 1000
_LONGEST_PASSWORD = 256
_STEP = ("interface", "step")
_STEP_MAY = (*_STEP, "args", "order", "execute_on_child_nodes", "limit_child_node_execution")
DEPLOY_STEP = (*_STEP, "args", "priority")
RUNBOOK_STEP = (*_STEP, "order")
RUNBOOK_STEP_MAY = (*RUNBOOK_STEP, "args")
_STEP_FORMS: dict[str, tuple[type, str]] = {
    "args": (dict, "an object"),
    "execute_on_child_nodes": (bool, "true or false"),
    "limit_child_node_execution": (list, "a list of UUIDs"),
}
_SETTINGS: dict[tuple[str, str], Callable[[Any], object]] = {
    ("bios", "apply_configuration"): bios.settings,
    ("firmware", "update"): firmware.updates,
}
"""Steps whose `settings` can be seen to be wrong before anything starts."""
_NUMBERS = ("priority", "order")
_TOO_MUCH = 10**6
_CONFIGDRIVE: dict[str, tuple[type, ...]] = {
    "meta_data": (dict,),
    "network_data": (dict,),
    "user_data": (dict, list, str),
    "vendor_data": (dict,),
}


def verb(document: Any, version: int) -> str:
    """The verb, if this version has it."""
    if not isinstance(document, dict):
        raise Invalid('The body must be an object such as {"target": "manage"}.')
    if "target" not in document:
        raise Invalid("Missing mandatory parameter: target")
    target = document["target"]
    if not isinstance(target, str) or target not in VERBS:
        verbs = ", ".join(v for v in VERBS if VERB_SINCE[v] <= version)
        raise Invalid(
            f'The requested action "{str(target)[:80]}" could not be understood; the'
            f" verbs are: {verbs}."
        )
    if VERB_SINCE[target] > version:
        raise NotAcceptable(
            f"The verb {target} needs API version 1.{VERB_SINCE[target]}; this request"
            f" has 1.{version}."
        )
    extra = sorted(set(document) - _KEYS)
    if extra:
        raise Invalid(f"Unexpected arguments: {', '.join(extra)[:200]}.")
    return target


def form() -> shape.Json:
    """The form of the body."""
    steps = {key: _steps_form(key) for key in ("clean_steps", "service_steps", "deploy_steps")}
    drive = shape.record(dict.fromkeys(_CONFIGDRIVE, shape.ANYTHING))
    fields = {
        **dict.fromkeys(_KEYS, shape.or_null(shape.text())),
        **steps,
        "target": shape.words(VERBS),
        "configdrive": {"anyOf": [shape.or_null(shape.text()), drive]},
        "disable_ramdisk": {"type": ["boolean", "null"]},
    }
    return shape.record({key: fields[key] for key in sorted(fields)}, ["target"])


def _steps_form(key: str) -> shape.Json:
    needs, known = _keys_of(key)
    return {"type": ["array", "null"], "items": step_form(needs, known), "maxItems": _MOST_STEPS}


def step_form(needs: Sequence[str], known: Sequence[str]) -> shape.Json:
    """The form of a step."""
    number = {"type": ["integer", "string"], "minimum": 0, "maximum": _TOO_MUCH - 1}
    fields = {
        "interface": shape.words(ORDER),
        "step": shape.text(1),
        "args": shape.OBJECT,
        "execute_on_child_nodes": {"type": "boolean"},
        "limit_child_node_execution": {"type": "array"},
        **dict.fromkeys(_NUMBERS, number),
    }
    return shape.record({key: fields[key] for key in known}, needs)


def parse(document: Any, version: int) -> Ask:
    """The request, checked for its form."""
    target = verb(document, version)
    given = {key: value for key, value in document.items() if value is not None}
    configdrive = _configdrive(given.get("configdrive"), target, version)
    runbook = _runbook(given, target, version)
    return Ask(
        target,
        runbook=runbook,
        steps=() if runbook is not None else _steps(given, target, version),
        configdrive=configdrive,
        rescue_password=_rescue_password(given, target),
        disable_ramdisk=_disable_ramdisk(given, target, version),
    )


def _runbook(given: Json, target: str, version: int) -> str | None:
    runbook = given.get("runbook")
    if runbook is None:
        return None
    if version < 92:  # noqa: PLR2004
        raise NotAcceptable(f"runbook needs API version 1.92; this request has 1.{version}.")
    if target not in ("clean", "service"):
        raise Invalid(
            '"runbook" is only valid when setting target provision state to clean or service'
        )
    if not isinstance(runbook, str) or not runbook:
        raise Invalid("runbook must be the UUID or the name of a runbook.")
    steps = next((key for key in given if key.endswith("_steps")), None)
    if steps is not None:
        raise Invalid(f"A request takes a runbook or {steps}, not both: leave one of them out.")
    return runbook


def _configdrive(value: Any, target: str, version: int) -> str | Json | None:
    if value is None:
        return None
    takers = ("active", "rebuild", "deploy") if version >= 35 else ("active",)  # noqa: PLR2004
    if target not in takers:
        raise Invalid(
            f'"configdrive" is only valid when setting target provision state to'
            f" {' or '.join(takers)}"
        )
    if isinstance(value, str):
        if "://" not in value and not _is_base64(value):
            raise Invalid(
                "configdrive must be gzipped and base64-encoded text, an http(s) URL or an object."
            )
        return value
    if not isinstance(value, dict):
        raise Invalid("configdrive must be text or an object.")
    if version < 56:  # noqa: PLR2004
        raise NotAcceptable(
            f"A configdrive object needs API version 1.56; this request has 1.{version}."
        )
    for key, inner in value.items():
        if key not in _CONFIGDRIVE or (
            inner is not None and not isinstance(inner, _CONFIGDRIVE[key])
        ):
            raise Invalid(
                f"configdrive has no {key[:40]!r} of that type; it has {', '.join(_CONFIGDRIVE)}."
            )
        if key == "vendor_data" and version < 59:  # noqa: PLR2004
            raise NotAcceptable("configdrive vendor_data needs API version 1.59.")
    return value


def _is_base64(text: str) -> bool:
    if not _BASE64.match(text):
        return False
    try:
        binascii.a2b_base64(text)
    except binascii.Error:
        return False
    return True


def _steps(given: Json, target: str, version: int) -> list[Json]:
    takers = {
        "clean_steps": ("clean",),
        "service_steps": ("service",),
        "deploy_steps": ("active", "rebuild", "deploy"),
    }
    for key, verbs in takers.items():
        if key in given and target not in verbs:
            raise Invalid(
                f'"{key}" is only valid when setting target provision state to {" or ".join(verbs)}'
            )
    if "deploy_steps" in given and version < 69:  # noqa: PLR2004
        raise NotAcceptable(f"deploy_steps needs API version 1.69; this request has 1.{version}.")
    for target_, key in (("clean", "clean_steps"), ("service", "service_steps")):
        if target == target_ and key not in given:
            raise Invalid(f'"{key}" is required when setting target provision state to {target}')
    for key in takers:
        if key in given:
            return _check_steps(key, given[key])
    return []


def _check_steps(key: str, value: Any) -> list[Json]:
    """A list of steps as a client writes it."""
    if not isinstance(value, list) or len(value) > _MOST_STEPS:
        raise Invalid(f"Invalid {key}: it must be a list of at most {_MOST_STEPS} steps.")
    if len(msgspec.json.encode(value)) > MIB:  # only a config drive may make a body so large
        raise Invalid(f"Invalid {key}: the steps may have {MIB} bytes together at most.")
    if not value and key != "deploy_steps":
        raise Invalid(f"Invalid {key}: it is empty; name at least one step.")
    needs, known = _keys_of(key)
    found = [step(key, item, needs, known) for item in value]
    if key == "deploy_steps":  # they are put in among others by their names
        check_once(f"Invalid {key}: it", found)
    return found


def check_once(name: str, steps: Sequence[Json]) -> None:
    """Refuse a list with a step that is there more than once: only one of them would be run."""
    names = [f"{step['interface']}.{step['step']}" for step in steps]
    twice = next((step for step, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise Invalid(f"{name} has {twice[:80]} more than once; name each step once.")


def _keys_of(key: str) -> tuple[Sequence[str], Sequence[str]]:
    """The keys that a step of such a list needs, and all that it may have."""
    return (DEPLOY_STEP, DEPLOY_STEP) if key == "deploy_steps" else (_STEP, _STEP_MAY)


def step(
    key: str, item: Any, needs: Sequence[str], known: Sequence[str], *, is_kept: bool = False
) -> Json:
    """A step as a client writes it, with the keys that it needs of those that are known. One that
    is kept for later may lack its settings so far.
    """
    if not isinstance(item, dict):
        raise Invalid(f'Invalid {key}: each step is an object with "interface" and "step".')
    for name in needs:
        if name not in item:
            raise Invalid(f"Invalid {key}: a step lacks {name!r}.")
    extra = sorted(set(item) - set(known))
    if extra:
        raise Invalid(f"Invalid {key}: a step has no {extra[0][:40]!r}; it has {', '.join(known)}.")
    if item["interface"] not in ORDER:
        raise Invalid(f"Invalid {key}: interface must be one of {', '.join(ORDER)}.")
    if not isinstance(item["step"], str) or not item["step"]:
        raise Invalid(f"Invalid {key}: the name of a step must be text.")
    for name, (kind, form) in _STEP_FORMS.items():
        if name in item and not isinstance(item[name], kind):
            raise Invalid(f"Invalid {key}: {name} must be {form}.")
    _check_wait(key, item)
    _check_children(key, item)
    numbers = {name: _number(key, name, item[name]) for name in _NUMBERS if name in item}
    check = _SETTINGS.get((item["interface"], item["step"]))
    settings = item.get("args", {}).get("settings")
    is_blank = is_kept and settings is None
    if check is not None and not is_blank and numbers.get("priority") != 0:  # with 0 it is left out
        check(settings)
    return {**item, **numbers}


def _number(key: str, name: str, value: Any) -> int:
    """A whole number, also as its digits."""
    if isinstance(value, str) and is_whole(value, 6):
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _TOO_MUCH:
        raise Invalid(f"Invalid {key}: {name} must be a whole number from 0 to {_TOO_MUCH - 1}.")
    return value


def _check_children(key: str, item: Json) -> None:
    """A step on children runs on them and not on the node: one that cannot is refused, lest it
    runs on the wrong machine.
    """
    only = item.get("limit_child_node_execution", [])
    if not item.get("execute_on_child_nodes"):
        if only:
            raise Invalid(
                f"Invalid {key}: limit_child_node_execution goes with execute_on_child_nodes."
            )
        return
    if item["step"] in NOT_ON_CHILDREN:
        raise Invalid(f"Invalid {key}: {item['step']} cannot be executed on child nodes.")
    for uuid in only:
        if not isinstance(uuid, str) or not is_uuid(uuid):
            raise Invalid(f"Invalid {key}: limit_child_node_execution must be a list of UUIDs.")


def _check_wait(key: str, item: Json) -> None:
    if item["step"] != "wait":
        return
    seconds = item.get("args", {}).get("seconds", 0)
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, (int, float))
        or not 0 <= seconds <= 86400  # noqa: PLR2004 - a day
    ):
        raise Invalid(f"Invalid {key}: wait takes args.seconds from 0 to 86400.")


def _rescue_password(given: Json, target: str) -> str | None:
    value = given.get("rescue_password")
    if target != "rescue":
        if value is not None:
            raise Invalid(
                '"rescue_password" is only valid when setting target provision state to rescue'
            )
        return None
    if not isinstance(value, str) or not value.strip():
        raise Invalid("rescue needs a rescue_password that is not blank.")
    if not value.isprintable() or len(value.encode()) > _LONGEST_PASSWORD:
        raise Invalid(
            f"rescue_password may have {_LONGEST_PASSWORD} bytes at most, and no characters that"
            " cannot be typed, such as line breaks."
        )
    return value


def _disable_ramdisk(given: Json, target: str, version: int) -> bool:
    if "disable_ramdisk" not in given:
        return False
    since = {"clean": 70, "service": 108}.get(target)
    if since is None:
        raise Invalid(
            '"disable_ramdisk" is only valid when setting target provision state to'
            " clean or service"
        )
    if version < since:
        raise NotAcceptable(
            f"disable_ramdisk needs API version 1.{since}; this request has 1.{version}."
        )
    value = given["disable_ramdisk"]
    if not isinstance(value, bool):
        raise Invalid("disable_ramdisk must be true or false.")
    return value
