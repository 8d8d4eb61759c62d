"""The demo's last word, from the simulated GitHub's own ledger and from our rows."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from controller.demo.watchman import Lost
from controller.domain.durations import show_duration
from controller.simulators.github.ledger import JobTruth


def summarise(jobs: Sequence[JobTruth], lost: Sequence[Lost], failures: Mapping[str, int]) -> str:
    """How many jobs were queued, finished and lost, how long they waited, and which runners failed."""
    return "\n".join(_lines(jobs, lost, failures))


def _lines(jobs: Sequence[JobTruth], lost: Sequence[Lost], failures: Mapping[str, int]) -> Iterator[str]:
    finished = [job for job in jobs if job.status == "completed"]
    ends = Counter(job.conclusion or "none" for job in finished)
    waits = sorted(job.started_at - job.queued_at for job in jobs if job.started_at and job.queued_at)
    yield ""
    yield f"  jobs queued      {len(jobs)}"
    yield f"  jobs finished    {len(finished)}   ({', '.join(f'{n} {end}' for end, n in sorted(ends.items()))})"
    yield f"  jobs lost        {len(lost)}"
    yield f"  wait p50 / p95   {_quantile(waits, 0.5)} / {_quantile(waits, 0.95)}   (simulated time)"
    shown = ", ".join(f"{count} {reason}" for reason, count in sorted(failures.items())) or "none"
    yield f"  runners failed   {shown}"
    for each in list(lost)[:10]:
        yield f"  lost: job {each.job_id}: {each.why}"


def _quantile(waits: Sequence[timedelta], share: float) -> str:
    if not waits:
        return "–"
    return show_duration(waits[min(len(waits) - 1, int(len(waits) * share))])
