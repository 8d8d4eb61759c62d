"""A reservation: the worker row that is committed before anything happens outside."""

from dataclasses import dataclass

from controller.domain.jobs import Entity, LabelSet


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
    made_for: int
    repo: str | None
    max_workers: int | None


@dataclass(frozen=True, slots=True)
class Reserved:
    """What became of a batch of reservations; those in neither set met their entity's cap."""

    written: frozenset[str]
    taken: frozenset[str]
