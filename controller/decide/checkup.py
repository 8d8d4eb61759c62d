"""What the doctor makes of what it has seen. Pure: facts in, findings out, each with what to do about it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from controller.domain.checkup import AppFacts, DatabaseFacts, Finding, InstallationFacts, Level, Right
from controller.domain.durations import show_duration
from controller.domain.jobs import EntityType
from controller.domain.pools import Pool
from controller.domain.sightings import DeliverySighting, Node

OLDEST_POSTGRES = 140_000
SHORT_TOKEN = 16
RECENT = timedelta(hours=1)
EVENT = "workflow_job"
NEEDED = {
    EntityType.ORGANIZATION: {"organization_self_hosted_runners": "write", "actions": "read"},
    EntityType.USER: {"administration": "write", "actions": "read"},
}
RANKS = {"": 0, "read": 1, "write": 2, "admin": 3}
FORBIDDEN_BY_POLICY = (
    "Read the refusal; namespaces with a Pod Security level need `privileged` for runner pods."
)


def judge_secrets(*, admin_token: str | None, webhook_secrets: int, private: bool) -> list[Finding]:
    """The secrets that come by environment; the token's length is looked at, never its text."""
    found = []
    if admin_token is None and private:
        todo = "Set $SWITCHBOARD_ADMIN_TOKEN, or take `web.private` out."
        found.append(_fault("settings", "web.private is set, but there is no token to sign in with", todo))
    elif admin_token is None:
        todo = "Set $SWITCHBOARD_ADMIN_TOKEN to retry, cancel, pause and drain."
        found.append(_warn("settings", "no admin token: nothing can be written through the API", todo))
    elif len(admin_token) < SHORT_TOKEN:
        todo = "Make a longer one, e.g. with `openssl rand -hex 32`."
        found.append(_warn("settings", f"the admin token has only {len(admin_token)} characters", todo))
    if not webhook_secrets:
        todo = "Set $GITHUB_WEBHOOK_SECRET where the receiver runs; the controller alone does not need it."
        found.append(_warn("settings", "no webhook secret in this environment", todo))
    return found or [_ok("settings", "file and secrets are complete")]


def judge_database(facts: DatabaseFacts) -> list[Finding]:
    """Version, schema, and that sessions are whole."""
    shown = f"PostgreSQL {facts.version // 10_000}.{facts.version % 10_000}"
    found = [
        _ok("database", f"{shown} answers")
        if facts.version >= OLDEST_POSTGRES
        else _fault("database", f"{shown} is too old", "Upgrade to PostgreSQL 14 or newer.")
    ]
    if facts.schema_fault is not None:
        found.append(
            _fault("database", facts.schema_fault, "Run `switchboard migrate`, or update the program.")
        )
    else:
        found.append(_ok("database", "the schema serves this program"))
    if facts.pooled:
        todo = "Point $DATABASE_URL at PostgreSQL itself, or set the pooler to session mode."
        found.append(
            _fault("database", "a transaction pooler stands in between: LISTEN and locks break", todo)
        )
    else:
        found.append(_ok("database", "sessions are whole: notifications arrive"))
    return found


def judge_app(kind: EntityType, app: AppFacts) -> list[Finding]:
    """An App's permissions and events."""
    area, found = f"App {app.app_id}", []
    lacking = missing(NEEDED[kind], app.permissions)
    if lacking:
        todo = (
            f"Grant {', '.join(lacking)} in the settings of the App {app.slug}; owners must then accept it."
        )
        found.append(_fault(area, f"the permission {', '.join(lacking)} is missing", todo))
    if EVENT not in app.events:
        todo = f"Subscribe the App {app.slug} to `Workflow job` events."
        found.append(_fault(area, f"it is not subscribed to {EVENT} events", todo))
    return found or [
        _ok(area, f"{app.slug} has the permissions and events for {kind.value.lower()} accounts")
    ]


def judge_installations(
    kind: EntityType, app: AppFacts, installations: Sequence[InstallationFacts]
) -> list[Finding]:
    """Where an App is installed, and what its owners have accepted."""
    area, found = f"App {app.app_id}", []
    if not installations:
        return [
            _warn(area, "it is installed nowhere", "Install it for an account; jobs come only from there.")
        ]
    for each in installations:
        lacking = missing(NEEDED[kind], each.permissions)
        if each.kind != kind.value:
            todo = (
                f"Install there the App for {each.kind} accounts; jobs of this one are refused as wrong_app."
            )
            found.append(_warn(area, f"it is installed for {each.login}, which is a {each.kind}", todo))
        elif each.suspended_at is not None:
            todo = "An owner must unsuspend it in the account's settings on GitHub."
            found.append(_warn(area, f"its installation for {each.login} is suspended", todo))
        elif lacking:
            todo = "An owner must accept the App's new permissions on GitHub."
            found.append(_fault(area, f"{each.login} has not granted {', '.join(lacking)}", todo))
    good = len(installations) - len(found)
    return [*found, _ok(area, f"{good} of {len(installations)} installations can be used")]


def missing(needed: Mapping[str, str], granted: Mapping[str, str]) -> list[str]:
    """The permissions that are not there, or not high enough."""
    return [
        f"{name}: {level}"
        for name, level in needed.items()
        if RANKS.get(granted.get(name, ""), 0) < RANKS[level]
    ]


def judge_deliveries(
    app_id: str, deliveries: Sequence[DeliverySighting], now: datetime, *, push: bool
) -> list[Finding]:
    """How GitHub's deliveries of the last hour fared."""
    area = f"App {app_id}"
    recent = [each for each in deliveries if now - each.delivered_at <= RECENT]
    arrived = {each.guid for each in recent if each.ok}  # a redelivery has the GUID of the first
    failed = [each for each in recent if each.guid not in arrived]
    span = show_duration(RECENT)
    if not push:
        return [_ok(area, f"{len(recent)} deliveries in the last {span}; they are pulled")]
    if failed:
        todo = "Look at the App's recent deliveries on GitHub: is the address right, and the secret the same?"
        what = f"{len(failed)} of {len(recent)} deliveries of the last {span} failed"
        if len(failed) == len(recent):
            return [_fault(area, what, todo)]
        return [_warn(area, f"{what}; they are pulled again", todo)]
    if not recent:
        todo = "Queue a job; if none arrives, check the webhook's address and that it is active."
        return [_warn(area, f"GitHub sent nothing in the last {span}", todo)]
    return [_ok(area, f"all {len(recent)} deliveries of the last {span} arrived")]


def judge_rights(verdicts: Iterable[tuple[Right, bool]], namespace: str) -> list[Finding]:
    """What the API server lets us do."""
    refused = [right for right, allowed in verdicts if not allowed]
    if not refused:
        return [_ok("rbac", f"every verb that is used is granted in {namespace}")]
    found = []
    for right in refused:
        role = "Role" if right.namespaced else "ClusterRole"
        where = f" in {namespace}" if right.namespaced else ""
        todo = f"Add `{right.verb}` on `{str(right).partition(' ')[2]}` to the {role}."
        found.append(_fault("rbac", f"may not {right}{where}", todo))
    return found


def judge_pod(pool: str, refusal: str | None) -> Finding:
    """Whether the API server would take a runner pod of a pool."""
    if refusal is None:
        return _ok("pods", f"pool {pool}: the API server would take its runner pod")
    return _fault("pods", f"pool {pool}: {refusal}", FORBIDDEN_BY_POLICY)


def judge_boards(nodes: Sequence[Node], pools: Sequence[Pool], label: str, resource: str) -> list[Finding]:
    """Whether every pool has boards, and every board a pool."""
    found: list[Finding] = []
    for pool in pools:
        boards = [node for node in nodes if all(node.labels.get(k) == v for k, v in pool.selector.items())]
        offering = [node for node in boards if node.slots > 0]
        usable = [node for node in offering if node.ready and node.schedulable and not node.unreachable]
        area = f"pool {pool.name}"
        if not boards:
            wanted = ",".join(f"{key}={value}" for key, value in pool.selector.items())
            todo = f"Label a node: `kubectl label node NODE {wanted.replace(',', ' ')}`."
            found.append(_fault(area, f"no node matches {wanted}", todo))
        elif not offering:
            todo = "Run the device plugin on them, or set `boards.advertise`."
            found.append(_fault(area, f"none of its {len(boards)} nodes offers {resource}", todo))
        elif not usable:
            todo = "See `kubectl get nodes`: they are not Ready, cordoned or unreachable."
            found.append(_fault(area, f"none of its {len(boards)} boards can be used now", todo))
        else:
            found.append(_ok(area, f"{len(usable)} of {len(boards)} boards can be used"))
            idle = [node.name for node in boards if node.slots <= 0]
            if idle:
                todo = "Run the device plugin there, or set `boards.advertise`."
                found.append(_warn(area, f"{', '.join(sorted(idle))}: no {resource} offered", todo))
    found += _strays(nodes, pools, label)
    return found


def _strays(nodes: Sequence[Node], pools: Sequence[Pool], label: str) -> list[Finding]:
    known = {pool.board for pool in pools}
    strays = {
        node.name: node.labels[label] for node in nodes if node.labels.get(label, "") not in {"", *known}
    }
    return [
        _warn(
            "boards", f"{name} has {label}={board}, which no pool uses", "Add a pool, or correct the label."
        )
        for name, board in sorted(strays.items())
    ]


def _ok(area: str, seen: str) -> Finding:
    return Finding(Level.OK, area, seen)


def _warn(area: str, seen: str, todo: str) -> Finding:
    return Finding(Level.WARN, area, seen, todo)


def _fault(area: str, seen: str, todo: str) -> Finding:
    return Finding(Level.FAULT, area, seen, todo)
