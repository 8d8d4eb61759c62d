"""The table of instruments."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from controller.domain.reasons import Reason
from controller.telemetry.metrics import Metrics, event_label

NAMES = {
    "jobs": ("gauge", ("status",)),
    "workers": ("gauge", ("status", "pool")),
    "jobs_finished": ("counter", ("pool", "conclusion")),
    "queue_oldest_seconds": ("gauge", ("pool",)),
    "job_wait_seconds": ("histogram", ("pool",)),
    "provision_seconds": ("histogram", ("stage",)),
    "iteration_seconds": ("histogram", ("step",)),
    "iteration_last_success_timestamp_seconds": ("gauge", ()),
    "workers_lock_seconds": ("histogram", ()),
    "steps_left_out": ("counter", ("step",)),
    "worker_failures": ("counter", ("reason",)),
    "skips": ("gauge", ("reason",)),
    "kills_refused": ("counter", ()),
    "board_slots": ("gauge", ("pool", "state")),
    "holds": ("gauge", ("kind",)),
    "github_requests": ("counter", ("operation", "code")),
    "github_rate_limit_remaining": ("gauge", ("installation",)),
    "webhook_deliveries": ("counter", ("event", "outcome")),
    "deliveries_pulled": ("counter", ()),
    "schedule_runs": ("counter", ("outcome",)),
    "leader": ("gauge", ()),
}


def test_every_documented_metric_is_there_with_its_labels_and_help_and_no_other() -> None:
    metrics = Metrics()
    for name, (kind, labels) in NAMES.items():
        instrument = getattr(metrics, f"{name}_total" if kind == "counter" else name)
        assert instrument._labelnames == labels, name
    body, content_type = metrics.render()
    families = {family.name: family for family in text_string_to_metric_families(body.decode())}
    assert families.keys() == {f"switchboard_{name}" for name in NAMES}
    for name, (kind, _) in NAMES.items():
        family = families[f"switchboard_{name}"]
        assert (family.type, bool(family.documentation)) == (kind, True)
    assert content_type.startswith("text/plain")


def test_two_programs_in_one_process_do_not_share_their_numbers() -> None:
    one, two = Metrics(), Metrics()
    one.deliveries_pulled_total.inc()
    assert two.registry.get_sample_value("switchboard_deliveries_pulled_total") == 0


def test_the_first_failure_of_a_reason_is_an_increase() -> None:
    registry = Metrics().registry
    for reason in Reason:
        labels = {"reason": reason.value}
        assert registry.get_sample_value("switchboard_worker_failures_total", labels) == 0, reason


@pytest.mark.parametrize(
    ("event", "label"),
    [
        ("workflow_job", "workflow_job"),
        ("ping", "ping"),
        ("issues", "other"),
        ("", "other"),
        ("x" * 999, "other"),
    ],
)
def test_the_event_label_is_bounded(event: str, label: str) -> None:
    assert event_label(event) == label


def test_a_process_that_leads_no_more_shows_no_state_but_keeps_its_counts() -> None:
    metrics = Metrics()
    metrics.jobs.labels("pending").set(3)
    metrics.worker_failures_total.labels("pod_failed").inc()
    metrics.clear_state()
    text = metrics.render()[0].decode()
    assert 'switchboard_jobs{status="pending"}' not in text
    assert 'switchboard_worker_failures_total{reason="pod_failed"} 1.0' in text


def test_waits_of_seconds_and_of_hours_can_be_told_apart() -> None:
    metrics = Metrics()
    for seconds in (3, 300, 20_000):
        metrics.job_wait_seconds.labels("p").observe(seconds)
    counts = [
        metrics.registry.get_sample_value("switchboard_job_wait_seconds_bucket", {"pool": "p", "le": le})
        for le in ("5.0", "600.0", "28800.0")
    ]
    assert counts == [1, 2, 3]
