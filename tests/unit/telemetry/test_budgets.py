"""The gauge of budgets shows only installations used in the last hour."""

from datetime import UTC, datetime, timedelta

from controller.telemetry.metrics import Metrics

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAME = "switchboard_github_rate_limit_remaining"


def left(metrics: Metrics, installation: str) -> float | None:
    return metrics.registry.get_sample_value(NAME, {"installation": installation})


def test_an_installation_is_shown_for_an_hour_after_its_last_use() -> None:
    metrics = Metrics()
    metrics.budgets.see(1, 4000, NOON)
    metrics.budgets.see(2, 3000, NOON + timedelta(minutes=30))
    metrics.budgets.forget_unused(NOON + timedelta(minutes=60))
    assert (left(metrics, "1"), left(metrics, "2")) == (4000, 3000)
    metrics.budgets.forget_unused(NOON + timedelta(minutes=61))
    assert (left(metrics, "1"), left(metrics, "2")) == (None, 3000)


def test_a_forgotten_installation_may_come_back() -> None:
    metrics = Metrics()
    metrics.budgets.see(1, 4000, NOON)
    metrics.budgets.forget_unused(NOON + timedelta(hours=2))
    metrics.budgets.see(1, 10, NOON + timedelta(hours=3))
    assert left(metrics, "1") == 10


def test_a_process_that_leads_no_more_shows_no_budget() -> None:
    metrics = Metrics()
    metrics.budgets.see(1, 4000, NOON)
    metrics.clear_state()
    metrics.budgets.forget_unused(NOON + timedelta(hours=2))
    assert left(metrics, "1") is None
