"""Options: where a value comes from, and what a wrong one is told."""

import pytest

from siderite.core.config import BadOption
from siderite.core.config import load
from siderite.core.config import show


def test_a_flag_beats_the_environment_beats_the_file_beats_the_default(tmp_path):
    file = tmp_path / "siderite.toml"
    file.write_text('listen = "127.0.0.1:1"\nregion = "north"\ndata = "/file"\n')
    environ = {"SIDERITE_DATA": "/environment", "SIDERITE_LISTEN": "127.0.0.1:2"}
    loaded = load({"listen": "127.0.0.1:3"}, environ, str(file))
    config, origin = loaded.config, loaded.origin
    assert (config.listen, origin["listen"]) == ("127.0.0.1:3", "flag")
    assert (config.data, origin["data"]) == ("/environment", "environment SIDERITE_DATA")
    assert (config.region, origin["region"]) == ("north", f"file {file}")
    assert origin["max_limit"] == "default"


def test_the_file_may_be_named_by_the_environment(tmp_path):
    file = tmp_path / "siderite.toml"
    file.write_text("max_limit = 7\n")
    assert load({}, {"SIDERITE_CONFIG": str(file)}).config.max_limit == 7


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({"SIDERITE_MAX_LIMIT": "many"}, "max_limit = 'many' .* must be a whole number"),
        ({"SIDERITE_DEMO": "perhaps"}, "must be true or false"),
        ({"SIDERITE_LISTEN": "8770"}, "must be ADDRESS:PORT"),
        ({"SIDERITE_LISTEN": "127.0.0.1:²"}, "must be ADDRESS:PORT"),
        ({"SIDERITE_WORKER_SLOTS": "0"}, "worker_slots = 0 must be at least 1"),
        ({"SIDERITE_MAX_LIMIT": "-3"}, "max_limit = -3 must be at least 1"),
        ({"SIDERITE_DRAIN_S": "nan"}, "must be a number"),
        ({"SIDERITE_DRAIN_S": "inf"}, "must be a number"),
        ({"SIDERITE_TOKEN_TTL_S": "999999999999"}, "token_ttl_s = .* must be 2147483647 or less"),
        ({"SIDERITE_MAX_LIMIT": "9" * 22}, "max_limit = .* must be 2147483647 or less"),
        ({"SIDERITE_CALLBACK_TIMEOUT_S": "1e300"}, "must be 2147483647 or less"),
        ({"SIDERITE_DEADLINE_SCALE": "1e9"}, "must be 1000000 or less"),
        ({"SIDERITE_LOG_LEVEL": "loud"}, "debug, info, warning or error"),
        ({"SIDERITE_LOG_FORMAT": "xml"}, "text or json"),
        ({"SIDERITE_BAREMETAL_AUTH": "maybe"}, "token or none"),
        (
            {"SIDERITE_BAREMETAL_AUTH": "none", "SIDERITE_LISTEN": "0.0.0.0:80"},
            "only allowed on a loopback address",
        ),
        ({"SIDERITE_SERVER_POWER_POLICY": "mine"}, "must be hardware, record or observe"),
        ({"SIDERITE_SHUTDOWN_RETRY_INTERVAL_S": "0"}, "must be at least 1"),
        ({"SIDERITE_SHUTDOWN_TIMEOUT_S": "-1"}, "must be 0 or more"),
        ({"SIDERITE_DEMO_NODES": "-3"}, "demo_nodes = -3 must be 0 or more"),
        ({"SIDERITE_QUOTA_CORES": "-2"}, "quota_cores = -2 must be -1 or more"),
        ({"SIDERITE_POWER_TIMEOUT_S": "0"}, "power_timeout_s = 0.0 must be more than 0"),
        ({"SIDERITE_PUBLIC_URL": "cloud.example.org"}, "public_url must be an address such as"),
        ({"SIDERITE_COMPUTE_ENDPOINT": "mine"}, "compute_endpoint must be an address such as"),
        ({"SIDERITE_RAMDISK_ALLOW": "10.0.0.0/8, here"}, "ramdisk_allow must be networks"),
        ({"SIDERITE_CONFIG": "/nowhere"}, "cannot read the configuration file /nowhere"),
    ],
)
def test_a_wrong_value_is_refused_with_a_sentence(environ, sentence):
    with pytest.raises(BadOption, match=sentence):
        load({}, environ)


@pytest.mark.parametrize(
    "text",
    [
        b"\xd0\x00",
        b"admin_password = 4711",
        b"drain_s = nan",
        b'db = ["postgresql://u:4711@a/x", "postgresql://u:4711@b/x"]',
    ],
)
def test_a_file_that_is_wrong_is_refused_with_a_sentence_and_without_its_secrets(tmp_path, text):
    file = tmp_path / "siderite.toml"
    file.write_bytes(text)
    with pytest.raises(BadOption) as refused:
        load({}, {}, str(file))
    assert "4711" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:SECRET@db/x", "postgresql://u:SE:CR/E@T@db/x", "rabbit://:SECRET@a,b:SE@b/",
        "postgresql://db/x?user=u&password=SECRET&sslmode=require",
        "postgresql://db/x?user=u&sslpassword=SECRET&sslmode=require",
    ],
)  # fmt: skip
def test_no_part_of_a_password_in_a_url_is_shown(url):
    shown = {row[0]: row[1] for row in show(load({"db": url}, {}))}["db"]
    assert "***" in shown
    assert not any(part in shown for part in ("SE", "CR", "T@"))


@pytest.mark.parametrize(
    "url",
    [
        "rabbit://user:SECRET#x@h:5672/", "rabbit://user:SECRET/x@h/", "amqp://user:1/SECRET@h/",
        "amqp://user:SECRET?x@h/", "amqp://user:SECRET,x@h/", "amqp://user:1,SECRET@h/",
        "amqps://user:[SECRET@h/", "rabbit://h:SECRET/", "rabbit:///SECRET", "SECRET@h",
    ],
)  # fmt: skip
def test_a_broker_that_is_half_a_password_is_refused_without_it(url):
    with pytest.raises(BadOption) as refused:
        load({}, {"SIDERITE_NOTIFICATION_URL": url})
    assert "SECRET" not in str(refused.value)
    assert "notification_url must be a URL such as rabbit://" in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "rabbit://u:p@h:5672/", "rabbit://u:p@h1:5672,u:p@h2/v?ssl=1", "amqp://u:p@s@h//",
        "amqps://h", "oslo+kafka://[::1]:9092,h:9092", "rabbit://u:p@h1,h2/a@b",
    ],
)  # fmt: skip
def test_brokers_are_named_as_openstack_names_them(url):
    assert load({}, {"SIDERITE_NOTIFICATION_URL": url}).config.notification_url == url


@pytest.mark.parametrize(
    ("listen", "url"),
    [
        ("10.0.0.1:80", "http://10.0.0.1:80"),
        ("0.0.0.0:80", "http://127.0.0.1:80"),
        ("[::]:80", "http://[::1]:80"),
        (":::80", "http://[::1]:80"),
        ("::1:80", "http://[::1]:80"),
        ("[fd00::1]:80", "http://[fd00::1]:80"),
    ],
)
def test_who_listens_everywhere_gives_an_address_that_there_is(listen, url):
    assert load({}, {"SIDERITE_LISTEN": listen}).config.url == url


def test_an_unknown_option_in_the_file_is_refused(tmp_path):
    file = tmp_path / "siderite.toml"
    file.write_text("colour = 1\n")
    with pytest.raises(BadOption, match="there is no option 'colour'"):
        load({}, {}, str(file))
    file.write_text("colour = ")
    with pytest.raises(BadOption, match="is not TOML"):
        load({}, {}, str(file))


def test_secrets_are_not_shown():
    rows = {row[0]: row[1] for row in show(load({}, {"SIDERITE_ADMIN_PASSWORD": "s3cret"}))}
    assert rows["admin_password"] == "***"
    assert all(meaning for *_, meaning in show(load({}, {})))
