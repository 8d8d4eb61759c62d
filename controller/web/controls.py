"""The writes of the API: retry and cancel a job, pause and resume pools and entities, drain and resume boards.

Each is a handler for `admin.Writes`, so it is reached only by somebody who may, and is told who that is.
"""

from datetime import datetime
from typing import Protocol

import structlog
from starlette.requests import Request

from controller.domain.controls import Acted, Held, JobAction, Target
from controller.domain.holds import Hold, HoldScope, HoldWhy
from controller.domain.jobs import JobStatus
from controller.ports import Clock
from controller.settings import File
from controller.web.admin import Done, Fields, Refused, Write, checked
from controller.web.bodies import ActionBody, HoldBody, NoteBody
from controller.web.query import read_id
from controller.web.shown import Shown, show_job

log = structlog.get_logger()


class Controls(Protocol):
    """Where the writes go; StoreError when they cannot."""

    async def act(self, job_id: int, action: JobAction, who: str, note: str, now: datetime) -> Acted | None:
        """Retry or cancel a pending job; None if there is no such job."""
        ...

    async def hold(self, hold: Hold, now: datetime) -> Held:
        """Pause a pool or entity, or drain a board."""
        ...

    async def resume(self, target: Target, who: str, note: str, now: datetime) -> Held:
        """Let it go on."""
        ...

    async def find_entity(self, login: str) -> Target | None:
        """The entity of that login or id, if it is known."""
        ...

    async def find_board(self, node: str) -> Target | None:
        """The board of that name, if it is known."""
        ...


class QueueControls:
    """Handlers; `pause` and `resume` make one for each kind of target."""

    def __init__(self, controls: Controls, file: File, clock: Clock) -> None:
        self._controls = controls
        self._pools = [pool.name for pool in file.pools]
        self._clock = clock

    async def act(self, request: Request, who: str, fields: Fields) -> Done:
        """PATCH or POST: what the body says."""
        body = checked(ActionBody, fields)
        return await self._act(request, body.action, who, body.note)

    async def cancel(self, request: Request, who: str, fields: Fields) -> Done:
        """DELETE: cancel."""
        return await self._act(request, JobAction.CANCEL, who, checked(NoteBody, fields).note)

    async def _act(self, request: Request, action: JobAction, who: str, note: str) -> Done:
        job_id = read_id(request.path_params["job_id"])
        now = self._clock.now()
        acted = await self._controls.act(job_id, action, who, note, now) if job_id else None
        if acted is None:
            raise Refused(404, "There is no such job in the queue.", "Not found")
        if not acted.done:
            raise Refused(409, _too_late(acted, action), "Too late")
        log.info("job.acted", job_id=job_id, action=action.value, who=who)
        return Done(show_job(acted.job, now, sees_private=True))

    def hold(self, scope: HoldScope) -> Write:
        """The handler that pauses pools or entities, or drains boards."""
        why = HoldWhy.DRAIN if scope is HoldScope.BOARD else HoldWhy.PAUSE

        async def hold(request: Request, who: str, fields: Fields) -> Done:
            body, now = checked(HoldBody, fields), self._clock.now()
            target = await self._target(scope, request)
            try:
                until = body.end(now)
            except ValueError as error:
                raise Refused(400, f"{error}.") from None
            wanted = Hold(scope, target.name, why, who, now, until, body.note)
            held = await self._controls.hold(wanted, now)
            log.info("hold.set", scope=scope.value, target=target.name, why=why.value, who=who)
            return Done(show_held(held))

        return hold

    def resume(self, scope: HoldScope) -> Write:
        """The handler that lets pools, entities or boards go on."""

        async def resume(request: Request, who: str, fields: Fields) -> Done:
            body = checked(NoteBody, fields)
            target = await self._target(scope, request)
            held = await self._controls.resume(target, who, body.note, self._clock.now())
            log.info("hold.lifted", scope=scope.value, target=target.name, who=who)
            return Done(show_held(held))

        return resume

    async def _target(self, scope: HoldScope, request: Request) -> Target:
        name = str(request.path_params["name"])
        if "\x00" in name:
            found = None
        elif scope is HoldScope.POOL:
            found = Target(scope, name) if name in self._pools else None
        elif scope is HoldScope.ENTITY:
            found = await self._controls.find_entity(name)
        else:
            found = await self._controls.find_board(name)
        if found is None:
            raise Refused(404, self._unknown(scope), "Not found")
        return found

    def _unknown(self, scope: HoldScope) -> str:
        match scope:
            case HoldScope.POOL:
                return f"There is no such pool; there are: {', '.join(self._pools)}."
            case HoldScope.ENTITY:
                return "No job of this organization or person ever came here; check the login."
            case HoldScope.BOARD:
                return "No such board is known; /boards lists them by the names of their nodes."


def _too_late(acted: Acted, action: JobAction) -> str:
    job = acted.job
    if job.status is JobStatus.RUNNING:
        if action is JobAction.CANCEL:
            return "It runs already; cancel the run on GitHub, and its runner ends with it."
        return "It runs already; there is nothing to retry."
    ended = f"It has ended ({(job.conclusion or job.status.value).replace('_', ' ')})"
    return f"{ended}; re-run it on GitHub if another result is wanted."


def show_held(held: Held) -> Shown:
    """What holds a target now, for somebody who may change it."""
    return {
        "scope": held.target.scope.value,
        "target": held.target.name,
        "held": bool(held.holds),
        "holds": [
            {
                "why": hold.why.value,
                "until": hold.until,
                "note": hold.note,
                "who": hold.who,
                "since": hold.created_at,
            }
            for hold in held.holds
        ],
    }
