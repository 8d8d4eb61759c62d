"""Who may be served."""

from typing import Any

import pytest

from controller.decide.admission import admit
from controller.decide.deliveries import read_delivery
from controller.domain.jobs import EntityType
from tests.payloads import job_payload, personal

BOTH = {EntityType.ORGANIZATION: "111", EntityType.USER: "222"}
INSTALLATION = {"action": "created", "installation": {"id": 31, "account": {"login": "acme"}, "app_id": 111}}


def everybody(login: str, repo: str) -> bool:
    return True


@pytest.mark.parametrize(
    ("payload", "app_id", "known"),
    [
        (job_payload(), "111", True),
        (job_payload(), "222", False),
        (personal(job_payload()), "222", True),
        (personal(job_payload()), "111", False),
        (job_payload(), "333", False),
    ],
)
def test_each_kind_of_account_is_served_by_its_own_app(
    payload: dict[str, Any], app_id: str, known: bool
) -> None:
    notice = read_delivery("workflow_job", payload)
    assert admit(notice, app_id, BOTH, everybody) == (known, True)


def test_a_kind_without_an_app_is_not_served() -> None:
    notice = read_delivery("workflow_job", personal(job_payload()))
    assert admit(notice, "111", {EntityType.ORGANIZATION: "111"}, everybody) == (False, True)


def test_the_settings_are_asked_by_owner_and_repository() -> None:
    asked: list[tuple[str, str]] = []

    def nobody(login: str, repo: str) -> bool:
        asked.append((login, repo))
        return False

    assert admit(read_delivery("workflow_job", job_payload()), "111", BOTH, nobody) == (True, False)
    assert asked == [("example-org", "example-org/llvm")]


@pytest.mark.parametrize(("app_id", "known"), [("111", True), ("222", True), ("333", False)])
def test_an_installation_concerns_us_if_its_app_is_ours(app_id: str, known: bool) -> None:
    notice = read_delivery("installation", INSTALLATION)
    assert admit(notice, app_id, BOTH, everybody) == (known, True)


def test_a_ping_is_answered_whoever_sends_it() -> None:
    assert admit(read_delivery("ping", {"zen": "z"}), "333", BOTH, everybody) == (True, True)
