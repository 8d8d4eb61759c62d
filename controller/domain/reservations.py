"""A reservation: the worker row that is committed before anything happens outside."""

from dataclasses import dataclass
from datetime import datetime

from controller.domain.jobs import Entity, LabelSet, Scope


@dataclass(frozen=True, slots=True)
class Need:
    """What a worker is made for: the turn of a job, or an open warm window."""

    scope: Scope
    labels: LabelSet
    repo: str | None
    job_id: int | None = None
    warm_for: int | None = None  # an occurrence
    url: str = ""
    since: datetime | None = None  # when the job was seen


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a new worker row says. `max_workers` None: its entity has no limit."""

    name: str
    entity: Entity
    app_id: str
    installation_id: int
    labels: LabelSet
    pool: str
    image: str
    made_for: int | None
    repo: str | None
    max_workers: int | None
    warm_for: int | None = None


@dataclass(frozen=True, slots=True)
class Reserved:
    """What became of a batch; those in neither set met their entity's cap, or are needed no more."""

    written: frozenset[str]
    taken: frozenset[str]
