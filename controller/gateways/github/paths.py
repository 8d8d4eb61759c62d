"""Where things are in GitHub's API; names from outside are quoted, so that none leaves its place."""

from urllib.parse import quote

from controller.domain.jobs import EntityType, Scope
from controller.errors import GitHubRefused


def repo_path(repo: str) -> str:
    """`/repos/owner/name`."""
    owner, _, name = repo.partition("/")
    return f"/repos/{_segment(owner, repo)}/{_segment(name, repo)}"


def org_path(login: str) -> str:
    """`/orgs/login`."""
    return f"/orgs/{_segment(login, login)}"


def owner_path(scope: Scope) -> str:
    """The organization, or for personal accounts the repository, that holds the scope's runners."""
    if scope.entity.type is EntityType.ORGANIZATION:
        return org_path(scope.entity.name)
    if scope.repo is None:
        raise GitHubRefused(f"runners of {scope.entity.name} need a repository: it is a personal account")
    return repo_path(scope.repo)


def _segment(part: str, whole: str) -> str:
    if part in ("", ".", "..") or "/" in part:
        raise GitHubRefused(f"{whole!r} is no name on GitHub")
    return quote(part, safe="")
