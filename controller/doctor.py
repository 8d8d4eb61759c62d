"""`switchboard doctor`: look at everything that must be right before a job can run, and say what to do.

    settings ─▶ database ─▶ clock ─▶ Apps, installations, deliveries ─▶ rights ─▶ runner pods ─▶ boards ─▶ placement

It changes nothing. One part that does not answer is a finding, and the others are looked at all the same.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta

from controller.app import World, github_of
from controller.decide.app_checkup import (
    judge_app,
    judge_clock,
    judge_deliveries,
    judge_installations,
    judge_refusal,
)
from controller.decide.checkup import (
    judge_boards,
    judge_database,
    judge_pod,
    judge_rights,
    judge_seats,
    judge_secrets,
)
from controller.domain.checkup import ADVERTISING, RIGHTS, Finding, Level, fault, warn
from controller.domain.jobs import Entity, EntityType
from controller.domain.orders import PodOrder
from controller.domain.schedules import Action
from controller.errors import (
    ClusterError,
    ClusterForbidden,
    ConfigError,
    ControllerError,
    GitHubError,
    StoreError,
)
from controller.gateways.github.gateway import GitHubGateway
from controller.gateways.kubernetes.checkup import ClusterCheckup
from controller.gateways.kubernetes.connection import connect
from controller.gateways.postgres import checkup as database_checkup
from controller.gateways.postgres.database import Database
from controller.ports import Clock
from controller.reconcile.outside import Outside
from controller.settings import File, Pool, Settings, WebhookMode
from controller.telemetry.metrics import Metrics

DELIVERIES_BACK = timedelta(hours=1)
NAME_OF_SPECIMEN = "0doctor00"  # nine letters and digits, as of every runner
MARKS = {Level.OK: "ok   ", Level.WARN: "warn ", Level.FAULT: "FAULT"}


async def run_doctor(
    settings: Settings, world: World | None = None, say: Callable[[str], None] = print
) -> int:
    """Print every finding as it is made; 1 if there is a fault."""
    faults = 0
    async for finding in examine(settings, world or World()):
        faults += finding.level is Level.FAULT
        say(show(finding))
    say("Everything that was looked at is in order." if not faults else f"{faults} to mend.")
    return 1 if faults else 0


def show(finding: Finding) -> str:
    """A finding as a line, and what to do as a second one."""
    line = f"{MARKS[finding.level]}  {finding.area}: {finding.seen}"
    return f"{line}\n         → {finding.todo}" if finding.todo else line


async def examine(settings: Settings, world: World) -> AsyncIterator[Finding]:
    """All findings, part by part."""
    token = settings.admin_token.reveal() if settings.admin_token else None
    secrets, private = len(settings.webhook_secrets), settings.file.web.private
    push = settings.file.webhook is WebhookMode.PUSH
    for finding in judge_secrets(admin_token=token, webhook_secrets=secrets, private=private, push=push):
        yield finding
    for part in (_database(settings), _github(settings, world.clock), _cluster(settings, world)):
        for finding in await part:
            yield finding


async def _database(settings: Settings) -> list[Finding]:
    database = Database(settings.database_url, settings.file.database.schema_, 2)
    try:
        return judge_database(await database_checkup.examine(database))
    except StoreError as error:
        todo = "Check $DATABASE_URL and that the server is reached from here: `psql \"$DATABASE_URL\" -c 'SELECT 1'`."
        if "unsupported startup parameter" in str(error):
            todo = "A pooler refuses our session settings: point $DATABASE_URL at PostgreSQL itself."
        elif "InsufficientPrivilege" in str(error):  # a backup was restored by somebody else, for one
            look = f"psql \"$DATABASE_URL\" -c '\\dt {database.schema}.*'"
            todo = f"$DATABASE_URL must be of the user who owns the tables: `{look}` tells who does."
        return [fault("database", str(error), todo)]


async def _github(settings: Settings, clock: Clock) -> list[Finding]:
    file = settings.file
    async with github_of(file, clock, Metrics(), Outside(clock), lambda attempt: None) as github:
        found = await _clock(github, file, clock)
        wrong = any(finding.level is Level.FAULT for finding in found)
        parts = [_app(github, kind, settings, clock, clock_wrong=wrong) for kind in file.github.apps]
        return [*found, *(finding for some in await asyncio.gather(*parts) for finding in some)]


async def _clock(github: GitHubGateway, file: File, clock: Clock) -> list[Finding]:
    """Nothing, if GitHub tells the time to none of the Apps: why not is then said of each."""
    for app_id in file.apps_by_type.values():
        try:
            theirs = await github.get_time(app_id)
        except GitHubError:
            continue
        if theirs is not None:
            return [judge_clock(theirs, clock.now())]
    return []


async def _app(
    github: GitHubGateway, kind: EntityType, settings: Settings, clock: Clock, *, clock_wrong: bool
) -> list[Finding]:
    found: list[Finding] = []
    file = settings.file
    configured = file.github.apps[kind]
    app_id = configured.app_id
    try:
        app = await github.get_app(app_id)
        found += judge_app(kind, app)
        found += judge_installations(kind, app, await github.list_installations(app_id), _dispatching(file))
        now, push = clock.now(), file.webhook is WebhookMode.PUSH
        deliveries = await github.list_deliveries(app_id, now - DELIVERIES_BACK)
        last = None if deliveries else await github.last_delivery(app_id)
        found += judge_deliveries(app, deliveries, last, now, push=push)
    except GitHubError as error:
        refusal = judge_refusal(
            kind,
            app_id,
            error,
            file.github.api_url,
            clock_wrong=clock_wrong,
            key_file=configured.private_key_file.name,
            namespace=settings.release.partition("/")[0] or "NAMESPACE",
        )
        found.append(refusal)
    return found


def _dispatching(file: File) -> set[str]:
    """The owners of workflows that schedules of the file start."""
    entries = [each.as_domain() for each in file.schedules if each.enabled]
    repos = [str(each.arguments["repo"]) for each in entries if each.action is Action.DISPATCH]
    return {repo.partition("/")[0].lower() for repo in repos}


async def _cluster(settings: Settings, world: World) -> list[Finding]:
    file, place = settings.file, settings.file.kubernetes
    try:
        client = await connect(world.kubeconfig)
    except ConfigError as error:
        todo = "Run it in a pod of the cluster, or set $KUBECONFIG."
        return [fault("cluster", mistake, todo) for mistake in error.mistakes]
    async with client:
        cluster = ClusterCheckup(client, place.namespace, place.resource)
        rights = await _told("rbac", lambda: _rights(cluster, settings))
        pods = [await _try_pod(cluster, specimen(file, pool), settings) for pool in file.pools]
        boards = await _told("boards", lambda: _boards(cluster, settings))
        seats = await _told("placement", lambda: _seats(cluster, settings))
    return [*rights, *pods, *boards, *seats]


async def _rights(cluster: ClusterCheckup, settings: Settings) -> Sequence[Finding]:
    file = settings.file
    wanted = [*RIGHTS, ADVERTISING] if file.boards.advertise else list(RIGHTS)
    allowed = await asyncio.gather(*(cluster.may(right) for right in wanted))
    return judge_rights(zip(wanted, allowed, strict=True), file.kubernetes.namespace, settings.release)


async def _try_pod(cluster: ClusterCheckup, order: PodOrder, settings: Settings) -> Finding:
    refusal: ClusterError | None = None
    try:
        await cluster.try_pod(order)
    except ClusterError as error:
        refusal = error
    return judge_pod(order.pool, refusal, settings.file.kubernetes.namespace, settings.release)


async def _boards(cluster: ClusterCheckup, settings: Settings) -> Sequence[Finding]:
    place, pools = settings.file.kubernetes, settings.file.catalogue.pools
    return judge_boards(await cluster.nodes(), pools, place.board_label, place.resource, settings.release)


async def _seats(cluster: ClusterCheckup, settings: Settings) -> Sequence[Finding]:
    """Where the release's own pods run; a command on somebody's own machine belongs to none."""
    namespace, _, release = settings.release.partition("/")
    if not release:
        return []
    label = settings.file.kubernetes.board_label
    try:
        seats = await cluster.seats(namespace, release, label)
    except ClusterForbidden as error:
        todo = f"Let it list pods: `kubectl -n {namespace} create role NAME --verb=list --resource=pods`, and bind it."
        return [warn("placement", str(error), todo)]
    return judge_seats(seats, await cluster.nodes(), label, settings.release)


async def _told(area: str, look: Callable[[], Awaitable[Sequence[Finding]]]) -> list[Finding]:
    """The findings of one part; that it does not answer is one too."""
    try:
        return list(await look())
    except ControllerError as error:
        todo = "Check that the API server is reached, and who we are there: `kubectl auth whoami`."
        return [fault(area, str(error), todo)]


def specimen(file: File, pool: Pool) -> PodOrder:
    """The pod that a job of nobody in particular would get."""
    kind, app_id = next(iter(file.apps_by_type.items()))
    storage = pool.ephemeral_storage
    return PodOrder(
        name=f"{file.names.stem}-{NAME_OF_SPECIMEN}",
        instance=file.instance,
        image=pool.image,
        pool=pool.name,
        board=pool.board,
        entity=Entity(1, "doctor", kind),
        app_id=app_id,
        installation_id=1,
        labels=pool.label_sets[0],
        board_label=file.kubernetes.board_label,
        resource=file.kubernetes.resource,
        repo="doctor/specimen",
        image_pull_policy=pool.pull_policy,
        image_pull_secrets=pool.image_pull_secrets,
        node_selector=pool.node_selector,
        tolerations=pool.tolerations,
        env=pool.env,
        requests=pool.resources.get("requests", {}),
        limits=pool.resources.get("limits", {}),
        ephemeral_request=storage.request if storage else None,
        ephemeral_limit=storage.limit if storage else None,
        active_deadline_seconds=int(file.timings.pod_active_deadline.total_seconds()),
        privileged=pool.privileged,
        host_network=pool.host_network,
    )
