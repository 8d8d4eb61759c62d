"""Settings: every key with its default, and every mistake at once, each with its key and what was expected."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from controller.domain.jobs import EntityType
from controller.errors import ConfigError
from controller.settings import File, Settings, WebhookMode, load_settings, parse_file

SECRETS = frozenset({"DATABASE_URL", "GITHUB_WEBHOOK_SECRET"})
ENV = {"DATABASE_URL": "postgresql://u:hunter2@db/x", "GITHUB_WEBHOOK_SECRET": "one two"}

LEAST: dict[str, Any] = {
    "github": {"apps": {"Organization": {"appId": "111", "privateKeyFile": "/org.pem"}}},
    "pools": [{"name": "scw-em-rv1", "labels": ["ubuntu-24.04-riscv"], "image": "runner:prod"}],
}
FULL = """
environment: staging
database: {schema: other, maxConnections: 25}
github:
  apiUrl: https://github.example.com/api/v3/
  runnerGroup: Boards
  runnerGroupVisibility: selected
  allowPublicRepositories: false
  runnerNamePrefix: board
  apps:
    Organization: {appId: 111, privateKeyFile: /etc/switchboard/org.pem}
    User: {appId: "222", privateKeyFile: /etc/switchboard/user.pem}
webhook: pull
kubernetes: {namespace: runners, resource: example.com/slot, boardLabel: example.com/board}
boards: {advertise: true}
pools:
  - name: fast
    board: p550
    labels: [[Ubuntu-24.04-RISCV, self-hosted], [riscv]]
    image: registry/runner@sha256:abc
    imagePullPolicy: Never
    ephemeralStorage: {request: 1Gi, limit: 2Gi}
    nodeSelector: {zone: a}
    tolerations: [{key: board, operator: Exists}]
    imagePullSecrets: [pull]
    env: {HTTP_PROXY: http://proxy}
    resources: {limits: {memory: 4Gi}}
    registrationTimeout: 5m
    privileged: false
    hostNetwork: false
access: {allow: [example-org, ada/llvm], deny: [example-org/secret], forkPullRequests: deny}
entities:
  default: {maxWorkers: null, priority: 4}
  overrides: {Example-Org: {maxWorkers: 40, priority: 8}, 77: {maxWorkers: null}}
scheduling: fair
limits: {provisionConcurrency: 3}
timings: {pollInterval: 5s, registrationTimeout: 60s, idleTimeout: 5m, podPendingTimeout: 1m, stuckQueuedAge: 1h,
          podDeleteGrace: 1d, drainTimeout: 1m, podActiveDeadline: 6h}
retention: {events: 1d, snapshots: 2d, failureLogs: 3d}
web: {listen: "[::1]:9090", private: true, contact: ops@example.com}
"""


def mistakes_in(changes: dict[str, Any], base: dict[str, Any] = LEAST) -> list[str]:
    mistakes: list[str] = []
    file = parse_file({**base, **changes}, mistakes)
    assert (file is None) == bool(mistakes)
    return mistakes


def read(text: str) -> File:
    mistakes: list[str] = []
    file = parse_file(yaml.safe_load(text), mistakes)
    assert file is not None, mistakes
    return file


def a_pool(**changes: Any) -> dict[str, Any]:
    return {**LEAST["pools"][0], **changes}


# ---- what is read


def test_everything_but_apps_and_pools_has_the_documented_default() -> None:
    file = read(yaml.safe_dump(LEAST))
    assert (file.environment, file.webhook, file.scheduling) == ("prod", WebhookMode.PUSH, "fifo")
    assert (file.database.schema_, file.database.max_connections) == ("switchboard", 10)
    assert file.github.api_url == "https://api.github.com"
    assert (file.runner_group, file.github.runner_group_visibility) == ("RISE RISC-V Runners", "all")
    assert file.github.allow_public_repositories
    assert (file.kubernetes.namespace, file.kubernetes.resource) == ("default", "riseproject.com/runner")
    assert file.kubernetes.board_label == "riseproject.dev/board"
    assert not file.boards.advertise
    assert (file.access.allow, file.access.deny, file.access.fork_pull_requests) == (["*"], [], "run")
    assert (file.entities.default.max_workers, file.entities.default.priority) == (20, 5)
    assert file.limits.provision_concurrency == 10
    assert file.timings.model_dump() == {
        "poll_interval": timedelta(seconds=15),
        "registration_timeout": timedelta(seconds=120),
        "idle_timeout": timedelta(seconds=600),
        "pod_pending_timeout": timedelta(seconds=600),
        "stuck_queued_age": timedelta(minutes=10),
        "pod_delete_grace": timedelta(hours=6),
        "drain_timeout": timedelta(minutes=5),
        "pod_active_deadline": timedelta(seconds=525_600),
    }
    assert file.retention.model_dump() == {
        "events": timedelta(days=30),
        "snapshots": timedelta(days=90),
        "failure_logs": timedelta(days=180),
    }
    assert (file.web.host, file.web.port, file.web.private, file.web.contact) == ("0.0.0.0", 8080, False, "")  # noqa: S104


def test_a_pool_takes_its_board_and_storage_from_its_name() -> None:
    (pool,) = read(yaml.safe_dump(LEAST)).pools
    assert (pool.board, pool.privileged, pool.host_network) == ("scw-em-rv1", True, True)
    assert pool.ephemeral_storage is not None
    assert (pool.ephemeral_storage.request, pool.ephemeral_storage.limit) == ("40Gi", "90Gi")
    assert read(yaml.safe_dump({**LEAST, "pools": [a_pool(name="p550")]})).pools[0].ephemeral_storage is None


def test_every_key_is_read() -> None:
    file = read(FULL)
    assert (file.environment, file.database.schema_, file.database.max_connections) == (
        "staging",
        "other",
        25,
    )
    assert file.github.api_url == "https://github.example.com/api/v3"
    assert file.runner_group == "Boards (staging)"
    assert {kind: app.app_id for kind, app in file.github.apps.items()} == {
        EntityType.ORGANIZATION: "111",
        EntityType.USER: "222",
    }
    assert file.webhook is WebhookMode.PULL
    (pool,) = file.pools
    assert pool.label_sets == (("self-hosted", "ubuntu-24.04-riscv"), ("riscv",))
    assert (pool.board, pool.pull_policy, pool.registration_timeout) == (
        "p550",
        "Never",
        timedelta(minutes=5),
    )
    assert (pool.env, pool.node_selector) == ({"HTTP_PROXY": "http://proxy"}, {"zone": "a"})
    assert file.timings.pod_delete_grace == timedelta(days=1)
    assert file.retention.failure_logs == timedelta(days=3)
    assert (file.web.host, file.web.port, file.web.private) == ("::1", 9090, True)


def test_a_tag_is_always_pulled_and_a_digest_only_once() -> None:
    tag, digest = read(
        yaml.safe_dump({**LEAST, "pools": [a_pool(), a_pool(name="b", labels=["b"], image="r@sha256:a")]})
    ).pools
    assert (tag.pull_policy, digest.pull_policy) == ("Always", "IfNotPresent")


def test_an_override_is_found_by_login_in_any_case_or_by_id_and_changes_only_what_it_names() -> None:
    entities = read(FULL).entities
    by_login, by_id, nobody = (
        entities.limits("EXAMPLE-org", 1),
        entities.limits("x", 77),
        entities.limits("x", 1),
    )
    assert (by_login.max_workers, by_login.priority) == (40, 8)
    assert (by_id.max_workers, by_id.priority) == (None, 4)
    assert (nobody.max_workers, nobody.priority) == (None, 4)


def test_a_cap_of_zero_is_a_cap() -> None:
    entities = {"overrides": {"quiet": {"maxWorkers": 0}}}
    assert read(yaml.safe_dump({**LEAST, "entities": entities})).entities.limits("quiet", 1).max_workers == 0


@pytest.mark.parametrize(
    ("login", "repo", "allowed"),
    [
        ("example-org", "example-org/llvm", True),
        ("Example-Org", "Example-Org/LLVM", True),
        ("example-org", "example-org/secret", False),
        ("ada", "ada/llvm", True),
        ("ada", "ada/other", False),
        ("someone", "someone/llvm", False),
    ],
)
def test_access_goes_by_login_or_repository_and_deny_wins(login: str, repo: str, allowed: bool) -> None:
    assert read(FULL).access.allows(login, repo) is allowed


# ---- mistakes


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"colour": "red"}, "colour: unknown key"),
        ({"timings": {"pollIntervall": "5s"}}, "timings.pollIntervall: unknown key"),
        ({"pools": [a_pool(imagee="x")]}, "pools.0.imagee: unknown key"),
        ({"pools": []}, "pools: "),
        ({"pools": [{"name": "a", "labels": ["a"]}]}, "pools.0.image: missing"),
        ({"pools": [a_pool(labels=[])]}, "pools.0.labels: "),
        ({"pools": [a_pool(labels=[[]])]}, "pools.0.labels: a label set must hold at least one label"),
        ({"pools": [a_pool(labels=["", " "])]}, "pools.0.labels: a label set must hold at least one label"),
        ({"pools": [a_pool(name="Not A Name")]}, "pools.0.name: "),
        ({"pools": [a_pool(), a_pool(labels=["b"])]}, "pools.1.name: scw-em-rv1 is used twice"),
        (
            {"pools": [a_pool(), a_pool(name="b", labels=["UBUNTU-24.04-riscv"])]},
            "pools.1.labels: [ubuntu-24.04-riscv] is served by pool scw-em-rv1 already",
        ),
        ({"github": {"apps": {}}}, "github.apps: "),
        ({"github": {}}, "github.apps: missing"),
        (
            {"github": {**LEAST["github"], "apiUrl": "api.github.com"}},
            "github.apiUrl: expected an http(s) URL",
        ),
        ({"github": {"apps": {"Team": {"appId": "1", "privateKeyFile": "/k"}}}}, "github.apps.Team: "),
        ({"github": {**LEAST["github"], "runnerNamePrefix": "x" * 60}}, "github.runnerNamePrefix: "),
        ({"environment": "Prod Two"}, "environment: "),
        ({"database": {"schema": "a-b"}}, "database.schema: "),
        ({"database": {"maxConnections": 1}}, "database.maxConnections: "),
        ({"webhook": "poll"}, "webhook: "),
        ({"scheduling": "lifo"}, "scheduling: "),
        ({"entities": {"default": {"priority": 11}}}, "entities.default.priority: "),
        ({"entities": {"default": {"maxWorkers": -1}}}, "entities.default.maxWorkers: "),
        ({"limits": {"provisionConcurrency": 0}}, "limits.provisionConcurrency: "),
        ({"timings": {"pollInterval": "15"}}, "timings.pollInterval: Missing time unit"),
        ({"timings": {"pollInterval": 15}}, "timings.pollInterval: Missing time unit"),
        (
            {"timings": {"pollInterval": "1.5h"}},
            "timings.pollInterval: Decimal values are not supported; write 90m",
        ),
        ({"timings": {"pollInterval": "0s"}}, "timings.pollInterval: Zero interval is not allowed"),
        ({"timings": {"pollInterval": "-5s"}}, "timings.pollInterval: Negative intervals are not allowed"),
        ({"timings": {"pollInterval": "5w"}}, 'timings.pollInterval: Invalid time unit "w"'),
        ({"web": {"listen": "8080"}}, "web.listen: expected address:port"),
        ({"web": {"listen": "0.0.0.0:70000"}}, "web.listen: expected address:port"),
    ],
)
def test_a_mistake_is_named_by_its_key_and_what_was_expected(changes: dict[str, Any], sentence: str) -> None:
    found = mistakes_in(changes)
    assert any(mistake.startswith(sentence) for mistake in found), found


def test_all_mistakes_of_file_and_environment_are_listed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    broken = {
        "colour": "red",
        "github": {},
        "pools": [a_pool(labels=["b"]), a_pool(name="b", labels=["b"])],
        "timings": {"pollInterval": "5"},
    }
    path.write_text(yaml.safe_dump(broken))
    with pytest.raises(ConfigError) as raised:
        load_settings(path, {}, needs=SECRETS)
    starts = ("colour:", "github.apps:", "pools.1.labels:", "timings.pollInterval:", "$DATABASE_URL:")
    for start in (*starts, "$GITHUB_WEBHOOK_SECRET:"):
        assert [mistake for mistake in raised.value.mistakes if mistake.startswith(start)], start
    assert len(raised.value.mistakes) == 6


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"a: [", "is not YAML"),
        (b"- a\n", "expected a mapping"),
        (b"", "expected a mapping"),
        (b"\xff\xfe\x00", "cannot be read"),
        (b"a: \x00", "is not YAML"),
        (b"&a [*a]", "expected a mapping"),
    ],
)
def test_a_file_that_is_no_settings_file_is_named(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "settings.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=sentence):
        load_settings(path, ENV, needs=SECRETS)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_settings(tmp_path / "none.yaml", ENV, needs=SECRETS)
    with pytest.raises(ConfigError, match="--config FILE"):
        load_settings(None, ENV, needs=SECRETS)


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(key=st.sampled_from(sorted(yaml.safe_load(FULL))), value=json_like)
def test_whatever_stands_under_a_key_it_is_read_or_named(key: str, value: object) -> None:
    mistakes: list[str] = []
    file = parse_file({**LEAST, key: value}, mistakes)
    assert (file is None) == bool(mistakes)
    assert all(mistake.startswith(key) for mistake in mistakes)


# ---- secrets


def load(tmp_path: Path, env: dict[str, str]) -> Settings:
    path = tmp_path / "settings.yaml"
    path.write_text(yaml.safe_dump(LEAST))
    return load_settings(None, {**env, "SWITCHBOARD_CONFIG": str(path)}, needs=SECRETS)


def test_secrets_come_from_the_environment_and_are_never_printed(tmp_path: Path) -> None:
    settings = load(tmp_path, {**ENV, "SWITCHBOARD_ADMIN_TOKEN": "letmein"})
    assert settings.database_url.reveal() == ENV["DATABASE_URL"]
    assert [secret.reveal() for secret in settings.webhook_secrets] == ["one", "two"]
    assert settings.admin_token is not None
    assert settings.admin_token.reveal() == "letmein"
    for secret in ("hunter2", "one two", "letmein"):
        assert secret not in repr(settings) + str(settings)


@pytest.mark.parametrize("url", ["mysql://u:hunter2@db/x", "db.example.com", "postgres:/u:hunter2@db/x"])
def test_an_address_that_is_none_is_refused_without_quoting_it(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match=r"\$DATABASE_URL: not an address") as raised:
        load(tmp_path, {**ENV, "DATABASE_URL": url})
    assert "hunter2" not in str(raised.value)


def test_an_empty_admin_token_is_none(tmp_path: Path) -> None:
    assert load(tmp_path, {**ENV, "SWITCHBOARD_ADMIN_TOKEN": " "}).admin_token is None


def test_only_the_secrets_that_a_command_needs_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(yaml.safe_dump(LEAST))
    settings = load_settings(path, {}, needs=frozenset())
    assert settings.webhook_secrets == ()
