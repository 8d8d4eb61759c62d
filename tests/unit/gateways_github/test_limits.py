"""The rate-limit decision, as a table."""

from datetime import timedelta
from email.utils import format_datetime

import pytest

from controller.gateways.github.limits import Limited, Quota, find_limit, read_quota, secondary_wait
from tests.clocks import EPOCH as NOW

RESET = NOW + timedelta(minutes=20)
EPOCH_RESET = str(int(RESET.timestamp()))
EXHAUSTED = {"x-ratelimit-remaining": "0", "x-ratelimit-limit": "5000", "x-ratelimit-reset": EPOCH_RESET}
PLENTY = EXHAUSTED | {"x-ratelimit-remaining": "4000"}
SECONDARY = "You have exceeded a secondary rate limit. Please wait."


def wait(seconds: float, secondary: bool = False) -> Limited:
    return Limited(NOW + timedelta(seconds=seconds), secondary)


@pytest.mark.parametrize(
    ("status", "headers", "message", "strikes", "expected"),
    [
        pytest.param(200, EXHAUSTED, "", 0, None, id="a success is no limit"),
        pytest.param(404, EXHAUSTED, SECONDARY, 0, None, id="a 404 is no limit"),
        pytest.param(503, {"retry-after": "5"}, "", 0, None, id="an outage is no limit"),
        pytest.param(
            403, {"retry-after": "30"} | EXHAUSTED, SECONDARY, 3, wait(30), id="retry-after comes first"
        ),
        pytest.param(429, {"retry-after": "30"}, "", 0, wait(30), id="429 with retry-after"),
        pytest.param(429, {"retry-after": "0"}, "", 0, wait(1), id="never less than a second"),
        pytest.param(429, {"retry-after": "999999999999"}, "", 0, wait(7200), id="never more than two hours"),
        pytest.param(
            429,
            {"retry-after": format_datetime(NOW + timedelta(seconds=90), usegmt=True)},
            "",
            0,
            wait(90),
            id="retry-after as a date",
        ),
        pytest.param(429, {"retry-after": "soon"}, "", 0, wait(60, True), id="retry-after that is nonsense"),
        pytest.param(
            403, EXHAUSTED, "API rate limit exceeded", 0, Limited(RESET), id="403 with nothing remaining"
        ),
        pytest.param(429, EXHAUSTED, "", 5, Limited(RESET), id="429 with nothing remaining"),
        pytest.param(403, {"x-ratelimit-remaining": "0"}, "", 0, wait(60), id="nothing remaining, no reset"),
        pytest.param(
            403,
            EXHAUSTED | {"x-ratelimit-reset": str(int(NOW.timestamp()) - 5)},
            "",
            0,
            wait(60),
            id="a reset that has passed by our clock",
        ),
        pytest.param(
            403,
            EXHAUSTED | {"x-ratelimit-reset": "999999999999999"},
            "",
            0,
            wait(7200),
            id="a reset in a far future",
        ),
        pytest.param(403, PLENTY, SECONDARY, 0, wait(60, True), id="the first secondary limit"),
        pytest.param(403, PLENTY, SECONDARY, 1, wait(120, True), id="the second doubles"),
        pytest.param(403, PLENTY, SECONDARY.upper(), 2, wait(240, True), id="the third doubles again"),
        pytest.param(429, PLENTY, "", 99, wait(3600, True), id="at most an hour"),
        pytest.param(
            403,
            {},
            "You have triggered an abuse detection mechanism",
            0,
            wait(60, True),
            id="the old name of the secondary limit",
        ),
        pytest.param(
            403, PLENTY, "Resource not accessible by integration", 0, None, id="a missing permission"
        ),
        pytest.param(403, {}, "", 0, None, id="403 without any sign"),
    ],
)
def test_the_first_rule_that_applies_decides(
    status: int, headers: dict[str, str], message: str, strikes: int, expected: Limited | None
) -> None:
    assert find_limit(status, headers, message, strikes, NOW) == expected


def test_a_secondary_wait_never_shrinks_with_more_strikes() -> None:
    waits = [secondary_wait(strikes) for strikes in range(40)]
    assert waits == sorted(waits)


def test_the_quota_is_read_from_its_headers() -> None:
    headers = PLENTY | {"x-ratelimit-resource": "actions_runner_registration"}
    assert read_quota(headers, NOW) == Quota(5000, 4000, RESET, "actions_runner_registration")


@pytest.mark.parametrize("nonsense", ["", "-1", "1e3", "many", "²", "9" * 400])
def test_a_quota_that_makes_no_sense_is_none(nonsense: str) -> None:
    assert read_quota(PLENTY | {"x-ratelimit-remaining": nonsense}, NOW) is None
