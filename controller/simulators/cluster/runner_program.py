"""The Actions runner as a program: goes online with its JIT config, runs one job, and exits.

Speaks the runner protocol of the simulated GitHub over HTTP. As the real one it exits 0 whatever goes wrong, but
for a version that GitHub refuses. Being cancelled is being killed: the connection breaks, nothing is said.
"""

import base64
import json
from dataclasses import dataclass
from datetime import timedelta

import httpx

from controller.simulators.cluster.programs import Container

JIT_VARIABLE = "RUNNER_JITCONFIG"
REFUSAL_SWITCH = "ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE"
VERSION_REFUSED = 7
RENEWAL = timedelta(minutes=1)
RETRY = timedelta(seconds=10)
SESSION_TRIES = 24
FINISH_TRIES = 10
POLL = 25  # real seconds: the poll is a connection
_TIMEOUT = httpx.Timeout(20.0, read=POLL + 20.0)


@dataclass(frozen=True, slots=True)
class _Job:
    id: int
    duration: timedelta
    conclusion: str


class _Fatal(Exception):
    """The runner gives up, with this exit code."""

    def __init__(self, line: str, exit_code: int = 0) -> None:
        super().__init__(line)
        self.exit_code = exit_code


class RunnerProgram:
    """One image's runner; may run in any number of containers at once."""

    def __init__(self, github_base_url: str, version: str) -> None:
        self._base_url = github_base_url.rstrip("/")
        self._version = version

    async def run(self, container: Container) -> int:
        """Serve at most one job."""
        config = container.env.get(JIT_VARIABLE, "")
        token = _token(config)
        if token is None:
            container.log("An error occurred: the JIT config cannot be read")
            return 0
        # No TLS to prepare and no proxies to look for: a thousand runners start on one machine.
        transport = httpx.AsyncHTTPTransport(verify=False)
        async with httpx.AsyncClient(
            base_url=self._base_url,
            transport=transport,
            trust_env=False,
            timeout=_TIMEOUT,
            headers={"authorization": f"Bearer {token}", "x-runner-version": self._version},
        ) as client:
            try:
                await _Runner(client, container, self._version).serve(config)
            except _Fatal as error:
                container.log(str(error))
                return error.exit_code
        return 0


class _Runner:
    def __init__(self, client: httpx.AsyncClient, container: Container, version: str) -> None:
        self._client = client
        self._container = container
        self._version = version
        self._path = ""

    async def serve(self, config: str) -> None:
        """Connect, wait for a job, run it, report it."""
        log = self._container.log
        log(f"Current runner version: '{self._version}'")
        self._path = f"/_runner/{await self._connect(config)}"
        log("Listening for Jobs")
        job = await self._wait_for_job()
        log(f"Running job: {job.id}")
        conclusion = await self._work(job)
        await self._finish(job, conclusion)
        log(f"Job {job.id} completed with result: {conclusion}")

    async def _connect(self, config: str) -> int:
        for _ in range(SESSION_TRIES):
            answer = await self._send("POST", "/_runner/session", content=config.encode())
            match answer.status_code if answer is not None else 0:
                case 200 if answer is not None:
                    return int(answer.json()["runner_id"])
                case 426:
                    self._container.log(
                        f"Runner version v{self._version} is deprecated and cannot receive messages."
                    )
                    told = self._container.env.get(REFUSAL_SWITCH, "").lower() in ("1", "true")
                    raise _Fatal("Exiting", VERSION_REFUSED if told else 0)
                case 400 | 401 | 404:
                    raise _Fatal(
                        "The runner registration has been deleted from the server, please re-configure."
                    )
                case 409:
                    self._container.log("A session for this runner already exists.")
                case _:
                    self._container.log("Runner connect error. Retrying until reconnected.")
            await self._container.clock.sleep(RETRY)
        raise _Fatal("Failed to create a session.")

    async def _wait_for_job(self) -> _Job:
        while True:
            answer = await self._send("GET", f"{self._path}/job?wait={POLL}")
            match answer.status_code if answer is not None else 0:
                case 200 if answer is not None:
                    job = answer.json()
                    return _Job(int(job["job_id"]), timedelta(seconds=job["seconds"]), str(job["conclusion"]))
                case 204:
                    continue
                case 401 | 404:
                    raise _Fatal("The runner no longer exists on the server")
                case _:
                    self._container.log("Runner connect error. Retrying until reconnected.")
            await self._container.clock.sleep(RETRY)

    async def _work(self, job: _Job) -> str:
        """Let the job's time pass, renewing its lease; a cancelled job ends with the next renewal."""
        clock = self._container.clock
        ends_at = clock.now() + job.duration
        while (left := ends_at - clock.now()) > timedelta():
            await clock.sleep(min(left, RENEWAL))
            if clock.now() >= ends_at:
                break
            answer = await self._send("POST", f"{self._path}/renew")
            if answer is not None and answer.status_code in (401, 404):
                raise _Fatal("The job's lease was lost")
            if answer is not None and answer.status_code == 200 and answer.json().get("cancelled"):
                return "cancelled"
        return job.conclusion

    async def _finish(self, job: _Job, conclusion: str) -> None:
        body = {"job_id": job.id, "conclusion": conclusion}
        for _ in range(FINISH_TRIES):
            answer = await self._send("POST", f"{self._path}/finish", json=body)
            if answer is not None and answer.status_code < 500:
                return
            await self._container.clock.sleep(RETRY)
        raise _Fatal("The job's result could not be reported")

    async def _send(
        self, method: str, path: str, *, content: bytes | None = None, json: object = None
    ) -> httpx.Response | None:
        """One request; None if it got no answer."""
        try:
            return await self._client.request(method, path, content=content, json=json)
        except httpx.HTTPError:
            return None


def _token(config: str) -> str | None:
    try:
        files = json.loads(base64.b64decode(config.strip(), validate=True))
        return str(json.loads(base64.b64decode(files[".credentials"]))["token"])
    except (ValueError, KeyError, TypeError):
        return None
