"""The figures behind a reason, in words."""

from typing import Any

import pytest

from controller.domain.reasons import Skip
from controller.web.wording import in_figures


@pytest.mark.parametrize(
    ("skip", "detail", "words"),
    [
        (
            Skip.NO_FREE_SLOTS,
            {"boards": 6, "states": {"busy": 5, "not_ready": 1}},
            "6 boards: 5 busy, 1 not ready.",
        ),
        (Skip.NO_FREE_SLOTS, {"boards": 1, "states": {"busy": 1}}, "1 board: 1 busy."),
        (Skip.NO_FREE_SLOTS, {"boards": 0, "states": {}}, "There is no board of this type."),
        (Skip.ENTITY_AT_MAX_WORKERS, {"max_workers": 20}, "It may have 20 runners at once."),
        (
            Skip.HELD,
            {"scope": "pool", "target": "rv1", "why": "breaker", "note": "image"},
            "Pool rv1 is held after failures: image.",
        ),
        (
            Skip.BACKING_OFF,
            {"attempts": 2, "last_failure": "pod_failed"},
            "2 attempts failed so far. The last one: The runner's container ended with an error.",
        ),
        (Skip.RUNNER_ON_ITS_WAY, {"workers": 1, "stages": {"pod": 1}}, "1 runner: 1 pod made."),
        (Skip.NOT_PICKED_UP, {"workers": ["a", "b"]}, "Idle: a, b."),
        (Skip.NOT_ALLOWED, {"why": "its code comes from a fork"}, "Its code comes from a fork."),
        (Skip.GITHUB_BUDGET_LOW, {"why": "hourly"}, "The requests that GitHub allows per hour are used up."),
        (Skip.GITHUB_BUDGET_LOW, {"why": "secondary"}, "GitHub has asked for a pause."),
        (
            Skip.GITHUB_BUDGET_LOW,
            {"why": "pace"},
            "Switchboard asks for no more than 150 a minute, and those are taken.",
        ),
        (Skip.NO_POOL, {"nearest": ["x", "y"]}, "Nearest: [x, y]."),
    ],
)
def test_what_was_counted_is_said(skip: Skip, detail: dict[str, Any], words: str) -> None:
    assert in_figures(skip.value, detail) == words


@pytest.mark.parametrize("skip", [*Skip, "something_newer"])
@pytest.mark.parametrize("detail", [{}, {"workers": None, "boards": None}, {"states": "odd", "stages": [1]}])
def test_nothing_is_said_of_what_is_not_there(skip: str, detail: dict[str, Any]) -> None:
    assert isinstance(in_figures(skip, detail), str)
