"""The runner inside a pod, against the simulated GitHub: both clusters of the whole system on one clock."""

import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from controller.simulators.cluster import Behaviour, RunnerProgram
from controller.simulators.github import GitHubSimulator, Job, JobSpec
from controller.simulators.github.routes.runners import encode_jit_config
from tests.contract.cluster.conftest import Cluster
from tests.contract.cluster.objects import BOARD, IMAGE, Json, a_pod, a_secret, container_state
from tests.serving import serving

LABELS = ("ubuntu-24.04-riscv",)
PUBLIC_KEY = b"-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n"


@dataclass(frozen=True, slots=True)
class Farm:
    """A board whose image is the runner, and a GitHub for it."""

    cluster: Cluster
    github: GitHubSimulator

    async def start_runner(self, name: str, **env: str) -> None:
        """Register a runner and create its Secret and pod."""
        account = self.github.world.accounts["acme"]
        group = account.groups[1]
        runner = self.github.runners.register(account, None, group, name, LABELS)
        config = encode_jit_config(runner, self.github.base_url)
        await self.cluster.api.create("secrets", a_secret(name, jitconfig=config))
        reference = {"secretKeyRef": {"name": name, "key": "jitconfig"}}
        variables = [{"name": "RUNNER_JITCONFIG", "valueFrom": reference}]
        variables += [{"name": key, "value": value} for key, value in env.items()]
        await self.cluster.api.create("pods", a_pod(name, slots=1, nodeSelector=BOARD, env=variables))

    def queue_job(self, duration: float = 90, conclusion: str = "success") -> Job:
        spec = JobSpec(LABELS, seconds=duration, conclusion=conclusion)
        return self.github.queue_run("acme/widgets", [spec]).jobs[0]

    async def advance(self, seconds: float) -> None:
        await self.cluster.clock.advance(timedelta(seconds=seconds))

    async def pod(self, name: str) -> Json:
        pod = await self.cluster.api.get("pods", name)
        assert pod is not None
        return pod


@pytest.fixture
async def farm(cluster: Cluster) -> AsyncIterator[Farm]:
    github = GitHubSimulator(cluster.clock, random.Random(5), "secret")
    github.add_app("111", PUBLIC_KEY)
    github.add_organization("acme", "111")
    github.add_repository("acme/widgets", private=True)
    async with serving(github.app) as base_url, github.running():
        github.base_url = base_url
        cluster.sim.programs[IMAGE] = RunnerProgram(base_url, "2.330.0")
        cluster.sim.add_board("board-1", BOARD)
        yield Farm(cluster, github)


async def test_a_runner_takes_a_queued_job_runs_it_and_exits(farm: Farm) -> None:
    job = farm.queue_job(duration=90)
    await farm.start_runner("runner-1")
    await farm.advance(10)
    assert job.status == "in_progress"
    assert (await farm.pod("runner-1"))["status"]["phase"] == "Running"
    await farm.advance(100)
    assert (job.status, job.conclusion) == ("completed", "success")
    pod = await farm.pod("runner-1")
    assert pod["status"]["phase"] == "Succeeded"
    assert container_state(pod)["terminated"]["exitCode"] == 0


async def test_a_runner_that_waits_takes_a_job_that_comes_later(farm: Farm) -> None:
    await farm.start_runner("runner-1")
    await farm.advance(100)
    runner = farm.github.world.runner_named("runner-1")
    assert runner is not None
    job = farm.queue_job()
    await farm.advance(1)
    assert job.runner is runner
    assert job.status == "in_progress"


async def test_a_job_that_is_cancelled_ends_as_cancelled(farm: Farm) -> None:
    job = farm.queue_job(duration=3600)
    await farm.start_runner("runner-1")
    await farm.advance(10)
    farm.github.cancel_job(job.id)
    await farm.advance(70)
    assert (job.status, job.conclusion) == ("completed", "cancelled")
    assert (await farm.pod("runner-1"))["status"]["phase"] == "Succeeded"


@pytest.mark.parametrize(("env", "exit_code"), [("1", 7), ("", 0)])
async def test_a_version_that_is_refused_is_exit_7_when_asked_for(
    farm: Farm, env: str, exit_code: int
) -> None:
    farm.github.refuse_runner_versions("acme", below="3.0.0")
    await farm.start_runner("runner-1", ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE=env)
    await farm.advance(10)
    assert container_state(await farm.pod("runner-1"))["terminated"]["exitCode"] == exit_code


async def test_a_registration_that_vanishes_ends_the_runner_with_exit_0(farm: Farm) -> None:
    await farm.start_runner("runner-1")
    await farm.advance(10)
    farm.github.remove_runner("runner-1")
    await farm.advance(1)
    pod = await farm.pod("runner-1")
    assert container_state(pod)["terminated"]["exitCode"] == 0
    log = await farm.cluster.api.client.get(farm.cluster.api.path("pods", "runner-1", "log"))
    assert log.text.endswith("The runner no longer exists on the server\n")


async def test_a_killed_runner_goes_offline_and_its_job_is_lost(farm: Farm) -> None:
    job = farm.queue_job(duration=3600)
    await farm.start_runner("runner-1")
    await farm.advance(10)
    await farm.cluster.api.patch("pods", "runner-1", {"spec": {"activeDeadlineSeconds": 1}})
    await farm.advance(5)
    assert (await farm.pod("runner-1"))["status"]["reason"] == "DeadlineExceeded"
    await farm.advance(700)
    assert (job.status, job.conclusion) == ("completed", "failure")


async def test_a_board_without_power_takes_its_runner_with_it(farm: Farm) -> None:
    job = farm.queue_job(duration=3600)
    await farm.start_runner("runner-1")
    await farm.advance(10)
    farm.cluster.sim.cut_power("board-1")
    await farm.advance(700)
    assert (job.status, job.conclusion) == ("completed", "failure")
    assert (await farm.pod("runner-1"))["status"]["phase"] == "Running"


async def test_a_dead_kubelet_alone_lets_the_job_finish(farm: Farm) -> None:
    job = farm.queue_job(duration=120)
    await farm.start_runner("runner-1")
    await farm.advance(10)
    farm.cluster.sim.kill_kubelet("board-1")
    await farm.advance(200)
    assert (job.status, job.conclusion) == ("completed", "success")
    assert (await farm.pod("runner-1"))["status"]["phase"] == "Running"
    farm.cluster.sim.revive_kubelet("board-1")
    await farm.advance(1)
    assert (await farm.pod("runner-1"))["status"]["phase"] == "Succeeded"


async def test_a_board_that_hangs_never_connects(farm: Farm) -> None:
    farm.cluster.sim.set_board_behaviour("board-1", Behaviour(hang=True))
    await farm.start_runner("runner-1")
    await farm.advance(600)
    runner = farm.github.world.runner_named("runner-1")
    assert runner is not None
    assert runner.session_at is None
    assert (await farm.pod("runner-1"))["status"]["phase"] == "Running"


async def test_a_board_that_never_exits_keeps_its_pod_running_after_the_job(farm: Farm) -> None:
    farm.cluster.sim.set_board_behaviour("board-1", Behaviour(never_exits=True))
    job = farm.queue_job(duration=30)
    await farm.start_runner("runner-1")
    await farm.advance(600)
    assert job.status == "completed"
    assert (await farm.pod("runner-1"))["status"]["phase"] == "Running"
