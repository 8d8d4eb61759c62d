"""Jobs that GitHub lists and we never heard of: their webhooks were lost for good. Pure."""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime

from controller.domain.constants import PENDING_SILENCE, RUNNING_SILENCE
from controller.domain.jobs import Home, Job, JobStatus
from controller.domain.pools import Catalogue
from controller.domain.sightings import JobSighting

LEARNT_FROM = "sweep"


def find_unheard(
    home: Home, listed: Iterable[JobSighting], known: Collection[int], catalogue: Catalogue, now: datetime
) -> Iterator[Job]:
    """The queued and running jobs of a run that a pool serves and that have no row; ended ones are history."""
    for seen in listed:
        pool = catalogue.serving(seen.labels)
        if seen.job_id in known or pool is None or seen.status not in ("queued", "in_progress"):
            continue
        running = seen.status == "in_progress"
        yield Job(
            job_id=seen.job_id,
            entity=home.entity,
            repo=home.repo,
            labels=seen.labels,
            status=JobStatus.RUNNING if running else JobStatus.PENDING,
            created_at=seen.created_at,
            app_id=home.app_id,
            installation_id=home.installation_id,
            run_id=seen.run_id,
            seen_at=now,
            name=seen.name,
            private=home.private,
            run_attempt=seen.run_attempt,
            html_url=seen.html_url,
            pool=pool.name,
            runner_name=seen.runner_name if running else None,
            learnt_from=LEARNT_FROM,
            heard_at=now,
            poll_at=now + (RUNNING_SILENCE if running else PENDING_SILENCE[0]),
            started_at=(seen.started_at or now) if running else None,
        )
