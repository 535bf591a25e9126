"""Backup, restore, the move to PostgreSQL, and a way back in for a locked-out administrator."""

from pathlib import Path

from siderite import clouds
from siderite.core.config import Config
from siderite.core.errors import SideriteError
from siderite.core.ids import new_secret
from siderite.core.store import open_store
from siderite.core.store.backup import DATABASE
from siderite.core.store.backup import IMAGES
from siderite.core.store.backup import CannotBackUp
from siderite.core.store.backup import Progress
from siderite.core.store.backup import back_up as write_archive
from siderite.core.store.backup import restore
from siderite.core.store.copy import CannotCopy
from siderite.core.store.copy import Rewritten
from siderite.core.store.copy import copy
from siderite.core.store.migrations import migrate
from siderite.core.store.migrations import of_the_future
from siderite.core.store.migrations import unknown as unknown_migrations
from siderite.core.store.postgres_connect import check as check_address
from siderite.core.store.sqlite import sole_owner
from siderite.events import search
from siderite.identity import Identity
from siderite.image.store import FILES

__all__ = [
    "CannotBackUp",
    "CannotCopy",
    "Progress",
    "back_up",
    "check_address",
    "copy_to",
    "new_admin_password",
    "restore",
    "unknown_migrations",
]


def back_up(config: Config, into: Path, progress: Progress) -> str | None:
    """Write the embedded installation into a new archive; a sentence on what it lacks, if it does.

    Images may be elsewhere, by a configuration that this command was not given.
    """
    check_is_embedded(config)
    data = Path(config.data)
    images = Path(config.image_dir) if config.image_dir else data / IMAGES
    lacking = write_archive(data, into, progress, images, spoken_of=FILES)
    if not lacking:
        return None
    first, *others = sorted(name.partition(".")[0] for name in lacking)
    more = f" and {len(others)} more" if others else ""
    return (
        f"{into} lacks the data of the image {first}{more}: it is not in {images}. If the service"
        " keeps images elsewhere (image_dir), write another archive with its configuration:"
        " --config, or SIDERITE_IMAGE_DIR. If the data is lost, delete the image."
    )


def check_is_embedded(config: Config) -> None:
    """Refuse to take an old file in the data directory for the database in use."""
    if config.db:
        raise CannotBackUp(
            f"the configuration names another database (db, {_kind(config.db)}): a siderite.db in"
            f" {config.data} is not the one in use. PostgreSQL is backed up with pg_dump: see the"
            " how-to. If you do mean the file, set SIDERITE_DB to nothing."
        )


def _kind(url: str) -> str:
    """What to call a database: of what is no URL nothing is repeated, it may hold a password."""
    kind, is_url, _ = url.partition("://")
    return kind if is_url else "what is named"


def _make_data_directory(config: Config) -> None:
    """This machine may not have had a process of that database yet."""
    Path(config.data).mkdir(parents=True, exist_ok=True, mode=0o700)


def _embedded(config: Config) -> Path:
    """The embedded database, which must be there."""
    found = Path(config.data) / DATABASE
    if not found.exists():
        raise CannotCopy(f"there is no siderite.db in {config.data}; name its place with --data.")
    return found


async def copy_to(config: Config, url: str, progress: Progress) -> dict[str, int]:
    """Copy the embedded database of a stopped service into a PostgreSQL database without users."""
    source = _embedded(config)
    if not url.startswith(("postgresql://", "postgres://")):
        kind = _kind(url)
        raise CannotCopy(f"{kind} is no PostgreSQL URL: postgresql://user@host/name.")
    with sole_owner(str(source)):
        target = await open_store(url)
        try:
            await migrate(target)
            if newer := await of_the_future(target):
                raise CannotCopy(
                    f"the PostgreSQL database is of a newer release (it has {newer[0]}); copy with"
                    " that one."
                )
            if (await target.fetch("SELECT count(*) FROM identity_users"))[0][0]:
                raise CannotCopy(
                    "the PostgreSQL database has users already: it is in use, or was copied to"
                    " before. Name an empty one."
                )
            rewritten = {"search_docs": Rewritten(search.MOVED, search.move)}
            return await copy(source, target, progress, rewritten)
        finally:
            await target.close()


async def new_admin_password(config: Config) -> Path:
    """Give the user admin a new password, and its roles if they were lost; keep the password where
    clients look: that place. All who are logged in as admin must log in again.
    """
    if config.db:
        _make_data_directory(config)
    else:
        _embedded(config)
    store = await open_store(config.database)
    try:
        await migrate(store)
        identity = Identity(store, token_ttl_s=config.token_ttl_s)
        made_up = new_secret(18)
        with clouds.changing(config, made_up):
            await identity.let_admin_in(made_up)
        return clouds.path(config)
    except SideriteError as why:
        raise CannotCopy(why.sentence) from why
    finally:
        await store.close()
