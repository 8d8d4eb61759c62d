"""Every instrument in one table. Labels are bounded: pool, outcome, reason, stage; never an id of a job or a worker.

Gauges of state are set by the leader only; `clear_state` empties them when it stops leading.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from controller.domain.reasons import Reason
from controller.telemetry.budgets import BudgetGauge

# They would be gauges of when each counter began, under the counter's own words.
disable_created_metrics()  # type: ignore[no-untyped-call]

PREFIX = "switchboard"
KNOWN_EVENTS = frozenset({"workflow_job", "installation", "installation_repositories", "ping"})

# Seconds. A job waits between moments and half a day; a call or a lock takes milliseconds to a minute.
WAITS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200)
STAGES = (0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200)
STEPS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


def event_label(event: str) -> str:
    """The event as a label: what we handle by name, the rest as one."""
    return event if event in KNOWN_EVENTS else "other"


class Metrics:
    """The instruments, on a registry of their own so that two programs in one process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        # jobs and workers, as the rows are
        self.jobs = self._gauge("jobs", "Jobs that have not ended, by status.", "status")
        self.workers = self._gauge(
            "workers", "Workers that have not ended, by status and pool.", "status", "pool"
        )
        self.queue_oldest_seconds = self._gauge(
            "queue_oldest_seconds", "Age of the oldest pending job of each pool.", "pool"
        )
        self.skips = self._gauge("skips", "Pending jobs that get no worker now, by reason.", "reason")
        self.board_slots = self._gauge(
            "board_slots",
            "Slots of boards by pool and state; a board without any counts as one.",
            "pool",
            "state",
        )
        self.holds = self._gauge("holds", "Pools, entities and boards that are held, by kind.", "kind")

        # what happened
        self.jobs_finished_total = self._counter(
            "jobs_finished_total", "Jobs that ended, by pool and conclusion.", "pool", "conclusion"
        )
        self.job_wait_seconds = self._histogram(
            "job_wait_seconds", "From queued to started, by pool.", WAITS, "pool"
        )
        self.provision_seconds = self._histogram(
            "provision_seconds", "How long each stage on the way to a started job took.", STAGES, "stage"
        )
        self.worker_failures_total = self._counter(
            "worker_failures_total", "Workers that failed, by reason.", "reason"
        )
        for reason in Reason:  # from 0 on: the increase of a series that begins at 1 is 0
            self.worker_failures_total.labels(reason.value)
        self.kills_refused_total = self._counter(
            "kills_refused_total", "Kills that GitHub refused because the runner was busy."
        )
        self.schedule_runs_total = self._counter(
            "schedule_runs_total", "Occurrences of schedules, by outcome.", "outcome"
        )

        # deliveries and GitHub
        self.webhook_deliveries_total = self._counter(
            "webhook_deliveries_total", "Deliveries that reached the receiver.", "event", "outcome"
        )
        self.deliveries_pulled_total = self._counter(
            "deliveries_pulled_total", "Deliveries that were not pushed and had to be pulled."
        )
        self.github_requests_total = self._counter(
            "github_requests_total", "Requests to GitHub, by operation and answer.", "operation", "code"
        )
        self.github_rate_limit_remaining = self._gauge(
            "github_rate_limit_remaining",
            "Requests left this hour, by installation used in the last hour.",
            "installation",
        )
        self.budgets = BudgetGauge(self.github_rate_limit_remaining)

        # the loop
        self.iteration_seconds = self._histogram(
            "iteration_seconds", "Time spent in each step of an iteration.", STEPS, "step"
        )
        self.iteration_last_success_timestamp_seconds = self._gauge(
            "iteration_last_success_timestamp_seconds", "When the last iteration without an error ended."
        )
        self.workers_lock_seconds = self._histogram(
            "workers_lock_seconds", "How long the lock on the workers table was held.", STEPS
        )
        self.steps_left_out_total = self._counter(
            "steps_left_out_total", "Steps left out because the database was busy, by step.", "step"
        )
        self.leader = self._gauge("leader", "1 while this process leads.")

    def render(self) -> tuple[bytes, str]:
        """The text for a scrape, and its content type."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST

    def clear_state(self) -> None:
        """Forget the gauges that only a leader may show."""
        for gauge in (
            self.jobs,
            self.workers,
            self.queue_oldest_seconds,
            self.skips,
            self.board_slots,
            self.holds,
            self.budgets,
        ):
            gauge.clear()

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        return Gauge(f"{PREFIX}_{name}", meaning, labels, registry=self.registry)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"{PREFIX}_{name}", meaning, labels, registry=self.registry)

    def _histogram(self, name: str, meaning: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"{PREFIX}_{name}", meaning, labels, buckets=buckets, registry=self.registry)
