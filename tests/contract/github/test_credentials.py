"""Who may ask: JWTs and their clock, tokens of both formats and their end, suspended and uninstalled Apps."""

from datetime import timedelta

import httpx
import pytest

from tests.clocks import ManualClock
from tests.contract.github.callers import MINUTE, Caller, sign_jwt
from tests.worlds import GitHubWorld

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("issued", "expires", "status"),
    [
        (-MINUTE, 9 * MINUTE, 200),
        (timedelta(0), 10 * MINUTE, 200),
        (SECOND, 9 * MINUTE, 401),  # our clock is ahead of GitHub's
        (-MINUTE, 10 * MINUTE + SECOND, 401),
        (-11 * MINUTE, timedelta(0), 401),
    ],
)
async def test_a_jwt_counts_by_githubs_own_clock(
    github: GitHubWorld,
    http: httpx.AsyncClient,
    clock: ManualClock,
    issued: timedelta,
    expires: timedelta,
    status: int,
) -> None:
    now = clock.now()
    bearer = sign_jwt(github.apps["111"], "111", now + issued, now + expires)
    assert (await Caller(http, bearer).get("/app")).status_code == status


@pytest.mark.parametrize(("age", "status"), [(3599, 200), (3600, 401)])
async def test_a_token_lives_for_an_hour(acme: Caller, clock: ManualClock, age: int, status: int) -> None:
    await clock.advance(timedelta(seconds=age))
    assert (await acme.get("/orgs/acme/actions/runners")).status_code == status


async def test_a_token_can_be_revoked_before_its_time(acme: Caller, github: GitHubWorld) -> None:
    github.sim.revoke_tokens("acme")
    answer = await acme.get("/orgs/acme/actions/runners")
    assert (answer.status_code, answer.json()["message"]) == (401, "Bad credentials")


@pytest.mark.parametrize(("stateless", "length"), [(False, 40), (True, 500)])
async def test_tokens_come_in_two_formats(
    app: Caller, github: GitHubWorld, stateless: bool, length: int
) -> None:
    github.sim.behaviour.stateless_tokens = stateless
    minted = await app.post(f"/app/installations/{github.scope('acme').installation_id}/access_tokens")
    token = minted.json()["token"]
    assert token.startswith("ghs_")
    assert len(token) >= length
    assert (await Caller(app.http, token).get("/orgs/acme/actions/runners")).status_code == 200


async def test_a_suspended_app_is_refused_until_it_is_let_in_again(
    app: Caller, acme: Caller, github: GitHubWorld
) -> None:
    number = github.scope("acme").installation_id
    github.sim.suspend("acme")
    assert (await acme.get("/orgs/acme/actions/runners")).status_code == 403
    assert (await app.post(f"/app/installations/{number}/access_tokens")).status_code == 403
    assert (await app.get(f"/app/installations/{number}")).json()["suspended_at"] is not None
    github.sim.unsuspend("acme")
    assert (await app.post(f"/app/installations/{number}/access_tokens")).status_code == 201


async def test_an_uninstalled_app_is_not_found_and_comes_back_under_another_id(
    app: Caller, acme: Caller, github: GitHubWorld
) -> None:
    number = github.scope("acme").installation_id
    github.sim.uninstall("acme")
    assert (await acme.get("/orgs/acme/actions/runners")).status_code == 401
    assert (await app.post(f"/app/installations/{number}/access_tokens")).status_code == 404
    assert (await app.get("/repos/acme/widgets/installation")).status_code == 404
    again = github.sim.reinstall("acme").id
    assert again != number
    assert (await app.get("/repos/acme/widgets/installation")).json()["id"] == again
