"""Fixtures and settings for every test."""

import asyncio
import gc
import os
import signal
from collections.abc import Generator
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import hypothesis
import pytest

from siderite.identity import passwords
from tests.lab import LabHost
from tests.lab import lab_host
from tests.support.lending import Lending
from tests.support.postgres import Postgres
from tests.support.postgres import running_postgres
from tests.support.rabbitmq import Rabbit
from tests.support.rabbitmq import running_rabbitmq
from tests.support.sampling import others
from tests.support.scratch import keep_in_memory

keep_in_memory()
# A shell's background jobs ignore Ctrl-C, and so would all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long one example takes depends on the machine, so no deadline; a failure prints its recipe.
hypothesis.settings.register_profile("siderite", deadline=None, print_blob=True)
hypothesis.settings.load_profile("siderite")

# Tests that take long, together with those that share what takes long to start. Each of four
# processes begins with one of these, so that nobody has to start all of it.
SLOW = (
    ("baremetal/real", "compute/real", "compute/drivers/libvirt"),  # libvirt hosts
    (
        "crash",
        "events/test_bus",
        "events/test_servers",
        "events/test_process",
        "docs/test_readme",
        "reaper",
    ),  # brokers
    ("console", "clients"),  # browsers and shells
    ("baremetal/drivers", "baremetal/workers", "compute/workers"),  # these wait more than they work
)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no cycles while modules are loaded, and for none in them later.

    All that is made meanwhile stays until the end, and looking through it again and again takes
    nearly half the time. What a test leaves behind is still found, as often as the program looks.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, object, object]:
    """Say which cases scripts/soak alone tries, before `-m` chooses; then order what was chosen."""
    for item in others(items):
        item.add_marker(pytest.mark.soak)
    result = yield
    _deal_out(items)
    return result


def _deal_out(items: list[pytest.Item]) -> None:
    """Begin each process's share of the tests with slow ones.

    Each has as many tests to begin with. Who is through takes half of what another has left, from
    its end: that should be quick ones, and no long test should be left for the end.
    """
    shares = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    slow = [
        [item for path in paths for item in items if item.nodeid.startswith(f"tests/{path}")]
        for paths in SLOW
    ]
    others = set(items).difference(*slow)
    quick = iter([item for item in items if item in others])
    size = len(items) // shares
    items.clear()
    for share in range(shares):
        begin = [item for group in slow[share::shares] for item in group]
        items += begin + list(islice(quick, max(0, size - len(begin))))
    items += quick


@pytest.fixture(scope="session", autouse=True)
def cheap_scrypt() -> Iterator[None]:
    """Hashing is cheap except where it is the point: the real cost is 50 ms for each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_LOG2_N", 4)
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A private server: one per test process, started by the first test that asks for it."""
    with running_postgres(durable=False) as server:
        yield server


@pytest.fixture(scope="session")
def lending(postgres: Postgres) -> Iterator[Lending]:
    """Its databases that are lent to one test after another."""
    with Lending(postgres) as lending:
        yield lending


@pytest.fixture
def postgres_url(lending: Lending) -> Iterator[str]:
    """The address of a database of the test's own, with today's schema and nothing in it."""
    with lending.database() as url:
        yield url


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[Rabbit]:
    """A private broker: one per test process, started by the first test that asks for it."""
    with running_rabbitmq() as broker:
        yield broker


@pytest.fixture
def broker(rabbitmq: Rabbit) -> Iterator[Rabbit]:
    """The message broker, with nothing left in it afterwards."""
    yield rabbitmq
    asyncio.run(rabbitmq.clear())


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of each kind in turn, with nothing in it."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/test.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def bare_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The same without any schema."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/test.db"
        return
    with request.getfixturevalue("postgres").fresh_database() as url:
        yield url


@pytest.fixture(scope="session")
def lab() -> Iterator[LabHost]:
    """A private libvirt host: one per test process, started by the first test that asks for it."""
    with lab_host() as host:
        yield host


@pytest.fixture(scope="session")
def far() -> Iterator[LabHost]:
    """Another one, that can also be reached over ssh and TLS."""
    with lab_host("far", is_remote=True) as host:
        yield host
