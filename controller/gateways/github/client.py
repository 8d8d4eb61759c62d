"""One request to GitHub: deadline, redirects, the one safe retry, rate limits. Knows no runners or jobs.

    Callers ──Call──▶ Client.send ──▶ bucket says yes ──▶ httpx ──▶ Answer | RateLimited | GitHubUnavailable

A 4xx that is no rate limit is an Answer: only the caller knows what a 404 or 422 means for it.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import httpx

from controller.errors import GitHubError, GitHubRefused, GitHubUnavailable, RateLimited
from controller.gateways.github.answers import Answer
from controller.gateways.github.budgets import Bucket
from controller.gateways.github.limits import read_quota
from controller.gateways.github.refusals import describe
from controller.ports import Clock, Secret
from controller.telemetry.redaction import redact

ACCEPT = "application/vnd.github+json"  # byte-identical on every request: GitHub's ETags depend on it
API_VERSION = "2022-11-28"
USER_AGENT = "switchboard"
MAX_CONCURRENT = 64  # GitHub's secondary limit is 100
MAX_REDIRECTS = 5
REDIRECTS = (301, 302, 307, 308)
RETRIED = (502, 503, 504)


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Real time that is allowed: for one request, and for a whole list."""

    request: timedelta = timedelta(seconds=10)
    listing: timedelta = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Observation:
    """One request that was sent, for the metrics. `code` is the status, or `timeout` or `error`."""

    operation: str
    code: str
    installation_id: int | None = None  # None: sent with an App's JWT
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """What is asked. `operation` names it in metrics and errors; `path` is relative, or an absolute link."""

    operation: str
    method: str
    path: str
    query: Mapping[str, str | int] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """As whom a call is sent: the bearer token, the bucket it is counted in, and whose metrics it is."""

    bearer: Secret
    bucket: Bucket
    installation_id: int | None = None


class Client:
    """Sends calls over one pool of connections to one API."""

    def __init__(
        self,
        api_url: str,
        clock: Clock,
        observe: Callable[[Observation], None],
        deadlines: Deadlines,
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        self._api_url = api_url.rstrip("/")
        self._origin = _origin(httpx.URL(self._api_url))
        self._clock = clock
        self._observe = observe
        self._deadlines = deadlines
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)
        self._http = httpx.AsyncClient(
            headers={"Accept": ACCEPT, "User-Agent": USER_AGENT, "X-GitHub-Api-Version": API_VERSION},
            limits=httpx.Limits(max_connections=MAX_CONCURRENT, max_keepalive_connections=MAX_CONCURRENT),
            timeout=deadlines.request.total_seconds(),
            follow_redirects=False,  # done here: a token must not go to another host
            transport=transport,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def full_url(self, call: Call) -> str:
        """The URL of a call; the same call always gives the same bytes. Refuses to leave the API's host."""
        if "://" in call.path:
            return self._own(call, httpx.URL(call.path))
        query = f"?{urlencode(call.query)}" if call.query else ""
        return f"{self._api_url}{call.path}{query}"

    async def send(self, call: Call, identity: Identity, etag: str | None = None) -> Answer:
        """Send a call and follow its redirects with method and body unchanged."""
        url = self.full_url(call)
        for _ in range(MAX_REDIRECTS):
            answer = await self._send_safely(call, url, identity, etag)
            location = answer.headers.get("location")
            if answer.status not in REDIRECTS or location is None:
                return answer
            url = self._own(call, _join(url, location))
        raise GitHubRefused(f"{call.operation}: more than {MAX_REDIRECTS} redirects")

    async def _send_safely(self, call: Call, url: str, identity: Identity, etag: str | None) -> Answer:
        """Send once, and a GET once more if the first one broke on the way."""
        try:
            return await self._send_once(call, url, identity, etag)
        except _BrokeOnTheWay as broken:
            if call.method != "GET":
                raise broken.error from broken.__cause__
        try:
            return await self._send_once(call, url, identity, etag)
        except _BrokeOnTheWay as broken:
            raise broken.error from broken.__cause__

    async def _send_once(self, call: Call, url: str, identity: Identity, etag: str | None) -> Answer:
        async with self._slots:
            # Asked with the slot in hand: a limit may have been met while this call stood in line.
            identity.bucket.check(self._clock.now())
            answer = await self._exchange(call, url, identity, etag)
        now = self._clock.now()
        quota = read_quota(answer.headers, now)
        self._seen(call, identity, str(answer.status), quota.remaining if quota else None)
        limited = identity.bucket.note(answer, now)
        if limited is not None:
            raise RateLimited(describe(answer), until=limited.until, status=answer.status)
        if answer.status >= 500:
            error = GitHubUnavailable(describe(answer), status=answer.status, request_id=answer.request_id)
            if answer.status in RETRIED and "retry-after" not in answer.headers:
                raise _BrokeOnTheWay(error)
            raise error
        return answer

    async def _exchange(self, call: Call, url: str, identity: Identity, etag: str | None) -> Answer:
        request = self._http.build_request(
            call.method,
            url,
            json=call.body,
            headers={"Authorization": f"Bearer {identity.bearer.reveal()}"}
            | ({"If-None-Match": etag} if etag else {}),
        )
        try:
            async with asyncio.timeout(self._deadlines.request.total_seconds()):
                response = await self._http.send(request)
        except (TimeoutError, httpx.TimeoutException) as error:
            self._seen(call, identity, "timeout")
            unavailable = GitHubUnavailable(f"{call.operation}: no answer from GitHub in time")
            if isinstance(error, httpx.ConnectTimeout):
                raise _BrokeOnTheWay(unavailable) from error
            raise unavailable from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            self._seen(call, identity, "error")
            text = f"{call.operation}: GitHub cannot be reached: {type(error).__name__} {error}"
            raise _BrokeOnTheWay(GitHubUnavailable(redact(text))) from error
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Answer(
            call.operation, response.status_code, headers, response.content, _next_url(url, response)
        )

    def _seen(self, call: Call, identity: Identity, code: str, remaining: int | None = None) -> None:
        self._observe(Observation(call.operation, code, identity.installation_id, remaining))

    def _own(self, call: Call, url: httpx.URL) -> str:
        """Let a URL pass only if it leads to the API itself."""
        if _origin(url) != self._origin:
            raise GitHubRefused(f"{call.operation}: GitHub's answer leads to another host, {url.host[:100]}")
        return str(url)


class _BrokeOnTheWay(Exception):
    """A failure after which a GET may be sent once more."""

    def __init__(self, error: GitHubError) -> None:
        super().__init__(str(error))
        self.error = error


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _join(url: str, location: str) -> httpx.URL:
    try:
        return httpx.URL(url).join(location)
    except (httpx.InvalidURL, ValueError):
        raise GitHubUnavailable("GitHub redirects to something that is no URL") from None


def _next_url(url: str, response: httpx.Response) -> str | None:
    target = response.links.get("next", {}).get("url")
    return str(_join(url, target)) if target else None
