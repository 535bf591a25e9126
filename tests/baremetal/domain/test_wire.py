"""What the outside sees of a node: key sets per version, without parsing, without secrets."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siderite.baremetal.domain.fields import URL
from siderite.baremetal.domain.node import Node
from siderite.baremetal.domain.secrets import is_secret
from siderite.baremetal.domain.wire import NODE_FIELDS


def node(**fields):
    made = {
        "uuid": "11111111-1111-4111-8111-111111111111",
        "created_at": "2026-01-01T00:00:00.000000+00:00",
        "driver": "fake-hardware",
        "provision_state": "enroll",
    }
    return Node(**{**made, **fields})


def shown(value, version):
    return json.loads(
        NODE_FIELDS.cut(NODE_FIELDS.render(value), version).replace(URL, "http://cloud.test/")
    )


def known_at(version):
    return {name for name, since in NODE_FIELDS if since <= version}


def test_the_oldest_version_shows_22_fields_and_the_newest_upstream_one_69():
    assert len(shown(node(), 1)) == 22
    assert len(shown(node(), 115)) == 69
    assert len(shown(node(), 900)) == 73


def test_each_version_shows_exactly_the_fields_it_knows():
    for version in sorted({since for _, since in NODE_FIELDS}):
        for asked in (max(1, version - 1), version):
            assert set(shown(node(), asked)) == known_at(asked), asked


def test_links_begin_with_the_public_url():
    assert shown(node(), 115)["links"][0]["href"] == (
        "http://cloud.test/v1/nodes/11111111-1111-4111-8111-111111111111"
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(extra=st.dictionaries(st.text(max_size=10), json_values, max_size=5), text=st.text())
def test_no_text_of_a_user_confuses_the_cutting(extra, text):
    value = node(extra=extra, description=text, last_error=text, name="n")
    for version in (1, 38, 51, 115, 900):
        seen = shown(value, version)
        assert seen["extra"] == extra
        assert seen["last_error"] == text
        assert set(seen) == known_at(version)


def test_secrets_are_masked_at_any_depth_and_others_are_not():
    value = node(
        driver_info={"ipmi_address": "10.0.0.1", "ipmi_password": "s3cret", "a": [{"token": "t"}]},
        instance_info={"configdrive": {"user_data": "x"}, "image_url": "http://u", "root_gb": 10},
        driver_internal_info={"agent_secret_token": "t", "agent_url": "http://a"},
    )
    seen = shown(value, 115)
    assert seen["driver_info"] == {
        "ipmi_address": "10.0.0.1",
        "ipmi_password": "******",
        "a": [{"token": "******"}],
    }
    assert seen["instance_info"] == {"configdrive": "******", "image_url": "******", "root_gb": 10}
    assert seen["driver_internal_info"]["agent_secret_token"] == "******"
    assert "s3cret" not in NODE_FIELDS.render(value)


@pytest.mark.parametrize(
    "name",
    [
        "ipmi_password", "passphrase", "sys_pswd", "bmc_pwd", "agent_token", "chapsecret",
        "configdrive", "private_key", "ssl_key", "sslkey", "api_key", "snmp_auth_key",
        "ipmi_hex_kg_key", "ssh_key_contents", "fernetkey", "image_url",
    ],
)  # fmt: skip
def test_a_name_that_says_so_is_that_of_a_secret(name):
    assert is_secret(name)


@pytest.mark.parametrize(
    "name", ["ipmi_address", "public_key", "passthru", "auth_keystone_url", "agent_token_required"]
)
def test_other_names_are_not(name):
    assert not is_secret(name)


@pytest.mark.parametrize(("length", "is_kept"), [(50, True), (100_000, False)])
@pytest.mark.parametrize("end", ["_password", "_number"])
def test_a_long_name_is_not_kept_after_it_was_looked_at(length, is_kept, end):
    name = "x" * length + end
    before = sys.getrefcount(name)
    assert is_secret(name) is (end == "_password")
    assert (sys.getrefcount(name) > before) is is_kept


def test_what_is_large_is_not_kept_with_its_text():
    for size, is_kept in ((100, True), (100_000, False)):
        value = node(instance_info={"configdrive": "x" * size})
        text = NODE_FIELDS.render(value)
        assert "xx" not in text
        for kept in (NODE_FIELDS._encoded, NODE_FIELDS._rendered):
            assert (value.uuid in kept and kept[value.uuid][0] is value) == is_kept
        assert NODE_FIELDS.render(value) == text
