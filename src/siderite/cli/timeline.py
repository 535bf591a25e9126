"""`siderite node timeline`: what happened to a node."""

import argparse
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from siderite.cli.cloud import Cloud


def run(said: argparse.Namespace) -> int:
    """Print the timeline, page by page."""
    for moment in _timeline(Cloud(said.data), said.name, said.limit):
        print(json.dumps(moment) if said.output == "json" else _text(moment))
    return 0


def _timeline(cloud: Cloud, name: str, last: int | None) -> Iterator[dict[str, Any]]:
    """All of it, oldest first; or the last so many."""
    path = f"/nodes/{quote(name, safe='')}/timeline"
    if last is not None:
        page = cloud.baremetal("GET", f"{path}?sort_dir=desc&limit={last}")
        yield from reversed(page["timeline"])
        return
    query = ""
    while True:
        page = cloud.baremetal("GET", path + query)
        yield from page["timeline"]
        if "next" not in page:
            return
        query = "?" + page["next"].partition("?")[2]


def _text(moment: dict[str, Any]) -> str:
    change = ""
    if moment["from"] is not None or moment["to"] is not None:
        change = f"  {_word(moment['from'])} → {_word(moment['to'])}"
    who = moment["user"] or "-"
    reason = f"  ({moment['reason']})" if moment["reason"] else ""
    what = f"{moment['what']}.{moment['status']}"
    return (
        f"{moment['time'][:23]}  {what:30}{change}  [{moment['cause']}] {who}"
        f" {moment['request_id'] or ''}{reason}"
    ).rstrip()


def _word(value: Any) -> str:
    return "unknown" if value is None else str(value).lower() if value in (True, False) else value
