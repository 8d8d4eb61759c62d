"""What the doctor makes of what it has seen here and in the cluster; `app_checkup` is about GitHub.

Pure: facts in, findings out, each with what to do about it.
"""

from collections.abc import Iterable, Sequence

from controller.domain.checkup import DatabaseFacts, Finding, Right, Seat, fault, ok, warn
from controller.domain.pools import Pool
from controller.domain.sightings import Node
from controller.errors import ClusterError, ClusterForbidden, ClusterNotFound, ClusterUnavailable

OLDEST_POSTGRES = 140_000
SHORT_TOKEN = 16
POLICY = "PodSecurity"  # how the API server begins to say that a Pod Security level is violated
NO_RIGHT = "cannot create resource"  # how it says that it is our own rights that are missing
UNAUTHORIZED = 401  # it does not know who we are


def helm_upgrade(release: str) -> str:
    """The command that changes a value of the release (namespace/name, or nothing where it is not known)."""
    namespace, _, name = release.partition("/")
    # With `--reuse-values` alone a newer chart would run with the defaults of the older one.
    keep = "--reset-then-reuse-values"
    return f"helm upgrade {name or 'RELEASE'} CHART -n {namespace or 'NAMESPACE'} {keep} --set"


def judge_secrets(
    *, admin_token: str | None, webhook_secrets: int, private: bool, push: bool
) -> list[Finding]:
    """The secrets that come by environment; the token's length is looked at, never its text."""
    found = []
    if admin_token is None and private:
        todo = "Set $SWITCHBOARD_ADMIN_TOKEN, or take `web.private` out."
        found.append(fault("settings", "web.private is set, but there is no token to sign in with", todo))
    elif admin_token is None:
        todo = "Set $SWITCHBOARD_ADMIN_TOKEN to retry, cancel, pause and drain."
        found.append(warn("settings", "no admin token: nothing can be written through the API", todo))
    elif len(admin_token) < SHORT_TOKEN:
        todo = "Make a longer one, e.g. with `openssl rand -hex 32`."
        found.append(warn("settings", f"the admin token has only {len(admin_token)} characters", todo))
    if push and not webhook_secrets:
        todo = "Set $GITHUB_WEBHOOK_SECRET where the receiver runs; the controller alone does not need it."
        found.append(warn("settings", "no webhook secret in this environment", todo))
    return found or [ok("settings", "file and secrets are complete")]


def judge_database(facts: DatabaseFacts) -> list[Finding]:
    """Version, schema, and that sessions are whole."""
    shown = f"PostgreSQL {facts.version // 10_000}.{facts.version % 10_000}"
    found = [
        ok("database", f"{shown} answers")
        if facts.version >= OLDEST_POSTGRES
        else fault("database", f"{shown} is too old", "Upgrade to PostgreSQL 14 or newer.")
    ]
    if facts.schema_fault is not None:
        found.append(
            fault("database", facts.schema_fault, "Run `switchboard migrate`, or update the program.")
        )
    else:
        found.append(ok("database", "the schema serves this program"))
    if facts.pooled:
        todo = "Point $DATABASE_URL at PostgreSQL itself, or set the pooler to session mode."
        found.append(
            fault("database", "a transaction pooler stands in between: LISTEN and locks break", todo)
        )
    else:
        found.append(ok("database", "sessions are whole: notifications arrive"))
    return found


def judge_rights(verdicts: Iterable[tuple[Right, bool]], namespace: str, release: str) -> list[Finding]:
    """What the API server lets us do."""
    refused = [right for right, allowed in verdicts if not allowed]
    if not refused:
        return [ok("rbac", f"every verb that is used is granted in {namespace}")]
    found = []
    for right in refused:
        role = "Role" if right.namespaced else "ClusterRole"
        where = f" in {namespace}" if right.namespaced else ""
        todo = (
            f"Add `{right.verb}` on `{str(right).partition(' ')[2]}` to the {role}: "
            f"`{helm_upgrade(release)} rbac.create=true`, or `{_edit_role(right, namespace, release)}`."
        )
        found.append(fault("rbac", f"may not {right}{where}", todo))
    return found


def _edit_role(right: Right, namespace: str, release: str) -> str:
    """The chart's names may be overridden, so its role is found by its labels."""
    home, _, name = release.partition("/")
    kubectl = f"kubectl -n {namespace}" if right.namespaced else "kubectl"
    role = "role" if right.namespaced else "clusterrole"
    if not name:
        return f"{kubectl} edit {role} NAME"
    # Cluster roles of releases of one name are told apart by the namespace, with which the chart begins their names.
    ours = "" if right.namespaced else f" | grep -F /{home}."
    # Names come with their type, which `edit` takes from them; with a type of its own it refuses them.
    return f"{kubectl} edit $({kubectl} get {role} -l app.kubernetes.io/instance={name} -o name{ours})"


def judge_pod(pool: str, refusal: ClusterError | None, namespace: str, release: str) -> Finding:
    """Whether the API server would take a runner pod of a pool."""
    if refusal is None:
        return ok("pods", f"pool {pool}: the API server would take its runner pod")
    match refusal:
        case ClusterNotFound():
            todo = (
                f"There is no namespace {namespace}: `{helm_upgrade(release)} runnerNamespace.create=true`, "
                f"or `kubectl create namespace {namespace}`."
            )
        case ClusterForbidden() if POLICY in str(refusal):
            label = "pod-security.kubernetes.io/enforce=privileged"
            todo = f"Runner pods are privileged: `kubectl label --overwrite namespace {namespace} {label}`."
        case ClusterForbidden() if NO_RIGHT in str(refusal):
            todo = f"Let it create pods in {namespace}: `{helm_upgrade(release)} rbac.create=true`."
        case ClusterForbidden() if refusal.status == UNAUTHORIZED:
            todo = "Check who we are there: `kubectl auth whoami`."
        case ClusterForbidden():
            todo = f"A quota or another admission rule says no: `kubectl -n {namespace} describe quota`."
        case ClusterUnavailable():
            todo = "Check that the API server is reached: `kubectl get --raw /readyz`."
        case _:
            todo = f"The refusal names the field: correct `pools[]` of {pool}."
    return fault("pods", f"pool {pool}: {refusal}", todo)


def judge_boards(
    nodes: Sequence[Node], pools: Sequence[Pool], label: str, resource: str, release: str
) -> list[Finding]:
    """Whether every pool has boards, and every board a pool."""
    found: list[Finding] = []
    offer = f"`{helm_upgrade(release)} config.boards.advertise=true`"
    for pool in pools:
        boards = [node for node in nodes if all(node.labels.get(k) == v for k, v in pool.selector.items())]
        offering = [node for node in boards if node.slots > 0]
        usable = [node for node in offering if node.ready and node.schedulable and not node.unreachable]
        area = f"pool {pool.name}"
        if not boards:
            wanted = ",".join(f"{key}={value}" for key, value in pool.selector.items())
            todo = f"Label a node: `kubectl label node NODE {wanted.replace(',', ' ')}`."
            found.append(fault(area, f"no node matches {wanted}", todo))
        elif not offering:
            todo = f"Run the device plugin on them, or {offer}."
            found.append(fault(area, f"none of its {len(boards)} nodes offers {resource}", todo))
        elif not usable:
            todo = "See `kubectl get nodes`: they are not Ready, cordoned or unreachable."
            found.append(fault(area, f"none of its {len(boards)} boards can be used now", todo))
        else:
            found.append(ok(area, f"{len(usable)} of {len(boards)} boards can be used"))
            idle = [node.name for node in boards if node.slots <= 0]
            if idle:
                todo = f"Run the device plugin there, or {offer}."
                found.append(warn(area, f"{', '.join(sorted(idle))}: no {resource} offered", todo))
    found += _strays(nodes, pools, label)
    return found


def _strays(nodes: Sequence[Node], pools: Sequence[Pool], label: str) -> list[Finding]:
    known = {pool.board for pool in pools}
    strays = {
        node.name: node.labels[label] for node in nodes if node.labels.get(label, "") not in {"", *known}
    }
    return [
        warn("boards", f"{name} has {label}={board}, which no pool uses", "Add a pool, or correct the label.")
        for name, board in sorted(strays.items())
    ]


def judge_seats(seats: Sequence[Seat], nodes: Sequence[Node], label: str, release: str) -> list[Finding]:
    """Whether our own pods keep off boards, where every job is root."""
    boards = {node.name for node in nodes if label in node.labels}
    shared = [seat for seat in seats if seat.node in boards]
    if not shared:
        return [ok("placement", "our own pods keep off boards")] if seats else []
    where = sorted(f"{seat.pod} runs on {seat.node}" for seat in shared)
    seen = f"{', '.join(where)}, a board: a job can reach its credentials there"
    # What was there before the node got its label stays until it is made anew, whatever the values say.
    placed_before = all(seat.keeps_off for seat in shared)
    move = f"`{_restart(release)}`" if placed_before else f"`{helm_upgrade(release)} keepOffBoards=true`"
    if any(node.ready and node.schedulable for node in nodes if node.name not in boards):
        return [fault("placement", seen, f"Move it: {move}.")]
    todo = f"Every node is a board. Add one without the label {label}, then {move}."
    return [warn("placement", seen, todo)]


def _restart(release: str) -> str:
    """The command that makes every pod of the release (namespace/name) anew."""
    namespace, _, name = release.partition("/")
    kinds = "deployment,statefulset"
    return f"kubectl -n {namespace} rollout restart {kinds} -l app.kubernetes.io/instance={name}"
