"""Every reason the product ever gives, in one table: name, sentence, next step, and what it counts for.

Pages, API, CLI and metrics read this table; nobody words a reason a second time.
"""

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Why a worker ended other than well."""

    RUNNER_NEVER_REGISTERED = "runner_never_registered"
    POD_STUCK_PENDING = "pod_stuck_pending"
    RUNNER_IDLE = "runner_idle"
    POD_STUCK_AFTER_JOB = "pod_stuck_after_job"
    NODE_UNREACHABLE = "node_unreachable"
    POD_MISSING = "pod_missing"
    POD_FAILED = "pod_failed"
    PROVISION_FAILED = "provision_failed"
    RUNNER_REMOVED = "runner_removed"
    NO_JOB_RAN = "no_job_ran"
    RUNNER_VERSION_REFUSED = "runner_version_refused"


class Skip(StrEnum):
    """Why a pending job gets no new worker in this iteration; the first that applies is stored."""

    CANCELLED = "cancelled"
    GAVE_UP = "gave_up"
    NOT_CONFIRMED = "not_confirmed"
    NOT_ALLOWED = "not_allowed"
    WRONG_APP = "wrong_app"
    INSTALLATION_SUSPENDED = "installation_suspended"
    NO_POOL = "no_pool"
    HELD = "held"
    BACKING_OFF = "backing_off"
    NOT_PICKED_UP = "not_picked_up"
    RUNNER_ON_ITS_WAY = "runner_on_its_way"
    ENTITY_AT_MAX_WORKERS = "entity_at_max_workers"
    NO_FREE_SLOTS = "no_free_slots"
    GITHUB_BUDGET_LOW = "github_budget_low"
    CLUSTER_UNKNOWN = "cluster_unknown"


class JobFailure(StrEnum):
    """Why a job was failed without GitHub having finished it."""

    NOT_FOUND = "not_found"
    STUCK_QUEUED = "stuck_queued"
    INSTALLATION_GONE = "installation_gone"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a reason means, what to do about it, and what it counts for."""

    sentence: str
    next_step: str
    backs_off: bool = False  # the job's next attempt waits from the second failure in a row on
    own_fault: bool = False  # the same request would be refused again: after three the job is given up
    trips_breaker: bool = False  # the board or image is suspected
    names_image: bool = False  # the image is the suspect: the pool's breaker opens at once


EXPLANATIONS: dict[Reason | Skip | JobFailure, Explanation] = {
    Reason.RUNNER_NEVER_REGISTERED: Explanation(
        "The pod was running, but its runner never came online at GitHub.",
        "Read the runner's last log lines; check that the board reaches GitHub and the image starts it.",
        backs_off=True,
        trips_breaker=True,
    ),
    Reason.POD_STUCK_PENDING: Explanation(
        "The pod stayed Pending: no node took it, or its image or configuration could not be used.",
        "Read the pod's events; check the pool's image, its pull secret and its boards.",
        backs_off=True,
        trips_breaker=True,
    ),
    Reason.RUNNER_IDLE: Explanation(
        "The runner was online, but GitHub gave it no job for the idle timeout.",
        "Nothing to do: the job was probably cancelled or taken by another runner.",
    ),
    Reason.POD_STUCK_AFTER_JOB: Explanation(
        "The job had ended, but the pod went on running past the drain timeout.",
        "Look for processes that the job left behind on the board.",
    ),
    Reason.NODE_UNREACHABLE: Explanation(
        "The board's node became unreachable while the worker was on it.",
        "Check power and network of the board; a job that had started must be re-run on GitHub.",
    ),
    Reason.POD_MISSING: Explanation(
        "The worker's pod is gone although nobody of ours deleted it.",
        "Find out who deletes pods in the runner namespace (eviction, kubectl, another controller).",
        backs_off=True,
    ),
    Reason.POD_FAILED: Explanation(
        "The runner's container ended with an error.",
        "Read the exit code and the last log lines.",
        backs_off=True,
        trips_breaker=True,
    ),
    Reason.PROVISION_FAILED: Explanation(
        "The runner could not be made: GitHub or Kubernetes refused a step.",
        "Read the error; `switchboard doctor` checks permissions, quota and policies.",
        backs_off=True,
    ),
    Reason.RUNNER_REMOVED: Explanation(
        "GitHub removed the idle registration before a job came.",
        "Nothing to do: a new runner is made when a job waits.",
    ),
    Reason.NO_JOB_RAN: Explanation(
        "The pod ended well without ever running a job; the runner exits 0 on fatal errors too.",
        "Read the last log lines for the runner's own complaint.",
        backs_off=True,
        trips_breaker=True,
    ),
    Reason.RUNNER_VERSION_REFUSED: Explanation(
        "GitHub refuses this runner version (exit code 7): the image is too old.",
        "Update the pool's image to a runner version that GitHub still accepts.",
        backs_off=True,
        trips_breaker=True,
        names_image=True,
    ),
    Skip.CANCELLED: Explanation(
        "An administrator cancelled this job here; no runner is made for it.",
        "Retry it to clear the mark, or cancel the run on GitHub.",
    ),
    Skip.GAVE_UP: Explanation(
        "Three attempts to make a runner were refused, so no more are made.",
        "Mend what the last error says, then retry the job.",
    ),
    Skip.NOT_CONFIRMED: Explanation(
        "GitHub holds the job for an approval or a protection rule.",
        "Approve the deployment on GitHub; the job goes on by itself.",
    ),
    Skip.NOT_ALLOWED: Explanation(
        "This repository may not use these boards.",
        "Ask the operators to add it to `access.allow`, or to take it off `access.deny`.",
    ),
    Skip.WRONG_APP: Explanation(
        "The delivery came from an App that is not configured for this kind of account.",
        "Install the App for organizations in organizations, the personal one in personal accounts.",
    ),
    Skip.INSTALLATION_SUSPENDED: Explanation(
        "The GitHub App's installation is suspended.",
        "An owner of the account must unsuspend the App in its settings on GitHub.",
    ),
    Skip.NO_POOL: Explanation(
        "No pool serves this set of labels any more.",
        "Change `runs-on` to a label set that a pool serves, or add a pool.",
    ),
    Skip.HELD: Explanation(
        "Its pool or owner is paused, in quiet hours, or held after failures.",
        "Wait until the time shown, or resume it.",
    ),
    Skip.BACKING_OFF: Explanation(
        "The last attempts to run it failed; the next one waits.",
        "Read why the last worker failed; retry the job to try at once.",
    ),
    Skip.NOT_PICKED_UP: Explanation(
        "A matching runner was online and idle, but GitHub did not give it this job.",
        "Check that the runner group is visible to the repository (public too); check its concurrency.",
    ),
    Skip.RUNNER_ON_ITS_WAY: Explanation(
        "Enough runners for these labels are being started or wait for a job.",
        "Nothing to do: GitHub gives the next free runner to the job.",
    ),
    Skip.ENTITY_AT_MAX_WORKERS: Explanation(
        "Its owner has as many workers as it may have.",
        "Wait for one to finish, or raise `entities.overrides.<login>.maxWorkers`.",
    ),
    Skip.NO_FREE_SLOTS: Explanation(
        "All boards of this type are taken or unusable.",
        "Wait for a board, or mend those that are shown as unusable.",
    ),
    Skip.GITHUB_BUDGET_LOW: Explanation(
        "GitHub's request limit for this installation is nearly used up.",
        "Nothing to do: it goes on at the time shown.",
    ),
    Skip.CLUSTER_UNKNOWN: Explanation(
        "The state of the cluster cannot be read right now, so nothing is started.",
        "Check that the controller reaches the Kubernetes API; `/ready` shows the last error.",
    ),
    JobFailure.NOT_FOUND: Explanation(
        "GitHub does not know this job any more (404, confirmed by a second look).",
        "Re-run the workflow if its result is still wanted.",
    ),
    JobFailure.STUCK_QUEUED: Explanation(
        "Its workflow run has completed, but GitHub left the job queued.",
        "Re-run the workflow if its result is still wanted.",
    ),
    JobFailure.INSTALLATION_GONE: Explanation(
        "The GitHub App is no longer installed where the job belongs.",
        "Install the App again and re-run the workflow.",
    ),
}
