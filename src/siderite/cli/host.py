"""`siderite host`: the hosts that servers run on."""

import argparse
import json
from typing import Any

from siderite.cli.cloud import Cloud
from siderite.cli.cloud import Refused

_VERSION = {"OpenStack-API-Version": "compute 2.900"}
_PATH = "/compute/v2.1/hosts"


def run(said: argparse.Namespace) -> int:
    """Add, list, check or remove."""
    cloud = Cloud(said.data)
    if said.verb == "list":
        for host in _ask(cloud, "GET", _PATH)["hosts"]:
            print(f"{host['name']:20} {host['driver']:10} {host['status']:12} {host['uri']}")
        return 0
    if said.verb == "remove":
        _ask(cloud, "DELETE", f"{_PATH}/{said.name}")
        print(f"Host {said.name} is forgotten.")
        return 0
    if said.verb == "add":
        options = dict(item.partition("=")[::2] for item in said.option or ())
        body = {"host": {"name": said.name, "uri": said.uri, "options": options}}
        host = _ask(cloud, "POST", _PATH, body)["host"]
    else:
        host = _ask(cloud, "POST", f"{_PATH}/{said.name}/check")["host"]
    if host["problem"]:
        print(f"Host {host['name']} cannot be used yet: {host['problem']}")
        return 1
    print(f"Host {host['name']} is {host['status']}.")
    return 0


def _ask(cloud: Cloud, method: str, path: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    try:
        with cloud.open(path, _VERSION, method=method, data=data, timeout_s=60.0) as answer:
            text = answer.read()
    except OSError as why:
        raise Refused(f"cannot reach the service: {why}") from why
    return json.loads(text) if text else {}
