"""Who exists: Apps, accounts, repositories; and what owners do with installations."""

from collections.abc import Mapping, Sequence

from controller.simulators.github.platform import Platform
from controller.simulators.github.state import (
    Account,
    App,
    Installation,
    JobSpec,
    Repository,
    RunnerGroup,
    Workflow,
)

PERMISSIONS = {
    "actions": "write",
    "administration": "write",
    "metadata": "read",
    "organization_self_hosted_runners": "write",
}


def add_app(
    github: Platform, app_id: int, public_key_pem: bytes, permissions: Mapping[str, str] | None
) -> App:
    """Register an App with the key that checks its JWTs."""
    app = App(
        id=app_id,
        slug=f"switchboard-{app_id}",
        client_id=f"Iv23li{app_id:014d}",
        public_key_pem=public_key_pem,
        permissions=dict(PERMISSIONS if permissions is None else permissions),
        created_at=github.now(),
        hook_id=github.world.next_id("hook"),
    )
    github.world.apps[app.id] = app
    return app


def add_account(github: Platform, login: str, app_id: int, kind: str) -> Account:
    """Create an account with the App installed; organizations have the Default runner group."""
    if github.world.account(login) is not None:
        raise ValueError(f"{login} exists already")
    account = Account(github.world.next_id("account"), login, kind, github.now())
    if kind == "Organization":
        account.groups[1] = RunnerGroup(1, "Default", default=True)
    github.world.accounts[login.lower()] = account
    install(github, account, app_id)
    return account


def install(github: Platform, account: Account, app_id: int) -> Installation:
    """Install an App, for the first time or again: then it has a new id."""
    app = github.world.apps[app_id]
    installation = Installation(
        id=github.world.next_id("installation"),
        app=app,
        account=account,
        created_at=github.now(),
        permissions=dict(app.permissions),
    )
    account.installations[app.id] = installation
    github.world.installations[installation.id] = installation
    github.announce_installation(installation, "created")
    return installation


def suspend(github: Platform, installation: Installation) -> None:
    """The owner suspends the App: its tokens answer 403."""
    installation.suspended_at = github.now()
    github.announce_installation(installation, "suspend")


def unsuspend(github: Platform, installation: Installation) -> None:
    """The owner lets the App back in."""
    installation.suspended_at = None
    github.announce_installation(installation, "unsuspend")


def uninstall(github: Platform, installation: Installation) -> None:
    """The owner removes the App: its tokens answer 401, minting answers 404."""
    installation.deleted_at = github.now()
    github.auth.revoke(installation)
    github.announce_installation(installation, "deleted")


def add_repository(github: Platform, full_name: str, private: bool) -> Repository:
    """Create a repository of an existing account."""
    login, name = full_name.split("/")
    owner = github.world.account(login)
    if owner is None:
        raise ValueError(f"there is no account {login}")
    repository = Repository(github.world.next_id("repository"), owner, name, private, github.now())
    owner.repositories[repository.id] = repository
    github.world.repositories[full_name.lower()] = repository
    github.world.repositories_by_id[repository.id] = repository
    github.world.renamed.pop(full_name.lower(), None)
    return repository


def add_workflow(github: Platform, repository: Repository, file: str, jobs: Sequence[JobSpec]) -> Workflow:
    """Add a workflow file that can be dispatched."""
    workflow = Workflow(github.world.next_id("workflow"), file, tuple(jobs))
    repository.workflows[file] = workflow
    return workflow


def rename_repository(github: Platform, repository: Repository, name: str) -> None:
    """Rename: the old address redirects from now on."""
    world = github.world
    old = repository.full_name.lower()
    del world.repositories[old]
    world.renamed[old] = repository
    repository.name = name
    world.repositories[repository.full_name.lower()] = repository


def rename_account(github: Platform, account: Account, login: str) -> None:
    """Rename: addresses of its repositories redirect, those of an organization itself do not."""
    world = github.world
    for repository in account.repositories.values():
        old = repository.full_name.lower()
        del world.repositories[old]
        world.renamed[old] = repository
    del world.accounts[account.login.lower()]
    account.login = login
    world.accounts[login.lower()] = account
    for repository in account.repositories.values():
        world.repositories[repository.full_name.lower()] = repository
