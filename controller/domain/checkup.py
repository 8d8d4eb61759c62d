"""What `switchboard doctor` looks at, and what it finds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Level(StrEnum):
    """How bad a finding is; only a fault makes the command fail."""

    OK = "ok"
    WARN = "warn"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: where, what was seen, and what to do about it."""

    level: Level
    area: str
    seen: str
    todo: str = ""


def ok(area: str, seen: str) -> Finding:
    """Something that is as it should be."""
    return Finding(Level.OK, area, seen)


def warn(area: str, seen: str, todo: str) -> Finding:
    """Something that may well be wrong."""
    return Finding(Level.WARN, area, seen, todo)


def fault(area: str, seen: str, todo: str) -> Finding:
    """Something that is wrong."""
    return Finding(Level.FAULT, area, seen, todo)


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """What the database says of itself."""

    version: int  # as 140005
    schema_fault: str | None  # why it does not serve this program
    pooled: bool  # sessions shared a backend, lost their settings, or a notification did not arrive


@dataclass(frozen=True, slots=True)
class AppFacts:
    """A GitHub App as it describes itself."""

    app_id: str
    slug: str
    permissions: Mapping[str, str] = field(default_factory=dict)
    events: tuple[str, ...] = ()
    page: str = ""  # where its owner changes it


@dataclass(frozen=True, slots=True)
class InstallationFacts:
    """One installation of an App."""

    installation_id: int
    login: str
    kind: str  # Organization or User
    suspended_at: datetime | None = None
    permissions: Mapping[str, str] = field(default_factory=dict)
    page: str = ""  # where the account's owner changes it


@dataclass(frozen=True, slots=True)
class Seat:
    """A pod of ours and the node that it runs on."""

    pod: str
    node: str
    keeps_off: bool  # its affinity is away from boards; that is asked when it is placed, and never again


@dataclass(frozen=True, slots=True)
class Right:
    """Something that the controller asks of the Kubernetes API."""

    verb: str
    resource: str
    subresource: str = ""
    namespaced: bool = True

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'/{self.subresource}' if self.subresource else ''}"


# Exactly what gateways/kubernetes does.
RIGHTS = (
    *(Right(verb, "pods") for verb in ("get", "list", "watch", "create", "patch", "delete")),
    Right("get", "pods", "log"),
    *(Right(verb, "secrets") for verb in ("create", "patch", "list", "delete")),
    Right("list", "events"),
    Right("list", "nodes", namespaced=False),
    Right("watch", "nodes", namespaced=False),
)
ADVERTISING = Right("patch", "nodes", "status", namespaced=False)
