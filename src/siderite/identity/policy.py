"""Who may call what: each route names one of these rules.

A rule sees who asks and the path's parameters. Rules about a token that the request itself names
(`may_see_session`, `may_end_session`) are asked by the handler, since only it knows the token's
owner.
"""

from collections.abc import Callable
from collections.abc import Sequence

from siderite.core.who import Who
from siderite.identity.domain import Session

Rule = Callable[[Who, Sequence[str]], bool]

PUBLIC = "public"


def _authenticated(_who: Who, _params: Sequence[str]) -> bool:
    return True


def _admin(who: Who, _params: Sequence[str]) -> bool:
    return who.is_admin


def _reader(who: Who, _params: Sequence[str]) -> bool:
    return who.is_admin or (who.system and "reader" in who.roles)


def _self(who: Who, params: Sequence[str]) -> bool:
    return who.user_id == params[0]


def _own_project(who: Who, params: Sequence[str]) -> bool:
    return who.project_id == params[0]


def _either(*rules: Rule) -> Rule:
    return lambda who, params: any(rule(who, params) for rule in rules)


RULES: dict[str, Rule] = {
    "authenticated": _authenticated,
    "self": _self,
    "self_or_admin": _either(_self, _admin),
    "self_or_reader": _either(_self, _reader),
    "own_project_or_reader": _either(_own_project, _reader),
    "reader": _reader,
    "admin": _admin,
}


def allows(policy: str, who: Who, params: Sequence[str]) -> bool:
    """Whether the rule lets this caller through."""
    return RULES[policy](who, params)


def may_see_session(who: Who, session: Session) -> bool:
    """One's own tokens; services and readers of the system may validate everybody's."""
    return who.user_id == session.user_id or "service" in who.roles or _reader(who, ())


def may_end_session(who: Who, session: Session) -> bool:
    """One's own tokens; administrators may end everybody's."""
    return who.user_id == session.user_id or who.is_admin
