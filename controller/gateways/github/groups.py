"""Our runner group in each organization: found by its exact name, created if missing, its id kept."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from controller.domain.jobs import EntityType, Scope
from controller.gateways.github.callers import Ask
from controller.gateways.github.client import Call
from controller.gateways.github.pages import PER_PAGE, read_all
from controller.gateways.github.paths import owner_path
from controller.gateways.github.refusals import describe, is_suspension, refusal
from controller.gateways.github.single_flight import SingleFlight
from controller.ports import Clock

DEFAULT_GROUP = 1
TAKEN_OR_REFUSED = (409, 422)  # a race was lost, or the plan has no groups: the list tells which
UNAVAILABLE = (403, 404, 422)
FALLBACK_LASTS = timedelta(hours=1)  # then it is tried again: plans change

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RunnerGroup:
    """The group as the settings want it."""

    name: str
    visibility: str
    allow_public: bool


@dataclass(frozen=True, slots=True)
class KnownGroup:
    """A group id, and for the fallback the moment until which it is believed."""

    id: int
    until: datetime | None = None


class RunnerGroups:
    """The group ids by installation."""

    def __init__(
        self, wanted: RunnerGroup, asking: Callable[[Scope], Ask], clock: Clock, deadline: timedelta
    ) -> None:
        self._wanted = wanted
        self._asking = asking
        self._clock = clock
        self._deadline = deadline
        self._known: dict[int, KnownGroup] = {}
        self._ensuring: SingleFlight[int, int] = SingleFlight()

    async def ensure(self, scope: Scope) -> int:
        """The id of our group; 1 for repositories and where groups cannot be had."""
        if scope.entity.type is EntityType.USER:
            return DEFAULT_GROUP
        known = self._known.get(scope.installation_id)
        if known is not None and (known.until is None or self._clock.now() < known.until):
            return known.id
        return await self._ensuring.run(scope.installation_id, lambda: self._find_or_create(scope))

    def forget(self, installation_id: int) -> None:
        """Drop the id: the group may have been deleted."""
        self._known.pop(installation_id, None)

    async def close(self) -> None:
        """Stop what is under way."""
        await self._ensuring.close()

    async def _find_or_create(self, scope: Scope) -> int:
        known = await self._find(scope) or await self._create(scope)
        self._known[scope.installation_id] = known
        return known.id

    async def _find(self, scope: Scope) -> KnownGroup | None:
        call = Call(
            "list_runner_groups", "GET", f"{owner_path(scope)}/actions/runner-groups", {"per_page": PER_PAGE}
        )
        for group in await read_all(self._asking(scope), call, "runner_groups", self._deadline):
            # An enterprise's group of the same name is shown here, but takes no runners of ours.
            if group.text("name") == self._wanted.name and not group.optional_flag("inherited"):
                return KnownGroup(group.integer("id"))
        return None

    async def _create(self, scope: Scope) -> KnownGroup:
        body = {
            "name": self._wanted.name,
            "visibility": self._wanted.visibility,
            "allows_public_repositories": self._wanted.allow_public,
        }
        call = Call("create_runner_group", "POST", f"{owner_path(scope)}/actions/runner-groups", body=body)
        answer = await self._asking(scope)(call, also={*TAKEN_OR_REFUSED, *UNAVAILABLE})
        if answer.status < 300:
            group_id = answer.item().integer("id")
            log.info("runner_group.created", installation_id=scope.installation_id, group_id=group_id)
            return KnownGroup(group_id)
        if answer.status in TAKEN_OR_REFUSED:
            found = await self._find(scope)
            if found is not None:
                return found
        if answer.status not in UNAVAILABLE or is_suspension(answer):
            raise refusal(answer)
        log.warning(
            "runner_group.unavailable",
            installation_id=scope.installation_id,
            entity=scope.entity.name,
            using=DEFAULT_GROUP,
            answer=describe(answer),
        )
        return KnownGroup(DEFAULT_GROUP, self._clock.now() + FALLBACK_LASTS)
