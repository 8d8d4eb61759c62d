"""What the doctor makes of the facts: both sides of every rule, and a next step for whatever is wrong."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controller.decide.app_checkup import (
    judge_app,
    judge_clock,
    judge_deliveries,
    judge_installations,
    judge_refusal,
    web_address,
)
from controller.decide.checkup import (
    helm_upgrade,
    judge_boards,
    judge_database,
    judge_pod,
    judge_rights,
    judge_seats,
    judge_secrets,
)
from controller.domain.checkup import (
    RIGHTS,
    AppFacts,
    DatabaseFacts,
    Finding,
    InstallationFacts,
    Level,
    Right,
    Seat,
)
from controller.domain.jobs import EntityType
from controller.domain.pools import Pool
from controller.domain.sightings import DeliverySighting, Node
from controller.errors import (
    ClusterError,
    ClusterForbidden,
    ClusterNotFound,
    ClusterRefused,
    ClusterUnavailable,
    GitHubForbidden,
    GitHubNotFound,
    GitHubUnavailable,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LABEL, RESOURCE = "riseproject.dev/board", "riseproject.com/runner"
RELEASE = "here/boards"
ORGANIZATION = EntityType.ORGANIZATION
FULL = {"organization_self_hosted_runners": "write", "administration": "write", "actions": "read"}


def worst(findings: Sequence[Finding]) -> Level:
    """The worst of them; whatever is not in order says what to do."""
    assert findings
    assert all(finding.todo for finding in findings if finding.level is not Level.OK)
    order = [Level.OK, Level.WARN, Level.FAULT]
    return max((finding.level for finding in findings), key=order.index)


@pytest.mark.parametrize(
    ("token", "secrets", "private", "push", "level"),
    [
        ("x" * 16, 1, False, True, Level.OK),
        ("x" * 15, 1, False, True, Level.WARN),
        (None, 1, False, True, Level.WARN),
        (None, 1, True, True, Level.FAULT),
        ("x" * 16, 0, True, True, Level.WARN),
        ("x" * 16, 0, True, False, Level.OK),  # nobody receives anything that could be signed
    ],
)
def test_secrets(token: str | None, secrets: int, private: bool, push: bool, level: Level) -> None:
    found = judge_secrets(admin_token=token, webhook_secrets=secrets, private=private, push=push)
    assert worst(found) is level


@pytest.mark.parametrize(
    ("facts", "level"),
    [
        (DatabaseFacts(140_000, None, pooled=False), Level.OK),
        (DatabaseFacts(130_021, None, pooled=False), Level.FAULT),
        (DatabaseFacts(160_000, "the database is empty", pooled=False), Level.FAULT),
        (DatabaseFacts(160_000, None, pooled=True), Level.FAULT),
    ],
)
def test_databases(facts: DatabaseFacts, level: Level) -> None:
    assert worst(judge_database(facts)) is level


@pytest.mark.parametrize(
    ("kind", "permissions", "events", "level"),
    [
        (ORGANIZATION, FULL, ("workflow_job",), Level.OK),
        (ORGANIZATION, {**FULL, "actions": "write"}, ("workflow_job",), Level.OK),
        (ORGANIZATION, {**FULL, "administration": "read"}, ("workflow_job",), Level.OK),
        (EntityType.USER, {**FULL, "administration": "read"}, ("workflow_job",), Level.FAULT),
        (ORGANIZATION, {**FULL, "organization_self_hosted_runners": "read"}, ("workflow_job",), Level.FAULT),
        (ORGANIZATION, {}, ("workflow_job",), Level.FAULT),
        (ORGANIZATION, FULL, ("push",), Level.FAULT),
    ],
)
def test_apps(kind: EntityType, permissions: dict[str, str], events: tuple[str, ...], level: Level) -> None:
    assert worst(judge_app(kind, AppFacts("111", "app", permissions, events))) is level


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({}, Level.OK),
        ({"kind": "User"}, Level.WARN),
        ({"suspended_at": NOW}, Level.WARN),
        ({"permissions": {}}, Level.FAULT),
    ],
)
def test_installations(changes: dict[str, Any], level: Level) -> None:
    facts: dict[str, Any] = {
        "installation_id": 1,
        "login": "acme",
        "kind": "Organization",
        "permissions": FULL,
    }
    found = judge_installations(ORGANIZATION, AppFacts("111", "app"), [InstallationFacts(**facts | changes)])
    assert worst(found) is level


def test_an_app_that_is_installed_nowhere_gets_no_jobs() -> None:
    assert worst(judge_installations(ORGANIZATION, AppFacts("111", "app"), [])) is Level.WARN


def a_delivery(number: int, *, ok: bool, minutes: float = 1, guid: str | None = None) -> DeliverySighting:
    """A delivery of some minutes ago."""
    at = NOW - timedelta(minutes=minutes)
    return DeliverySighting(number, guid or str(number), "workflow_job", "queued", at, ok)


@pytest.mark.parametrize(
    ("deliveries", "push", "level"),
    [
        ([a_delivery(1, ok=True)], True, Level.OK),
        ([a_delivery(1, ok=True), a_delivery(2, ok=False)], True, Level.WARN),
        ([a_delivery(1, ok=False)], True, Level.FAULT),
        ([a_delivery(1, ok=False)], False, Level.OK),
        ([a_delivery(1, ok=False, guid="g"), a_delivery(2, ok=True, guid="g")], True, Level.OK),
        ([a_delivery(1, ok=False, minutes=60)], True, Level.FAULT),
        ([a_delivery(1, ok=False, minutes=61)], True, Level.WARN),
        ([], True, Level.FAULT),
        ([a_delivery(1, ok=False, minutes=61)], False, Level.WARN),
        ([], False, Level.FAULT),
    ],
)
def test_deliveries(deliveries: list[DeliverySighting], push: bool, level: Level) -> None:
    last = max((each.delivered_at for each in deliveries), default=None)
    assert worst(judge_deliveries(AppFacts("111", "app"), deliveries, last, NOW, push=push)) is level


@pytest.mark.parametrize(
    ("ago", "level"),
    [
        (timedelta(hours=2), Level.WARN),
        (timedelta(days=3), Level.WARN),
        (timedelta(days=3, seconds=1), Level.FAULT),
    ],
)
@pytest.mark.parametrize("push", [True, False])
def test_a_quiet_hour_is_no_fault_but_three_quiet_days_are(ago: timedelta, level: Level, push: bool) -> None:
    assert worst(judge_deliveries(AppFacts("111", "app"), [], NOW - ago, NOW, push=push)) is level


@pytest.mark.parametrize(("granted", "level"), [("read", Level.FAULT), ("write", Level.OK)])
def test_who_has_a_workflow_started_by_schedule_must_let_it_be_started(granted: str, level: Level) -> None:
    facts = InstallationFacts(1, "Acme", "Organization", None, {**FULL, "actions": granted})
    app = AppFacts("111", "app")
    assert worst(judge_installations(ORGANIZATION, app, [facts], {"acme"})) is level
    assert worst(judge_installations(ORGANIZATION, app, [facts], {"jane"})) is Level.OK


@pytest.mark.parametrize(
    ("seconds", "level"),
    [(0, Level.OK), (60, Level.OK), (-60, Level.OK), (61, Level.FAULT), (-61, Level.FAULT)],
)
def test_clocks(seconds: int, level: Level) -> None:
    assert worst([judge_clock(NOW, NOW + timedelta(seconds=seconds))]) is level


@pytest.mark.parametrize(
    ("minutes", "why"), [(5, "refuses what is signed in its future"), (-5, "expires too early there")]
)
def test_a_wrong_clock_is_told_what_comes_of_it(minutes: int, why: str) -> None:
    assert judge_clock(NOW, NOW + timedelta(minutes=minutes)).seen.endswith(why)


@pytest.mark.parametrize(
    ("error", "clock_wrong", "todo"),
    [
        (GitHubForbidden("401"), False, "privateKeyFile"),
        (GitHubForbidden("401"), False, "`kubectl -n here patch secret NAME --type merge"),
        (GitHubForbidden("401"), False, """-p '{"data":{"org.pem":"'$(base64 -w0 app.pem)'"}}'`"""),
        (GitHubForbidden("401"), True, "Set the clock first"),
        (GitHubNotFound("404"), False, "appId"),
        (GitHubUnavailable("no answer"), False, "curl -I"),
    ],
)
def test_what_keeps_us_from_being_an_app_is_told_apart(error: Any, clock_wrong: bool, todo: str) -> None:
    api = "https://api.github.com"
    place: Any = {"key_file": "org.pem", "namespace": "here"}
    assert todo in judge_refusal(ORGANIZATION, "111", error, api, clock_wrong=clock_wrong, **place).todo


@pytest.mark.parametrize(
    ("api", "pages"),
    [
        ("https://api.github.com", "https://github.com"),
        ("https://api.acme.ghe.com", "https://acme.ghe.com"),
        ("https://git.example.org/api/v3", "https://git.example.org"),
    ],
)
def test_every_kind_of_github_has_its_pages(api: str, pages: str) -> None:
    assert web_address(api) == pages


def test_every_right_that_is_refused_has_its_line() -> None:
    assert worst(judge_rights([(right, True) for right in RIGHTS], "default", RELEASE)) is Level.OK
    assert len(judge_rights([(right, False) for right in RIGHTS], "default", RELEASE)) == len(RIGHTS)


OF_RELEASE = "-l app.kubernetes.io/instance=boards -o name"


@pytest.mark.parametrize(
    ("right", "release", "todo"),
    [
        (Right("list", "events"), "", "`kubectl -n runners edit role NAME`"),
        (
            Right("list", "events"),
            "here/boards",
            f"`kubectl -n runners edit $(kubectl -n runners get role {OF_RELEASE})`",
        ),
        (
            Right("list", "nodes", namespaced=False),
            "here/boards",
            f"`kubectl edit $(kubectl get clusterrole {OF_RELEASE} | grep -F /here.)`",
        ),
    ],
)
def test_the_role_that_lacks_a_right_is_found_by_its_release(right: Right, release: str, todo: str) -> None:
    (finding,) = judge_rights([(right, False)], "runners", release)
    assert todo in finding.todo


def test_helm_is_told_the_release_where_it_is_known() -> None:
    assert helm_upgrade(RELEASE) == "helm upgrade boards CHART -n here --reset-then-reuse-values --set"
    assert helm_upgrade("") == "helm upgrade RELEASE CHART -n NAMESPACE --reset-then-reuse-values --set"


def test_a_pod_that_would_be_taken_is_in_order() -> None:
    assert judge_pod("rv1", None, "runners", RELEASE).level is Level.OK


@pytest.mark.parametrize(
    ("refusal", "todo"),
    [
        (ClusterRefused("422 Invalid"), "correct `pools[]` of rv1"),
        (ClusterNotFound("404 NotFound: namespaces not found"), "kubectl create namespace runners"),
        (ClusterForbidden("403: violates PodSecurity"), "kubectl label --overwrite namespace runners"),
        (ClusterForbidden('403: User "x" cannot create resource "pods"'), "rbac.create=true"),
        (ClusterForbidden("401 Unauthorized: Unauthorized", status=401), "kubectl auth whoami"),
        (ClusterForbidden("403: exceeded quota: small", status=403), "kubectl -n runners describe quota"),
        (ClusterUnavailable("no answer in time"), "kubectl get --raw /readyz"),
    ],
)
def test_a_pod_that_would_be_refused_is_told_why(refusal: ClusterError, todo: str) -> None:
    finding = judge_pod("rv1", refusal, "runners", RELEASE)
    assert worst([finding]) is Level.FAULT
    assert todo in finding.todo


def a_board(name: str, board: str, **changes: Any) -> Node:
    """A good board."""
    fields: dict[str, Any] = {"ready": True, "schedulable": True, "unreachable": False, "slots": 1}
    return Node(name=name, labels={LABEL: board}, **fields | changes)


@pytest.mark.parametrize(
    ("nodes", "level"),
    [
        ([a_board("one", "rv1")], Level.OK),
        ([a_board("one", "rv1"), a_board("two", "rv1", slots=0)], Level.WARN),
        ([a_board("one", "rv1"), a_board("two", "other")], Level.WARN),
        ([a_board("one", "rv1"), a_board("two", "rv1", ready=False)], Level.OK),
        ([a_board("one", "rv1", slots=0)], Level.FAULT),
        ([a_board("one", "rv1", ready=False)], Level.FAULT),
        ([a_board("one", "rv1", schedulable=False)], Level.FAULT),
        ([a_board("one", "rv1", unreachable=True)], Level.FAULT),
        ([], Level.FAULT),
    ],
)
def test_boards(nodes: list[Node], level: Level) -> None:
    pools = [Pool("rv1", "rv1", (("rv1",),), "image", {LABEL: "rv1"})]
    assert worst(judge_boards(nodes, pools, LABEL, RESOURCE, RELEASE)) is level


@pytest.mark.parametrize(
    ("nodes", "level"),
    [
        ([a_board("one", "rv1"), a_board("two", "rv1")], Level.WARN),
        ([a_board("one", "rv1"), a_board("two", "")], Level.WARN),
        ([a_board("one", "rv1"), Node("two", {}, True, True, False, 0)], Level.FAULT),
        ([a_board("one", "rv1"), Node("two", {}, False, True, False, 0)], Level.WARN),
        ([a_board("two", "rv1"), Node("one", {}, True, True, False, 0)], Level.OK),
    ],
)
def test_our_own_pods_belong_off_boards_wherever_there_is_another_node(
    nodes: list[Node], level: Level
) -> None:
    assert worst(judge_seats([Seat("controller-1", "one", True)], nodes, LABEL, RELEASE)) is level


RESTART = "`kubectl -n here rollout restart deployment,statefulset -l app.kubernetes.io/instance=boards`"
SET_VALUE = f"`{helm_upgrade(RELEASE)} keepOffBoards=true`"


@pytest.mark.parametrize(
    ("keep_off", "todo", "not_todo"),
    [((True, True), RESTART, SET_VALUE), ((True, False), SET_VALUE, RESTART)],
)
@pytest.mark.parametrize("elsewhere", [{}, {LABEL: "rv1"}], ids=["a place to go to", "only boards"])
def test_what_keeps_off_boards_and_is_on_one_came_before_the_label_and_is_made_anew(
    keep_off: tuple[bool, ...], todo: str, not_todo: str, elsewhere: dict[str, str]
) -> None:
    nodes = [a_board("one", "rv1"), Node("two", elsewhere, True, True, False, 0)]
    seats = [Seat(f"pod-{number}", "one", keeps) for number, keeps in enumerate(keep_off)]
    (finding,) = judge_seats([*seats, Seat("pod-elsewhere", "three", False)], nodes, LABEL, RELEASE)
    assert todo in finding.todo
    assert not_todo not in finding.todo


def test_without_pods_of_ours_nothing_is_said_of_their_place() -> None:
    assert judge_seats([], [a_board("one", "rv1")], LABEL, RELEASE) == []
