"""Who we are: App JWTs from private key files, and installation tokens minted with them.

Tokens are opaque (two formats are in use), live in memory only, and leave only in an Authorization header.
"""

import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import jwt
import structlog
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from controller.domain.auth import AuthAttempt, AuthOutcome
from controller.errors import (
    GitHubError,
    GitHubForbidden,
    InstallationGone,
    InstallationSuspended,
    RateLimited,
)
from controller.gateways.github.answers import Answer
from controller.gateways.github.refusals import is_suspension, refusal
from controller.gateways.github.single_flight import SingleFlight
from controller.ports import Clock, Secret

BACKDATED = timedelta(seconds=60)  # an `iat` in GitHub's future is refused
VALID_FOR = timedelta(seconds=540)  # with 600 s a clock that is a second fast is refused
EXPIRY_MARGIN = timedelta(seconds=60)
JITTER_SHARE = 0.05  # of a token's life: spreads the burst of full answers that follows each refresh

log = structlog.get_logger()

Mint = Callable[[str, int], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class LoadedKey:
    """A parsed key and the state of the file it came from."""

    stamp: tuple[int, int, int]
    key: RSAPrivateKey


class AppKeys:
    """The Apps' private keys, read again when their file changes."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = dict(files)
        self._loaded: dict[str, LoadedKey] = {}

    def sign_jwt(self, app_id: str, now: datetime) -> Secret:
        """A JWT that proves to be the App for the next nine minutes."""
        claims = {
            "iat": int((now - BACKDATED).timestamp()),
            "exp": int((now + VALID_FOR).timestamp()),
            "iss": str(app_id),
        }
        return Secret(jwt.encode(claims, self._key(app_id), algorithm="RS256"))

    def _key(self, app_id: str) -> RSAPrivateKey:
        path = self._files.get(app_id)
        if path is None:
            raise GitHubForbidden(f"App {app_id} is not configured")
        known = self._loaded.get(app_id)
        try:
            state = path.stat()
            stamp = (state.st_mtime_ns, state.st_ino, state.st_size)
            if known is not None and known.stamp == stamp:
                return known.key
            key = load_pem_private_key(path.read_bytes(), password=None)
            if not isinstance(key, RSAPrivateKey):
                raise ValueError("not an RSA key")
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
            if known is not None:
                # Half-written during a rotation, most likely: the old key is still the best we have.
                log.warning("app_key.unreadable", app_id=app_id, path=str(path), error=type(error).__name__)
                return known.key
            raise GitHubForbidden(
                f"App {app_id}: no RSA private key can be read from {path} ({type(error).__name__})"
            ) from None
        self._loaded[app_id] = LoadedKey(stamp, key)
        return key


@dataclass(frozen=True, slots=True)
class InstallationToken:
    """A token and the moment from which it is no longer used."""

    value: Secret
    use_until: datetime


class InstallationTokens:
    """The installations' tokens, each minted once an hour by one request at a time."""

    def __init__(self, mint: Mint, clock: Clock, on_attempt: Callable[[AuthAttempt], None]) -> None:
        self._mint = mint
        self._clock = clock
        self._on_attempt = on_attempt
        self._tokens: dict[int, InstallationToken] = {}
        self._minting: SingleFlight[tuple[str, int], Secret] = SingleFlight()
        self._forgotten: dict[int, int] = {}

    async def get(self, app_id: str, installation_id: int) -> Secret:
        """A token that is good for a minute at least."""
        token = self._tokens.get(installation_id)
        if token is not None and self._clock.now() < token.use_until:
            return token.value
        return await self._minting.run(
            (app_id, installation_id), lambda: self._mint_logged(app_id, installation_id)
        )

    def drop(self, installation_id: int, value: Secret) -> None:
        """Forget a token that was refused, unless a newer one has taken its place."""
        token = self._tokens.get(installation_id)
        if token is not None and token.value is value:
            del self._tokens[installation_id]

    def forget(self, installation_id: int) -> None:
        """Forget an installation's token, also one that is being minted."""
        self._tokens.pop(installation_id, None)
        self._forgotten[installation_id] = self._forgotten.get(installation_id, 0) + 1

    async def close(self) -> None:
        """Stop minting and forget every token."""
        await self._minting.close()
        self._tokens.clear()

    async def _mint_logged(self, app_id: str, installation_id: int) -> Secret:
        try:
            token = await self._mint_token(app_id, installation_id)
        except InstallationGone as error:
            self._note(app_id, installation_id, AuthOutcome.NOT_FOUND, error)
            raise
        except InstallationSuspended as error:
            self._note(app_id, installation_id, AuthOutcome.SUSPENDED, error)
            raise
        except GitHubError as error:
            if not (isinstance(error, RateLimited) and error.status is None):  # else nothing was sent
                self._note(app_id, installation_id, AuthOutcome.FAILED, error)
            raise
        self._note(app_id, installation_id, AuthOutcome.OK, None)
        return token

    def _note(
        self, app_id: str, installation_id: int, outcome: AuthOutcome, error: GitHubError | None
    ) -> None:
        """Log an attempt and tell whoever keeps them."""
        fields = {"app_id": app_id, "installation_id": installation_id}
        event = f"auth_attempt.{outcome.value}"
        if error is None:
            log.info(event, **fields)
        else:
            log.warning(event, **fields, error=str(error), status=error.status)
        text = str(error) if error is not None else ""
        self._on_attempt(AuthAttempt(app_id, installation_id, outcome, self._clock.now(), text))

    async def _mint_token(self, app_id: str, installation_id: int) -> Secret:
        generation = self._forgotten.get(installation_id, 0)
        answer = await self._mint(app_id, installation_id)
        if answer.status == 404:
            raise refusal(answer, InstallationGone)
        if is_suspension(answer):
            raise refusal(answer, InstallationSuspended)
        if answer.status != 201:
            raise refusal(answer)
        item = answer.item()
        value, expires_at = Secret(item.text("token")), item.time("expires_at")
        if generation == self._forgotten.get(installation_id, 0):
            margin = EXPIRY_MARGIN + refresh_jitter(installation_id, expires_at - self._clock.now())
            self._tokens[installation_id] = InstallationToken(value, expires_at - margin)
        return value


def refresh_jitter(installation_id: int, lifetime: timedelta) -> timedelta:
    """How much earlier than need be this installation refreshes: always the same, but unlike others."""
    share = zlib.crc32(str(installation_id).encode()) / 2**32
    return max(lifetime, timedelta(0)) * JITTER_SHARE * share
