"""`switchboard doctor` against the simulators and real PostgreSQL: all well, and one thing wrong at a time."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from controller.app import World
from controller.doctor import run_doctor
from controller.domain.checkup import RIGHTS, Right
from controller.domain.sightings import Pod, PodView
from controller.ports import Clock, Secret
from controller.settings import Settings
from controller.simulators.cluster import Behaviour
from controller.simulators.cluster.access import Rule
from tests.systems import BOARD_LABEL, System, a_pool, a_system
from tests.worlds import ORGANIZATION_APP

ADMIN = Secret("0123456789abcdef0123456789abcdef")


@dataclass(frozen=True, slots=True)
class Visit:
    """What the doctor said, and the exit code."""

    code: int
    lines: list[str]

    def about(self, words: str) -> str:
        """The one finding that holds these words."""
        (found,) = [line for line in self.lines if words in line]
        return found


def grant(system: System, rights: Sequence[Right]) -> None:
    """Leave the controller with these rights alone."""
    namespace = system.file.kubernetes.namespace
    rules = [
        Rule((one.verb,), (str(one).partition(" ")[2],), namespace if one.namespaced else "")
        for one in rights
    ]
    system.cluster.add_account("cluster-token", "switchboard", rules)


def pods_of(system: System) -> list[Pod]:
    """The pods that there really are."""
    seen = system.controller.cluster.pods()
    assert isinstance(seen, PodView)
    return list(seen.pods.values())


async def visit(system: System, tmp_path: Path, clock: Clock | None = None, **changes: Any) -> Visit:
    """Have the doctor look, by the system's clock or another one."""
    settings: Settings = system.settings.model_copy(update={"admin_token": ADMIN, **changes})
    lines: list[str] = []
    world = World(clock or system.clock, random.Random(1), tmp_path / "kubeconfig")
    return Visit(await run_doctor(settings, world, lines.append), lines)


async def test_a_sound_system_has_no_fault(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system:
        await system.step(3_601)  # the first two deliveries found nobody; that is over an hour ago then
        ids = [*system.queue("acme/widgets", "rv1"), *system.queue("jane/one", "rv1")]
        await system.until(system.finished(ids))
        made = system.cluster.requests.times("create pods", status=201)
        before = sorted(pod.name for pod in pods_of(system))
        seen = await visit(system, tmp_path)
        assert seen.code == 0, "\n".join(seen.lines)
        assert not [line for line in seen.lines if line.startswith("FAULT")]
        for area in ("settings", "database", "App 111", "App 222", "rbac", "pods", "pool rv1"):
            assert any(f"  {area}: " in line for line in seen.lines), area
        assert "2 of 2 boards" in seen.about("pool rv1: 2")
        assert len(await system.rows("SELECT * FROM workers")) == 2
        assert system.cluster.requests.times("create pods", status=201) == made + 1
        await system.settle()
        assert sorted(pod.name for pod in pods_of(system)) == before  # it was a dry run


@pytest.mark.parametrize("right", RIGHTS, ids=str)
async def test_a_missing_right_is_named_with_the_role_that_lacks_it(
    database_url: str, tmp_path: Path, right: Any
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        grant(system, [each for each in RIGHTS if each != right])
        seen = await visit(system, tmp_path)
        assert seen.code == 1
        line = seen.about(f"may not {right}")
        assert ("ClusterRole" if right.resource == "nodes" else "Role") in line


async def test_with_exactly_the_rights_that_are_looked_for_everything_works(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system:
        grant(system, RIGHTS)
        system.cluster.set_board_behaviour("rv1-1", Behaviour(crash=1))
        await system.until(system.finished(system.queue("acme/widgets", "rv1", jobs=6, seconds=20)))
        for _ in range(30):
            await system.step(900)  # past the grace of ended pods, and every sweep
        assert system.cluster.requests.times(status=403) == 0
        verbs = {each.operation for each in system.cluster.requests}
        assert {str(right) for right in RIGHTS} >= verbs


async def test_a_pod_that_the_api_server_refuses_is_found_without_making_one(
    database_url: str, tmp_path: Path
) -> None:
    pools = [a_pool("rv1"), a_pool("rv2", resources={"limits": {"cpu": "many"}})]
    async with a_system(database_url, tmp_path, pools=pools, boards={"rv1": 1, "rv2": 1}) as system:
        seen = await visit(system, tmp_path)
        assert seen.code == 1
        assert seen.about("pool rv2: pod of pool").startswith("FAULT")
        assert seen.about("pool rv1: the API server would").startswith("ok")
        assert await system.rows("SELECT * FROM workers") == []


async def test_pools_without_nodes_and_nodes_without_pools_are_told_apart(
    database_url: str, tmp_path: Path
) -> None:
    pools = [a_pool("rv1"), a_pool("empty"), a_pool("bare")]
    async with a_system(database_url, tmp_path, pools=pools, boards={"rv1": 1, "stray": 1}) as system:
        system.cluster.add_board("bare-1", {BOARD_LABEL: "bare"}, 0)
        seen = await visit(system, tmp_path)
        assert seen.code == 1
        assert "kubectl label node NODE riseproject.dev/board=empty" in seen.about("pool empty: no node")
        assert "device plugin" in seen.about("pool bare: none of its 1 nodes offers")
        assert seen.about("stray-1 has riseproject.dev/board=stray").startswith("warn")


async def test_missing_permissions_of_app_and_installation_are_named(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        world = system.github.sim.world
        app = world.apps[int(ORGANIZATION_APP)]
        app.permissions = {**app.permissions, "organization_self_hosted_runners": "read"}
        (acme,) = [each for each in world.installations.values() if each.account.login == "acme"]
        acme.permissions = {name: level for name, level in acme.permissions.items() if name != "actions"}
        seen = await visit(system, tmp_path)
        assert seen.code == 1
        assert "owners must then accept" in seen.about(
            "the permission organization_self_hosted_runners: write"
        )
        assert "actions: read" in seen.about("acme has not granted")


async def test_an_app_that_github_does_not_know_is_a_fault_and_the_rest_is_still_looked_at(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        del system.github.sim.world.apps[int(ORGANIZATION_APP)]
        seen = await visit(system, tmp_path)
        assert seen.code == 1
        assert "github.apps.Organization.appId" in seen.about("FAULT  App 111")
        assert any(line.startswith("ok     pool rv1") for line in seen.lines)


async def test_deliveries_that_fail_are_told_until_one_is_redelivered(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        sim, receiver = system.github.sim, system.github.sim.webhook_url
        sim.webhook_url = f"{system.github.base_url}/nowhere"
        system.queue("acme/widgets", "rv1")
        await system.settle()
        seen = await visit(system, tmp_path)
        assert seen.code == 1
        line = seen.about("App 111: 2 of 2 deliveries of the last 1h failed")  # the installation's own too
        assert "is the address right" in line
        assert "/advanced shows why" in line
        assert "Redeliver one there" in line
        sim.webhook_url = receiver
        for last in {str(each.app.id): each for each in sim.world.deliveries.values()}.values():
            sim.webhooks.redeliver(last)
        await system.settle()
        mended = await visit(system, tmp_path)
        assert mended.code == 0, mended.lines
        assert mended.about("App 111: 1 of 3 deliveries of the last 1h failed").startswith("warn")


async def test_a_database_without_tables_or_without_an_answer_is_a_fault(
    database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        empty = await visit(system, tmp_path, database_url=Secret(empty_database_url))
        assert empty.code == 1
        assert "switchboard migrate" in empty.about("the database is empty")
        away = await visit(system, tmp_path, database_url=Secret("postgresql://x:hush@127.0.0.1:1/nothing"))
        assert away.code == 1
        assert "Check $DATABASE_URL" in away.about("FAULT  database")
        assert "hush" not in "".join(away.lines)
        assert any(line.startswith("ok     pool rv1") for line in away.lines)


async def test_an_api_server_that_is_away_is_a_fault_and_says_so(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        system.cluster.faults.add(
            operation="post /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", status=503
        )
        seen = await visit(system, tmp_path)
        assert seen.code == 1
        assert "kubectl auth whoami" in seen.about("FAULT  rbac")


async def test_no_secret_is_printed(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        said = "\n".join((await visit(system, tmp_path)).lines)
        for secret in (ADMIN, *system.settings.webhook_secrets):
            assert secret.reveal() not in said
