"""What of the world outside cannot be known right now; `/ready` says so, and nothing is concluded from it."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from controller.domain.jobs import Scope
from controller.domain.sightings import Unknown
from controller.errors import GitHubError, RateLimited, clip
from controller.ports import Clock, Cluster, GitHub
from controller.telemetry.redaction import redact

FORGOTTEN_AFTER = timedelta(minutes=5)  # what is not asked again has no news to tell
NO_ANSWER = ("timeout", "error")


class Outside:
    """Remembers the requests to GitHub that came to nothing; the views of the cluster speak for themselves."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failing: dict[tuple[str, int | None], tuple[datetime, str]] = {}
        self._unlisted: dict[Scope, tuple[datetime, str]] = {}
        self._installations: set[int] = set()

    def heard(self, operation: str, installation_id: int | None, code: str) -> None:
        """One request was answered with this status, or not at all."""
        if installation_id is not None:
            self._installations.add(installation_id)
        if code in NO_ANSWER or code.startswith("5"):
            self._failing[(operation, installation_id)] = (self._clock.now(), code)
        else:
            self._failing.pop((operation, installation_id), None)

    def listed(self, scope: Scope, error: GitHubError | None) -> None:
        """A scope's runners were listed, or the list is unknown: no answer, or one that cannot be all."""
        if error is None or isinstance(error, RateLimited):  # the limit is told of below
            self._unlisted.pop(scope, None)
        else:
            self._unlisted[scope] = (self._clock.now(), clip(redact(str(error))))

    def unknown(self, cluster: Cluster, github: GitHub) -> tuple[str, ...]:
        """A line for each thing that is unknown."""
        views = [view.why for view in (cluster.pods(), cluster.nodes()) if isinstance(view, Unknown)]
        return (*views, *self._unanswered(), *self._incomplete(), *self._refused(github))

    def _unanswered(self) -> Iterator[str]:
        now = self._clock.now()
        for (operation, installation_id), (at, code) in sorted(self._failing.items(), key=str):
            if now - at < FORGOTTEN_AFTER:
                who = f" for installation {installation_id}" if installation_id is not None else ""
                yield f"GitHub: {operation}{who}: {code}"

    def _incomplete(self) -> Iterator[str]:
        now = self._clock.now()
        for scope, (at, why) in sorted(self._unlisted.items(), key=str):
            if now - at < FORGOTTEN_AFTER:
                yield f"GitHub: the runners of {scope.entity.name}: {why}"

    def _refused(self, github: GitHub) -> Iterator[str]:
        now = self._clock.now()
        for installation_id in sorted(self._installations):
            until = github.budget(installation_id).blocked_until
            if until is not None and until > now:
                yield f"GitHub: installation {installation_id} is limited until {until:%H:%M:%S}"
