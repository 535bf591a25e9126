"""The image API's table of contents."""

from siderite.core.http import Route
from siderite.image.web import data
from siderite.image.web import documents
from siderite.image.web import forms
from siderite.image.web import images
from siderite.image.web import imports
from siderite.image.web import members

_IMAGE = "/v2/images/{image_id}"
_MEMBER = _IMAGE + "/members/{member_id}"

ROUTES = (
    Route("GET", "/", documents.choices, gives=documents.versions_form),
    Route("GET", "/versions", documents.versions, gives=documents.versions_form),
    Route("GET", "/v2", documents.versions, gives=documents.versions_form),
    Route("GET", "/v2/images", images.index, "image:read", gives=forms.page),
    Route("POST", "/v2/images", images.create, "image:create", takes=forms.new, gives=forms.shown),
    Route("GET", _IMAGE, images.show, "image:read", gives=forms.shown),
    Route("PATCH", _IMAGE, images.patch, "image:update", takes=forms.patch, gives=forms.shown),
    Route("DELETE", _IMAGE, images.remove, "image:delete"),
    Route("PUT", _IMAGE + "/file", data.upload, "image:upload"),
    Route("GET", _IMAGE + "/file", data.download, "image:download",
          media="application/octet-stream"),
    Route("PUT", _IMAGE + "/stage", data.stage, "image:upload"),
    Route("POST", _IMAGE + "/import", imports.begin, "image:upload", takes=imports.asked),
    Route("GET", _IMAGE + "/tasks", imports.index, "image:read", gives=imports.listed),
    Route("GET", "/v2/tasks", imports.every, "image:read", gives=imports.every_form),
    Route("GET", "/v2/tasks/{task_id}", imports.show, "image:read", gives=imports.shown),
    Route("PUT", _IMAGE + "/tags/{tag}", images.tag, "image:update"),
    Route("DELETE", _IMAGE + "/tags/{tag}", images.untag, "image:update"),
    Route("POST", _IMAGE + "/actions/deactivate", images.deactivate, "image:update"),
    Route("POST", _IMAGE + "/actions/reactivate", images.reactivate, "image:update"),
    Route("GET", _IMAGE + "/members", members.index, "image:read", gives=members.listed),
    Route(
        "POST",
        _IMAGE + "/members",
        members.add,
        "image:share",
        takes=members.new,
        gives=members.shown,
    ),
    Route("GET", _MEMBER, members.show, "image:read", gives=members.shown),
    Route(
        "PUT", _MEMBER, members.decide, "image:accept", takes=members.decision, gives=members.shown
    ),
    Route("DELETE", _MEMBER, members.remove, "image:share"),
    Route("GET", "/v2/info/import", documents.import_methods, "image:read",
          gives=documents.import_form),
    Route("GET", "/v2/schemas/{name}", documents.schema, "image:read",
          gives=documents.schema_form),
)  # fmt: skip
