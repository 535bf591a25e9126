"""Options by flag, environment and file, as the command takes them."""

import json

import pytest

from siderite.cli.main import main
from siderite.cli.settings import unknown_variables


def test_an_option_is_shown_on_one_line_where_programs_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["config", "show", "--listen", "[fe80::1]:8770"]) == 0
    [line] = [one for one in capsys.readouterr().out.splitlines() if one.startswith("listen ")]
    assert line.split()[:3] == ["listen", "[fe80::1]:8770", "flag"]
    assert "Address and port of the one listener" in line


def test_options_are_shown_as_json_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["config", "show", "--listen", "[fe80::1]:8770", "-o", "json"]
    assert main(words) == 0
    found = {one["option"]: one for one in json.loads(capsys.readouterr().out)}
    assert (found["listen"]["value"], found["listen"]["from"]) == ("[fe80::1]:8770", "flag")
    assert main([*words[:2], "-o", "name"]) == 0
    assert capsys.readouterr().out.split() == list(found)


def test_brackets_of_a_value_are_shown_on_a_terminal_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["config", "show", "--listen", "[fe80::1]:8770"]) == 0
    assert "[fe80::1]:8770" in capsys.readouterr().out


def test_a_mistyped_variable_is_said_with_the_nearest_name():
    environ = {
        "SIDERITE_ADMIN_PASWORD": "s3cret", "siderite_listen": "x", "SIDERITE_XYZZY": "1",
        "SIDERITE_CONFIG": "", "SIDERITE_DB": "", "HOME": "/",
        "SIDERITE_PORT": "tcp://10.0.0.1:8770", "SIDERITE_API_SERVICE_HOST": "10.0.0.1",
        "SIDERITE_PORT_8770_TCP_ADDR": "10.0.0.1", "SIDERITE_SERVICE_PORT_HTTP": "8770",
    }  # fmt: skip
    said = list(unknown_variables(environ))
    assert len(said) == 3
    assert said[0].endswith(
        "SIDERITE_ADMIN_PASWORD is no option and is ignored; do you mean SIDERITE_ADMIN_PASSWORD?"
    )
    assert "`siderite config show`" in said[1]
    assert said[2].endswith("do you mean SIDERITE_LISTEN?")
    assert "s3cret" not in "".join(said)


def test_a_port_that_is_not_of_kubernetes_is_a_mistake():
    assert len(list(unknown_variables({"SIDERITE_PORT": "8771"}))) == 1
