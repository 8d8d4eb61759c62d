"""Every number of the design that is not a setting, with its unit in its type."""

from datetime import timedelta

# sync_jobs: how long a job may be silent before GitHub is asked about it
PENDING_SILENCE = (
    timedelta(seconds=60),
    timedelta(minutes=5),
    timedelta(minutes=10),
    timedelta(minutes=15),
)
RUNNING_SILENCE = timedelta(minutes=30)
AFTER_POD_ENDED = timedelta(seconds=60)
MISSING_CONFIRMATION = timedelta(seconds=60)  # between two 404s that make a job failed
CONFIRM_EVERY = timedelta(minutes=1)  # a job that waits for an approval is looked at this often
GONE_EVERY = timedelta(
    minutes=5
)  # jobs of an installation that is suspended or gone are looked at this often

# sync_workers
CACHE_GRACE = timedelta(seconds=60)  # a created pod that the watch has not shown for so long is asked for
NO_JOB_GRACE = timedelta(seconds=90)  # a late `in_progress` may still come, or be pulled
RUNNER_LIST_EVERY = timedelta(seconds=60)
BUSY_LAG = timedelta(seconds=60)  # `busy` lags a started job by up to a minute
IMAGE_ERROR_PATIENCE = timedelta(seconds=60)
REFUSED_FIRST = timedelta(seconds=60)  # a kill that GitHub refused is tried again after so long at least …
REFUSED_LAST = timedelta(minutes=5)  # … and so long at most
FAILED_AGAIN = timedelta(seconds=15)  # what failed outside rests for so long, however busy the loop is
CLEANUP_SCOPE_AGE = timedelta(days=2)
CLEANUP_EVERY = timedelta(minutes=5)
REPORT_PATIENCE = timedelta(minutes=5)  # for so long what a failed pod could not be asked is asked again
LEFTOVER_CONFIRMATION = timedelta(seconds=30)  # between two sightings of a runner without a row
SECRET_SWEEP_EVERY = timedelta(minutes=1)
SECRET_SWEEP_AGE = timedelta(minutes=5)  # of a Secret that no row tells of
ENDED_SECRET_AGE = timedelta(seconds=30)  # of a Secret whose row has ended
STUCK_AFTER = timedelta(minutes=5)
PUT_OFF_WITHIN = timedelta(
    hours=2
)  # nothing of a job is put off for longer: GitHub's limits last an hour at most
LOCK_TIMEOUT = timedelta(seconds=10)

# provision
BACK_OFF_FIRST = timedelta(minutes=1)
BACK_OFF_LAST = timedelta(minutes=30)
OWN_FAULT_ATTEMPTS = 3
NOT_PICKED_UP_AFTER = timedelta(minutes=2)
STRANGERS_AFTER = timedelta(minutes=5)  # a busy runner whose job is not known by then works for somebody else
BREAKER_FAILURES = 3
BREAKER_MEMORY = timedelta(hours=6)  # endings older than this are forgotten
FIRST_TRIES = 4  # workers that try at once an image which nobody has seen work within that memory
TRY_PATIENCE = timedelta(minutes=20)  # a worker that is neither online nor ended by then tells nothing
EXIT_VERSION_REFUSED = 7
NAME_TRIES = 5
JIT_PER_MINUTE = (
    150  # of one installation; a write costs 5 of GitHub's 900 points a minute, so 180 would be the end
)

# budget, as shares of what GitHub grants per hour
CLEANUP_ONLY_SHARE = 0.20  # below it repair stops
PROVISION_ONLY_SHARE = 0.05  # below it cleanup stops too

# what was not pushed is pulled
PULL_EVERY_PUSH = timedelta(minutes=1)
PULL_EVERY_PULL = timedelta(seconds=15)
PULL_TRIES = 10  # a delivery that GitHub lists but does not hand out is given up after so many …
PULL_GIVES_UP_AFTER = timedelta(hours=1)  # … over so long
DELIVERIES_KEPT = timedelta(days=3)
QUEUED_SWEEP_EVERY = timedelta(minutes=10)
QUEUED_SWEEP_REPOS = timedelta(hours=24)
QUEUED_SWEEP_RUNS = 20  # of one repository, asked in one sweep
AUTH_FAILURE_EVERY = timedelta(hours=1)  # the same failure of an installation leaves an event this often

# the process
HEARTBEAT_EVERY = timedelta(seconds=60)
SILENT_BEATS = 2  # a worker silent for longer is asked for by name
SILENT_AT_ONCE = 20  # so that a broken watch does not become a flood of requests
PRUNE_EVERY = timedelta(hours=1)
HEALTH_LIMIT = timedelta(minutes=5)
SHUTDOWN_LIMIT = timedelta(seconds=30)
CALL_DEADLINE = timedelta(seconds=30)
LOG_LINES = 200
LOG_BYTES = 32 * 1024
WEBHOOK_LIMIT = 25 * 1024 * 1024
WEBHOOK_DEADLINE = timedelta(seconds=8)

# schedules
ON_TIME = timedelta(minutes=1)  # a cron time that is later than this was missed
ONE_SHOT_AGAIN = timedelta(minutes=4)  # while too many runs of schedules wait or run
MISSED_SHOWN = 100  # missed times that get an event of their own; the rest is counted
SLOTS_COUNTED = 2_000  # past this many, missed times are only estimated
OCCURRENCES_OPEN = 200  # pending or running, over all schedules
OCCURRENCE_LEASE = timedelta(minutes=3)  # longer than all that a dispatch may ask of GitHub
OCCURRENCE_RETRY_WITHIN = timedelta(hours=2)  # GitHub's limits last an hour at most
OCCURRENCE_BACK_OFF = (timedelta(minutes=1), timedelta(minutes=2), timedelta(minutes=4))
RUNS_UNDER_WAY = 20  # earlier runs of a schedule that the flood guard asks about
RUN_LOOKED_FOR_AFTER = timedelta(seconds=5)  # GitHub started a workflow without saying which run that is
WARM_LINGERS = timedelta(
    minutes=1
)  # idle spare runners outlive their window: the next one may begin at its end
WARM_REPLACED_WITHIN = timedelta(minutes=4)  # the longest wait when GitHub removed an idle spare runner
DISPATCH_WINDOW = timedelta(minutes=1)  # around a request whose answer was lost, its run is looked for
