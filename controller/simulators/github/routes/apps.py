"""The App, its installations and their tokens."""

from controller.simulators.github.auth import Caller
from controller.simulators.github.errors import ApiError, not_found
from controller.simulators.github.limits import who_is
from controller.simulators.github.operations import Answer, Call, find_organization, find_repository
from controller.simulators.github.pages import paginate
from controller.simulators.github.payloads import accounts
from controller.simulators.github.state import Account, Installation, Json, Repository

NEW_VERSION = "2026-03-10"


def get_app(call: Call) -> Answer:
    """GET /app."""
    mine = _mine(call)
    return Answer(body=accounts.integration(call.github.base_url, call.caller.app, len(mine)))


def list_installations(call: Call) -> Answer:
    """GET /app/installations."""
    page, headers = paginate(call, _mine(call))
    return Answer(body=[accounts.installation(call.github.base_url, each) for each in page], headers=headers)


def get_installation(call: Call) -> Answer:
    """GET /app/installations/{installation_id}."""
    return _show(call, _installation(call))


def get_org_installation(call: Call) -> Answer:
    """GET /orgs/{org}/installation."""
    return _show(call, _installed_at(call.caller, find_organization(call)))


def get_user_installation(call: Call) -> Answer:
    """GET /users/{username}/installation."""
    account = call.github.world.account(call.params["username"])
    if account is None or account.type != "User":
        raise not_found()
    return _show(call, _installed_at(call.caller, account))


def get_repo_installation(call: Call) -> Answer:
    """GET /repos/{owner}/{repo}/installation."""
    return _show(call, _installed_at(call.caller, find_repository(call).owner))


def create_token(call: Call) -> Answer:
    """POST /app/installations/{installation_id}/access_tokens."""
    installation = _installation(call)
    if installation.suspended_at is not None:
        raise ApiError(403, "This installation has been suspended")
    permissions = _narrowed_permissions(call.body, installation)
    repositories = _narrowed_repositories(call.body, installation.account)
    wish = call.headers.get("x-github-stateless-s2s-token")
    stateless = wish == "enabled" if wish else call.github.behaviour.stateless_tokens
    token = call.github.auth.mint(installation, permissions, repositories, stateless)
    return Answer(201, accounts.installation_token(call.github.base_url, token, repositories))


def get_rate_limit(call: Call) -> Answer:
    """GET /rate_limit; the newer API version has no `rate`."""
    bucket = call.github.limits.bucket(who_is(call.caller))
    reset = int(bucket.resets_at.timestamp())
    core = {"limit": bucket.limit, "remaining": bucket.remaining, "used": bucket.used, "reset": reset}
    runners = {"limit": 10_000, "remaining": 10_000, "used": 0, "reset": reset}
    search = {"limit": 30, "remaining": 30, "used": 0, "reset": reset}
    body: Json = {"resources": {"core": core, "search": search, "actions_runner_registration": runners}}
    if call.headers.get("x-github-api-version") != NEW_VERSION:
        body["rate"] = core
    return Answer(body=body)


def _mine(call: Call) -> list[Installation]:
    installations = call.github.world.installations.values()
    return [i for i in installations if i.app is call.caller.app and i.deleted_at is None]


def _installation(call: Call) -> Installation:
    found = call.github.world.installations.get(call.number("installation_id"))
    if found is None or found.app is not call.caller.app or found.deleted_at is not None:
        raise not_found()
    return found


def _installed_at(caller: Caller, account: Account) -> Installation:
    found = account.installations.get(caller.app.id)
    if found is None or found.deleted_at is not None:
        raise not_found()
    return found


def _show(call: Call, installation: Installation) -> Answer:
    return Answer(body=accounts.installation(call.github.base_url, installation))


def _narrowed_permissions(body: Json, installation: Installation) -> dict[str, str]:
    wanted = body.get("permissions")
    if not isinstance(wanted, dict):
        return dict(installation.permissions)
    for name, level in wanted.items():
        granted = installation.permissions.get(name)
        if granted is None or (granted == "read" and level != "read"):
            raise ApiError(422, "The permissions requested are not granted to this installation.")
    return {str(name): str(level) for name, level in wanted.items()}


def _narrowed_repositories(body: Json, account: Account) -> list[Repository] | None:
    names, ids = body.get("repositories"), body.get("repository_ids")
    if not isinstance(names, list) and not isinstance(ids, list):
        return None
    by_name = {repo.name.lower(): repo for repo in account.repositories.values()}
    found = [by_name.get(str(name).lower()) for name in names] if isinstance(names, list) else []
    found += [account.repositories.get(number) for number in ids] if isinstance(ids, list) else []
    known = [repo for repo in found if repo is not None]
    if len(known) < len(found):
        raise ApiError(
            422,
            "There is at least one repository that does not exist or is not accessible to the parent installation.",
        )
    return known
