"""How many connections clients may have at once, all of them together."""

import contextlib
import resource

from siderite.core.config import Config

SPARE_FILES = 256
"""That are left to the database, to images and to machines when clients have all the others."""


def most_connections(config: Config) -> int:
    """How many there may be: as many as the option says, and there are file descriptors for."""
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        files = most
    if files == resource.RLIM_INFINITY:
        return config.max_connections
    return max(1, min(config.max_connections, files - SPARE_FILES))
