"""Whatever the situation: nobody is forgotten, and nothing is promised twice."""

from collections import Counter
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from controller.decide.capacity import Claim, SlotMap, free_slots
from controller.decide.demand import Funds, Share, Situation, match_demand
from controller.decide.trials import try_again, try_first
from controller.domain.jobs import Entity, EntityType, Job, Mark
from controller.domain.pools import Catalogue, Pool
from controller.domain.sightings import Node, NodeView, PodView
from controller.domain.workers import Worker, WorkerStatus
from tests.unit.decide.builders import BOARD, NOW, a_job, a_node, a_worker, ago

ENTITIES = [Entity(n, f"org-{n}", EntityType.ORGANIZATION) for n in (1, 2)] + [
    Entity(3, "jane", EntityType.USER)
]
ZONE = {BOARD: "x", "zone": "a"}
CATALOGUE = Catalogue(
    (
        Pool("any", "x", (("x",),), "image", {BOARD: "x"}),
        Pool("zone", "x", (("x", "zone"),), "image", ZONE),
        Pool("other", "y", (("y",),), "image", {BOARD: "y"}),
    )
)
LABELS = st.sampled_from([("x",), ("x", "zone"), ("y",), ("nobody",)])
APPS = {"111": EntityType.ORGANIZATION, "222": EntityType.USER}


@st.composite
def jobs(draw: st.DrawFn) -> list[Job]:
    made = []
    for number in range(draw(st.integers(0, 12))):
        entity = draw(st.sampled_from(ENTITIES))
        made.append(
            a_job(
                job_id=number + 1,
                entity=entity,
                app_id=draw(st.sampled_from(["111", "222"])),
                repo=f"{entity.name}/{draw(st.sampled_from(['one', 'two']))}",
                installation_id=entity.id,
                labels=draw(LABELS),
                created_at=ago(draw(st.integers(0, 5))),
                mark=draw(st.sampled_from([None, None, None, *Mark])),
                confirmed=draw(st.booleans()),
                retry_after=draw(st.sampled_from([None, NOW, NOW + timedelta(seconds=1)])),
            )
        )
    return sorted(made, key=lambda job: (job.created_at, job.job_id))


@st.composite
def workers(draw: st.DrawFn) -> list[Worker]:
    made = []
    for number in range(draw(st.integers(0, 8))):
        entity = draw(st.sampled_from(ENTITIES))
        labels = draw(LABELS)
        pool = CATALOGUE.serving(labels)
        made.append(
            a_worker(
                f"w-{number}",
                entity=entity,
                labels=labels,
                pool=pool.name if pool else "gone",
                repo=f"{entity.name}/one",
                status=draw(st.sampled_from(list(WorkerStatus))),
                pod_at=draw(st.sampled_from([None, ago(60)])),
                pod_ended_at=draw(st.sampled_from([None, ago(1)])),
                ending_reason=draw(st.sampled_from([None, "runner_idle"])),
                idle_since=draw(st.sampled_from([None, ago(10), ago(500)])),
                job_id=draw(st.sampled_from([None, 99])),
            )
        )
    return made


@st.composite
def nodes(draw: st.DrawFn) -> list[Node]:
    labels = [{BOARD: "x"}, ZONE, {BOARD: "y"}]
    return [
        a_node(f"board-{n}", labels=draw(st.sampled_from(labels)), slots=draw(st.integers(0, 2)))
        for n in range(draw(st.integers(0, 5)))
    ]


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    boards = draw(nodes())
    held = draw(workers())
    claims = [
        Claim(pool.selector)
        for worker in held
        if worker.holds_pod and (pool := CATALOGUE.named(worker.pool)) is not None
    ]
    view = NodeView({node.name: node for node in boards}, 1)
    shares = {e.id: Share(draw(st.sampled_from([None, 0, 1, 3])), draw(st.integers(1, 10))) for e in ENTITIES}
    return Situation(
        now=NOW,
        jobs=draw(jobs()),
        workers=held,
        slots=free_slots(view, PodView({}, 1), claims, frozenset()),
        catalogue=CATALOGUE,
        share=lambda entity: shares[entity.id],
        allowed=lambda job: True,
        apps=APPS,
        funds={e.id: Funds(draw(st.integers(0, 4))) for e in ENTITIES[:2]},
        trials=draw(st.sampled_from([{}, {"any": try_again("failed")}, {"any": try_first("image")}])),
        fair=draw(st.booleans()),
    )


@given(situations())
def test_every_pending_job_has_exactly_one_answer(situation: Situation) -> None:
    found = match_demand(situation)
    answered = [step.job.job_id for step in found.steps] + [skip.job.job_id for skip in found.skips]
    assert sorted(answered) == sorted(job.job_id for job in situation.jobs)


@given(situations())
def test_no_board_is_promised_more_often_than_it_has_slots(situation: Situation) -> None:
    found = match_demand(situation)
    promised = Counter(step.node for step in found.steps)
    slots = situation.slots
    assert isinstance(slots, SlotMap)
    for step in found.steps:
        assert step.pool.selector.items() <= slots.fleet.nodes[step.node].labels.items()
    assert all(count <= slots.left[node] for node, count in promised.items())


@given(situations())
def test_no_cap_is_exceeded(situation: Situation) -> None:
    steps = Counter(step.job.entity.id for step in match_demand(situation).steps)
    held = Counter(worker.entity.id for worker in situation.workers if worker.holds_pod)
    for entity in ENTITIES:
        cap = situation.share(entity).max_workers
        if cap is not None and steps[entity.id]:
            assert steps[entity.id] + held[entity.id] <= cap


@given(situations())
def test_no_budget_is_overspent(situation: Situation) -> None:
    steps = Counter(step.job.installation_id for step in match_demand(situation).steps)
    assert all(steps[each] <= funds.runners for each, funds in situation.funds.items())


@given(situations())
def test_no_more_workers_are_made_than_jobs_wait_for(situation: Situation) -> None:
    demand = Counter(job.key for job in situation.jobs if job.mark is None and job.confirmed)
    supply = Counter(worker.key for worker in situation.workers if worker.free)
    for key, count in Counter(step.job.key for step in match_demand(situation).steps).items():
        assert count <= demand[key] - supply[key]


@given(situations())
def test_a_pool_that_is_tried_has_no_more_unproven_workers_than_may_try(situation: Situation) -> None:
    for pool, trial in situation.trials.items():
        made = [step for step in match_demand(situation).steps if step.pool.name == pool]
        unproven = [w for w in situation.workers if w.free and w.pool == pool and w.online_at is None]
        assert len(made) <= max(0, trial.workers - len(unproven))


@given(situations())
def test_the_same_situation_gives_the_same_plan(situation: Situation) -> None:
    assert match_demand(situation) == match_demand(situation)
