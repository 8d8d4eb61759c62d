"""Who is signed in, for programs: whoever sends the admin token."""

import hmac

from starlette.requests import Request

from controller.ports import Secret


class TokenBearers:
    """Readers who send `Authorization: Bearer` with the admin token; without a token there are none."""

    def __init__(self, token: Secret | None) -> None:
        self._token = token

    @property
    def possible(self) -> bool:
        """Whether anyone can sign in at all."""
        return self._token is not None

    def reader(self, request: Request) -> str | None:
        """The name of whoever is signed in; None for everybody else."""
        kind, _, claimed = request.headers.get("Authorization", "").partition(" ")
        if self._token is None or kind.lower() != "bearer":
            return None
        known = hmac.compare_digest(claimed.strip().encode(errors="replace"), self._token.reveal().encode())
        return "admin" if known else None

    def csrf(self, request: Request) -> str | None:
        """There are no sessions here, so no form is ever accepted."""
        return None
