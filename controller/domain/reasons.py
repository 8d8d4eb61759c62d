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
    UNFAMILIAR = "unfamiliar"

    @classmethod
    def _missing_(cls, value: object) -> "Reason":
        """A row written by a newer program, before a rollback, may name a reason that this one has no word for."""
        return cls.UNFAMILIAR


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
    harmless: bool = False  # an end that is nobody's fault: counted nowhere among the failures


EXPLANATIONS: dict[Reason | Skip | JobFailure, Explanation] = {
    Reason.RUNNER_NEVER_REGISTERED: Explanation(
        "The pod was running, but its runner never reported to GitHub.",
        "Read its last log lines; check that the board reaches GitHub and that the pool's `image` starts the runner.",
        backs_off=True,
        trips_breaker=True,
    ),
    Reason.POD_STUCK_PENDING: Explanation(
        "The pod did not start in time: no board took it, or its image could not be fetched.",
        "Read its pod events, then check the pool's `image` and `imagePullSecrets`, and its boards on `/boards`.",
        backs_off=True,
        trips_breaker=True,
    ),
    Reason.RUNNER_IDLE: Explanation(
        "The runner was ready without a job: for the idle timeout, or while its place was held or wanted elsewhere.",
        "Nothing to do: its job was probably cancelled or taken by another runner.",
        harmless=True,
    ),
    Reason.POD_STUCK_AFTER_JOB: Explanation(
        "The job had ended, but its pod went on running and was ended.",
        "Nothing to do for the job. If a board shows this often, look there for processes that jobs leave behind.",
    ),
    Reason.NODE_UNREACHABLE: Explanation(
        "The board stopped answering while the runner was on it.",
        "Operators: check the board's power and network. A job that had started must be re-run on GitHub.",
    ),
    Reason.POD_MISSING: Explanation(
        "The runner's pod disappeared, and it was not Switchboard that deleted it.",
        "Find out who deletes pods in the runners' namespace: an eviction, `kubectl delete`, another controller.",
        backs_off=True,
    ),
    Reason.POD_FAILED: Explanation(
        "The runner's container ended with an error.",
        "Read the exit code and the last log lines. If only one board shows it, drain that board on `/boards`.",
        backs_off=True,
        trips_breaker=True,
    ),
    Reason.PROVISION_FAILED: Explanation(
        "The runner could not be made: GitHub or Kubernetes refused a step.",
        "Read the error; `switchboard doctor` checks permissions, quota and policies, and says what to fix.",
        backs_off=True,
    ),
    Reason.RUNNER_REMOVED: Explanation(
        "GitHub took the runner off its list before a job came.",
        "Nothing to do: a new runner is made when a job waits.",
        harmless=True,
    ),
    Reason.NO_JOB_RAN: Explanation(
        "The pod stopped by itself and without an error, but no job ever ran in it.",
        "Operators: its last log lines say why it gave up. The job, if it still waits, gets another runner.",
        backs_off=True,
        trips_breaker=True,
    ),
    Reason.RUNNER_VERSION_REFUSED: Explanation(
        "GitHub refuses this version of the runner: it is too old (exit code 7).",
        "Put a current release of the Actions runner into the pool's `image`, then resume the pool on `/queue`.",
        backs_off=True,
        trips_breaker=True,
        names_image=True,
    ),
    Reason.UNFAMILIAR: Explanation(
        "It ended for a reason that only a newer version of Switchboard knows.",
        "Nothing to do for this program. Operators: the newer version, once it runs again, says what it was.",
    ),
    Skip.CANCELLED: Explanation(
        "An operator cancelled this job on these pages, so it gets no runner.",
        "If it is still needed, ask the operators to retry it here; if not, cancel its run on GitHub.",
    ),
    Skip.GAVE_UP: Explanation(
        "Making a runner for this job was refused three times, so it is not tried again.",
        "Ask the operators to mend what its last runner's error says, then to retry the job here.",
    ),
    Skip.NOT_CONFIRMED: Explanation(
        "GitHub has not said yet that this job may run.",
        "If the run waits for an approval on GitHub, have it approved there. Else wait: GitHub is asked again.",
    ),
    Skip.NOT_ALLOWED: Explanation(
        "The operators' settings do not let this job use these boards.",
        "Ask the operators to let in the repository (`access.allow`, `access.deny`) "
        "or forks (`access.forkPullRequests`).",
    ),
    Skip.WRONG_APP: Explanation(
        "Organizations and personal accounts use different GitHub Apps; this job came through the wrong one.",
        "Ask the operators for the App for your kind of account, install it, then re-run the job.",
    ),
    Skip.INSTALLATION_SUSPENDED: Explanation(
        "The GitHub App is suspended for this account, so no runner can be made.",
        "An owner of the account: unsuspend it on GitHub, under Settings, GitHub Apps, Configure.",
    ),
    Skip.NO_POOL: Explanation(
        "No pool serves this set of labels any more.",
        "Change `runs-on` to exactly the labels of a pool, or ask the operators for a pool with these.",
    ),
    Skip.HELD: Explanation(
        "New runners for its pool or owner are held back, for the reason shown.",
        "Wait for the time shown, or for the runners that try the pool. If neither is shown, ask the operators.",
    ),
    Skip.BACKING_OFF: Explanation(
        "Its last runners failed, so the next one waits a while.",
        "Wait until the time shown. Operators: its last worker says what failed; retry the job to try at once.",
    ),
    Skip.NOT_PICKED_UP: Explanation(
        "A runner with these labels is ready, but GitHub does not give it this job.",
        "Operators: check that the runner group on GitHub serves this repository. "
        "Developers: another run may come first by the workflow's `concurrency`.",
    ),
    Skip.RUNNER_ON_ITS_WAY: Explanation(
        "Enough runners for these labels are starting, or ready for a job.",
        "Nothing to do: GitHub gives the job to the first that is ready.",
    ),
    Skip.ENTITY_AT_MAX_WORKERS: Explanation(
        "Its owner, the organization or user, has as many runners as it may have at once.",
        "Wait for one of its runners to finish, or ask the operators "
        "to raise `entities.overrides.<login>.maxWorkers`.",
    ),
    Skip.NO_FREE_SLOTS: Explanation(
        "No board of this type is free.",
        "Wait for its turn; `/boards` shows what is on each board, and what keeps one from being used.",
    ),
    Skip.GITHUB_BUDGET_LOW: Explanation(
        "GitHub cannot be asked for another runner of this account right now.",
        "Nothing to do: from the time shown, runners are asked for again, each job in its turn.",
    ),
    Skip.CLUSTER_UNKNOWN: Explanation(
        "The state of the cluster cannot be read right now, so nothing is started.",
        "Wait: it goes on by itself. Operators: run `switchboard doctor`; `/ready` shows the last error.",
    ),
    JobFailure.NOT_FOUND: Explanation(
        "GitHub does not know this job any more: twice it answered 404.",
        "Re-run the workflow on GitHub if its result is still wanted.",
    ),
    JobFailure.STUCK_QUEUED: Explanation(
        "Its workflow run has ended, but GitHub left the job queued.",
        "Re-run the workflow on GitHub if its result is still wanted.",
    ),
    JobFailure.INSTALLATION_GONE: Explanation(
        "The GitHub App is no longer installed for this account.",
        "An owner of the account: install the App again, then re-run the workflow.",
    ),
}

# For `no_free_slots` where waiting alone does not help.
NO_BOARD_WORKS = Explanation(
    "No board of this type can be used right now.",
    "Operators: `/boards` says what keeps each from being used; `switchboard doctor` says what to do about it.",
)
HARMLESS = frozenset(
    reason for reason, known in EXPLANATIONS.items() if isinstance(reason, Reason) and known.harmless
)
