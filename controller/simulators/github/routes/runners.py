"""Runners and runner groups: registered, listed, deleted, in an organization or a repository."""

import base64
import json

from controller.simulators.github.assignment import visible_groups
from controller.simulators.github.errors import ApiError, invalid, not_found
from controller.simulators.github.operations import Answer, Call, find_organization, find_repository
from controller.simulators.github.pages import paginate
from controller.simulators.github.payloads import actions
from controller.simulators.github.state import Account, Json, Repository, Runner, RunnerGroup

DEFAULT_GROUP = RunnerGroup(1, "Default", default=True)  # of repository runners
MOST_LABELS = 100
LONGEST_NAME = 64


def list_runners(call: Call) -> Answer:
    """GET …/actions/runners."""
    name = call.query.get("name")
    return _list(call, [r for r in _home(call).values() if name in (None, r.name)])


def list_group_runners(call: Call) -> Answer:
    """GET /orgs/{org}/actions/runner-groups/{runner_group_id}/runners."""
    organization = find_organization(call)
    group = _group(call, organization)
    return _list(call, [r for r in organization.runners.values() if r.group is group])


def get_runner(call: Call) -> Answer:
    """GET …/actions/runners/{runner_id}."""
    return Answer(body=_show(call, _runner(call)))


def delete_runner(call: Call) -> Answer:
    """DELETE …/actions/runners/{runner_id}: 422 while it runs a job; after a 204 it takes no more work."""
    runner = _runner(call)
    if runner.job is not None:
        raise invalid(f'Bad request - Runner "{runner.name}" is still running a job"')
    call.github.runners.remove(runner, "deleted")
    return Answer(204)


def generate_jitconfig(call: Call) -> Answer:
    """POST …/actions/runners/generate-jitconfig: the runner is registered at once."""
    if "org" in call.params or "organization_id" in call.params:
        owner: Account = find_organization(call)
        repository: Repository | None = None
    else:
        repository = find_repository(call)
        owner = repository.owner
    name, labels, group_id = _wanted(call.body)
    group = _group_of(owner, repository, group_id)
    if any(runner.name == name for runner in _home(call).values()):
        raise ApiError(409, "Already exists - A runner with the name *** already exists.")
    runner = call.github.runners.register(owner, repository, group, name, labels)
    config = encode_jit_config(runner, call.github.base_url)
    return Answer(201, {"runner": _show(call, runner), "encoded_jit_config": config})


def list_groups(call: Call) -> Answer:
    """GET /orgs/{org}/actions/runner-groups."""
    organization = find_organization(call)
    groups = list(organization.groups.values())
    name = call.query.get("visible_to_repository")
    if name is not None:
        repository = call.github.world.repositories.get(f"{organization.login}/{name}".lower())
        visible = visible_groups(organization, repository) if repository else []
        groups = [group for group in groups if group.id in visible]
    page, headers = paginate(call, groups)
    shown = [actions.runner_group(call.github.base_url, organization, group) for group in page]
    return Answer(body={"total_count": len(groups), "runner_groups": shown}, headers=headers)


def get_group(call: Call) -> Answer:
    """GET /orgs/{org}/actions/runner-groups/{runner_group_id}."""
    organization = find_organization(call)
    group = _group(call, organization)
    return Answer(body=actions.runner_group(call.github.base_url, organization, group))


def create_group(call: Call) -> Answer:
    """POST /orgs/{org}/actions/runner-groups."""
    organization = find_organization(call)
    body = call.body
    name, visibility = body.get("name"), body.get("visibility", "all")
    if not isinstance(name, str) or not name:
        raise invalid("Validation Failed", "name is missing")
    if visibility not in ("all", "private", "selected"):
        raise invalid("Validation Failed", "visibility is not one of all, private, selected")
    if any(group.name == name for group in organization.groups.values()):
        raise ApiError(409, "Already exists - A runner group with this name already exists.")
    group = RunnerGroup(
        id=call.github.world.next_id("group"),
        name=name,
        visibility=str(visibility),
        allows_public_repositories=body.get("allows_public_repositories") is True,
        restricted_to_workflows=body.get("restricted_to_workflows") is True,
        selected_workflows=tuple(str(each) for each in _list_of(body, "selected_workflows")),
        selected_repository_ids={int(str(each)) for each in _list_of(body, "selected_repository_ids")},
    )
    organization.groups[group.id] = group
    for number in _list_of(body, "runners"):
        runner = organization.runners.get(int(str(number)))
        if runner is not None:
            runner.group = group
    return Answer(201, actions.runner_group(call.github.base_url, organization, group))


def encode_jit_config(runner: Runner, base_url: str) -> str:
    """The credential with which the runner goes online: files by name, each base64, in base64 JSON."""
    settings = {"agentId": runner.id, "agentName": runner.name, "serverUrl": base_url}
    files = {
        ".runner": json.dumps(settings),
        ".credentials": json.dumps({"token": runner.token}),
        ".credentials_rsaparams": "{}",
    }
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in files.items()}
    return base64.b64encode(json.dumps(encoded).encode()).decode()


def _wanted(body: Json) -> tuple[str, list[str], int]:
    name, labels, group_id = body.get("name"), body.get("labels"), body.get("runner_group_id")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise invalid("Validation Failed", f"name must have 1 to {LONGEST_NAME} characters")
    if not isinstance(group_id, int):
        raise invalid("Validation Failed", "runner_group_id is missing")
    if not isinstance(labels, list) or not 1 <= len(labels) <= MOST_LABELS:
        raise invalid("Validation Failed", f"labels must be 1 to {MOST_LABELS}")
    if not all(isinstance(label, str) and label for label in labels):
        raise invalid("Validation Failed", "labels must be strings")
    return name, labels, group_id


def _group_of(owner: Account, repository: Repository | None, group_id: int) -> RunnerGroup:
    if repository is None:
        group = owner.groups.get(group_id)
        if group is None:
            raise not_found()
        return group
    if group_id != DEFAULT_GROUP.id:
        raise invalid("Validation Failed", "repository runners belong to group 1")
    return DEFAULT_GROUP


def _home(call: Call) -> dict[int, Runner]:
    if "org" in call.params or "organization_id" in call.params:
        return find_organization(call).runners
    return find_repository(call).runners


def _runner(call: Call) -> Runner:
    found = _home(call).get(call.number("runner_id"))
    if found is None:
        raise not_found()
    return found


def _group(call: Call, organization: Account) -> RunnerGroup:
    found = organization.groups.get(call.number("runner_group_id"))
    if found is None:
        raise not_found()
    return found


def _show(call: Call, runner: Runner) -> Json:
    runners = call.github.runners
    return actions.runner(runner, online=runners.is_online(runner), busy=runners.shown_busy(runner))


def _list(call: Call, found: list[Runner]) -> Answer:
    if call.github.behaviour.shuffle_lists:
        call.github.rng.shuffle(found)
    page, headers = paginate(call, found)
    shown = [_show(call, runner) for runner in page]
    return Answer(body={"total_count": len(found), "runners": shown}, headers=headers)


def _list_of(body: Json, name: str) -> list[object]:
    value = body.get(name)
    return value if isinstance(value, list) else []
