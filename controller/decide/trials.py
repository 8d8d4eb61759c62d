"""Trials: how many workers may find out at once whether a pool works. Pure; `demand` asks here before every step.

A pool whose hold is over is tried by one worker. One whose image nobody has seen work lately is tried by a few, so that
an image that cannot work costs a few runners and not one for every free board; pools that have the image in common
share these. Whoever comes online ends the trial.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controller.domain.constants import BREAKER_MEMORY, FIRST_TRIES, TRY_PATIENCE
from controller.domain.durations import show_duration
from controller.domain.holds import HoldScope, HoldWhy
from controller.domain.pools import Catalogue, Pool
from controller.domain.workers import Worker


@dataclass(frozen=True, slots=True)
class Trial:
    """How many workers that have yet to come online a pool may have at once, and why no more."""

    workers: int
    why: str
    note: str
    shared: bool = False  # the image is on trial: its other pools on trial use up the same places

    def detail(self, pool: str) -> dict[str, Any]:
        """What the `held` sentence needs."""
        scope = HoldScope.POOL.value
        return {"scope": scope, "target": pool, "why": self.why, "until": None, "note": self.note}


def try_again(failure: str, *, shared: bool = False) -> Trial:
    """The trial of a pool whose hold is over."""
    return Trial(1, HoldWhy.BREAKER.value, f"one worker tries whether it works again; {failure}", shared)


def try_first(image: str) -> Trial:
    """The trial of a pool whose image has not been seen working."""
    lately = f"in the last {show_duration(BREAKER_MEMORY)}"
    note = f"the image {image} has not been seen working {lately}; {FIRST_TRIES} runners at a time try it"
    return Trial(FIRST_TRIES, "trial", note, shared=True)


class Tries:
    """What is left of the trials while jobs are served; every step of a pool that is tried takes one."""

    def __init__(
        self, trials: Mapping[str, Trial], workers: Iterable[Worker], catalogue: Catalogue, now: datetime
    ) -> None:
        images = {pool.name: pool.image for pool in catalogue.pools}
        # One whose runners cannot be listed, as of a suspended installation, must not close its pool for others.
        young = (w for w in workers if w.unproven and now - w.created_at < TRY_PATIENCE)
        self._trials = trials
        self._trying = Counter(
            (w.pool, w.image) for w in young if w.pool in trials and images.get(w.pool) == w.image
        )

    def refuse(self, pool: Pool) -> Trial | None:
        """The trial that allows no further worker now, if any."""
        trial = self._trials.get(pool.name)
        return trial if trial is not None and self._left(trial, pool) <= 0 else None

    def refuse_spare(self, pool: Pool) -> bool:
        """Whether a spare has to wait: it tries alone, and only what no job has failed on."""
        trial = self._trials.get(pool.name)
        return trial is not None and (trial.workers == 1 or self._left(trial, pool) < trial.workers)

    def take(self, pool: Pool) -> None:
        """Count one more worker."""
        if pool.name in self._trials:
            self._trying[(pool.name, pool.image)] += 1

    def _left(self, trial: Trial, pool: Pool) -> int:
        if not trial.shared:
            return trial.workers - self._trying[(pool.name, pool.image)]
        return trial.workers - sum(count for (_, image), count in self._trying.items() if image == pool.image)
