"""What an installation's budget allows, and what keeps it from more."""

from datetime import timedelta

import pytest

from controller.decide.demand import Funds
from controller.domain.budgets import Budget, Scarce
from controller.reconcile.demand_match import funds_of
from tests.clocks import EPOCH as NOW

SOON, LATER = NOW + timedelta(minutes=3), NOW + timedelta(minutes=40)


@pytest.mark.parametrize(
    ("budget", "coming", "funds"),
    [
        (Budget(5000, 4000, LATER, SOON, 150), 0, Funds(0, SOON, Scarce.SECONDARY)),
        (Budget(blocked_until=SOON), 0, Funds(0, SOON, Scarce.SECONDARY)),
        (Budget(5000, 0, LATER, LATER, 150), 0, Funds(0, LATER, Scarce.HOURLY)),
        (Budget(5000, 3, LATER, None, 150), 2, Funds(1, LATER, Scarce.HOURLY)),
        (Budget(5000, 3, LATER, NOW, 150), 5, Funds(0, LATER, Scarce.HOURLY)),
        (Budget(5000, 4000, LATER, None, 150), 20, Funds(130, NOW + timedelta(minutes=1), Scarce.PACE)),
        (Budget(5000, 4000, LATER, None, 0), 0, Funds(0, NOW + timedelta(minutes=1), Scarce.PACE)),
        (Budget(), 300, Funds(0, NOW + timedelta(minutes=2), Scarce.PACE)),
    ],
)
def test_it_is_said_what_allows_no_more_and_until_when(budget: Budget, coming: int, funds: Funds) -> None:
    assert funds_of(budget, NOW, coming) == funds


def test_the_time_that_the_pace_gives_stays_the_same_for_a_minute() -> None:
    paced = Budget(5000, 4000, LATER, None, 0)
    said = {funds_of(paced, NOW + timedelta(seconds=second), 0).until for second in range(59)}
    assert said == {NOW + timedelta(minutes=1)}
