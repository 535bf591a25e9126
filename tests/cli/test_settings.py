"""Options by flag, environment and file, as the command takes them."""

from siderite.cli.settings import unknown_variables


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
