"""`siderite events …`: reading the event log, over HTTP."""

import argparse
import contextlib
import http.client
import json
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from siderite.cli.cloud import Away
from siderite.cli.cloud import Cloud
from siderite.cli.cloud import Expired
from siderite.cli.cloud import Missing
from siderite.cli.node import address
from siderite.cli.server import UUID
from siderite.cli.server import find
from siderite.cli.show import plain

_ADDRESS = "/events/v1/events"
_SILENCE_S = 40.0
"""A stream gives a sign of life every 15 seconds; after this long without one it is lost."""
_BACK_OFF_S = (0.2, 0.5, 1.0, 2.0, 5.0)
_FEW = 3
"""Hosts of a server that none would take, which have a say in a line."""


def run(said: argparse.Namespace) -> int:
    """Print events until the end of the log or Ctrl-C."""
    cloud = Cloud(said.data)
    if said.resource is not None:
        said.resource = _uuid(cloud, said.resource)
    tail = _Tail(said)
    try:
        if said.last is not None:
            tail.newest(cloud, said.last)
        if not said.no_follow:
            tail.follow(cloud)
        elif said.last is None:
            tail.to_the_end(cloud)
    except KeyboardInterrupt:
        print(f"siderite: go on with --after {tail.last}", file=sys.stderr)
        return 130
    return 0


class _Tail:
    """One reading of the log: how far it is, what it wants, and how it prints."""

    def __init__(self, said: argparse.Namespace) -> None:
        self.last: int = said.after
        self._wanted = {
            name: text for name in ("type", "resource") if (text := getattr(said, name)) is not None
        }
        self._print = _as_json if said.output == "json" else _as_text

    def _path(self, **more: int) -> str:
        return f"{_ADDRESS}?{urlencode({**self._wanted, **more})}"

    def newest(self, cloud: Cloud, count: int) -> None:
        """The last so many."""
        answer, _ = cloud.ask("GET", self._path(last=count))
        for event in answer["events"]:
            self._print(event)
        self.last = answer["next"]

    def to_the_end(self, cloud: Cloud) -> None:
        """Page after page, until there is nothing after the last number."""
        while True:
            answer, _ = cloud.ask("GET", self._path(after=self.last, limit=1000))
            for event in answer["events"]:
                self._print(event)
            if answer["next"] == self.last:
                return
            self.last = answer["next"]

    def follow(self, cloud: Cloud) -> None:
        """The stream, and after a loss again from the last number, for ever."""
        tries = 0
        is_known = False  # a service that is away at the start is an operator's mistake
        while True:
            began = self.last
            try:
                if is_known:
                    cloud.login()
                self._stream(cloud)
                why = "the service ended the stream"
            except Expired:
                why = "the token has expired"
            except Away as away:
                if not is_known:
                    raise
                why = str(away).split(";", maxsplit=1)[0]
            except BrokenPipeError:  # not the service: nobody reads what we print
                raise
            except (OSError, http.client.HTTPException) as lost:
                why = f"lost the connection: {lost}"
            is_known = True
            tries = 0 if self.last > began else min(tries + 1, len(_BACK_OFF_S) - 1)
            if tries <= 1:
                print(f"siderite: {why}; trying again after {self.last}", file=sys.stderr)
            time.sleep(_BACK_OFF_S[tries])

    def _stream(self, cloud: Cloud) -> None:
        headers = {"Accept": "text/event-stream"}
        with cloud.open(self._path(after=self.last), headers, timeout_s=_SILENCE_S) as answer:
            for number, data in _events(answer):
                if data:
                    self._print(json.loads(data))
                self.last = number


def _events(lines: Any) -> Iterator[tuple[int, str]]:
    """Number and data of each server-sent event; without data it is only a sign of life. One that
    breaks off half-way is none.
    """
    fields: dict[str, str] = {}
    for raw in lines:
        line = raw.decode().rstrip("\r\n")
        if line:
            name, _, text = line.partition(":")
            fields[name] = text.removeprefix(" ")
            continue
        if "id" in fields:
            yield int(fields["id"]), fields.get("data", "")
        fields = {}


def _as_json(event: dict[str, Any]) -> None:
    print(json.dumps(event, separators=(",", ":"), ensure_ascii=False), flush=True)


def _as_text(event: dict[str, Any]) -> None:
    resource = event["resource"]
    words = (
        f"{event['seq']:>8}  {event['time'][:23]}  {event['priority']:5}  {event['event_type']}"
        f"  {resource['type']} {resource['id']}{_in_short(event)}"
    )
    print(plain(words), flush=True)


def _in_short(event: dict[str, Any]) -> str:
    """What an operator wants to know at once: of whom, from where to where, and what went wrong."""
    said = event["payload"]
    said = said.get("ironic_object.data") or said.get("nova_object.data") or said
    words = [said.get("name") or said.get("display_name") or ""]
    for state in ("provision_state", "power_state"):
        before, after = said.get(f"previous_{state}"), said.get(state)
        if before and before != after:
            words.append(f"{before} → {after}")
    if "from_power" in said:
        words.append(f"{said['from_power'] or 'unknown'} → {said['power_state'] or 'unknown'}")
    if "from_policy" in said:
        words.append(f"{said['from_policy'] or 'default'} → {said['to_policy'] or 'default'}")
    if said.get("to_power"):
        words.append(f"→ {said['to_power']}")
    if event["priority"] == "ERROR":
        words.append(str(said.get("last_error") or _fault(said)))
    return "".join(f"  {word}" for word in words if word)


def _fault(said: dict[str, Any]) -> str:
    """What a server's fact says of what went wrong, or what the first few hosts said."""
    for told in (said.get("fault"), said.get("reason")):
        if isinstance(told, dict):
            return str(told.get("nova_object.data", {}).get("exception_message", ""))
    refusals = [f"{host}: {why}" for host, why in (said.get("refusals") or {}).items()]
    more = ["…"] if len(refusals) > _FEW else []
    return "; ".join(refusals[:_FEW] + more)


def _uuid(cloud: Cloud, name: str) -> str:
    """Of what is meant: a UUID, or the name of a node or of a server, however new. Of other things
    the service knows the names.
    """
    if UUID.match(name):
        return name
    with contextlib.suppress(Missing):
        return str(cloud.baremetal("GET", address(name))["uuid"])
    with contextlib.suppress(Missing):
        return find(cloud, name)
    return name
