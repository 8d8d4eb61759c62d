"""What a request asks for: the path and query of the core API, read into one value, and the log of them all."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from controller.simulators.cluster.objects import RESOURCES, Resource
from controller.simulators.cluster.status import ApiError, bad_request, no_such_path

SUBRESOURCES = ("status", "log")
_COLLECTION = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_SINGLE = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to the core API; `namespace` None means all of them, `name` None the collection."""

    verb: str
    resource: Resource
    namespace: str | None
    name: str | None = None
    subresource: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    content_type: str = ""
    accept: str = ""
    body: bytes = b""

    @property
    def operation(self) -> str:
        """As faults and the log name it: `create pods`, `patch nodes/status`."""
        tail = f"/{self.subresource}" if self.subresource else ""
        return f"{self.verb} {self.resource.plural}{tail}"

    @property
    def place(self) -> str:
        """The namespace of a single object; empty for nodes."""
        return self.namespace or ""

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be stored."""
        return self.query.get("dryRun") == "All"

    def flag(self, name: str) -> bool:
        """A boolean of the query."""
        return self.query.get(name, "").lower() in ("1", "true")

    def number(self, name: str) -> int | None:
        """A number of the query; None if it is not there."""
        text = self.query.get(name, "")
        if not text:
            return None
        if not text.isdecimal():
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        return int(text)


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """One request; `status` 0 means that the connection was cut."""

    at: datetime
    method: str
    path: str
    query: str
    operation: str
    status: int


class RequestLog(list[SeenRequest]):
    """A list that can be asked how often."""

    def times(self, operation: str | None = None, *, status: int | None = None) -> int:
        """How many requests there were; None means any."""
        return sum(operation in (None, each.operation) and status in (None, each.status) for each in self)


def read_path(method: str, path: str, query: Mapping[str, str]) -> Ask:
    """Say what a path under /api/v1/ means; ApiError 404 or 405 if it means nothing."""
    parts = path.removeprefix("/api/v1/").strip("/").split("/")
    namespace: str | None = None
    if parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    resource = RESOURCES.get(parts[0])
    if resource is None or len(parts) > 3:
        raise no_such_path()
    name = parts[1] if len(parts) > 1 else None
    subresource = parts[2] if len(parts) > 2 else ""
    misplaced = (namespace is not None) != resource.namespaced and (
        resource.namespaced is False or name is not None
    )
    if (
        misplaced
        or subresource not in ("", *SUBRESOURCES)
        or (subresource == "log" and resource.kind != "Pod")
    ):
        raise no_such_path()
    if subresource == "status" and not resource.has_status:
        raise no_such_path()
    verb = (_COLLECTION if name is None else _SINGLE).get(method)
    if verb == "list" and query.get("watch", "").lower() in ("1", "true"):
        verb = "watch"
    unfit = resource.namespaced and namespace is None and verb not in ("list", "watch")
    if verb is None or unfit or verb not in resource.verbs or (subresource and verb in ("delete", "create")):
        raise ApiError(
            405, "MethodNotAllowed", "the server does not allow this method on the requested resource"
        )
    return Ask(verb, resource, namespace, name, subresource, query)
