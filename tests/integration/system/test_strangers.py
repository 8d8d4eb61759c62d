"""Runners that GitHub gives to jobs we make none for: labels and group decide there, not the settings here."""

from pathlib import Path

import pytest

from controller.domain.constants import QUEUED_SWEEP_EVERY
from controller.simulators.github import WebhookRule
from tests.systems import a_pool, a_system

HOUR = 3600.0
SWEEP = "actions/list-workflow-runs-for-repo"


@pytest.mark.parametrize(
    ("repo", "labels"),
    [("acme/denied", ("rv1", "large")), ("acme/widgets", ("rv1",))],
    ids=["a repository that is denied", "labels that no pool serves"],
)
async def test_a_runner_that_works_on_another_job_is_nobodys_supply(
    repo: str, labels: tuple[str, ...], database_url: str, tmp_path: Path
) -> None:
    pools = [a_pool("large", ["rv1", "large"], board="rv1")]
    access = {"deny": ["acme/denied"]}
    async with a_system(database_url, tmp_path, pools=pools, boards={"rv1": 2}, access=access) as system:
        system.github.sim.add_repository("acme/denied")
        (theirs,) = system.queue(repo, *labels, seconds=HOUR)
        await system.step()
        ours = system.queue("acme/widgets", "rv1", "large")
        await system.until(system.finished(ours))
        assert system.github.sim.ledger.job(theirs).status == "in_progress"


async def test_a_runner_that_works_on_a_job_nobody_tells_us_of_is_no_supply_for_long(
    database_url: str, tmp_path: Path
) -> None:
    """The runner group serves all repositories, the App is installed for some."""
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system:
        system.github.sim.add_repository("acme/without-the-app")
        rules = system.github.sim.faults.webhooks.rules
        rules += [WebhookRule("lose", action=action) for action in ("queued", "in_progress")]
        (theirs,) = system.queue("acme/without-the-app", "rv1", seconds=HOUR)
        await system.step()
        ours = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(ours))
        assert system.github.sim.ledger.job(theirs).status == "in_progress"


async def test_short_jobs_of_a_denied_repository_close_no_board_for_others(
    database_url: str, tmp_path: Path
) -> None:
    access = {"deny": ["acme/denied"]}
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}, access=access
    ) as system:
        system.github.sim.add_repository("acme/denied")
        system.queue("acme/denied", "rv1", jobs=8, seconds=10)
        await system.until(system.finished(system.queue("acme/widgets", "rv1", jobs=2)))
        await system.step()
        assert set(await system.statuses("workers")) == {"completed"}
        assert not await system.rows("SELECT 1 FROM holds")


async def test_runs_of_a_denied_repository_are_not_swept_for_jobs(database_url: str, tmp_path: Path) -> None:
    """That a runner of ours once had one of its jobs does not let the others in."""
    access = {"deny": ["acme/denied"]}
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}, access=access
    ) as system:
        system.github.sim.add_repository("acme/denied")
        (theirs,) = system.queue("acme/denied", "rv1", seconds=10)
        await system.until(system.finished([*system.queue("acme/widgets", "rv1", jobs=2), theirs]))
        await system.step(QUEUED_SWEEP_EVERY.total_seconds())
        swept = {each.path for each in system.github.sim.requests if each.operation == SWEEP}
        assert [path for path in swept if "/acme/widgets/" in path]
        assert not [path for path in swept if "/acme/denied/" in path]
