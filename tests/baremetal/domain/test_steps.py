"""Steps as they are shown."""

from siderite.baremetal.domain.steps import Step


def test_the_secrets_among_a_steps_arguments_are_not_shown():
    args = {"settings": [{"name": "AdminPassword", "password": "hush"}], "token": "hush", "n": 1}
    shown = Step("bios", "apply_configuration", 10, args).shown()
    assert shown["args"] == {
        "settings": [{"name": "AdminPassword", "password": "******"}],
        "token": "******",
        "n": 1,
    }
