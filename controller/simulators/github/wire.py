"""The protocol between a runner and the simulated GitHub; the real one is proprietary, this one fits a shell script.

POST /_runner/session            the JIT config as text → the runner is online
GET  /_runner/{id}/job?wait=S    a long poll in real seconds → a job, or 204
POST /_runner/{id}/renew         while a job runs
POST /_runner/{id}/finish        → the job is completed, the runner removed
"""

import asyncio
import base64
import json

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from controller.simulators.github.errors import ApiError
from controller.simulators.github.pipeline import CutConnection
from controller.simulators.github.platform import Platform
from controller.simulators.github.state import Job, Runner

LONGEST_WAIT = 30.0


class Wire:
    """The endpoints; faults match them as runner/session, runner/job, runner/renew, runner/finish."""

    def __init__(self, github: Platform) -> None:
        self._github = github

    def routes(self) -> list[Route]:
        """For the simulator's app."""
        return [
            Route("/_runner/session", self._session, methods=["POST"]),
            Route("/_runner/{runner_id:int}/job", self._job, methods=["GET"]),
            Route("/_runner/{runner_id:int}/renew", self._renew, methods=["POST"]),
            Route("/_runner/{runner_id:int}/finish", self._finish, methods=["POST"]),
        ]

    async def _session(self, request: Request) -> Response:
        spoiled = await self._spoil(request, "runner/session")
        if spoiled is not None:
            return spoiled
        config = await request.body()
        try:
            runner = self._open_session(config, request.headers.get("x-runner-version"))
        except ApiError as error:
            return JSONResponse(error.body, error.status)
        return JSONResponse({"runner_id": runner.id})

    def _open_session(self, config: bytes, version: str | None) -> Runner:
        runner_id, token = _decode(config)
        world = self._github.world
        runner = world.runners.get(runner_id)
        if runner is None:
            raise ApiError(404, "The runner registration has been deleted from the server")
        if runner.token != token:
            raise ApiError(401, "Bad credentials")
        if runner.session_at is not None:
            raise ApiError(409, "A session for this runner already exists.")
        if _too_old(version, runner.owner.min_runner_version):
            raise ApiError(426, f"Runner version {version} is deprecated and cannot receive messages.")
        self._github.runners.connect(runner, version)
        return runner

    async def _job(self, request: Request) -> Response:
        spoiled = await self._spoil(request, "runner/job")
        if spoiled is not None:
            return spoiled
        try:
            runner = self._known(request)
            wait = min(float(request.query_params.get("wait", "0")), LONGEST_WAIT)
            job = await self._poll(request, runner, wait)
        except ValueError:
            return JSONResponse({"message": "wait must be a number"}, 400)
        except ApiError as error:
            return JSONResponse(error.body, error.status)
        if job is None:
            return Response(status_code=204)
        ending = {"seconds": job.spec.seconds, "conclusion": job.spec.conclusion}
        return JSONResponse({"job_id": job.id, **ending})

    async def _poll(self, request: Request, runner: Runner, wait: float) -> Job | None:
        """Wait for a job; an open poll keeps the runner online, a client that hung up does not."""
        runners = self._github.runners
        runners.hear(runner)
        runner.polls += 1
        try:
            connected = await _woken_or_gone(request, runner, wait)
        finally:
            runner.polls -= 1
        if runner.removed_at is not None:
            raise ApiError(404, "The runner no longer exists on the server")
        if not connected:
            return None
        runners.hear(runner)
        runner.wake.clear()
        return runners.pick_up(runner)

    async def _renew(self, request: Request) -> Response:
        spoiled = await self._spoil(request, "runner/renew")
        if spoiled is not None:
            return spoiled
        try:
            runner = self._known(request)
        except ApiError as error:
            return JSONResponse(error.body, error.status)
        self._github.runners.hear(runner)
        return JSONResponse({"cancelled": runner.job is not None and runner.job.cancel_requested})

    async def _finish(self, request: Request) -> Response:
        spoiled = await self._spoil(request, "runner/finish")
        if spoiled is not None:
            return spoiled
        body = await request.json()
        try:
            runner = self._known(request)
        except ApiError as error:
            return JSONResponse(error.body, error.status)
        job = runner.job
        if job is None or job.id != body.get("job_id"):
            return JSONResponse({"message": "The runner does not run this job"}, 409)
        self._github.runners.finish(runner, job, str(body.get("conclusion", "success")))
        return Response(status_code=204)

    def _known(self, request: Request) -> Runner:
        runner = self._github.world.runners.get(request.path_params["runner_id"])
        if runner is None:
            raise ApiError(404, "The runner no longer exists on the server")
        if request.headers.get("authorization") != f"Bearer {runner.token}" or runner.session_at is None:
            raise ApiError(401, "Bad credentials")
        return runner

    async def _spoil(self, request: Request, operation: str) -> Response | None:
        """Apply faults, all before any effect; None lets the request go on."""
        rule = self._github.faults.pick(operation, request.url.path, None)
        if rule is None:
            return None
        if rule.delay:
            await self._github.clock.sleep(rule.delay)
        if rule.drop != "" or (rule.hold != "" and not await rule.keep()):
            return CutConnection()
        return JSONResponse(rule.body, rule.status) if rule.status is not None else None


async def _woken_or_gone(request: Request, runner: Runner, wait: float) -> bool:
    """Wait for the runner's wake-up at most so long; False if the client hung up meanwhile."""
    if runner.wake.is_set() or wait <= 0:
        return True
    woken = asyncio.ensure_future(runner.wake.wait())
    gone = asyncio.ensure_future(_hung_up(request))
    try:
        await asyncio.wait({woken, gone}, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
        return not gone.done()
    finally:
        woken.cancel()
        gone.cancel()


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _decode(config: bytes) -> tuple[int, str]:
    try:
        files = json.loads(base64.b64decode(config.strip(), validate=True))
        settings = json.loads(base64.b64decode(files[".runner"]))
        credentials = json.loads(base64.b64decode(files[".credentials"]))
        return int(settings["agentId"]), str(credentials["token"])
    except (ValueError, KeyError, TypeError) as error:
        raise ApiError(400, "This is no JIT config") from error


def _too_old(version: str | None, minimum: str | None) -> bool:
    if minimum is None:
        return False
    return version is None or _numbers(version) < _numbers(minimum)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
