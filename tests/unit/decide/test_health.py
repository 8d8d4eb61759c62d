"""Which live workers the health checks end, on both sides of every limit."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decide.health import IMAGE_ERRORS, Keep, Kill, Verdict, check_health, classify_worker
from controller.domain.changes import Decided, EndRunnerThenPod, Intend, ReadRunner
from controller.domain.jobs import JobStatus
from controller.domain.reasons import Reason
from controller.domain.sightings import Pod, PodPhase, Unknown
from controller.domain.views import HealthLimits
from controller.domain.workers import Worker, WorkerStatus
from tests.unit.decide.builders import LIMITS, NAME, NOW, SCOPE, a_pod, a_runner, a_view, a_worker, ago

OFFLINE = ReadRunner(NAME, NOW, listed=True, online=False, busy=False)
UNLISTED = ReadRunner(NAME, NOW, listed=False, online=False, busy=False)
IDLE = ReadRunner(NAME, NOW, listed=True, online=True, busy=False)
BUSY = ReadRunner(NAME, NOW, listed=True, online=True, busy=True)
QUIET: dict[str, Any] = {"not_busy_since": ago(60)}
ONLINE: dict[str, Any] = {"online_at": ago(700), "idle_since": ago(700), **QUIET}


def verdict(
    worker: Worker, pod: Pod | None, reading: ReadRunner | None = None, limits: HealthLimits = LIMITS
) -> Verdict:
    return classify_worker(worker, pod, reading, limits, NOW)


@pytest.mark.parametrize(("age", "expected"), [(120, Keep()), (121, Kill(Reason.RUNNER_NEVER_REGISTERED))])
@pytest.mark.parametrize("reading", [OFFLINE, UNLISTED])
def test_a_runner_may_take_two_minutes_to_come_online(
    age: int, expected: Verdict, reading: ReadRunner
) -> None:
    assert verdict(a_worker(**QUIET), a_pod(running_at=ago(age)), reading) == expected


def test_a_pools_own_registration_timeout_counts() -> None:
    slow = HealthLimits(
        LIMITS.registration,
        LIMITS.idle,
        LIMITS.pod_pending,
        LIMITS.drain,
        LIMITS.pod_delete_grace,
        {"x": timedelta(seconds=300)},
    )
    worker = a_worker(**QUIET)
    assert verdict(worker, a_pod(running_at=ago(300)), OFFLINE, slow) == Keep()
    assert verdict(worker, a_pod(running_at=ago(301)), OFFLINE, slow) == Kill(Reason.RUNNER_NEVER_REGISTERED)


def test_a_board_whose_clock_is_ahead_gives_its_runner_no_longer() -> None:
    worker = a_worker(running_at=ago(121), **QUIET)  # as it was noticed
    assert verdict(worker, a_pod(running_at=ago(-3600)), OFFLINE) == Kill(Reason.RUNNER_NEVER_REGISTERED)


@pytest.mark.parametrize(("since", "expected"), [(300, Keep()), (301, Kill(Reason.POD_MISSING))])
@pytest.mark.parametrize("known", [QUIET, ONLINE])
def test_a_deleted_pod_that_does_not_go_is_given_up_after_the_drain_timeout(
    since: int, expected: Verdict, known: dict[str, Any]
) -> None:
    assert verdict(a_worker(**known), a_pod(deleting_since=ago(since)), OFFLINE) == expected


def test_a_deleted_pod_that_does_not_go_is_kept_while_its_runner_may_be_busy() -> None:
    hung = a_pod(deleting_since=ago(9_999))
    assert verdict(a_worker(job_id=1, job_status=JobStatus.RUNNING, **QUIET), hung, OFFLINE) == Keep()
    assert verdict(a_worker(**QUIET), hung, BUSY) == Keep()
    assert verdict(a_worker(**QUIET), hung) == Keep()
    assert verdict(a_worker(), hung, OFFLINE) == Keep()


@pytest.mark.parametrize("phase", [PodPhase.SUCCEEDED, PodPhase.FAILED])
def test_an_ended_pod_is_nobodys_to_kill(phase: PodPhase) -> None:
    assert verdict(a_worker(**QUIET), a_pod(phase=phase), UNLISTED) == Keep()


def test_presence_in_the_list_does_not_prove_that_a_runner_came_online() -> None:
    assert verdict(a_worker(**QUIET), a_pod(), OFFLINE) == Kill(Reason.RUNNER_NEVER_REGISTERED)


@pytest.mark.parametrize(("age", "expected"), [(600, Keep()), (601, Kill(Reason.POD_STUCK_PENDING))])
def test_a_pod_may_stay_pending_for_ten_minutes(age: int, expected: Verdict) -> None:
    pod = a_pod(phase=PodPhase.PENDING, created_at=ago(age), accepted_at=None, running_at=None)
    assert verdict(a_worker(), pod) == expected


def test_an_invalid_image_name_is_hopeless_at_once() -> None:
    pod = a_pod(phase=PodPhase.PENDING, created_at=NOW, accepted_at=NOW, waiting="InvalidImageName")
    assert verdict(a_worker(), pod) == Kill(Reason.POD_STUCK_PENDING)


@pytest.mark.parametrize(("waited", "expected"), [(60, Keep()), (61, Kill(Reason.POD_STUCK_PENDING))])
@pytest.mark.parametrize("waiting", sorted(IMAGE_ERRORS))
def test_image_and_configuration_errors_get_a_minute(waiting: str, waited: int, expected: Verdict) -> None:
    pod = a_pod(phase=PodPhase.PENDING, accepted_at=ago(waited), waiting=waiting)
    assert verdict(a_worker(), pod) == expected


@pytest.mark.parametrize("waiting", [None, "ContainerCreating", "PodInitializing"])
def test_a_pod_that_is_being_started_is_left_alone(waiting: str | None) -> None:
    assert verdict(a_worker(), a_pod(phase=PodPhase.PENDING, waiting=waiting)) == Keep()


@pytest.mark.parametrize(("idle", "expected"), [(600, Keep()), (601, Kill(Reason.RUNNER_IDLE))])
def test_a_runner_may_idle_for_ten_minutes(idle: int, expected: Verdict) -> None:
    worker = a_worker(online_at=ago(2000), idle_since=ago(idle), not_busy_since=ago(idle))
    assert verdict(worker, a_pod(), IDLE) == expected


@pytest.mark.parametrize(("idle", "expected"), [(600, Keep()), (601, Kill(Reason.RUNNER_IDLE))])
@pytest.mark.parametrize("earlier", ["online_at", "not_busy_since"])
def test_a_runner_that_went_offline_may_idle_for_ten_minutes_too(
    idle: int, earlier: str, expected: Verdict
) -> None:
    times: dict[str, Any] = {"online_at": ago(idle), "not_busy_since": ago(idle), earlier: ago(2000)}
    assert verdict(a_worker(**times), a_pod(), OFFLINE) == expected


def test_a_runner_that_has_just_come_online_has_not_idled_yet() -> None:
    assert verdict(a_worker(not_busy_since=ago(2000)), a_pod(), IDLE) == Keep()
    assert verdict(a_worker(online_at=ago(2000), not_busy_since=ago(2000)), a_pod(), IDLE) == Keep()


def test_a_runner_that_went_offline_is_left_alone_at_first_or_while_busy() -> None:
    assert verdict(a_worker(**ONLINE), a_pod(), OFFLINE) == Keep()  # the reading before showed it online
    lost = a_worker(online_at=ago(2000), not_busy_since=ago(2000))
    assert verdict(lost, a_pod(), ReadRunner(NAME, NOW, listed=True, online=False, busy=True)) == Keep()
    assert verdict(lost, a_pod(), None) == Keep()
    bound = a_worker(online_at=ago(2000), not_busy_since=ago(2000), job_id=1, job_status=JobStatus.RUNNING)
    assert verdict(bound, a_pod(), OFFLINE) == Keep()


def test_no_window_keeps_a_runner_that_went_offline() -> None:
    worker = a_worker(online_at=ago(2000), not_busy_since=ago(700))
    runners = {worker.scope: (a_runner(online=False),)}
    decided = check_health(a_view([worker], [a_pod()], runners=runners, kept=frozenset({NAME})))
    assert Intend(NAME, Reason.RUNNER_IDLE) in decided.changes


@pytest.mark.parametrize(("since", "expected"), [(300, Keep()), (301, Kill(Reason.POD_STUCK_AFTER_JOB))])
def test_a_pod_may_outlive_its_job_by_the_drain_timeout(since: int, expected: Verdict) -> None:
    worker = a_worker(job_id=1, job_status=JobStatus.COMPLETED, job_ended_at=ago(since))
    assert verdict(worker, a_pod()) == expected


def test_a_registration_that_github_removed_ends_the_worker_at_the_second_absence() -> None:
    missed_once = {**ONLINE, "idle_since": None}
    assert verdict(a_worker(**ONLINE), a_pod(), UNLISTED) == Keep()
    assert verdict(a_worker(**missed_once), a_pod(), UNLISTED) == Kill(Reason.RUNNER_REMOVED)


@pytest.mark.parametrize(
    ("since", "expected"), [(None, Keep()), (59, Keep()), (60, Kill(Reason.RUNNER_NEVER_REGISTERED))]
)
def test_busy_runners_are_not_killed_on_a_stale_reading(since: int | None, expected: Verdict) -> None:
    worker = a_worker(not_busy_since=ago(since) if since is not None else None)
    assert verdict(worker, a_pod(), OFFLINE) == expected


LONG_AGO = st.integers(min_value=0, max_value=10**6)
READINGS = st.sampled_from([None, OFFLINE, UNLISTED, IDLE, BUSY])
PODS = st.builds(
    lambda phase, age, waiting: a_pod(
        phase=phase, created_at=ago(age), accepted_at=ago(age), running_at=ago(age), waiting=waiting
    ),
    st.sampled_from(list(PodPhase)),
    LONG_AGO,
    st.sampled_from([None, "ErrImagePull", "InvalidImageName"]),
)


@given(PODS, READINGS, LONG_AGO)
def test_a_worker_with_an_unfinished_job_is_never_killed(
    pod: Pod, reading: ReadRunner | None, since: int
) -> None:
    worker = a_worker(
        job_id=1,
        job_status=JobStatus.RUNNING,
        online_at=ago(since),
        idle_since=ago(since),
        not_busy_since=ago(since),
    )
    assert verdict(worker, pod, reading) == Keep()


@given(PODS, LONG_AGO)
def test_a_busy_reading_never_leads_to_a_kill_of_a_started_runner(pod: Pod, since: int) -> None:
    if pod.phase is PodPhase.PENDING:
        return  # its container never ran
    worker = a_worker(online_at=ago(since), idle_since=ago(since), not_busy_since=ago(since))
    assert verdict(worker, pod, BUSY) == Keep()


@given(READINGS, LONG_AGO)
def test_without_a_pod_the_health_checks_do_nothing(reading: ReadRunner | None, since: int) -> None:
    worker = a_worker(online_at=ago(since), idle_since=ago(since), not_busy_since=ago(since))
    assert verdict(worker, None, reading) == Keep()
    assert verdict(worker, a_pod(deleting_since=ago(1)), reading) == Keep()


@pytest.mark.parametrize("lists", [{}, {SCOPE: Unknown("timed out")}])
def test_a_failed_runner_list_is_not_an_empty_one(lists: dict[Any, Any]) -> None:
    worker = a_worker(**ONLINE)
    never = a_worker("rise-riscv-runner-000000002", **QUIET)
    decided = check_health(a_view([worker, never], [a_pod(), a_pod(never.name)], runners=lists))
    assert decided.changes == ()
    assert decided.effects == ()


def test_an_empty_runner_list_is_a_reading() -> None:
    decided = check_health(a_view([a_worker(**QUIET)], [a_pod()], runners={SCOPE: ()}))
    assert decided.changes == (UNLISTED, Intend(NAME, Reason.RUNNER_NEVER_REGISTERED))


def test_a_list_says_who_is_online_and_in_which_version() -> None:
    runner = a_runner(version="2.335.0", busy=True)
    decided = check_health(a_view([a_worker()], [a_pod()], runners={SCOPE: (runner,)}))
    assert decided.changes == (ReadRunner(NAME, NOW, True, True, True, 900, "2.335.0"),)


def test_a_kill_is_an_intent_first_and_names_what_is_needed_to_carry_it_out() -> None:
    pod = a_pod(phase=PodPhase.PENDING, created_at=ago(601), accepted_at=None, running_at=None)
    decided = check_health(a_view([a_worker(runner_id=7)], [pod]))
    assert decided.changes == (Intend(NAME, Reason.POD_STUCK_PENDING),)
    assert decided.effects == (
        EndRunnerThenPod(NAME, Reason.POD_STUCK_PENDING, SCOPE, 7, pod_seen=True, pod_accepted=False),
    )


def test_an_intent_of_an_earlier_leader_is_carried_on_with_and_not_decided_again() -> None:
    worker = a_worker(ending_reason="runner_idle")
    for pods, seen in (([a_pod()], True), ([], False)):
        decided = check_health(a_view([worker], pods))
        assert decided.changes == ()
        assert decided.effects == (
            EndRunnerThenPod(NAME, Reason.RUNNER_IDLE, SCOPE, None, pod_seen=seen, pod_accepted=seen),
        )


def test_an_ended_worker_is_not_looked_at() -> None:
    ended = a_worker(status=WorkerStatus.COMPLETED, **ONLINE)
    assert check_health(a_view([ended], [a_pod()], runners={SCOPE: ()})) == Decided()


@pytest.mark.parametrize(
    ("quiet", "busy", "killed"), [(60, False, True), (59, False, False), (60, True, False)]
)
def test_a_spare_runner_that_stands_in_a_jobs_way_ends_as_soon_as_it_is_known_to_be_idle(
    quiet: int, busy: bool, killed: bool
) -> None:
    worker = a_worker(online_at=ago(90), idle_since=ago(90), not_busy_since=ago(quiet))
    runners = {worker.scope: (a_runner(online=True, busy=busy),)}
    view = a_view([worker], [a_pod()], runners=runners, ending=frozenset({NAME}))
    assert any(isinstance(change, Intend) for change in check_health(view).changes) == killed


@pytest.mark.parametrize(("kept", "killed"), [(frozenset(), True), (frozenset({NAME}), False), (None, False)])
def test_an_idle_worker_that_a_warm_window_keeps_or_may_keep_is_spared(
    kept: frozenset[str] | None, killed: bool
) -> None:
    worker = a_worker(**ONLINE)
    view = a_view([worker], [a_pod()], runners={worker.scope: (a_runner(online=True),)}, kept=kept)
    assert any(isinstance(change, Intend) for change in check_health(view).changes) == killed


@pytest.mark.parametrize(
    ("ended", "refused", "killed"),
    [(310, 59, False), (310, 60, False), (310, 63, True), (2000, 299, False), (2000, 300, True)],
)
def test_a_kill_that_github_refused_is_tried_again_in_a_while_and_ever_more_seldom(
    ended: int, refused: int, killed: bool
) -> None:
    job: dict[str, Any] = {"job_id": 7, "job_status": JobStatus.COMPLETED, "job_ended_at": ago(ended)}
    worker = a_worker(**job, ending_since=ago(refused))
    decided = check_health(a_view([worker], [a_pod()]))
    assert [change.reason for change in decided.changes if isinstance(change, Intend)] == (
        [Reason.POD_STUCK_AFTER_JOB] if killed else []
    )


def test_an_end_that_is_decided_is_carried_out_whenever_it_was_decided() -> None:
    worker = a_worker(ending_reason="pod_stuck_pending", ending_since=NOW)
    assert len(check_health(a_view([worker], [a_pod()])).effects) == 1
