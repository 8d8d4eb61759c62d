"""From a 4xx answer to the error of our tree that says what it means. Pure; texts are redacted here."""

from controller.errors import (
    GitHubConflict,
    GitHubError,
    GitHubForbidden,
    GitHubNotFound,
    GitHubRefused,
    GitHubUnavailable,
    InstallationSuspended,
)
from controller.gateways.github.answers import Answer
from controller.telemetry.redaction import redact


def refusal(answer: Answer, kind: type[GitHubError] | None = None) -> GitHubError:
    """The error for an answer that is no success."""
    return (kind or _kind(answer))(describe(answer), status=answer.status, request_id=answer.request_id)


def is_suspension(answer: Answer) -> bool:
    """Whether GitHub says that the owner has suspended the installation."""
    return answer.status == 403 and "suspended" in answer.message.lower()


def describe(answer: Answer) -> str:
    """One line for logs and errors: operation, status, message, missing permission, request id."""
    text = f"{answer.operation}: GitHub answered {answer.status}"
    if answer.message:
        text += f" {answer.message}"
    permissions = answer.headers.get("x-accepted-github-permissions")
    if permissions and answer.status in (403, 404):
        text += f"; needs {permissions}"
    if answer.request_id:
        text += f" (request {answer.request_id})"
    return redact(text)


def _kind(answer: Answer) -> type[GitHubError]:
    if is_suspension(answer):
        return InstallationSuspended
    match answer.status:
        case 401 | 403:
            return GitHubForbidden
        case 404:
            return GitHubNotFound
        case 409:
            return GitHubConflict
        case status if 400 <= status < 500:
            return GitHubRefused
    # A success where none was expected, or a redirect or 304 that leads nowhere.
    return GitHubUnavailable
