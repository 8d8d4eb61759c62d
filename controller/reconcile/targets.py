"""Where a schedule's target belongs: from recent jobs, else GitHub is asked with an App's JWT."""

from datetime import timedelta

from controller.domain.jobs import EntityType, Scope
from controller.errors import InstallationGone
from controller.ports import Clock, GitHub
from controller.ports.schedules import Occurrences
from controller.settings import File

KNOWN_FOR = timedelta(days=1)


class UnknownTarget(Exception):
    """The target cannot be served; the message says what to change."""


class Targets:
    """Finds App, installation and owner of an account or repository."""

    def __init__(self, file: File, github: GitHub, rows: Occurrences, clock: Clock) -> None:
        self._apps = file.apps_by_type
        self._github = github
        self._rows = rows
        self._clock = clock

    async def find(self, login: str, repo: str | None) -> Scope:
        """The scope of a target; UnknownTarget if no App of ours is installed there."""
        known = await self._rows.known_scope(login, repo, self._clock.now() - KNOWN_FOR)
        if known is not None and self._apps.get(known.entity.type) == known.app_id:
            return _scope(known, repo)
        return await self.ask(login, repo)

    async def ask(self, login: str, repo: str | None) -> Scope:
        """The scope as GitHub says."""
        for kind, app_id in self._apps.items():
            if repo is None and kind is EntityType.USER:
                continue
            try:
                if repo is None:
                    seen = await self._github.find_org_installation(app_id, login)
                else:
                    seen = await self._github.find_repo_installation(app_id, repo)
            except InstallationGone:
                continue
            if seen.account is not None and seen.account.type is kind:
                return _scope(Scope(app_id, seen.installation_id, seen.account), repo)
        where = repo or f"the organization {login}"
        raise UnknownTarget(
            f"No GitHub App of ours is installed for {where}: install it there, or correct the name. "
            "Personal accounts need `repo`."
        )


def _scope(scope: Scope, repo: str | None) -> Scope:
    """Runners of organizations are not bound to a repository."""
    keeps = scope.entity.type is EntityType.USER
    if keeps and repo is None:
        raise UnknownTarget(f"{scope.entity.name} is a personal account: its runners need `repo`.")
    return Scope(scope.app_id, scope.installation_id, scope.entity, repo if keeps else None)
