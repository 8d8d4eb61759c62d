"""What the objects make a cluster do: who runs, with which rights and secrets, where, and who may reach whom."""

import base64
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller.cli import _parser
from controller.domain.constants import SHUTDOWN_LIMIT
from tests.chart.helm import (
    CHART,
    NAMESPACE,
    RELEASE,
    SCENARIOS,
    VERSION,
    Json,
    Rendered,
    env_of,
    refusal,
    render,
    rules_of,
    run,
    scenario,
    values,
)

ONE_BOARD = next(path for path in SCENARIOS if path.stem == "one-board-values")
PRODUCTION = next(path for path in SCENARIOS if path.stem == "production-values")
HELM_WAITS = 300  # seconds, for the hooks of an uninstallation
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def secret(rendered: Rendered, name: str = "") -> dict[str, str]:
    """What is in a Secret."""
    data = rendered.one("Secret", name)["data"]
    return {key: base64.b64decode(text).decode() for key, text in data.items()}


def containers(rendered: Rendered) -> list[Json]:
    """Every container of every pod, init containers too."""
    templates = [each["spec"].get("template", each) for each in rendered.objects if "spec" in each]
    pods = [each["spec"] for each in templates if "containers" in each.get("spec", {})]
    return [each for pod in pods for each in (*pod.get("initContainers", []), *pod["containers"])]


def ours(rendered: Rendered) -> list[Json]:
    """The containers of the program."""
    return [each for each in containers(rendered) if each["name"] != "postgresql"]


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_command_line_is_one_that_the_program_has(path: Path) -> None:
    for container in ours(scenario(path)):
        assert _parser().parse_args(container["args"]).run is not None


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_container_is_unprivileged_and_cannot_write_its_root(path: Path) -> None:
    for container in containers(scenario(path)):
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
        assert container["resources"]["requests"]["cpu"]


def test_controller_and_receiver_are_two_deployments_or_one_pod() -> None:
    assert render().components() == {"controller", "webhook"}
    together = render({"mode": "all"})
    assert together.components() == {"controller"}
    assert together.pod("controller")["spec"]["containers"][0]["args"] == ["all"]


def test_the_service_for_deliveries_leads_to_whoever_takes_them() -> None:
    for mode, component in (("split", "webhook"), ("all", "controller")):
        selector = render({"mode": mode}).one("Service", "-webhook")["spec"]["selector"]
        assert selector["app.kubernetes.io/component"] == component


@pytest.mark.parametrize("mode", ["split", "all"])
def test_with_pull_there_is_no_receiver_and_no_webhook_secret_is_asked_for(mode: str) -> None:
    rendered = render({"mode": mode, "config": {"webhook": "pull"}, "secrets": {"webhookSecret": ""}})
    assert rendered.components() == {"controller"}
    (container,) = rendered.pod("controller")["spec"]["containers"]
    assert container["args"] == ["controller"]
    assert "GITHUB_WEBHOOK_SECRET" not in env_of(container)
    assert len(rendered.all("Service")) == 1


@pytest.mark.parametrize("component", ["controller", "webhook"])
def test_the_database_is_migrated_before_anything_starts(component: str) -> None:
    (migrate,) = render().pod(component)["spec"]["initContainers"]
    assert migrate["args"][:2] == ["migrate", "--wait"]
    assert {"DATABASE_URL", "SWITCHBOARD_CONFIG"} <= env_of(migrate).keys()


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_installing_needs_no_hook(path: Path) -> None:
    hooks = {
        each["metadata"]["annotations"]["helm.sh/hook"]
        for each in scenario(path).objects
        if "helm.sh/hook" in (each["metadata"].get("annotations") or {})
    }
    assert hooks <= {"test", "post-delete"}


@pytest.mark.parametrize(("component", "replicas"), [("controller", 1), ("webhook", 2)])
def test_a_new_pod_is_ready_before_an_old_one_goes(component: str, replicas: int) -> None:
    deployment = render().one("Deployment", f"-{component}")["spec"]
    assert deployment["replicas"] == replicas
    assert deployment["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


def test_a_receiver_answers_until_nobody_sends_it_anything() -> None:
    """A Service forgets a pod some moments after the pod was told to go."""
    spec = render().pod("webhook")["spec"]
    command, seconds = spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    assert command == "sleep"
    assert 0 < int(seconds) < spec["terminationGracePeriodSeconds"] - SHUTDOWN_LIMIT.total_seconds()


def test_another_version_of_the_chart_alone_restarts_nothing() -> None:
    rendered = render(WHOLE)
    for pod in all_pods(rendered).values():
        labels = pod["metadata"]["labels"]
        assert labels.keys() & {"helm.sh/chart", "app.kubernetes.io/version"} == set()


def test_what_is_done_when_the_release_goes_ends_before_helm_gives_up_and_leaves_nothing() -> None:
    hooks = hooks_of(render(WHOLE))
    assert hooks["Job"]["spec"]["activeDeadlineSeconds"] < HELM_WAITS
    for hook in hooks.values():
        deleted = hook["metadata"]["annotations"]["helm.sh/hook-delete-policy"].split(",")
        assert {"hook-succeeded", "hook-failed"} <= set(deleted)


def test_the_volume_of_a_trial_goes_with_it() -> None:
    assert render(WHOLE).one("StatefulSet")["spec"]["persistentVolumeClaimRetentionPolicy"][
        "whenDeleted"
    ] == ("Delete")


@pytest.mark.parametrize("component", ["controller", "webhook"])
def test_a_pod_has_time_to_end_what_is_under_way(component: str) -> None:
    grace = render().pod(component)["spec"]["terminationGracePeriodSeconds"]
    assert grace == 45
    assert grace > SHUTDOWN_LIMIT.total_seconds()


@pytest.mark.parametrize("component", ["controller", "webhook"])
def test_probes_ask_what_the_program_serves(component: str) -> None:
    (container,) = render({"config": {"web": {"listen": "0.0.0.0:9090"}}}).pod(component)["spec"][
        "containers"
    ]
    assert container["ports"] == [{"name": "http", "containerPort": 9090}]
    paths = {name: container[name]["httpGet"] for name in ("livenessProbe", "readinessProbe", "startupProbe")}
    assert {probe["port"] for probe in paths.values()} == {"http"}
    assert (paths["livenessProbe"]["path"], paths["readinessProbe"]["path"]) == ("/health", "/ready")


def test_each_pod_gets_the_secrets_that_it_needs_and_no_others() -> None:
    rendered = render()
    secrets = {"DATABASE_URL", "GITHUB_WEBHOOK_SECRET", "SWITCHBOARD_ADMIN_TOKEN"}
    given = {name: env_of(rendered.pod(name)["spec"]["containers"][0]).keys() & secrets for name in PODS}
    assert given == {
        "controller": {"DATABASE_URL", "SWITCHBOARD_ADMIN_TOKEN"},
        "webhook": {"DATABASE_URL", "GITHUB_WEBHOOK_SECRET"},
    }
    volumes = {name: {each["name"] for each in rendered.pod(name)["spec"]["volumes"]} for name in PODS}
    assert volumes == {"controller": {"config", "tmp", "keys"}, "webhook": {"config", "tmp"}}


PODS = ("controller", "webhook")


def test_only_what_asks_the_api_server_has_a_token_for_it() -> None:
    rendered = render(WHOLE)
    pods = all_pods(rendered).items()
    mounted = {name: pod["spec"]["automountServiceAccountToken"] for name, pod in pods}
    asking = {name for name, token in mounted.items() if token}
    assert asking == {"controller", "doctor", "withdraw"}
    assert rendered.one("ServiceAccount", f"{RELEASE}-switchboard")["automountServiceAccountToken"] is False


def test_pods_start_without_the_secrets_that_may_be_missing() -> None:
    rendered = render()
    optional = {
        (component, name)
        for component in (*PODS, "doctor")
        for name, variable in env_of(rendered.pod(component)["spec"]["containers"][0]).items()
        if variable.get("valueFrom", {}).get("secretKeyRef", {}).get("optional")
    }
    token, secret = "SWITCHBOARD_ADMIN_TOKEN", "GITHUB_WEBHOOK_SECRET"
    assert optional == {("controller", token), ("doctor", token), ("doctor", secret)}


def test_the_keys_are_readable_by_the_programs_group_and_nobody_else() -> None:
    spec = render().pod("controller")["spec"]
    (keys,) = [each["secret"] for each in spec["volumes"] if each["name"] == "keys"]
    assert keys["defaultMode"] == 0o440
    assert spec["securityContext"]["fsGroup"] == spec["securityContext"]["runAsGroup"]


def test_no_secret_is_written_into_anything_but_secrets() -> None:
    marks = {"databaseUrl": "postgresql://u:MARK-1@db/d", "webhookSecret": "MARK-2", "adminToken": "MARK-3"}
    rendered = render({"secrets": marks, "appKeys": {"files": {"user.pem": "MARK-4"}}})
    others = [each for each in rendered.objects if each["kind"] != "Secret"]
    assert "MARK" not in yaml.safe_dump_all(others)
    held = {**secret(rendered, "-switchboard"), **secret(rendered, "-app-keys")}
    assert "\n".join(held.values()).count("MARK") == 4


def test_secrets_that_are_there_already_are_named_and_not_made() -> None:
    existing = {"secrets": {"existingSecret": "mine"}, "appKeys": {"existingSecret": "my-keys"}}
    rendered = render(existing)
    assert rendered.all("Secret") == []
    spec = rendered.pod("controller")["spec"]
    assert (
        env_of(spec["containers"][0])["DATABASE_URL"]["valueFrom"]["secretKeyRef"]["name"],
        next(each["secret"]["secretName"] for each in spec["volumes"] if each["name"] == "keys"),
    ) == ("mine", "my-keys")


@pytest.mark.parametrize(
    ("change", "restarts"),
    [
        ({"config": {"web": {"contact": "#ci"}}}, True),
        ({"secrets": {"webhookSecret": "another"}}, True),
        ({"appKeys": {"files": {"user.pem": "another"}}}, False),  # read again when the file changes
        ({"service": {"port": 81}}, False),
    ],
)
def test_pods_restart_when_what_they_have_read_at_the_start_changes(
    change: dict[str, Any], restarts: bool
) -> None:
    for name in PODS:
        assert (render(change).pod(name) != render().pod(name)) is restarts


def test_the_settings_file_is_the_one_of_the_values() -> None:
    config = yaml.safe_load(render().one("ConfigMap", "-switchboard")["data"]["switchboard.yaml"])
    assert config["pools"] == [{"name": "rv1", "labels": ["riscv"], "image": "registry.example/runner:1"}]
    assert config["kubernetes"] == {"namespace": "switchboard-runners"}


@pytest.mark.parametrize("component", ["controller", "webhook", "postgresql", "doctor", "withdraw"])
def test_nothing_of_ours_goes_onto_a_board(component: str) -> None:
    label = {"config": {"kubernetes": {"boardLabel": "example.org/board"}}}
    terms = render(WHOLE, label).pod(component)["spec"]["affinity"]["nodeAffinity"][REQUIRED]
    off = {"key": "example.org/board", "operator": "DoesNotExist"}
    assert all(off in term["matchExpressions"] for term in terms["nodeSelectorTerms"])
    assert "affinity" not in render(WHOLE, {"keepOffBoards": False}).pod(component)["spec"]


def test_whoever_pulls_the_programs_image_has_the_password_of_its_registry() -> None:
    rendered = render(WHOLE, {"imagePullSecrets": ["registry"]})
    given = {name: pod["spec"].get("imagePullSecrets") for name, pod in all_pods(rendered).items()}
    assert given.pop("postgresql") is None
    assert given.keys() == {"controller", "webhook", "doctor", "withdraw"}
    assert all(names == [{"name": "registry"}] for names in given.values())


def test_every_object_and_every_pod_has_the_labels_that_all_are_to_have() -> None:
    metrics = {name: {"enabled": True} for name in ("serviceMonitor", "prometheusRule", "grafanaDashboard")}
    rendered = render(WHOLE, {"metrics": metrics, "ingress": {"enabled": True, "host": "example.org"}})
    for labelled in (*rendered.objects, *all_pods(rendered).values()):
        assert labelled["metadata"]["labels"].items() >= WHOLE["commonLabels"].items()


def test_an_affinity_of_ones_own_opens_no_way_onto_a_board() -> None:
    terms = scenario(PRODUCTION).pod("controller")["spec"]["affinity"]["nodeAffinity"][REQUIRED]
    assert [[each["key"] for each in term["matchExpressions"]] for term in terms["nodeSelectorTerms"]] == [
        ["kubernetes.io/arch", "riseproject.dev/board"]
    ] * 2


def test_only_deliveries_are_reachable_from_outside_unless_pages_are_asked_for() -> None:
    ingress = {"ingress": {"enabled": True, "host": "example.org"}}
    (rule,) = render(ingress).one("Ingress")["spec"]["rules"]
    assert [(each["path"], each["pathType"]) for each in rule["http"]["paths"]] == [("/webhook", "Exact")]
    (rule,) = render(ingress, {"ingress": {"pages": True}}).one("Ingress")["spec"]["rules"]
    assert [each["path"] for each in rule["http"]["paths"]] == ["/webhook", "/"]
    assert "Ingress" not in render().kinds()
    pulls: Json = {"config": {"webhook": "pull"}, "ingress": {"pages": True}}
    (rule,) = render(ingress, pulls).one("Ingress")["spec"]["rules"]
    assert [each["path"] for each in rule["http"]["paths"]] == ["/"]


def test_deliveries_are_encrypted_with_the_certificate_that_is_named() -> None:
    ingress = {"enabled": True, "host": "example.org"}
    assert "tls" not in render({"ingress": ingress}).one("Ingress")["spec"]
    (tls,) = render({"ingress": {**ingress, "tlsSecretName": "ours"}}).one("Ingress")["spec"]["tls"]
    assert tls == {"hosts": ["example.org"], "secretName": "ours"}


def test_pages_are_not_published_for_want_of_deliveries() -> None:
    ingress = {"ingress": {"enabled": True, "host": "example.org"}}
    said = refusal(ingress, {"config": {"webhook": "pull"}})
    assert "ingress.enabled: with config.webhook pull GitHub sends nothing here" in said


def test_runner_pods_have_a_namespace_that_lets_them_in() -> None:
    namespace = render().one("Namespace")
    assert namespace["metadata"]["name"] == "switchboard-runners"
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
    assert "Namespace" not in render({"runnerNamespace": {"create": False}}).kinds()


def test_no_upgrade_rollback_or_uninstall_takes_the_running_jobs_away() -> None:
    assert render().one("Namespace")["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_nodes_may_be_written_only_where_boards_are_advertised() -> None:
    assert ("patch", "nodes/status") not in rules_of(render(), "ClusterRole")
    assert ("patch", "nodes/status") in rules_of(render(ADVERTISES), "ClusterRole")
    assert "Job" not in render().kinds()


def test_rights_in_the_runner_namespace_reach_no_other() -> None:
    rendered = render({"config": {"kubernetes": {"namespace": "elsewhere"}}})
    assert {role["metadata"]["namespace"] for role in rendered.all("Role")} == {"elsewhere", NAMESPACE}
    assert rules_of(rendered, "Role", NAMESPACE) == {("list", "pods")}
    resources = {resource for _, resource in rules_of(rendered, "ClusterRole")}
    assert resources == {"nodes"}


def test_pages_may_be_closed_to_most_of_the_cluster_but_never_the_receiver() -> None:
    closed: Json = {"networkPolicy": {"pagesFrom": [{"podSelector": {}}]}}
    split = render(closed)
    assert split.one("NetworkPolicy", "-controller")["spec"]["ingress"][0]["from"] == [{"podSelector": {}}]
    assert "from" not in split.one("NetworkPolicy", "-webhook")["spec"]["ingress"][0]
    assert "networkPolicy.pagesFrom: with mode all" in refusal(closed, {"mode": "all"})
    for mode in ("split", "all"):  # with pull nobody else needs to reach that port
        pulls = render(closed, {"mode": mode, "config": {"webhook": "pull"}})
        assert pulls.one("NetworkPolicy")["spec"]["ingress"][0]["from"] == [{"podSelector": {}}]
    off: Json = {"mode": "all", "networkPolicy": {"enabled": False}}
    assert "NetworkPolicy" not in render(closed, off).kinds()


def test_rights_never_go_to_the_account_that_every_pod_has() -> None:
    none: Json = {"serviceAccount": {"create": False}}
    assert "serviceAccount.name: missing" in refusal(none)
    named = render(none, {"serviceAccount": {"name": "mine"}})
    subjects = [binding["subjects"][0]["name"] for binding in named.all("RoleBinding")]
    assert set(subjects) == {"mine"}
    assert "RoleBinding" not in render(none, {"rbac": {"create": False}}).kinds()


ADVERTISES: Json = {"config": {"boards": {"advertise": True}}}


def hooks_of(rendered: Rendered) -> dict[str, Json]:
    """What comes when the release goes, by kind."""
    hooks = [each for each in rendered.objects if "annotations" in each["metadata"]]
    return {
        each["kind"]: each
        for each in hooks
        if each["metadata"]["annotations"].get("helm.sh/hook") == "post-delete"
    }


@pytest.mark.parametrize("controllers", [{}, {"create": False, "name": "mine"}], ids=["made", "given"])
def test_slots_are_withdrawn_with_an_account_and_rights_of_that_job_alone(controllers: Json) -> None:
    """Or a controller that takes its time to end would get the right back to offer them."""
    hooks = hooks_of(render(ADVERTISES, {"serviceAccount": controllers}))
    assert hooks.keys() == {"ServiceAccount", "ConfigMap", "ClusterRole", "ClusterRoleBinding", "Job"}
    account = hooks["Job"]["spec"]["template"]["spec"]["serviceAccountName"]
    assert account == f"{RELEASE}-switchboard-withdraw"
    assert account == hooks["ServiceAccount"]["metadata"]["name"]
    assert account == hooks["ClusterRoleBinding"]["subjects"][0]["name"]


@pytest.mark.parametrize(
    ("creates", "kinds"),
    [
        (False, {"ConfigMap", "Job"}),
        (True, set()),  # the account that was given rights by hand is gone by then
    ],
)
def test_withdrawing_makes_no_role_or_account_where_the_chart_makes_no_roles(
    creates: bool, kinds: set[str]
) -> None:
    given: Json = {"rbac": {"create": False}, "serviceAccount": {"create": creates, "name": "mine"}}
    hooks = hooks_of(render(ADVERTISES, given))
    assert hooks.keys() == kinds
    if "Job" in hooks:
        assert hooks["Job"]["spec"]["template"]["spec"]["serviceAccountName"] == "mine"


def selected(selector: Json, labels: Json) -> bool:
    """Whether a label selector takes what has these labels."""
    given = selector.get("matchLabels", {}).items() <= labels.items()
    return given and all(
        labels.get(each["key"]) in each["values"] for each in selector.get("matchExpressions", ())
    )


def all_pods(rendered: Rendered) -> dict[str, Json]:
    """The pods of a release by component, those of its hooks too."""
    return {name: rendered.pod(name) for name in (*rendered.components(), "doctor")}


def selector_of(obj: Json) -> Json:
    """Which pods an object is about."""
    spec: Json = obj["spec"]
    if obj["kind"] == "Service":
        return {"matchLabels": spec["selector"]}
    selector: Json = spec.get("podSelector") or spec["selector"]
    return selector


def taken(selector: Json, *releases: Rendered) -> list[str]:
    """The components whose pods a selector takes, in all these releases of one namespace."""
    pods = [pod for each in releases for pod in all_pods(each).items()]
    return sorted(name for name, pod in pods if selected(selector, pod["metadata"]["labels"]))


WHOLE: Json = {
    "trialDatabase": {"enabled": True, "password": "x"},
    "config": {"boards": {"advertise": True}},
    "commonLabels": {"team": "ci"},
}
# Whom each object is about, by its kind and how its name ends.
ABOUT = {
    ("Service", "-switchboard"): ["controller"],
    ("Service", "-webhook"): ["webhook"],
    ("Service", "-postgresql"): ["postgresql"],
    ("PodDisruptionBudget", "-webhook"): ["webhook"],
    ("NetworkPolicy", "-controller"): ["controller", "doctor", "withdraw"],
    ("NetworkPolicy", "-webhook"): ["webhook"],
    ("NetworkPolicy", "-postgresql"): ["postgresql"],
}


@pytest.mark.parametrize("names", [{}, {"nameOverride": "a-switchboard"}], ids=["plain", "renamed"])
def test_every_selector_takes_the_pods_that_it_is_for_and_of_its_own_release_alone(names: Json) -> None:
    """The API server accepts any; what selects nobody would do nothing, and nobody would be told."""
    rendered, beside = (Rendered(values(WHOLE, names), release) for release in (RELEASE, "beside"))
    found = [each for each in rendered.objects if each["kind"] in {kind for kind, _ in ABOUT}]
    assert len(found) == len(ABOUT)
    for (kind, name), components in ABOUT.items():
        assert taken(selector_of(rendered.one(kind, name)), rendered, beside) == components, (kind, name)
    (spread,) = rendered.pod("webhook")["spec"]["topologySpreadConstraints"]
    assert taken(spread["labelSelector"], rendered, beside) == ["webhook"]


def test_every_service_leads_to_a_port_that_its_pods_have() -> None:
    for rendered in (render(WHOLE), render(WHOLE, {"mode": "all"})):
        for service in rendered.all("Service"):
            (component,) = taken(selector_of(service), rendered)
            (container,) = rendered.pod(component)["spec"]["containers"]
            (port,) = service["spec"]["ports"]
            assert port["targetPort"] in [each["name"] for each in container["ports"]]


def test_every_pod_is_under_a_network_policy_that_says_both_who_comes_in_and_where_it_goes() -> None:
    rendered = render(WHOLE)
    policies = [each["spec"] for each in rendered.all("NetworkPolicy")]
    covered = {name for each in policies for name in taken(each["podSelector"], rendered)}
    assert covered == all_pods(rendered).keys()
    assert all(each["policyTypes"] == ["Ingress", "Egress"] for each in policies)


def test_only_what_needs_the_trial_database_reaches_it_and_it_reaches_nobody() -> None:
    rendered, beside = render(WHOLE), Rendered(values(WHOLE), "beside")
    database = rendered.one("NetworkPolicy", "-postgresql")["spec"]
    (rule,) = database["ingress"]
    (peer,) = rule["from"]
    assert peer.keys() == {"podSelector"}  # so of this namespace
    assert taken(peer["podSelector"], rendered, beside) == ["controller", "doctor", "webhook"]
    (port,) = rendered.pod("postgresql")["spec"]["containers"][0]["ports"]
    assert rule["ports"] == [{"protocol": "TCP", "port": port["name"]}]
    assert "egress" not in database


NAMES = {("UDP", 53), ("TCP", 53), ("UDP", 5353), ("TCP", 5353)}  # the second port is OpenShift's
OUTSIDE = {("TCP", port) for port in (443, 6443, 16443, 5432)}  # GitHub, API servers and PostgreSQL


@pytest.mark.parametrize("component", ["controller", "webhook"])
@pytest.mark.parametrize(
    ("given", "outside"),
    [({}, OUTSIDE), ({"egressPorts": [8443]}, {("TCP", 8443)})],
    ids=["default", "given"],
)
def test_the_program_reaches_what_it_has_to_and_no_other_port(
    component: str, given: Json, outside: set[tuple[str, int]]
) -> None:
    more = {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}
    rendered = render({"networkPolicy": {**given, "extraEgress": [more]}})
    *rules, last = rendered.one("NetworkPolicy", f"-{component}")["spec"]["egress"]
    assert last == more
    assert all(rule.keys() == {"ports"} for rule in rules)  # wherever that is
    assert {(port["protocol"], port["port"]) for rule in rules for port in rule["ports"]} == NAMES | outside


def test_the_receiver_survives_a_drain() -> None:
    assert render().one("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert "PodDisruptionBudget" not in render({"webhook": {"replicas": 1}}).kinds()
    spread = render().pod("webhook")["spec"]["topologySpreadConstraints"][0]
    assert spread["topologyKey"] == "kubernetes.io/hostname"


def test_every_pod_is_scraped_once() -> None:
    for mode, components in (("split", ["controller", "webhook"]), ("all", ["controller"])):
        rendered = render({"mode": mode, "metrics": {"serviceMonitor": {"enabled": True}}})
        selector = rendered.one("ServiceMonitor")["spec"]["selector"]
        assert selector["matchExpressions"][0]["values"] == components


def test_the_alerts_are_those_of_the_file_with_the_wait_that_was_asked_for() -> None:
    on = {"metrics": {"prometheusRule": {"enabled": True, "oldestWaitMinutes": 7}}}
    alerts = {each["alert"]: each for each in alerts_of(render(on))}
    assert alerts["SwitchboardOldJobWaits"]["expr"].endswith("> 7 * 60")
    assert "SwitchboardDeliveriesPulled" in alerts
    pulls = {"config": {"webhook": "pull"}}
    assert "SwitchboardDeliveriesPulled" not in {each["alert"] for each in alerts_of(render(on, pulls))}


def test_every_alert_is_about_the_processes_of_the_release_alone() -> None:
    on = {"metrics": {"prometheusRule": {"enabled": True}}}
    for alert in alerts_of(render(on)):
        matched = re.findall(r"switchboard_[a-z_]+(\{[^}]*\}|)", alert["expr"])
        assert matched
        assert all(each.startswith(f'{{namespace="{NAMESPACE}"') for each in matched), alert["expr"]


def alerts_of(rendered: Rendered) -> list[Json]:
    found: list[Json] = rendered.one("PrometheusRule")["spec"]["groups"][0]["rules"]
    return found


def test_a_digest_wins_over_a_tag() -> None:
    digest = f"sha256:{'a' * 64}"
    for given, image in (
        ({}, "registry.example/switchboard:0.1.0"),
        ({"tag": "2"}, "registry.example/switchboard:2"),
        ({"tag": "2", "digest": digest}, f"registry.example/switchboard@{digest}"),
    ):
        rendered = render({"image": given})
        assert {each["image"] for each in ours(rendered)} == {image}


def test_the_test_of_a_release_is_the_doctor_with_the_controllers_eyes() -> None:
    rendered = render()
    doctor, controller = rendered.pod("doctor"), rendered.pod("controller")
    assert doctor["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert doctor["metadata"]["annotations"]["helm.sh/hook-delete-policy"] == "before-hook-creation"
    assert doctor["spec"]["containers"][0]["args"] == ["doctor"]
    assert env_of(doctor["spec"]["containers"][0])["SWITCHBOARD_RELEASE"]["value"] == f"{NAMESPACE}/{RELEASE}"
    assert doctor["spec"]["serviceAccountName"] == controller["spec"]["serviceAccountName"]
    assert {each["name"] for each in doctor["spec"]["volumes"]} == {"config", "tmp", "keys"}


def test_the_doctor_reaches_everything_as_the_controller_does() -> None:
    rendered = render({"controller": THROUGH})
    doctor, controller = (rendered.pod(name)["spec"] for name in ("doctor", "controller"))
    (looks,), (works,) = doctor["containers"], controller["containers"]
    assert doctor["volumes"] == controller["volumes"]
    assert looks["volumeMounts"] == works["volumeMounts"]
    assert env_of(looks).items() >= env_of(works).items()


def test_a_hobbyist_needs_one_pod_and_a_database() -> None:
    rendered = scenario(ONE_BOARD)
    pods = [each["kind"] for each in rendered.objects if each["kind"] in ("Deployment", "StatefulSet")]
    assert sorted(pods) == ["Deployment", "StatefulSet"]
    url = secret(rendered, "-switchboard")["DATABASE_URL"]
    service = rendered.one("Service", "-postgresql")["metadata"]["name"]
    assert secret(rendered, "-postgresql") == {"password": "change1me"}
    assert url == f"postgresql://switchboard:change1me@{service}:5432/switchboard"
    assert "Ingress" not in rendered.kinds()


def test_two_releases_share_no_name_outside_their_namespaces() -> None:
    one, other = (wide_names(*place) for place in (("ci", "prod-switchboard"), ("ci-prod", "switchboard")))
    assert (
        len(one) == len(other) == 4
    )  # roles and bindings: the release's, and those of the job that withdraws
    assert not one & other
    assert all(name.startswith("ci.") for _, name in one)  # by which the doctor's command finds them


def wide_names(namespace: str, release: str) -> set[tuple[str, str]]:
    """What a release makes that lies in no namespace, but for the namespace that it shares or does not by intent."""
    where = ["--namespace", namespace, "--kube-version", VERSION, "--values", "-"]
    code, said = run("template", release, str(CHART), *where, given=values(ADVERTISES))
    assert code == 0, said
    objects = [each for each in yaml.safe_load_all(said) if each and each["kind"] != "Namespace"]
    return {
        (each["kind"], each["metadata"]["name"]) for each in objects if "namespace" not in each["metadata"]
    }


# What a database behind a certificate of one's own needs.
THROUGH: Json = {
    "extraVolumes": [{"name": "ca", "configMap": {"name": "database-ca"}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/database"}],
    "extraEnv": [{"name": "PGSSLROOTCERT", "value": "/etc/database/ca.crt"}],
}


@pytest.mark.parametrize("component", ["controller", "webhook"])
def test_migrations_reach_the_database_as_their_component_does(component: str) -> None:
    spec = render({component: THROUGH}).pod(component)["spec"]
    assert THROUGH["extraVolumes"][0] in spec["volumes"]
    for container in (*spec["initContainers"], *spec["containers"]):
        assert THROUGH["extraVolumeMounts"][0] in container["volumeMounts"]
        assert env_of(container)["PGSSLROOTCERT"] == THROUGH["extraEnv"][0]
