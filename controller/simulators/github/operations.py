"""What a REST operation is: its id and path template as in GitHub's OpenAPI, and the handler that answers it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from controller.simulators.github.auth import Caller
from controller.simulators.github.errors import ApiError, not_found
from controller.simulators.github.platform import Platform
from controller.simulators.github.state import Account, Json, Repository


@dataclass(frozen=True, slots=True)
class Call:
    """A request that was let in."""

    github: Platform
    caller: Caller
    method: str
    path: str
    params: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Json

    def number(self, name: str) -> int:
        """A numeric path parameter; anything else does not exist."""
        try:
            return int(self.params[name])
        except ValueError as error:
            raise not_found() from error


@dataclass(frozen=True, slots=True)
class Answer:
    """A success."""

    status: int = 200
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Call], Answer]


@dataclass(frozen=True, slots=True)
class Operation:
    """One row of the route table; without a permission it is for the App's JWT alone."""

    id: str
    method: str
    template: str
    handler: Handler
    permission: tuple[str, str] | None = None
    anyone: bool = False  # JWT or token

    def admit(self, caller: Caller) -> None:
        """Refuse the wrong kind of credential and missing permissions."""
        if self.anyone:
            return
        if self.permission is None:
            if caller.token is not None:
                raise ApiError(401, "A JSON web token could not be decoded")
            return
        name, level = self.permission
        granted = caller.token.permissions.get(name) if caller.token else None
        if granted is None or (level == "write" and granted == "read"):
            headers = {"x-accepted-github-permissions": f"{name}={level}"}
            raise ApiError(403, "Resource not accessible by integration", headers=headers)


def find_organization(call: Call) -> Account:
    """The organization of the path, by name or id, if the caller may see it."""
    world = call.github.world
    if "organization_id" in call.params:
        account = world.account_by_id(call.number("organization_id"))
    else:
        account = world.account(call.params["org"])
    if account is None or account.type != "Organization" or _foreign(call, account):
        raise not_found()
    return account


def _foreign(call: Call, account: Account) -> bool:
    installation = call.caller.installation
    return installation is not None and installation.account is not account


def find_repository(call: Call) -> Repository:
    """The repository of the path, by name or id, if the caller may see it; 301 or 307 if it was renamed."""
    world = call.github.world
    if "repository_id" in call.params:
        repository = world.repositories_by_id.get(call.number("repository_id"))
        if repository is None or not _visible(call, repository):
            raise not_found()
        return repository
    full_name = f"{call.params['owner']}/{call.params['repo']}".lower()
    present = world.repositories.get(full_name)
    if present is not None:
        if not _visible(call, present):
            raise not_found()
        return present
    moved = world.renamed.get(full_name)
    if moved is None or not _visible(call, moved):
        raise not_found()
    rest = call.path.split("/", 4)[4:]
    url = "/".join([f"{call.github.base_url}/repositories/{moved.id}", *rest])
    url += f"?{urlencode(call.query)}" if call.query else ""
    status, text = (301, "Moved Permanently") if call.method == "GET" else (307, "Temporary Redirect")
    raise ApiError(status, text, headers={"location": url}, url=url)


def _visible(call: Call, repository: Repository) -> bool:
    if call.caller.token is None:
        installation = repository.owner.installations.get(call.caller.app.id)
        return installation is not None and installation.deleted_at is None
    return call.caller.sees(repository)
