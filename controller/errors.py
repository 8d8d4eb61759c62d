"""The error tree. Gateways raise only these, chained to their cause, with text clipped.

ControllerError
├── ConfigError                 the settings are wrong; exit code 2, all mistakes at once
├── GitHubError                 GitHub answered badly or not at all
│   ├── GitHubUnavailable       timeout, connection error, 5xx: the effect may have happened
│   ├── GitHubNotFound          404: gone, or this token may not see it
│   ├── GitHubForbidden         401, or 403 without a rate-limit sign: a permission is missing
│   ├── InstallationSuspended   403 on minting a token
│   ├── InstallationGone        404 on minting a token
│   ├── GitHubConflict          409: a runner of that name exists already
│   ├── GitHubRefused           422 and other 4xx: the same request will be refused again
│   ├── RunnerBusy              422 on deleting a runner: it runs a job
│   └── RateLimited             403/429 with a limit sign; `until` says when to come back
├── ClusterError                Kubernetes answered badly or not at all
│   ├── ClusterUnavailable      timeout, connection error, 5xx, 429: the effect may have happened
│   ├── ClusterNotFound         404
│   ├── ClusterConflict         409: exists already, or changed meanwhile
│   ├── ClusterForbidden        401/403: an RBAC verb is missing, or a policy refuses the pod
│   └── ClusterRefused          400/422 and other 4xx: the same request will be refused again
└── StoreError                  PostgreSQL answered badly or not at all
    ├── StoreUnavailable        connection lost, timeout
    │   └── StoreBusy           lock not had in time, deadlock, serialization failure: it is there, try again
    ├── CapReached              the entity has as many workers as it may have
    ├── LeadershipLost          another process leads with a newer epoch: nothing was written
    └── SchemaMismatch          the database no longer serves this program
"""

from datetime import datetime

TEXT_LIMIT = 500


def clip(text: str, limit: int = TEXT_LIMIT) -> str:
    """Shorten a text from outside so that it can stand in an error, a log line or a row."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


class ControllerError(Exception):
    """The root: something that the program expects to go wrong now and then."""


class ConfigError(ControllerError):
    """The settings are wrong; `mistakes` lists all of them."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class GitHubError(ControllerError):
    """GitHub answered badly or not at all."""

    def __init__(self, message: str, *, status: int | None = None, request_id: str | None = None) -> None:
        super().__init__(clip(message))
        self.status = status
        self.request_id = request_id


class GitHubUnavailable(GitHubError):
    """No answer, or a 5xx: the effect may have happened."""


class GitHubNotFound(GitHubError):
    """404: gone, or this token may not see it."""


class GitHubForbidden(GitHubError):
    """401, or 403 that is no rate limit."""


class InstallationSuspended(GitHubForbidden):
    """The owner suspended the App's installation."""


class InstallationGone(GitHubNotFound):
    """The App is not installed there any more."""


class GitHubConflict(GitHubError):
    """409: the name is taken."""


class GitHubRefused(GitHubError):
    """The same request would be refused again."""


class RunnerBusy(GitHubRefused):
    """GitHub keeps a runner that runs a job."""


class RateLimited(GitHubError):
    """A primary or secondary limit; nothing may be sent for this installation before `until`."""

    def __init__(self, message: str, *, until: datetime, status: int | None = None) -> None:
        super().__init__(message, status=status)
        self.until = until


class ClusterError(ControllerError):
    """Kubernetes answered badly or not at all."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(clip(message))
        self.status = status


class ClusterUnavailable(ClusterError):
    """No answer, or a 5xx or 429: the effect may have happened."""


class ClusterNotFound(ClusterError):
    """404."""


class ClusterConflict(ClusterError):
    """409: exists already, or changed meanwhile."""


class ClusterForbidden(ClusterError):
    """401 or 403."""


class ClusterRefused(ClusterError):
    """The same request would be refused again."""


class StoreError(ControllerError):
    """PostgreSQL answered badly or not at all."""


class StoreUnavailable(StoreError):
    """The database cannot be used right now."""


class StoreBusy(StoreUnavailable):
    """Somebody else was in the way; nothing was written."""


class LeadershipLost(StoreError):
    """Another process leads; nothing was written."""


class SchemaMismatch(StoreError):
    """The database no longer serves this program, or does not yet."""
