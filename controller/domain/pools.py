"""Pools: which label set is served by which boards and image."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from controller.domain.jobs import LabelSet


@dataclass(frozen=True, slots=True)
class Pool:
    """A kind of runner, as far as decisions need it."""

    name: str
    board: str
    label_sets: tuple[LabelSet, ...]
    image: str
    selector: Mapping[str, str]  # node labels, the board label among them
    tolerations: tuple[Mapping[str, Any], ...] = ()
    registration_timeout: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All pools, by name and by label set."""

    pools: tuple[Pool, ...]
    _by_labels: dict[LabelSet, Pool] = field(init=False, repr=False, compare=False)
    _by_name: dict[str, Pool] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_labels", {s: pool for pool in self.pools for s in pool.label_sets})
        object.__setattr__(self, "_by_name", {pool.name: pool for pool in self.pools})

    def serving(self, labels: LabelSet) -> Pool | None:
        """The pool that serves exactly this label set."""
        return self._by_labels.get(labels)

    def named(self, name: str | None) -> Pool | None:
        """The pool of that name, unless it was removed."""
        return self._by_name.get(name or "")

    def nearest(self, labels: LabelSet) -> LabelSet | None:
        """The served label set that shares the most labels with this one, if any is shared."""
        wanted = set(labels)
        best = max(
            self._by_labels,
            key=lambda served: (len(wanted & set(served)), -len(wanted ^ set(served)), served),
            default=None,
        )
        return best if best and wanted & set(best) else None
