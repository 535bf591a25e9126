"""Whose something is, by the project that a token is for. The APIs' policies ask this."""

from siderite.core.errors import Forbidden
from siderite.core.who import Who


def is_own(who: Who, project: str | None) -> bool:
    """Whether it is the caller's project. What belongs to none is not theirs whose token is for
    none, as that of a domain.
    """
    return project is not None and who.project_id == project


def need_project(who: Who, what: str) -> None:
    """Refuse a token for no project, as that of a domain or of the system; `what` begins the
    sentence.
    """
    if who.project_id is None:
        raise Forbidden(f"{what}: the token is for no project. Get one for a project of yours.")
