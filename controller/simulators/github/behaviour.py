"""How the simulated GitHub behaves where the real one varies; tests change fields while it runs."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(slots=True)
class Behaviour:
    """Time limits are GitHub's own; the switches are things that were observed there now and then."""

    idle_offline_after: timedelta = timedelta(seconds=60)
    busy_offline_after: timedelta = timedelta(seconds=90)  # a lease is renewed each minute
    pickup_within: timedelta = timedelta(seconds=60)  # then the job is queued again
    lease: timedelta = timedelta(minutes=10)  # without renewal: job failed, runner forgotten
    cancel_within: timedelta = timedelta(minutes=5)  # then a cancelled job ends without its runner
    queue_limit: timedelta = timedelta(hours=24)
    remove_offline_after: timedelta = timedelta(days=1)
    remove_idle_after: timedelta | None = None  # since 2026-09 seen at 5–6 min
    token_life: timedelta = timedelta(hours=1)
    deliveries_kept: timedelta = timedelta(days=3)
    answer_within: timedelta = timedelta(seconds=10)  # real time: then a delivery has failed
    jwt_leeway: timedelta = timedelta(0)
    stateless_tokens: bool = True  # ghs_<APPID>_<JWT>, else ghs_ and 36 characters
    busy_lag: timedelta = timedelta(0)  # REST shows `busy` as it was then
    shuffle_lists: bool = False  # every page of a runner list is cut from a new order
    numeric_links: bool = False  # Link uses /organizations/ID and /repositories/ID
    absent_runner_is_zero: bool = False  # runner_id 0 and runner_name "" instead of nulls
    assign_at_random: bool = False  # any matching idle runner, else the one idle longest
    tells_started_run: bool = True  # Enterprise Server before 3.21 refuses to be asked for it
