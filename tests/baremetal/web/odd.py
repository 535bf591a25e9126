"""Odd things to send, for hypothesis: from nearly right to noise."""

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from siderite.baremetal.domain.node_machine import NODE
from siderite.baremetal.domain.node_machine import VERBS
from siderite.baremetal.domain.power import PowerTarget
from siderite.baremetal.domain.wire import NODE_FIELDS
from siderite.baremetal.domain.wire import PORT_FIELDS
from siderite.baremetal.web.beside import chassis
from siderite.baremetal.web.beside import port_schema
from siderite.baremetal.web.node.schemas import FIELDS
from siderite.baremetal.web.versions import ALLOCATION_FILTER_SINCE
from siderite.baremetal.web.versions import FILTER_SINCE
from siderite.baremetal.web.versions import PORT_FILTER_SINCE
from siderite.baremetal.web.versions import RULE_FILTER_SINCE

UUID = "1be26c0b-03f2-4d2e-ae87-c02d7f33c123"
MAC = "52:54:00:12:34:56"
SINCE = {**NODE_FIELDS.since, **PORT_FIELDS.since}
FILTERS = [*{**FILTER_SINCE, **PORT_FILTER_SINCE, **ALLOCATION_FILTER_SINCE, **RULE_FILTER_SINCE}]

WORDS = st.sampled_from(
    [
        "", " ", "true", "false", "null", "None", "0", "1", "-1", "7", "1_0", "\u0663", "\u00b2",
        "9" * 5000, "1e999", "asc", "desc", "fake-hardware", "no-inspect", "enroll", "available",
        "inspect wait", UUID, UUID.upper(), UUID[:-1], "detail", "states", "name,uuid", "bogus",
        "%", "_", "\\", "'", '"', "\x00", "\r\n", "a\r\nx: y", "\ud800", "\udc00", "\U0001f600",
        "\u00e4", "~", "~0", "~1", "~2", "/", "..", ".json", "x" * 256, "x" * 5000, ",",
        "http://a/b", "clean_step", "wait", "hold", MAC, MAC[:-1], *FILTERS,
    ]
)  # fmt: skip
TEXTS = WORDS | st.text(max_size=20)
NUMBERS = (
    st.integers()
    | st.integers(min_value=-(10**400), max_value=10**400)
    | st.floats(allow_nan=False, allow_infinity=False)
)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
DEEP = st.integers(min_value=20, max_value=2000).map(lambda n: b"[" * n + b"]" * n)


def as_bytes(value: Any) -> bytes:
    """JSON as a careless client writes it."""
    return json.dumps(value).encode()


KEYS = st.sampled_from([*SINCE, *FIELDS, "uuid", "target", "reason"]) | TEXTS
STEP = st.fixed_dictionaries(
    {},
    optional={
        "interface": st.sampled_from(["deploy", "power", "raid", "bogus"]) | JSON,
        "step": st.sampled_from(["erase_devices", "wait", "hold", "reboot"]) | JSON,
        "args": st.dictionaries(st.sampled_from(["seconds", "x"]), SCALARS, max_size=2) | JSON,
        "priority": NUMBERS | JSON,
        "order": NUMBERS | JSON,
        "execute_on_child_nodes": JSON,
    },
)
STEPS = st.lists(STEP | JSON, max_size=3) | JSON
PARTS = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["eq", "!eq", "fail", "set-attribute", "bogus"]) | SCALARS},
        optional={
            "args": st.fixed_dictionaries(
                {}, optional={"values": JSON, "path": TEXTS, "value": JSON, "msg": TEXTS}
            )
            | JSON,
            "loop": JSON,
            "multiple": SCALARS,
        },
    )
    | JSON,
    max_size=3,
)
"""Conditions or actions of an inspection rule, or nearly."""
CREATION = st.dictionaries(KEYS, JSON, max_size=6).map(
    lambda fields: {"driver": "fake-hardware", **fields}
)
PROVISION = st.fixed_dictionaries(
    {"target": st.sampled_from([*VERBS, "delete", "done"]) | TEXTS},
    optional={
        "clean_steps": STEPS,
        "deploy_steps": STEPS,
        "service_steps": STEPS,
        "configdrive": JSON
        | st.dictionaries(st.sampled_from(["meta_data", "user_data", "x"]), JSON, max_size=3),
        "rescue_password": SCALARS,
        "disable_ramdisk": SCALARS,
        "runbook": JSON,
    },
)
POWER = st.fixed_dictionaries(
    {"target": st.sampled_from([*PowerTarget]).map(str) | TEXTS}, optional={"timeout": SCALARS}
)
POINTER = st.lists(
    st.sampled_from([*FIELDS, "0", "-", "a", "b", "\u00b2", "1" * 30, "~0", "~1", "~9"]) | TEXTS,
    max_size=5,
).map(lambda parts: "/" + "/".join(parts))
PATCH = st.lists(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "replace", "remove"]) | SCALARS,
            "path": POINTER
            | st.sampled_from([f"/{name}" for name in FIELDS])
            | st.sampled_from([f"/extra/{name}" for name in ("list/0", "list/-", "a/b", "x")])
            | SCALARS,
        },
        optional={"value": JSON, "from": TEXTS},
    )
    | JSON,
    max_size=4,
)
LINKS = st.dictionaries(st.sampled_from([*port_schema.LINK_SINCE]) | TEXTS, WORDS, max_size=4)


def port_creation(node: str) -> st.SearchStrategy[dict[str, Any]]:
    """A port for this node, or nearly."""
    names = [*port_schema.FORM.fields, *port_schema.FORM.at_creation]
    fields = st.dictionaries(st.sampled_from(names) | TEXTS, JSON | LINKS, max_size=4)
    right = {"address": "52:54:00:00:00:0A", "node_uuid": node}
    return fields.map(lambda more: {**right, **more}) | fields


CHASSIS_CREATION = st.dictionaries(st.sampled_from([*chassis.FORM.fields]) | TEXTS, JSON)


def patch_of(names: Iterable[str]) -> st.SearchStrategy[list[Any]]:
    """A patch of these fields, or nearly."""
    paths = st.sampled_from([f"/{name}" for name in names] + ["/extra/a", "/extra/a/b"])
    deep = st.tuples(paths, st.sampled_from([*port_schema.LINK_SINCE]) | TEXTS).map("/".join)
    op = st.sampled_from(["add", "replace", "remove"])
    item = st.fixed_dictionaries(
        {"op": op, "path": paths | deep}, optional={"value": JSON | LINKS | st.just(MAC)}
    )
    return st.lists(item, min_size=1, max_size=3)


BODIES = (
    st.one_of(
        JSON, CREATION, PROVISION, POWER, PATCH, CHASSIS_CREATION, st.dictionaries(KEYS, JSON)
    ).map(as_bytes)
    | st.binary(max_size=60)
    | DEEP
)


def escaped(text: str) -> str:
    """Percent-encoding of any text, also of what is no UTF-8."""
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


SEGMENTS = TEXTS.map(escaped) | st.binary(max_size=8).map(lambda raw: quote(raw, safe=""))
QUERIES = st.lists(
    st.tuples(
        st.sampled_from([*FILTERS, "reset_interfaces", "bogus"]) | TEXTS,
        TEXTS | st.sampled_from([*NODE.states, *SINCE]),
    ),
    max_size=4,
).map(lambda pairs: "&".join(f"{escaped(key)}={escaped(value)}" for key, value in pairs))
LATIN = st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=12)
VERSIONS = (
    st.integers(min_value=1, max_value=115).map(lambda n: f"1.{n}")
    | st.sampled_from(
        ["1.115", "1.900", "latest", "LATEST", "1.0", "1.116", "1.899", "1.901", "2.1", "0.1", "",
         " 1.5 ", "1.5.1", "1", ".", "1.", ".5", "\u00b2.5", "1.\u00b2", "9" * 5000 + ".1",
         "1." + "9" * 5000, "-1.5", "1.-5", "1,5", "1.5, 1.6"]
    )
    | LATIN
)  # fmt: skip
METHODS = st.sampled_from(
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "x"]
)
