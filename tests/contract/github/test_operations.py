"""Every operation of the contract answers as GitHub's schemas say, on success and on refusal."""

import json
import re

import httpx
import pytest

from controller.simulators.github.operations import Operation
from controller.simulators.github.routes.table import OPERATIONS
from tests.contract.github.callers import Caller
from tests.contract.github.validation import SCHEMAS
from tests.contract.github.walks import WALKS, Walker
from tests.worlds import GitHubWorld

every_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.id)
SUCCESS = {
    "apps/create-installation-access-token": 201,
    "apps/redeliver-webhook-delivery": 202,
    "actions/create-self-hosted-runner-group-for-org": 201,
    "actions/generate-runner-jitconfig-for-org": 201,
    "actions/generate-runner-jitconfig-for-repo": 201,
    "actions/delete-self-hosted-runner-from-org": 204,
    "actions/delete-self-hosted-runner-from-repo": 204,
    "actions/re-run-job-for-workflow-run": 201,
    "actions/re-run-workflow-failed-jobs": 201,
}


@pytest.fixture
def walker(github: GitHubWorld, app: Caller, user_app: Caller, acme: Caller, jane: Caller) -> Walker:
    return Walker(github.sim, app, user_app, acme, jane, github.scope("acme").installation_id)


def test_the_table_has_every_operation_of_the_contract() -> None:
    document = json.loads((SCHEMAS / "rest-subset.openapi31.json").read_text())
    known = {
        (details["operationId"], method.upper(), path)
        for path, methods in document["paths"].items()
        for method, details in methods.items()
        if method in ("get", "post", "delete", "put", "patch")
    }
    assert {(each.id, each.method, each.template) for each in OPERATIONS} == known


def test_no_operation_is_left_out_of_the_walk() -> None:
    assert set(WALKS) == {operation.id for operation in OPERATIONS}


@every_operation
async def test_an_operation_answers_by_its_schema(operation: Operation, walker: Walker) -> None:
    answer = await WALKS[operation.id](walker)
    assert answer.status_code == SUCCESS.get(operation.id, 200)
    assert walker.sim.requests[-1].operation == operation.id
    assert walker.sim.requests[-1].status == answer.status_code
    assert answer.headers["x-github-request-id"]
    assert ("etag" in answer.headers) == (operation.method == "GET")


@every_operation
async def test_an_operation_wants_a_credential(
    operation: Operation, github: GitHubWorld, http: httpx.AsyncClient
) -> None:
    answer = await http.request(operation.method, address(operation))
    assert (answer.status_code, answer.json()["message"]) == (401, "Requires authentication")
    assert github.sim.requests.times(operation.id, status=401) == 1


@every_operation
async def test_an_operation_wants_the_right_kind_of_credential(operation: Operation, walker: Walker) -> None:
    if operation.anyone:
        assert (await walker.app.ask(operation.method, address(operation))).status_code == 200
    elif operation.permission is None:
        assert (await walker.acme.ask(operation.method, address(operation))).status_code == 401
    else:
        assert (await walker.app.ask(operation.method, address(operation))).status_code == 403


@every_operation
async def test_an_operation_names_the_permission_it_misses(operation: Operation, walker: Walker) -> None:
    if operation.permission is None:
        return
    minted = await walker.app.post(
        f"/app/installations/{walker.installation_id}/access_tokens", {"permissions": {"metadata": "read"}}
    )
    answer = await Caller(walker.app.http, minted.json()["token"]).ask(operation.method, address(operation))
    assert (answer.status_code, answer.json()["message"]) == (403, "Resource not accessible by integration")
    assert answer.headers["x-accepted-github-permissions"] == "=".join(operation.permission)


@every_operation
async def test_an_operation_knows_nothing_of_what_is_not_there(operation: Operation, walker: Walker) -> None:
    if "{" not in operation.template:
        return
    caller = walker.app if operation.permission is None else walker.acme
    body = {"name": "x", "runner_group_id": 1, "labels": ["x"], "ref": "main"}
    answer = await caller.ask(
        operation.method, address(operation), body=body if operation.method == "POST" else None
    )
    assert (answer.status_code, answer.json()["message"]) == (404, "Not Found")


@every_operation
async def test_an_operation_can_be_made_to_fail(operation: Operation, walker: Walker) -> None:
    walker.sim.faults.add(operation=operation.id, status=502)
    caller = walker.app if operation.permission is None else walker.acme
    answer = await caller.ask(operation.method, address(operation))
    assert (answer.status_code, answer.json()["message"]) == (502, "Server Error")


def address(operation: Operation) -> str:
    """An address of the operation at which nothing is."""
    return re.sub(r"{\w+}", "404404", operation.template)
