"""The program with its compute half, and a small client of that."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.app import Answer
from tests.support.app import Standing
from tests.support.app import standing

LATEST = "2.104"
_NOTHING: Any = object()


class Cloud:
    """Asks the compute API, as admin unless a token is given."""

    def __init__(self, app: Standing) -> None:
        self.app = app

    def ask(
        self,
        method: str,
        path: str,
        body: Any = _NOTHING,
        *,
        version: str | int | None = LATEST,
        token: str | None = None,
    ) -> Answer:
        """One request to /compute/v2.1/…; `version` may be its minor number."""
        headers = {}
        if version is not None:
            text = f"2.{version}" if isinstance(version, int) else version
            headers["openstack-api-version"] = f"compute {text}"
        words = {} if body is _NOTHING else {"body": body}
        where = path if path.startswith("/compute") else "/compute/v2.1" + path
        return self.app.ask(method, where, **words, version=None, token=token, headers=headers)


@contextmanager
def cloud(data: Path, db: str = "", **options: Any) -> Iterator[Cloud]:
    """A cloud on a database of its own."""
    with standing(data, db, work=True, **options) as app:
        yield Cloud(app)
