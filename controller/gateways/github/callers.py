"""As whom GitHub is asked: an installation (token, ETags, second try after a 401) or an App (JWT).

Everything above this module states an operation and gets a successful Answer, or an error of the tree.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from controller.domain.auth import AuthAttempt
from controller.gateways.github.answers import Answer
from controller.gateways.github.app_auth import AppKeys, InstallationTokens
from controller.gateways.github.budgets import Bucket
from controller.gateways.github.client import Call, Client, Identity
from controller.gateways.github.etags import ETagCache
from controller.gateways.github.refusals import is_suspension, refusal
from controller.ports import Clock


class Ask(Protocol):
    """Ask GitHub as somebody; statuses in `also` are answers like a success."""

    async def __call__(self, call: Call, also: Iterable[int] = ()) -> Answer:
        """Send the call and judge the status."""
        ...


class Callers:
    """The identities, with all that is remembered for each: tokens, buckets, answers."""

    def __init__(
        self, client: Client, keys: AppKeys, clock: Clock, on_auth: Callable[[AuthAttempt], None]
    ) -> None:
        self._client = client
        self._keys = keys
        self._clock = clock
        self._tokens = InstallationTokens(self._mint, clock, on_auth)
        self._etags = ETagCache()
        self._installation_buckets: dict[int, Bucket] = {}
        self._app_buckets: dict[str, Bucket] = {}

    def installation(self, app_id: str, installation_id: int) -> Ask:
        """Ask with an installation's token."""

        async def ask(call: Call, also: Iterable[int] = ()) -> Answer:
            return _judged(await self._ask_installation(app_id, installation_id, call), also)

        return ask

    def app(self, app_id: str) -> Ask:
        """Ask with an App's JWT."""

        async def ask(call: Call, also: Iterable[int] = ()) -> Answer:
            return _judged(await self._ask_app(app_id, call), also)

        return ask

    def bucket(self, installation_id: int) -> Bucket:
        """What is known of an installation's limits."""
        return self._installation_buckets.setdefault(
            installation_id, Bucket(f"installation {installation_id}")
        )

    def app_bucket(self, app_id: str) -> Bucket:
        """What is known of an App's own limits."""
        return self._app_buckets.setdefault(app_id, Bucket(f"App {app_id}"))

    def forget(self, installation_id: int) -> None:
        """Drop an installation's token and cached answers; a limit that holds goes on holding."""
        self._tokens.forget(installation_id)
        self._etags.forget(installation_id)

    async def close(self) -> None:
        """Stop what is under way and forget the tokens."""
        await self._tokens.close()

    async def _ask_app(self, app_id: str, call: Call) -> Answer:
        bucket = self.app_bucket(app_id)
        bucket.check(self._clock.now())  # before the work of signing
        return await self._client.send(call, Identity(self._keys.sign_jwt(app_id, self._clock.now()), bucket))

    async def _mint(self, app_id: str, installation_id: int) -> Answer:
        path = f"/app/installations/{installation_id}/access_tokens"
        return await self._ask_app(app_id, Call("create_token", "POST", path))

    async def _ask_installation(self, app_id: str, installation_id: int, call: Call) -> Answer:
        bucket = self.bucket(installation_id)
        bucket.check(self._clock.now())  # before a token is minted for nothing
        token = await self._tokens.get(app_id, installation_id)
        answer = await self._ask_cached(call, Identity(token, bucket, installation_id), installation_id)
        if answer.status == 401:
            # Expired or revoked: GitHub has done nothing, so even a POST may be sent again.
            self._tokens.drop(installation_id, token)
            token = await self._tokens.get(app_id, installation_id)
            answer = await self._ask_cached(call, Identity(token, bucket, installation_id), installation_id)
        if answer.status == 401 or is_suspension(answer):
            self._tokens.drop(installation_id, token)
        return answer

    async def _ask_cached(self, call: Call, identity: Identity, installation_id: int) -> Answer:
        if call.method != "GET":
            return await self._client.send(call, identity)
        url = self._client.full_url(call)
        known = self._etags.get(installation_id, url)
        answer = await self._client.send(call, identity, known.headers["etag"] if known else None)
        if answer.status == 304 and known is not None:
            return known
        if answer.status == 200:
            self._etags.put(installation_id, url, answer)
        return answer


def _judged(answer: Answer, also: Iterable[int]) -> Answer:
    if 200 <= answer.status < 300 or answer.status in also:
        return answer
    raise refusal(answer)
