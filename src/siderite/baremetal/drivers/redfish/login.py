"""Logging in to Redfish BMCs, by sushy; loaded with the first of them.

A BMC may lock an account after a few logins that failed, so wrong credentials are tried once for
each call: who offers sessions and refuses one would refuse HTTP basic authentication, too.
"""

import contextlib
import sys
from collections.abc import Callable
from typing import Any

from sushy import auth
from sushy import exceptions

_UNAUTHORIZED, _FORBIDDEN = 401, 403


class Session(auth.SessionAuth):  # type: ignore[misc]
    """A session."""

    def refresh_session(self) -> None:
        _end(self)
        super().refresh_session()


class SessionOrBasic(auth.SessionOrBasicAuth):  # type: ignore[misc]
    """A session where the BMC has any, else HTTP basic authentication."""

    is_guess_refused = False
    """There was no session to be had where the BMC does not say that it has any."""
    is_lost: Callable[[], bool] = staticmethod(bool)
    """Whether what was sent to log in got lost on the way: then a refusal is one of something else.
    """

    def refresh_session(self) -> None:
        if self.can_refresh_session():
            _end(self)
            super().refresh_session()

    def _do_authenticate(self) -> None:
        try:
            auth.SessionAuth._do_authenticate(self)
        except exceptions.ConnectionError:
            raise
        except exceptions.AccessError as why:
            if self._session_auth_previously_successful:
                raise
            if why.status_code == _UNAUTHORIZED and not self.is_lost():
                if _has_sessions(self._root_resource):
                    raise
                # Many ask who one is before they say that there is no such page.
                self.is_guess_refused = True
            self._fallback_to_basic_authentication()
        except exceptions.SushyError:
            self._fallback_to_basic_authentication()


def _end(login: Any) -> None:
    """A session that is good, but may not do what was asked, is ended before there is another: a
    BMC has room for few. sushy asks for another when it was refused anything.
    """
    if getattr(sys.exc_info()[1], "status_code", None) != _FORBIDDEN:
        return
    with contextlib.suppress(exceptions.SushyError):
        login._connector._op("DELETE", login._session_resource_id, allow_reauth=False)


def _has_sessions(root: Any) -> bool:
    links = root.json.get("Links")
    sessions = links.get("Sessions") if isinstance(links, dict) else None
    return isinstance(sessions, dict) and bool(sessions.get("@odata.id"))


KINDS = {"auto": SessionOrBasic, "basic": auth.BasicAuth, "session": Session}
"""The kinds of login, by `redfish_auth_type`."""
