"""Owners that have moved: renamed, or with the App installed anew. What is live there follows to its new address.

Asked when GitHub does not find where runners should be listed: until it is known where they are, nobody can say that
one of them idles, and its board would be lost.
"""

from dataclasses import replace

import structlog

from controller.domain.jobs import EntityType, Scope
from controller.domain.sightings import InstallationSighting
from controller.errors import GitHubError, GitHubNotFound, InstallationGone
from controller.ports import Clock, GitHub, Moves

log = structlog.get_logger()


class Moved:
    """Finds a scope again by what does not change: the installation's id, else the owner's name."""

    def __init__(self, github: GitHub, rows: Moves, clock: Clock) -> None:
        self._github = github
        self._rows = rows
        self._clock = clock

    async def follow(self, scope: Scope, epoch: int) -> Scope | None:
        """Where the scope is now, and its live rows with it; None if it has not moved, or cannot be found."""
        try:
            found = await self._find(scope)
        except GitHubError as error:
            log.info("owner.not_found", entity=scope.entity.name, error=str(error))
            return None
        if found.account is None or found.account.id != scope.entity.id:
            return None
        entity = replace(scope.entity, name=found.account.name)
        now_at = replace(scope, installation_id=found.installation_id, entity=entity)
        if now_at == scope:
            return None
        self._github.forget_installation(scope.installation_id)
        await self._rows.move(scope, now_at, epoch, self._clock.now())
        log.warning(
            "owner.moved", entity=scope.entity.name, to=entity.name, installation_id=found.installation_id
        )
        return now_at

    async def _find(self, scope: Scope) -> InstallationSighting:
        try:
            return await self._github.get_installation(scope.app_id, scope.installation_id)
        except InstallationGone:
            if scope.entity.type is EntityType.ORGANIZATION:
                return await self._github.find_org_installation(scope.app_id, scope.entity.name)
            if scope.repo is None:
                raise GitHubNotFound("runners of a person belong to a repository") from None
            return await self._github.find_repo_installation(scope.app_id, scope.repo)
