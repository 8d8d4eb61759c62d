"""Which pending jobs get a worker, and the first reason why the others do not."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from controller.decide.capacity import Claim, SlotMap, free_slots
from controller.decide.demand import Funds, Plan, Share, Situation, Skipped, match_demand
from controller.decide.trials import Trial, try_again, try_first
from controller.domain.constants import TRY_PATIENCE
from controller.domain.holds import Hold, Holds, HoldScope, HoldWhy
from controller.domain.jobs import Entity, EntityType, Job, JobStatus, Mark
from controller.domain.pools import Catalogue, Pool
from controller.domain.reasons import Skip
from controller.domain.schedules import Floor
from controller.domain.sightings import Node, NodeView, PodView, Unknown
from controller.domain.workers import Worker, WorkerStatus
from tests.unit.decide.builders import ACME, BOARD, JANE, NAME, NOW, a_job, a_node, a_worker, ago

OTHER = Entity(7, "other", EntityType.ORGANIZATION)
X = Pool("x", "x", (("x",), ("x", "large")), "image", {BOARD: "x"})
Y = Pool("y", "x", (("y",),), "image", {BOARD: "x"})  # another pool on the same boards
Z = Pool("z", "z", (("z",),), "image", {BOARD: "z"})
CATALOGUE = Catalogue((X, Y, Z))
APPS = {"111": EntityType.ORGANIZATION, "222": EntityType.USER}


def boards(count: int, board: str = "x") -> list[Node]:
    return [a_node(f"{board}-{number}", labels={BOARD: board}) for number in range(count)]


def slots(nodes: Sequence[Node], claims: Sequence[Claim] = ()) -> SlotMap:
    return free_slots(NodeView({node.name: node for node in nodes}, 1), PodView({}, 1), claims, frozenset())


def plan(jobs: Sequence[Job], workers: Sequence[Worker] = (), free: int = 10, **fields: Any) -> Plan:
    """Match, with so many free boards of type x, no limits and no holds."""
    values: dict[str, Any] = {
        "slots": slots(boards(free)),
        "catalogue": CATALOGUE,
        "share": lambda entity: Share(None, 5),
        "allowed": lambda job: True,
        "apps": APPS,
    }
    ordered = sorted(jobs, key=lambda job: (job.created_at, job.job_id))
    return match_demand(Situation(NOW, ordered, list(workers), **(values | fields)))


def reasons(found: Plan) -> dict[int, str]:
    """Job → reason, or the node whose slot it got."""
    return {skip.job.job_id: skip.reason.value for skip in found.skips} | {
        step.job.job_id: step.node for step in found.steps
    }


def only_skip(found: Plan) -> Skipped:
    assert found.steps == ()
    (skip,) = found.skips
    return skip


def only_reason(found: Plan) -> Skip:
    (reason,) = {skip.reason for skip in found.skips}
    return reason


def served(found: Plan) -> list[int]:
    return [step.job.job_id for step in found.steps]


def a_hold(scope: HoldScope, target: str, **fields: Any) -> Holds:
    return Holds.of([Hold(scope, target, HoldWhy.PAUSE, "ada", NOW, **fields)])


def test_while_others_back_off_a_ready_job_gets_one_worker_at_a_time() -> None:
    """Each failure counts on the job that its worker was made for: more at once would be one outage counted often."""
    resting = [a_job(job_id=job_id, retry_after=NOW + timedelta(minutes=1)) for job_id in (1, 2, 3)]
    ready = a_job(job_id=4)
    assert served(plan([*resting, ready])) == [4]
    found = plan([*resting, ready], [a_worker("w-1", made_for=4)])
    assert (served(found), reasons(found)[4]) == ([], "runner_on_its_way")
    assert served(plan([*resting, ready], [a_worker("w-1", made_for=1)])) == [4]


def test_the_job_that_has_no_worker_of_its_own_is_the_one_that_gets_the_next() -> None:
    late, first = a_job(job_id=1, created_at=ago(60)), a_job(job_id=2, created_at=ago(30))
    assert served(plan([late, first], [a_worker("w-1", made_for=2)])) == [1]


def test_a_pending_job_beside_a_free_board_gets_a_worker() -> None:
    job = a_job()
    (step,) = plan([job], free=1).steps
    assert (step.job, step.pool, step.node) == (job, X, "x-0")


@pytest.mark.parametrize(
    ("job", "fields", "reason"),
    [
        (a_job(mark=Mark.CANCELLED), {}, Skip.CANCELLED),
        (a_job(mark=Mark.GAVE_UP), {}, Skip.GAVE_UP),
        (a_job(confirmed=False), {}, Skip.NOT_CONFIRMED),
        (a_job(), {"allowed": lambda job: False}, Skip.NOT_ALLOWED),
        (a_job(app_id="222"), {}, Skip.WRONG_APP),
        (a_job(app_id="333"), {}, Skip.WRONG_APP),
        (a_job(), {"suspended": frozenset({31})}, Skip.INSTALLATION_SUSPENDED),
        (a_job(labels=("windows",)), {}, Skip.NO_POOL),
        (a_job(), {"holds": a_hold(HoldScope.POOL, "x")}, Skip.HELD),
        (a_job(), {"holds": a_hold(HoldScope.ENTITY, "acme")}, Skip.HELD),
        (a_job(retry_after=NOW + timedelta(seconds=1)), {}, Skip.BACKING_OFF),
        (a_job(), {"share": lambda entity: Share(0, 5)}, Skip.ENTITY_AT_MAX_WORKERS),
        (a_job(), {"slots": Unknown("the watch is stale")}, Skip.CLUSTER_UNKNOWN),
        (a_job(), {"slots": slots([])}, Skip.NO_FREE_SLOTS),
        (a_job(), {"funds": {31: Funds(0, NOW)}}, Skip.GITHUB_BUDGET_LOW),
    ],
)
def test_every_skip_has_its_reason(job: Job, fields: dict[str, Any], reason: Skip) -> None:
    assert only_skip(plan([job], **fields)).reason is reason


ALL_AT_ONCE: list[tuple[Skip, dict[str, Any], dict[str, Any]]] = [
    (Skip.CANCELLED, {"mark": Mark.CANCELLED}, {}),
    (Skip.NOT_CONFIRMED, {"confirmed": False}, {}),
    (Skip.NOT_ALLOWED, {}, {"allowed": lambda job: False}),
    (Skip.WRONG_APP, {"app_id": "333"}, {}),
    (Skip.INSTALLATION_SUSPENDED, {}, {"suspended": frozenset({31})}),
    (Skip.HELD, {}, {"holds": a_hold(HoldScope.POOL, "x")}),
    (Skip.BACKING_OFF, {"retry_after": NOW + timedelta(minutes=1)}, {}),
    (Skip.ENTITY_AT_MAX_WORKERS, {}, {"share": lambda entity: Share(0, 5)}),
    (Skip.NO_FREE_SLOTS, {}, {"slots": slots([])}),
    (Skip.GITHUB_BUDGET_LOW, {}, {"funds": {31: Funds(0, NOW)}}),
]


@pytest.mark.parametrize("first", range(len(ALL_AT_ONCE)))
def test_the_first_reason_that_applies_is_given(first: int) -> None:
    job: dict[str, Any] = {}
    situation: dict[str, Any] = {}
    for _, of_job, of_situation in ALL_AT_ONCE[first:]:
        job |= of_job
        situation |= of_situation
    assert only_skip(plan([a_job(**job)], **situation)).reason is ALL_AT_ONCE[first][0]


def test_a_job_that_matches_no_pool_is_told_the_nearest_labels() -> None:
    assert only_skip(plan([a_job(labels=("tiny", "x"))])).detail == {"nearest": ["x"]}
    assert only_skip(plan([a_job(labels=("windows",))])).detail == {"nearest": None}


@pytest.mark.parametrize(("until", "held"), [(None, True), (1, True), (0, False), (-1, False)])
def test_a_hold_counts_until_its_time(until: int | None, held: bool) -> None:
    ends = None if until is None else NOW + timedelta(seconds=until)
    found = plan([a_job()], holds=a_hold(HoldScope.ENTITY, "acme", until=ends))
    assert bool(found.skips) is held


def test_an_entity_is_held_whatever_the_case_of_its_login() -> None:
    job = a_job(entity=Entity(5, "AcMe", EntityType.ORGANIZATION))
    assert only_skip(plan([job], holds=a_hold(HoldScope.ENTITY, "acme"))).reason is Skip.HELD


@pytest.mark.parametrize(
    ("pool_for", "owner_for", "told"),
    [(1, 2, "entity"), (2, 1, "pool"), (1, None, "entity"), (None, 1, "pool"), (None, None, "pool")],
)
def test_a_job_that_is_held_twice_is_told_what_lasts_longer(
    pool_for: int | None, owner_for: int | None, told: str
) -> None:
    def until(hours: int | None) -> datetime | None:
        return NOW + timedelta(hours=hours) if hours is not None else None

    on_pool = a_hold(HoldScope.POOL, "x", until=until(pool_for))
    on_owner = a_hold(HoldScope.ENTITY, "acme", until=until(owner_for))
    both = Holds({**on_pool.by_target, **on_owner.by_target})
    assert only_skip(plan([a_job()], holds=both)).detail["scope"] == told


@pytest.mark.parametrize(("after", "waits"), [(1, True), (0, False), (-1, False)])
def test_a_job_backs_off_until_its_time(after: int, waits: bool) -> None:
    found = plan([a_job(retry_after=NOW + timedelta(seconds=after))])
    assert bool(found.skips) is waits


def test_supply_that_meets_demand_is_on_its_way() -> None:
    skip = only_skip(plan([a_job()], [a_worker()]))
    assert skip.reason is Skip.RUNNER_ON_ITS_WAY
    assert skip.detail == {"workers": 1, "stages": {"pod": 1}, "names": [NAME]}


def test_the_stages_of_those_on_their_way_are_told() -> None:
    stages: dict[str, dict[str, Any]] = {
        "reserved": {"pod_at": None},
        "jit": {"pod_at": None, "jit_at": ago(1)},
        "pod": {},
        "running": {"running_at": ago(1)},
        "online": {"running_at": ago(2), "online_at": ago(1)},
        "ended": {"pod_ended_at": ago(1)},
    }
    workers = [a_worker(name, **fields) for name, fields in stages.items()]
    skips = plan([a_job() for _ in workers], workers).skips
    assert skips[0].detail["stages"] == dict.fromkeys(sorted(stages), 1)


def test_only_what_supply_does_not_cover_gets_workers_and_the_oldest_are_covered() -> None:
    jobs = [a_job(created_at=ago(age)) for age in (50, 40, 30)]
    found = plan(jobs, [a_worker()])
    assert [skip.job for skip in found.skips] == jobs[:1]
    assert [step.job for step in found.steps] == jobs[1:]


@pytest.mark.parametrize(
    "worker",
    [
        a_worker(status=WorkerStatus.FAILED),
        a_worker(status=WorkerStatus.COMPLETED),
        a_worker(ending_reason="runner_idle"),
        a_worker(job_id=1, job_status=JobStatus.RUNNING),
        a_worker(job_id=1, job_status=JobStatus.COMPLETED),
        a_worker(entity=OTHER),
        a_worker(labels=("large", "x")),
        a_worker(busy_since=ago(300)),
    ],
)
def test_who_is_no_supply_for_this_key(worker: Worker) -> None:
    assert len(plan([a_job()], [worker]).steps) == 1


def test_a_busy_runner_is_supply_while_its_job_may_still_become_known() -> None:
    assert only_skip(plan([a_job()], [a_worker(busy_since=ago(299))])).reason is Skip.RUNNER_ON_ITS_WAY


def test_a_finished_worker_with_a_hung_pod_is_not_supply() -> None:
    hung = a_worker(job_id=1, job_status=JobStatus.COMPLETED, job_ended_at=ago(900))
    assert len(plan([a_job()], [hung]).steps) == 1


@pytest.mark.parametrize("type_", [EntityType.ORGANIZATION, EntityType.USER])
def test_only_a_persons_repositories_are_apart(type_: EntityType) -> None:
    entity, app = (JANE, "222") if type_ is EntityType.USER else (ACME, "111")
    worker = a_worker(entity=entity, app_id=app, repo=f"{entity.name}/one")
    job = a_job(entity=entity, app_id=app, repo=f"{entity.name}/two")
    assert len(plan([job], [worker]).steps) == (1 if type_ is EntityType.USER else 0)


@pytest.mark.parametrize("fields", [{"mark": Mark.CANCELLED}, {"confirmed": False}])
def test_a_job_that_is_no_demand_leaves_the_supply_to_others(fields: dict[str, Any]) -> None:
    nothing, waiting = a_job(**fields, created_at=ago(500)), a_job()
    assert reasons(plan([nothing, waiting], [a_worker()]))[waiting.job_id] == "runner_on_its_way"


def test_a_job_that_backs_off_still_is_demand_that_a_free_worker_may_serve() -> None:
    """GitHub may hand the free worker to either job, so the other one gets a worker too."""
    waiting, other = a_job(retry_after=NOW + timedelta(minutes=1)), a_job()
    assert reasons(plan([waiting, other], [a_worker()])) == {
        waiting.job_id: "backing_off",
        other.job_id: "x-0",
    }


def test_up_to_five_of_the_runners_on_their_way_are_named() -> None:
    jobs = [a_job() for _ in range(7)]
    supply = [a_worker(f"w-{number}") for number in (6, 5, 4, 3, 2, 1, 0)]
    for skip in plan(jobs, supply).skips:
        assert skip.detail == {"workers": 7, "stages": {"pod": 7}, "names": [f"w-{n}" for n in range(5)]}


@pytest.mark.parametrize(("idle", "reason"), [(119, "runner_on_its_way"), (120, "not_picked_up")])
def test_a_runner_that_idles_beside_its_job_for_two_minutes_is_not_helped_by_another(
    idle: int, reason: str
) -> None:
    jobs = [a_job(), a_job()]
    found = reasons(plan(jobs, [a_worker(online_at=ago(500), idle_since=ago(idle))]))
    assert found[jobs[0].job_id] == reason
    assert found[jobs[1].job_id] == ("x-0" if idle < 120 else "not_picked_up")


@pytest.mark.parametrize(("held", "steps"), [(1, 2), (2, 1), (3, 0), (4, 0)])
def test_a_cap_counts_all_workers_of_the_entity_over_all_pools(held: int, steps: int) -> None:
    busy = [
        a_worker(f"w-{n}", pool="z", labels=("z",), job_id=n, job_status=JobStatus.RUNNING)
        for n in range(1, held + 1)
    ]
    found = plan([a_job() for _ in range(5)], busy, share=lambda entity: Share(3, 5))
    assert len(found.steps) == steps
    assert {skip.reason for skip in found.skips} == {Skip.ENTITY_AT_MAX_WORKERS}


@pytest.mark.parametrize(
    ("worker", "counts"),
    [
        (a_worker(ending_reason="runner_idle"), True),
        (a_worker(status=WorkerStatus.FAILED), True),
        (a_worker(status=WorkerStatus.FAILED, pod_ended_at=ago(1)), False),
        (a_worker(status=WorkerStatus.FAILED, pod_at=None), False),
        (a_worker(entity=OTHER), False),
    ],
)
def test_an_ending_worker_counts_until_its_pod_is_gone(worker: Worker, counts: bool) -> None:
    found = plan([a_job()], [worker], share=lambda entity: Share(1, 5))
    assert bool(found.skips) is counts


def test_one_entitys_cap_does_not_stop_another() -> None:
    mine = [a_job(created_at=ago(100)) for _ in range(3)]
    theirs = a_job(entity=OTHER, created_at=ago(1))
    found = plan([*mine, theirs], share=lambda entity: Share(1 if entity is ACME else None, 5))
    assert served(found) == [mine[0].job_id, theirs.job_id]


def test_two_pools_on_one_board_type_never_promise_one_board_twice() -> None:
    jobs = [a_job(labels=("x",)), a_job(labels=("y",)), a_job(labels=("x",)), a_job(labels=("y",))]
    found = plan(jobs, free=3)
    assert len({step.node for step in found.steps}) == 3
    assert only_reason(found) is Skip.NO_FREE_SLOTS


def test_a_full_pool_says_what_holds_its_boards() -> None:
    node = a_node(schedulable=False)
    skip = only_skip(plan([a_job()], slots=slots([node, a_node("board-2", ready=False)])))
    assert skip.detail == {"board": "x", "boards": 2, "states": {"cordoned": 1, "not_ready": 1}}


def test_a_full_pool_does_not_stop_another() -> None:
    waiting, other = a_job(labels=("z",)), a_job()
    assert reasons(plan([waiting, other], free=1)) == {
        waiting.job_id: "no_free_slots",
        other.job_id: "x-0",
    }


@pytest.mark.parametrize(("runners", "steps"), [(0, 0), (1, 1), (2, 2), (3, 2)])
def test_an_installations_budget_bounds_its_runners(runners: int, steps: int) -> None:
    found = plan([a_job(), a_job()], funds={31: Funds(runners, NOW + timedelta(minutes=5))})
    assert len(found.steps) == steps
    for skip in found.skips:
        assert skip.reason is Skip.GITHUB_BUDGET_LOW
        assert skip.detail == {"why": "hourly", "until": (NOW + timedelta(minutes=5)).isoformat()}


def test_a_budget_that_is_used_up_takes_no_slot_from_others() -> None:
    poor, other = a_job(created_at=ago(500)), a_job(entity=OTHER, installation_id=32)
    assert served(plan([poor, other], free=1, funds={31: Funds(0)})) == [other.job_id]


def by_name(**priorities: int) -> Callable[[Entity], Share]:
    return lambda entity: Share(None, priorities.get(entity.name, 5))


def test_without_priorities_the_oldest_job_comes_first() -> None:
    ages = (10, 300, 200, 5)
    jobs = [a_job(created_at=ago(age), entity=ACME if age % 200 else OTHER) for age in ages]
    oldest_first = sorted(jobs, key=lambda job: job.created_at)
    assert served(plan(jobs)) == [job.job_id for job in oldest_first]
    assert served(plan(jobs, free=2)) == [job.job_id for job in oldest_first[:2]]


def test_a_higher_priority_comes_before_age() -> None:
    old, new = a_job(created_at=ago(900)), a_job(created_at=ago(1), entity=OTHER)
    assert served(plan([old, new], free=1, share=by_name(other=10))) == [new.job_id]
    assert served(plan([old, new], free=1, share=by_name(other=1))) == [old.job_id]


def test_fair_gives_the_turn_to_whoever_has_the_fewest_workers() -> None:
    many = [a_job(created_at=ago(900 - n)) for n in range(4)]
    few = [a_job(created_at=ago(100 - n), entity=OTHER) for n in range(2)]
    turns = served(plan([*many, *few], fair=True))
    assert turns == [each.job_id for each in (many[0], few[0], many[1], few[1], many[2], many[3])]


def test_fair_counts_the_workers_that_are_there_already() -> None:
    busy = [a_worker(f"w-{n}", job_id=n, job_status=JobStatus.RUNNING) for n in (1, 2)]
    old, new = a_job(created_at=ago(900)), a_job(created_at=ago(1), entity=OTHER)
    assert served(plan([old, new], busy, free=1)) == [old.job_id]
    assert served(plan([old, new], busy, free=1, fair=True)) == [new.job_id]


def test_fair_does_not_overrule_priority() -> None:
    busy = [a_worker(f"w-{n}", job_id=n, job_status=JobStatus.RUNNING) for n in (1, 2)]
    old, new = a_job(created_at=ago(900)), a_job(created_at=ago(1), entity=OTHER)
    assert served(plan([old, new], busy, free=1, fair=True, share=by_name(acme=6))) == [old.job_id]


def test_a_pool_that_is_probed_gets_one_worker_until_that_one_is_proven() -> None:
    jobs = [a_job(), a_job(), a_job(labels=("y",))]
    trials = {"x": try_again("the last 3 workers failed")}
    found = plan(jobs, trials=trials)
    assert served(found) == [jobs[0].job_id, jobs[2].job_id]
    assert only_reason(found) is Skip.HELD
    unproven = a_worker(labels=("large", "x"))
    assert served(plan(jobs, [unproven], trials=trials)) == [jobs[2].job_id]


@pytest.mark.parametrize(("trying", "made"), [(0, 4), (3, 1), (4, 0), (7, 0)])
def test_an_image_that_nobody_has_seen_work_is_tried_by_four_at_a_time(trying: int, made: int) -> None:
    jobs = [a_job(job_id=number) for number in range(8)]
    others = [a_worker(f"w-{number}", labels=("large", "x")) for number in range(trying)]
    found = plan(jobs, others, trials={"x": try_first("image")})
    assert len(found.steps) == made
    assert only_reason(found) is Skip.HELD
    assert "has not been seen working in the last 6h; 4 runners" in found.skips[-1].detail["note"]


@pytest.mark.parametrize(
    ("other", "trial", "made"),
    [
        ({}, try_first("image"), 4),
        ({"y": try_first("image")}, try_first("image"), 1),
        ({"y": try_again("refused", shared=True)}, try_again("refused", shared=True), 0),
        ({"y": try_again("the last 3 workers failed")}, try_again("the last 3 workers failed"), 1),
    ],
)
def test_pools_on_trial_share_the_places_of_an_image_they_have_in_common(
    other: dict[str, Trial], trial: Trial, made: int
) -> None:
    jobs = [a_job(job_id=number, labels=("x",)) for number in range(8)]
    others = [a_worker(f"w-{number}", labels=("y",), pool="y") for number in range(3)]
    found = plan(jobs, others, trials={"x": trial, **other})
    assert len(found.steps) == made
    assert {skip.detail["target"] for skip in found.skips} == {"x"}


def test_a_step_of_one_pool_takes_the_place_of_another_with_its_image() -> None:
    jobs = [a_job(job_id=number, labels=("xy"[number % 2],)) for number in range(12)]
    found = plan(jobs, trials={"x": try_first("image"), "y": try_first("image")})
    assert sorted(served(found)) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "worker",
    [
        a_worker(labels=("large", "x"), online_at=ago(5)),
        a_worker(labels=("large", "x"), job_id=9, job_status=JobStatus.RUNNING),
        a_worker(labels=("large", "x"), ending_reason="runner_never_registered"),
        a_worker(labels=("large", "x"), image="image of last week"),
        a_worker(labels=("y",), pool="y"),
        a_worker(labels=("large", "x"), created_at=NOW - TRY_PATIENCE),
    ],
)
def test_who_does_not_try_takes_no_place_of_those_who_do(worker: Worker) -> None:
    jobs = [a_job(job_id=number) for number in range(8)]
    assert len(plan(jobs, [worker], trials={"x": try_first("image")}).steps) == 4


def test_a_spare_runner_tries_an_image_alone_and_never_what_jobs_failed_on() -> None:
    window = Floor(1, "mornings", a_job().scope, ("x",), 3, NOW + timedelta(hours=1))
    first, again = {"x": try_first("image")}, {"x": try_again("the last 3 workers failed")}
    assert len(plan([], trials=first, floors=(window,)).warm) == 1
    assert plan([], [a_worker()], trials=first, floors=(window,)).warm == ()
    assert plan([a_job(labels=("x", "large"))], trials=first, floors=(window,)).warm == ()
    assert plan([], trials=again, floors=(window,)).warm == ()


@pytest.mark.parametrize(("idle", "made"), [(30, 1), (500, 0)])
def test_jobs_that_no_runner_gets_do_not_make_a_warm_window_add_more(idle: int, made: int) -> None:
    jobs = [a_job(job_id=number, created_at=ago(900)) for number in range(3)]
    supply = [a_worker(f"w-{number}", online_at=ago(900), idle_since=ago(idle)) for number in range(3)]
    job = jobs[0]
    window = Floor(1, "mornings", job.scope, job.labels, 1, NOW + timedelta(hours=1))
    assert len(plan(jobs, supply, floors=(window,)).warm) == made


def warm_beside(job: Job, *, free: int, **fields: Any) -> Plan:
    """What becomes of an idle spare runner of acme for x, and a job of acme beside it."""
    spare = a_worker("spare", warm_for=1, online_at=ago(60), idle_since=ago(60))
    window = Floor(1, "mornings", a_job().scope, ("x",), 1, NOW + timedelta(hours=1))
    nodes = slots([*boards(free, "z"), a_node(slots=0)])
    return plan([job], [spare], slots=nodes, floors=(window,), **fields)


@pytest.mark.parametrize(
    ("labels", "cap", "free", "ending"),
    [
        (("z",), 1, 1, True),  # at its cap, and a board is free: the place is all it lacks
        (("z",), 1, 0, False),  # it would have no board all the same
        (("y",), 1, 0, True),  # place and board at once
        (("y",), None, 0, True),  # the board
        (("z",), None, 0, False),
        (("x",), 1, 0, False),  # this very runner is for it
    ],
)
def test_a_spare_runner_makes_room_for_a_job_that_needs_what_it_takes_up(
    labels: tuple[str, ...], cap: int | None, free: int, ending: bool
) -> None:
    found = warm_beside(a_job(labels=labels), free=free, share=lambda entity: Share(cap, 5))
    assert found.ending == ({"spare"} if ending else frozenset())
    assert found.kept == (frozenset() if ending else {"spare"})
    assert found.warm == ()


IDLE = a_worker("idle", node="x-9", online_at=ago(60), idle_since=ago(60))


@pytest.mark.parametrize(
    ("scope", "target", "why", "reason"),
    [
        (HoldScope.BOARD, "x-9", HoldWhy.DRAIN, None),  # another one is made, on another board
        (HoldScope.POOL, "x", HoldWhy.PAUSE, Skip.HELD),
        (HoldScope.POOL, "x", HoldWhy.QUIET_HOURS, Skip.HELD),
        (HoldScope.ENTITY, "acme", HoldWhy.PAUSE, Skip.HELD),
    ],
)
def test_an_idle_runner_where_a_hold_is_covers_no_job_and_ends(
    scope: HoldScope, target: str, why: HoldWhy, reason: Skip | None
) -> None:
    holds = Holds.of([Hold(scope, target, why, "ada", NOW)])
    job = a_job()
    for floors in ((), (Floor(1, "mornings", job.scope, ("x",), 1, NOW + timedelta(hours=1)),)):
        found = plan([job], [IDLE], holds=holds, floors=floors)
        assert found.ending == {"idle"}
        assert found.kept == frozenset()
        assert [skip.reason for skip in found.skips] == ([reason] if reason else [])
        assert served(found) == ([] if reason else [job.job_id])


@pytest.mark.parametrize(
    ("worker", "hold"),
    [
        (IDLE, Hold(HoldScope.BOARD, "x-9", HoldWhy.BREAKER, "breaker", NOW)),
        (IDLE, Hold(HoldScope.BOARD, "x-8", HoldWhy.DRAIN, "ada", NOW)),
        (IDLE, Hold(HoldScope.BOARD, "x-9", HoldWhy.DRAIN, "ada", NOW, until=NOW)),
        (replace(IDLE, idle_since=None), Hold(HoldScope.BOARD, "x-9", HoldWhy.DRAIN, "ada", NOW)),
    ],
)
def test_who_starts_or_idles_where_no_hold_is_in_force_is_left_to_its_job(worker: Worker, hold: Hold) -> None:
    found = plan([a_job()], [worker], holds=Holds.of([hold]))
    assert (only_skip(found).reason, found.ending) == (Skip.RUNNER_ON_ITS_WAY, frozenset())


def test_who_has_a_job_stays_on_a_drained_board() -> None:
    drained = Holds.of([Hold(HoldScope.BOARD, "x-9", HoldWhy.DRAIN, "ada", NOW)])
    busy = replace(IDLE, job_id=7, job_status=JobStatus.RUNNING)
    assert plan([], [busy], holds=drained).ending == frozenset()


def test_a_warm_window_fills_up_at_once_what_a_drained_board_takes_from_it() -> None:
    drained = Holds.of([Hold(HoldScope.BOARD, "x-9", HoldWhy.DRAIN, "ada", NOW)])
    window = Floor(1, "mornings", a_job().scope, ("x",), 1, NOW + timedelta(hours=1))
    spare = replace(IDLE, warm_for=1)
    assert len(plan([], [spare], holds=drained, floors=(window,)).warm) == 1
    assert plan([], [spare], floors=(window,)).warm == ()


def test_a_runner_that_works_for_a_stranger_takes_no_idle_ones_place_in_a_warm_window() -> None:
    window = Floor(1, "mornings", a_job().scope, ("x",), 2, NOW + timedelta(hours=1))
    idle = a_worker("idle", created_at=ago(1200), online_at=ago(1100), idle_since=ago(1100))
    busy = a_worker("busy", created_at=ago(900), online_at=ago(800), busy_since=ago(300))
    new = a_worker("new", created_at=ago(60))
    assert plan([], [idle, busy, new], floors=(window,)).kept == {"idle", "new"}


@pytest.mark.parametrize(
    "fields",
    [
        {"trials": {"y": try_again("the last 3 workers failed")}},
        {"forks": {77: None}},
        {"funds": {32: Funds(0)}},
    ],
    ids=["its pool is tried by another", "whether it is a fork's is asked", "it lacks requests"],
)
def test_a_warm_window_leaves_the_board_of_a_job_that_is_about_to_want_it(fields: dict[str, Any]) -> None:
    job = a_job(labels=("y",), entity=OTHER, installation_id=32)
    trying = a_worker(labels=("y",), pool="y", entity=JANE)
    window = Floor(1, "mornings", a_job().scope, ("x",), 2, NOW + timedelta(hours=1))
    found = plan([job], [trying], free=2, floors=(window,), **fields)
    assert only_reason(found) in (Skip.HELD, Skip.NOT_CONFIRMED, Skip.GITHUB_BUDGET_LOW)
    assert len(found.warm) == 1
    assert len(plan([], [trying], free=2, floors=(window,), **fields).warm) == 2
