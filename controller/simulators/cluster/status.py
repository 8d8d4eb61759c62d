"""Errors as the API server words them: `Status` objects with reason, code and details."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.simulators.cluster.objects import Json, Resource


@dataclass(frozen=True, slots=True)
class Cause:
    """One mistake in an object."""

    reason: str
    field: str
    message: str

    def as_json(self) -> Json:
        """As it stands in `details.causes`."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


class ApiError(Exception):
    """A request that is answered with a Status object."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Json | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = details
        self.retry_after = retry_after

    def body(self) -> Json:
        """The Status object."""
        status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
        }
        details = dict(self.details or {})
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        if details:
            status["details"] = details
        status["code"] = self.code
        return status

    def headers(self) -> Mapping[str, str]:
        """Headers that go with it."""
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}


def not_found(resource: Resource, name: str) -> ApiError:
    """404 for one object."""
    message = f'{resource.plural} "{name}" not found'
    return ApiError(404, "NotFound", message, {"name": name, "kind": resource.plural})


def no_such_path() -> ApiError:
    """404 for a path the server does not know."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: Resource, name: str) -> ApiError:
    """409 on create."""
    message = f'{resource.plural} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, {"name": name, "kind": resource.plural})


def conflict(resource: Resource, name: str, why: str) -> ApiError:
    """409 on a precondition."""
    message = f'Operation cannot be fulfilled on {resource.plural} "{name}": {why}'
    return ApiError(409, "Conflict", message, {"name": name, "kind": resource.plural})


def modified(resource: Resource, name: str) -> ApiError:
    """409 on an outdated resourceVersion."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def wrong_uid(resource: Resource, name: str, wanted: str, there: str) -> ApiError:
    """409 on a uid precondition."""
    return conflict(
        resource, name, f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {there}"
    )


def invalid(resource: Resource, name: str, causes: Sequence[Cause]) -> ApiError:
    """422 with every mistake."""
    words = [f"{cause.field}: {cause.message}" for cause in causes]
    text = words[0] if len(words) == 1 else f"[{', '.join(words)}]"
    details = {"name": name, "kind": resource.kind, "causes": [cause.as_json() for cause in causes]}
    return ApiError(422, "Invalid", f'{resource.kind} "{name}" is invalid: {text}', details)


def bad_request(message: str) -> ApiError:
    """400."""
    return ApiError(400, "BadRequest", message)


def expired(message: str) -> ApiError:
    """410: the resourceVersion or the continue token is too old."""
    return ApiError(410, "Expired", message)


def too_old(wanted: int, oldest: int) -> ApiError:
    """410 for a watch."""
    return expired(f"too old resource version: {wanted} ({oldest})")


def unauthorized() -> ApiError:
    """401."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def unavailable() -> ApiError:
    """503, as a load balancer or a starting API server says it."""
    message = "the server is currently unable to handle the request"
    return ApiError(503, "ServiceUnavailable", message, retry_after=1)
