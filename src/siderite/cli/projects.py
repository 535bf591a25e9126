"""Projects by their names, over HTTP: for the filters of lists, and for the reaper."""

import contextlib
import re
from typing import Any
from urllib.parse import quote
from urllib.parse import urlencode

from siderite.cli.cloud import Away
from siderite.cli.cloud import Cloud
from siderite.cli.cloud import Missing
from siderite.cli.cloud import Refused

_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def project(cloud: Cloud, word: str, *, is_known: bool = True) -> str:
    """The id of a project, by its name or id. Who may not ask names it by its id; with `is_known`
    false it may be one that identity has never heard of.
    """
    try:
        found = _ask(cloud, f"/projects?{urlencode({'name': word})}")["projects"]
    except Away:
        raise
    except Refused as why:
        if not is_known or _ID.fullmatch(word):
            return word
        raise Refused(f"cannot look for the project {word!r}: {why} Name it by its id.") from why
    if len(found) > 1:
        raise Refused(f"several projects are called {word!r}, in several domains: name its id.")
    if found:
        return str(found[0]["id"])
    with contextlib.suppress(Missing):
        _ask(cloud, f"/projects/{quote(word, safe='')}")
        return word
    if is_known:
        raise Missing(f"there is no project {word!r}; `openstack project list` shows them.")
    return word


def _ask(cloud: Cloud, path: str) -> Any:
    """Of the identity service that clouds.yaml names: ours, or a Keystone elsewhere."""
    return cloud.ask("GET", path, base=cloud.identity)[0]
