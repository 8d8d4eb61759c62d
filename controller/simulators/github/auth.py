"""Who asks: an App by its JWT, an installation by its token. Time comes from the simulator's clock."""

import base64
import random
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import jwt

from controller.ports import Clock
from controller.simulators.github.behaviour import Behaviour
from controller.simulators.github.errors import ApiError
from controller.simulators.github.state import App, Installation, Repository
from controller.simulators.github.world import World

JWT_REACH = timedelta(minutes=10)
UNDECODABLE = "A JSON web token could not be decoded"


@dataclass(frozen=True, slots=True)
class Token:
    """An installation token, perhaps narrowed to some repositories."""

    value: str
    installation: Installation
    expires_at: datetime
    permissions: Mapping[str, str]
    repository_ids: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request: an App, or an installation with its token."""

    app: App
    token: Token | None = None

    @property
    def installation(self) -> Installation | None:
        """The installation, unless the App itself asks."""
        return self.token.installation if self.token else None

    def sees(self, repository: Repository) -> bool:
        """Whether the token covers the repository."""
        if self.token is None or self.token.installation.account is not repository.owner:
            return False
        return self.token.repository_ids is None or repository.id in self.token.repository_ids


class Authentication:
    """Checks JWTs and tokens, and mints tokens in either format."""

    def __init__(self, world: World, clock: Clock, rng: random.Random, behaviour: Behaviour) -> None:
        self._world = world
        self._clock = clock
        self._rng = rng
        self._behaviour = behaviour
        self._tokens: dict[str, Token] = {}

    def identify(self, header: str | None) -> Caller:
        """Who the Authorization header names; ApiError 401 or 403 otherwise."""
        scheme, _, value = (header or "").partition(" ")
        if scheme.lower() not in ("bearer", "token") or not value:
            raise ApiError(401, "Requires authentication")
        if value.startswith("ghs_"):
            return self._by_token(value)
        return Caller(self._by_jwt(value))

    def mint(
        self,
        installation: Installation,
        permissions: Mapping[str, str],
        repositories: Iterable[Repository] | None,
        stateless: bool,
    ) -> Token:
        """Make a token that lives for an hour."""
        value = self._stateless(installation.app) if stateless else self._opaque()
        token = Token(
            value=value,
            installation=installation,
            expires_at=self._clock.now() + self._behaviour.token_life,
            permissions=permissions,
            repository_ids=None if repositories is None else frozenset(r.id for r in repositories),
        )
        self._tokens[value] = token
        return token

    def revoke(self, installation: Installation) -> None:
        """Make every token of an installation invalid at once."""
        self._tokens = {v: t for v, t in self._tokens.items() if t.installation is not installation}

    def _by_token(self, value: str) -> Caller:
        token = self._tokens.get(value)
        if token is None or self._clock.now() >= token.expires_at or token.installation.deleted_at:
            raise ApiError(401, "Bad credentials")
        if token.installation.suspended_at is not None:
            raise ApiError(403, "This installation has been suspended")
        return Caller(token.installation.app, token)

    def _by_jwt(self, value: str) -> App:
        """Verify signature and claims; PyJWT's own time checks would read the machine's clock."""
        try:
            issuer = jwt.decode(value, options={"verify_signature": False}).get("iss")
        except jwt.PyJWTError as error:
            raise ApiError(401, UNDECODABLE) from error
        app = next((a for a in self._world.apps.values() if issuer in (str(a.id), a.client_id)), None)
        if app is None:
            raise ApiError(404, "Integration not found")
        unchecked = {f"verify_{claim}": False for claim in ("exp", "iat", "nbf", "aud", "iss")}
        try:
            claims = jwt.decode(value, app.public_key_pem, algorithms=["RS256"], options=unchecked)  # type: ignore[arg-type]
        except jwt.PyJWTError as error:
            raise ApiError(401, UNDECODABLE) from error
        self._check_times(claims.get("iat"), claims.get("exp"))
        return app

    def _check_times(self, issued: object, expires: object) -> None:
        now, leeway = self._clock.now(), self._behaviour.jwt_leeway
        if not isinstance(issued, int) or datetime.fromtimestamp(issued, UTC) > now + leeway:
            raise ApiError(
                401,
                "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued",
            )
        if not isinstance(expires, int) or datetime.fromtimestamp(expires, UTC) <= now - leeway:
            raise ApiError(
                401,
                "'Expiration time' claim ('exp') must be a numeric value representing the future time at which "
                "the assertion expires",
            )
        if datetime.fromtimestamp(expires, UTC) > now + JWT_REACH + leeway:
            raise ApiError(401, "'Expiration time' claim ('exp') is too far in the future")

    def _opaque(self) -> str:
        return "ghs_" + "".join(self._rng.choices(string.ascii_letters + string.digits, k=36))

    def _stateless(self, app: App) -> str:
        """About 520 characters with dots, underscores and dashes: ghs_<APPID>_<JWT>."""
        parts = (
            base64.urlsafe_b64encode(self._rng.randbytes(n)).decode().rstrip("=") for n in (36, 165, 180)
        )
        return f"ghs_{app.id}_" + ".".join(parts)
