"""Reading deliveries: GitHub's own examples, odd but real payloads, and nonsense."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decide.deliveries import LABELS_LIMIT, BadPayload, preliminary_outcome, read_delivery
from controller.domain.deliveries import (
    InstallationNotice,
    JobNotice,
    OtherNotice,
    Outcome,
    PingNotice,
)
from controller.domain.jobs import Entity, EntityType
from tests.payloads import (
    CATALOGUE,
    COMPLETED,
    CREATED,
    JOB_ID,
    LABELS,
    RUNNER,
    STARTED,
    job_payload,
    personal,
)


def a_notice(action: str = "queued", *, job: dict[str, Any] | None = None, **top: Any) -> JobNotice:
    notice = read_delivery("workflow_job", job_payload(action, job=job, **top))
    assert isinstance(notice, JobNotice)
    return notice


def test_a_job_is_read_with_everything_that_matters() -> None:
    notice = a_notice("completed")
    assert (notice.action, notice.job_id, notice.run_id, notice.run_attempt) == ("completed", JOB_ID, 77, 1)
    assert (notice.conclusion, notice.runner_name, notice.labels) == ("success", RUNNER, LABELS)
    assert notice.entity == Entity(5, "example-org", EntityType.ORGANIZATION)
    assert (notice.repo, notice.private, notice.installation_id) == ("example-org/llvm", False, 31)
    assert (notice.created_at, notice.started_at, notice.completed_at) == (CREATED, STARTED, COMPLETED)


def test_a_personal_account_is_told_by_its_owners_type() -> None:
    notice = read_delivery("workflow_job", personal(job_payload()))
    assert isinstance(notice, JobNotice)
    assert notice.entity == Entity(6, "ada", EntityType.USER)


def test_labels_are_compared_lower_case_sorted_and_once() -> None:
    assert a_notice(job={"labels": ["RISCV", "ubuntu", "riscv", " Ubuntu "]}).labels == ("riscv", "ubuntu")


@pytest.mark.parametrize("nobody", [None, ""])
def test_a_runner_that_is_null_or_empty_is_none(nobody: str | None) -> None:
    assert a_notice(job={"runner_name": nobody}).runner_name is None


def test_a_repository_that_does_not_say_so_is_taken_for_private() -> None:
    repository = {**job_payload()["repository"]}
    del repository["private"]
    assert a_notice(repository=repository).private


@pytest.mark.parametrize(
    ("status", "deployment", "confirmed"),
    [("queued", None, True), ("waiting", None, False), ("queued", {"id": 1}, False)],
)
def test_queued_means_that_a_runner_is_wanted_only_without_an_approval(
    status: str, deployment: dict[str, int] | None, confirmed: bool
) -> None:
    assert a_notice(job={"status": status}, deployment=deployment).confirmed is confirmed


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-03-01T12:00:00Z", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("2026-03-01T14:00:00+02:00", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("2026-03-01T12:00:00.123Z", datetime(2026, 3, 1, 12, 0, 0, 123_000, tzinfo=UTC)),
        ("2026-03-01T12:00:00", datetime(2026, 3, 1, 12, tzinfo=UTC)),
    ],
)
def test_times_are_utc_whatever_their_offset(text: str, time: datetime) -> None:
    assert a_notice(job={"created_at": text}).created_at == time


def test_the_zero_time_of_some_serialisers_means_none() -> None:
    notice = a_notice(job={"created_at": "0001-01-01T00:00:00Z"})
    assert notice.created_at == CREATED  # from started_at, which GitHub sets to the same
    assert a_notice("completed", job={"completed_at": "0001-01-01T00:00:00Z"}).completed_at is None


def test_long_texts_that_only_people_read_are_cut_and_names_are_refused() -> None:
    assert len(a_notice(job={"name": "n" * 5_000}).name) == 2_000
    with pytest.raises(BadPayload, match=r"workflow_job\.runner_name: expected at most 255"):
        a_notice(job={"runner_name": "r" * 256})


@pytest.mark.parametrize(("number", "taken"), [(LABELS_LIMIT, True), (LABELS_LIMIT + 1, False)])
def test_a_job_has_at_most_a_hundred_labels(number: int, taken: bool) -> None:
    labels = [f"label-{index}" for index in range(number)]
    if taken:
        assert len(a_notice(job={"labels": labels}).labels) == number
        return
    with pytest.raises(BadPayload, match="at most 100"):
        a_notice(job={"labels": labels})


@pytest.mark.parametrize(("value", "taken"), [(1, True), (2**63 - 1, True), (2**63, False), (0, False)])
def test_ids_are_positive_and_have_at_most_64_bits(value: int, taken: bool) -> None:
    if taken:
        assert a_notice(job={"id": value}).job_id == value
        return
    with pytest.raises(BadPayload, match=r"workflow_job\.id: expected a positive 64-bit integer"):
        a_notice(job={"id": value})


@pytest.mark.parametrize(
    ("event", "payload", "notice"),
    [
        ("ping", {"zen": "x"}, PingNotice()),
        ("issues", {"action": "opened"}, OtherNotice("issues", "opened")),
        ("push", {"action": 7}, OtherNotice("push", "")),
        (
            "installation",
            {"action": "suspend", "installation": {"id": 3, "account": {"login": "a"}, "created_at": 1}},
            InstallationNotice("installation", "suspend", 3, "a"),
        ),
        (
            "installation",
            {"action": "deleted", "installation": {"id": 3, "account": None}},
            InstallationNotice("installation", "deleted", 3, ""),
        ),
    ],
)
def test_other_events_are_read_as_far_as_they_matter(event: str, payload: Any, notice: object) -> None:
    assert read_delivery(event, payload) == notice


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


def refusal(event: str, payload: object) -> str | None:
    """The words of a BadPayload; any other error is a failure."""
    try:
        read_delivery(event, payload)
    except BadPayload as error:
        return str(error)
    return None


@given(event=st.sampled_from(["workflow_job", "installation", "ping", "x"]), payload=anything)
def test_nonsense_is_a_bad_payload_and_no_other_error(event: str, payload: object) -> None:
    words = refusal(event, payload)
    assert words is None or ": " in words


@given(field=st.sampled_from(sorted(job_payload("completed")["workflow_job"])), value=anything)
def test_nonsense_in_one_field_of_a_job_is_a_bad_payload_and_no_other_error(
    field: str, value: object
) -> None:
    words = refusal("workflow_job", job_payload("completed", job={field: value}))
    assert words is None or words.startswith(f"workflow_job.{field}: ")


# ---- what needs no look at the jobs


@pytest.mark.parametrize(
    ("notice", "known_app", "allowed", "outcome"),
    [
        (PingNotice(), False, True, Outcome.OK),
        (OtherNotice("issues", "opened"), False, True, Outcome.IGNORED_EVENT),
        (InstallationNotice("installation", "created", 3, "a"), True, True, Outcome.OK),
        (InstallationNotice("installation", "created", 3, "a"), False, True, Outcome.IGNORED_NO_APP),
        (a_notice(), False, True, Outcome.IGNORED_NO_APP),
        (a_notice(), True, False, Outcome.NOT_ALLOWED),
        (a_notice(job={"labels": ["x"]}), True, True, Outcome.IGNORED_NO_LABEL),
        (a_notice("requested"), True, True, Outcome.IGNORED_ACTION),
        (a_notice(), True, True, None),
        (a_notice("in_progress"), True, True, None),
        (a_notice("in_progress", job={"labels": ["x"]}), True, True, None),
        (a_notice("completed", job={"labels": []}), True, False, None),
    ],
)
def test_what_a_delivery_means_before_the_store_is_asked(
    notice: Any, known_app: bool, allowed: bool, outcome: Outcome | None
) -> None:
    assert preliminary_outcome(notice, CATALOGUE, known_app=known_app, allowed=allowed) is outcome
