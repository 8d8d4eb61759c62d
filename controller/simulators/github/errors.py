"""How a handler refuses a request; `pipeline` turns it into GitHub's error body."""

from collections.abc import Mapping, Sequence

from controller.simulators.github.state import Json

DOCS = "https://docs.github.com/rest"


class ApiError(Exception):
    """An answer that is not a success."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        errors: Sequence[object] = (),
        headers: Mapping[str, str] | None = None,
        url: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
        self.body: Json = {"message": message, "documentation_url": DOCS}
        if url is not None:
            self.body["url"] = url
        if errors:
            self.body["errors"] = list(errors)
        elif status not in (301, 307, 422):
            self.body["status"] = str(status)


def not_found() -> ApiError:
    """Gone, or this token may not see it: GitHub does not say which."""
    return ApiError(404, "Not Found")


def invalid(message: str, *errors: str) -> ApiError:
    """The `validation_failed_simple` kind."""
    return ApiError(422, message, errors=errors)
