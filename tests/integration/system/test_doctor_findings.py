"""What the doctor must find: each brought about in a sound system, and found with the command or page that mends it.

A Pod Security level that refuses runner pods is the real API server's affair: tests/chart/test_doctor_on_a_cluster.py.
"""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from psycopg import sql
from psycopg.conninfo import make_conninfo

from controller.domain.checkup import RIGHTS
from controller.ports import Secret
from controller.settings import WebhookMode
from controller.settings.schedules import ScheduleEntry
from tests.clocks import ManualClock
from tests.integration.system.test_doctor import Visit, grant, visit
from tests.systems import BOARD_LABEL, IMAGE, System, a_pool, a_system
from tests.worlds import ORGANIZATION_APP, USER_APP

NAMESPACE, RELEASE = "switchboard", "boards"
APP_PAGE = "https://github.com/organizations/switchboard-111-owner/settings/apps/switchboard-111"


@asynccontextmanager
async def a_sound_system(database_url: str, folder: Path) -> AsyncIterator[System]:
    """A system whose Apps have had deliveries; besides the board there is a node that is none."""
    async with a_system(database_url, folder, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        system.cluster.add_board("plain", {}, 0)
        await system.step(3_601)  # the first deliveries found nobody; that is over an hour ago then
        ids = [*system.queue("acme/widgets", "rv1"), *system.queue("jane/one", "rv1")]
        await system.until(system.finished(ids))
        yield system


Changes = dict[str, Any]
Trouble = Callable[[System, Path], Awaitable[Changes]]


async def a_permission_is_missing(system: System, folder: Path) -> Changes:
    app = system.github.sim.world.apps[int(ORGANIZATION_APP)]
    app.permissions = {**app.permissions, "organization_self_hosted_runners": "read"}
    return {}


async def the_key_is_another_one(system: System, folder: Path) -> Changes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
    pem = key.private_bytes(encoding, form, serialization.NoEncryption())
    system.github.apps[ORGANIZATION_APP].write_bytes(pem)
    return {}


async def our_clock_is_five_minutes_ahead(system: System, folder: Path) -> Changes:
    return {"clock": ManualClock(system.clock.now() + timedelta(minutes=5))}


async def our_clock_is_five_minutes_behind(system: System, folder: Path) -> Changes:
    return {"clock": ManualClock(system.clock.now() - timedelta(minutes=5))}


async def the_database_is_away(system: System, folder: Path) -> Changes:
    return {"database_url": Secret("postgresql://x:hush@127.0.0.1:1/nothing")}


async def the_tables_are_somebody_elses(system: System, folder: Path) -> Changes:
    user = f"user_{uuid.uuid4().hex[:8]}"
    url = system.settings.database_url.reveal()
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as owner:
        await owner.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(user)))
        await owner.execute(sql.SQL("GRANT USAGE ON SCHEMA switchboard TO {}").format(sql.Identifier(user)))
    return {"database_url": Secret(make_conninfo(url, user=user))}


async def a_verb_is_missing(system: System, folder: Path) -> Changes:
    grant(system, [right for right in RIGHTS if str(right) != "list events"])
    return {}


async def no_node_has_the_label(system: System, folder: Path) -> Changes:
    system.cluster.remove_board("rv1-1")
    return {}


async def the_nodes_lack_the_resource(system: System, folder: Path) -> Changes:
    system.cluster.remove_board("rv1-1")
    system.cluster.add_board("bare-1", {BOARD_LABEL: "rv1"}, 0)
    return {}


async def nothing_was_delivered(system: System, folder: Path) -> Changes:
    deliveries = system.github.sim.world.deliveries
    for number in [each.id for each in deliveries.values() if str(each.app.id) == ORGANIZATION_APP]:
        del deliveries[number]  # as GitHub does after three days
    return {}


async def nothing_was_sent_to_be_pulled(system: System, folder: Path) -> Changes:
    await nothing_was_delivered(system, folder)  # so it is with a webhook that is not active
    return {"file": system.file.model_copy(update={"webhook": WebhookMode.PULL})}


async def the_runners_have_no_namespace(system: System, folder: Path) -> Changes:
    kubernetes = system.file.kubernetes.model_copy(update={"namespace": "nowhere"})
    return {"file": system.file.model_copy(update={"kubernetes": kubernetes})}


async def a_workflow_may_not_be_started(system: System, folder: Path) -> Changes:
    (acme,) = [
        each for each in system.github.sim.world.installations.values() if each.account.login == "acme"
    ]
    acme.permissions = {**acme.permissions, "actions": "read"}
    arguments = {"repo": "acme/widgets", "workflow": "nightly.yml", "ref": "main"}
    entry = {"name": "nightly", "type": "cron", "spec": "@daily", "action": "dispatch", "with": arguments}
    schedules = [ScheduleEntry.model_validate(entry)]
    return {"file": system.file.model_copy(update={"schedules": schedules})}


async def the_controller_shares_a_board(system: System, folder: Path) -> Changes:
    system.cluster.add_namespace(NAMESPACE)
    labels = {"app.kubernetes.io/instance": RELEASE, "app.kubernetes.io/component": "controller"}
    pod = {
        "metadata": {"name": "controller-1", "labels": labels},
        "spec": {"nodeName": "rv1-1", "containers": [{"name": "controller", "image": IMAGE}]},
    }
    transport = httpx.ASGITransport(system.cluster.app)
    headers = {"authorization": "Bearer cluster-token"}
    async with httpx.AsyncClient(transport=transport, base_url="http://cluster", headers=headers) as client:
        (await client.post(f"/api/v1/namespaces/{NAMESPACE}/pods", json=pod)).raise_for_status()
    return {"release": f"{NAMESPACE}/{RELEASE}"}


@dataclass(frozen=True, slots=True)
class Case:
    """Something wrong, what is seen of it, and what mends it."""

    trouble: Trouble
    seen: str
    mended_by: str
    faults: int = 1


CASES = [
    Case(a_permission_is_missing, "App 111: the permission organization_self", f"{APP_PAGE}/permissions"),
    Case(
        the_key_is_another_one,
        "App 111: get_app: GitHub answered 401",
        "kubectl -n NAMESPACE patch secret NAME",
    ),
    Case(our_clock_is_five_minutes_ahead, "clock: it is 5m ahead of GitHub's", "timedatectl", faults=3),
    Case(our_clock_is_five_minutes_behind, "clock: it is 5m behind GitHub's", "timedatectl set-ntp true"),
    Case(the_database_is_away, "database: ", 'psql "$DATABASE_URL"'),
    Case(the_tables_are_somebody_elses, "database: InsufficientPrivilege", "\\dt switchboard.*"),
    Case(a_verb_is_missing, "rbac: may not list events in default", "kubectl -n default edit role NAME"),
    Case(no_node_has_the_label, "no node matches", "kubectl label node NODE riseproject.dev/board=rv1"),
    Case(the_nodes_lack_the_resource, "none of its 1 nodes offers", "--set config.boards.advertise=true"),
    Case(nothing_was_delivered, "App 111: no recent deliveries", f"active on {APP_PAGE}"),
    Case(nothing_was_sent_to_be_pulled, "App 111: no recent deliveries", "any https address"),
    Case(the_runners_have_no_namespace, "pods: pool rv1", "kubectl create namespace nowhere"),
    Case(a_workflow_may_not_be_started, "acme, which needs actions: write", f"{APP_PAGE}/permissions"),
    Case(the_controller_shares_a_board, "controller-1 runs on rv1-1", "--set keepOffBoards=true"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.trouble.__name__)
async def test_it_is_found_and_mended(database_url: str, tmp_path: Path, case: Case) -> None:
    async with a_sound_system(database_url, tmp_path) as system:
        before = await visit(system, tmp_path)
        assert before.code == 0, before.lines
        seen = await visit(system, tmp_path, **await case.trouble(system, tmp_path))
        assert seen.code == 1
        assert len(faults(seen)) == case.faults, faults(seen)
        finding = seen.about(case.seen)
        assert finding.startswith("FAULT")
        assert case.mended_by in finding


def faults(seen: Visit) -> list[str]:
    return [line for line in seen.lines if line.startswith("FAULT")]


async def test_what_github_refuses_because_of_the_clock_is_not_laid_on_the_key(
    database_url: str, tmp_path: Path
) -> None:
    async with a_sound_system(database_url, tmp_path) as system:
        seen = await visit(system, tmp_path, **await our_clock_is_five_minutes_ahead(system, tmp_path))
        for app in (ORGANIZATION_APP, USER_APP):
            assert "Set the clock first" in seen.about(f"FAULT  App {app}: get_app: GitHub answered 401")


async def test_where_our_pods_run_may_stay_unknown(database_url: str, tmp_path: Path) -> None:
    async with a_sound_system(database_url, tmp_path) as system:
        changes = await the_controller_shares_a_board(system, tmp_path)
        grant(system, RIGHTS)
        seen = await visit(system, tmp_path, **changes)
        assert seen.code == 0
        assert "--verb=list --resource=pods" in seen.about("warn   placement: ")


@pytest.mark.parametrize(("mode", "missed"), [(WebhookMode.PUSH, 1), (WebhookMode.PULL, 0)])
async def test_a_webhook_secret_is_missed_only_where_deliveries_are_pushed(
    database_url: str, tmp_path: Path, mode: WebhookMode, missed: int
) -> None:
    async with a_sound_system(database_url, tmp_path) as system:
        file = system.file.model_copy(update={"webhook": mode})
        seen = await visit(system, tmp_path, file=file, webhook_secrets=())
        assert len([line for line in seen.lines if "no webhook secret" in line]) == missed
