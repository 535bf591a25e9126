"""What every use case works with."""

import msgspec

from siderite.core.transition import Door


class Context(msgspec.Struct, frozen=True):
    """The door, and the options that decisions depend on."""

    door: Door
    max_limit: int
    quota_gib: int
    """GiB of data that a project's images may have together; below 0 without limit."""
    import_methods: tuple[str, ...]
    """The ways by which an image may come by its data other than by an upload."""
