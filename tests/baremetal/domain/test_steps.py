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


def test_the_value_of_a_setting_whose_name_is_that_of_a_secret_is_not_shown():
    settings = [{"name": "SetupPassword", "value": "hush"}, {"name": "NumLock", "value": "Off"}]
    shown = Step("bios", "apply_configuration", 10, {"settings": settings}).shown()
    assert shown["args"]["settings"] == [
        {"name": "SetupPassword", "value": "******"},
        {"name": "NumLock", "value": "Off"},
    ]
