"""Tokens for services elsewhere: of their Keystone, or none where they ask for none."""

from siderite.core.errors import Unavailable

TIMEOUT_S = 10.0
_OK = 300


class NoTokens:
    """For a service that asks for none."""

    async def get(self) -> str:
        """Nothing."""
        return ""

    def forget(self) -> None:
        """There is nothing to forget."""


class KeystoneTokens:
    """Tokens of another cloud's Keystone, for a user with a password; `option` names the user."""

    def __init__(
        self, auth_url: str, *, user: str, password: str, project: str, domain: str, option: str
    ) -> None:
        self._url = auth_url.rstrip("/") + "/auth/tokens"
        self._option = option
        named = {"name": domain}
        person = {"name": user, "password": password, "domain": named}
        self._body = {
            "auth": {
                "identity": {"methods": ["password"], "password": {"user": person}},
                "scope": {"project": {"name": project, "domain": named}},
            }
        }
        self._token = ""

    async def get(self) -> str:
        """One that is good, as far as we know."""
        if not self._token:
            self._token = await self._log_in()
        return self._token

    def forget(self) -> None:
        """The last one was not taken."""
        self._token = ""

    async def _log_in(self) -> str:
        import httpx

        try:
            async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as client:
                reply = await client.post(self._url, json=self._body)
        except httpx.HTTPError as why:
            raise Unavailable(f"{self._url} cannot be reached: {why}") from why
        token = reply.headers.get("x-subject-token", "")
        if reply.status_code >= _OK or not token:
            raise Unavailable(
                f"{self._url} gave no token ({reply.status_code}): check {self._option}"
            )
        return str(token)
