"""The forms of users and projects, as the OpenAPI document tells them."""

import pytest

from siderite.identity.web import schemas
from siderite.identity.web import views


@pytest.mark.parametrize(
    ("noun", "view", "kind"),
    [("user", views.user, views.User), ("project", views.project, views.Project)],
)
def test_options_are_shown_as_they_were_kept_whatever_they_are(noun, view, kind):
    one = schemas.shown(noun, view, kind)()["properties"][noun]
    many = schemas.listed("all", view, kind)()["properties"]["all"]["items"]
    for form in (one, many):
        assert form["properties"]["options"]["additionalProperties"] is not False
