"""`siderite node timeline`: what happened to a node."""

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any
from urllib.parse import quote

from siderite.cli.cloud import Cloud
from siderite.cli.show import plain

_PAGE = 1000
"""The most that the service answers with at once, unless it was told otherwise."""


def run(said: argparse.Namespace) -> int:
    """Print the timeline, page by page."""
    for moment in _timeline(Cloud(said.data), said.name, said.limit):
        print(json.dumps(moment) if said.output == "json" else plain(_text(moment)))
    return 0


def _timeline(cloud: Cloud, name: str, last: int | None) -> Iterator[dict[str, Any]]:
    """All of it, oldest first; or the last so many."""
    path = f"/nodes/{quote(name, safe='')}/timeline"
    if last is None:
        yield from _pages(cloud, path)
        return
    newest = _pages(cloud, f"{path}?sort_dir=desc&limit={min(last, _PAGE)}")
    yield from reversed(list(islice(newest, min(last, sys.maxsize))))


def _pages(cloud: Cloud, first: str) -> Iterator[dict[str, Any]]:
    """A page, and those that follow it as far as they are wanted."""
    path = first
    while True:
        page = cloud.baremetal("GET", path)
        yield from page["timeline"]
        if "next" not in page:
            return
        path = first.partition("?")[0] + "?" + page["next"].partition("?")[2]


def _text(moment: dict[str, Any]) -> str:
    change = ""
    if moment["from"] != moment["to"]:  # a start and its end tell of one change
        change = f"  {_word(moment['from'])} → {_word(moment['to'])}"
    told = [
        f"{one['field']}: {_value(one['from'])} → {_value(one['to'])}"
        for one in moment.get("changed", ())  # an older service does not tell
    ]
    change += f"  {'; '.join(told)}" if told else ""
    who = moment["user"] or "-"
    reason = f"  ({moment['reason']})" if moment["reason"] else ""
    what = f"{moment['what']}.{moment['status']}"
    return (
        f"{moment['time'][:23]}  {what:30}{change}  [{moment['cause']}] {who}"
        f" {moment['request_id'] or ''}{reason}"
    ).rstrip()


def _value(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _word(value: Any) -> str:
    return "unknown" if value is None else str(value).lower() if value in (True, False) else value
