"""Projects by their names, over HTTP: for the filters of lists."""

import contextlib
from urllib.parse import quote
from urllib.parse import urlencode

from siderite.cli.cloud import Cloud
from siderite.cli.cloud import Missing
from siderite.cli.cloud import Refused


def project(cloud: Cloud, word: str, *, is_known: bool = True) -> str:
    """The id of a project, by its name or id. Who may not ask, or has a Keystone elsewhere, names
    it by its id; with `is_known` false it may be one that identity has never heard of.
    """
    try:
        found, _ = cloud.ask("GET", f"/identity/v3/projects?{urlencode({'name': word})}")
    except Refused:
        return word
    if found["projects"]:
        return str(found["projects"][0]["id"])
    with contextlib.suppress(Missing):
        cloud.ask("GET", f"/identity/v3/projects/{quote(word, safe='')}")
        return word
    if is_known:
        raise Missing(f"there is no project {word!r}; `openstack project list` shows them.")
    return word
