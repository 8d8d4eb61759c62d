"""Pictures are taken of moments in which the pages do not contradict themselves."""

from typing import Any

import pytest

from hack.quiet import contradictions, standing


def a_board(state: str, pool: str = "rv1", job_id: int | None = None) -> dict[str, Any]:
    return {"node": "n", "state": state, "pools": [pool], "worker": None, "job_id": job_id}


def an_overview(*boards: dict[str, Any], running: int = 0) -> dict[str, Any]:
    return {"counts": {"jobs_running": running}, "boards": list(boards)}


def a_job(reason: str | None, waited: int = 60, pool: str = "rv1") -> dict[str, Any]:
    told = {"reason": reason} if reason else None
    return {"job_id": 1, "reason": told, "wait_seconds": waited, "pool": pool}


def test_what_fits_together_is_quiet() -> None:
    boards = (a_board("busy"), a_board("held", job_id=7), a_board("free", pool="other"))
    jobs = (a_job("no_free_slots"), a_job(None, waited=8), a_job("runner_on_its_way", pool="other"))
    assert contradictions(an_overview(*boards, running=2), jobs) == []


@pytest.mark.parametrize(
    ("overview", "job", "said"),
    [
        (an_overview(a_board("busy"), running=2), a_job("held"), "2 jobs run on 1 boards"),
        (an_overview(), a_job(None, waited=9), "waits for no reason"),
        (an_overview(a_board("free")), a_job("no_free_slots"), "waits for a board beside a free one"),
    ],
)
def test_what_a_reader_would_wonder_about_is_said(
    overview: dict[str, Any], job: dict[str, Any], said: str
) -> None:
    (found,) = contradictions(overview, [job])
    assert said in found


def test_a_moment_is_over_when_a_board_or_the_reason_of_a_job_is_another() -> None:
    before = standing(an_overview(a_board("busy")), [a_job("held")])
    assert before == standing(an_overview(a_board("busy")), [a_job("held", waited=90)])
    assert before != standing(an_overview(a_board("free")), [a_job("held")])
    assert before != standing(an_overview(a_board("busy")), [a_job(None)])
    assert before != standing(an_overview(a_board("busy")), [])
