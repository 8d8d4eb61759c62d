"""What is kept of the workers that fail in the demo, as boards and clusters would say it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controller.domain.reasons import Reason

CRASH_LOG = (
    "entrypoint: starting the Docker daemon",
    "kernel: mmcblk0: timed out; the root file system is now read-only",
    "dockerd: cannot create /var/lib/docker/tmp: read-only file system",
    "entrypoint: no Docker daemon after 30 s, the runner is not started",
)
LOST_LOG = (
    "entrypoint: starting the Docker daemon",
    "runner: connecting to github.com:443",
    "runner: no route to host, trying again in 30 s",
    "runner: no route to host, trying again in 30 s",
)
ASSIGNED = ("Normal", "Scheduled", "Successfully assigned the pod to {node}")
STARTED = ("Normal", "Started", "Started container runner")


@dataclass(frozen=True, slots=True)
class Trace:
    """What one kind of failure leaves behind."""

    events: tuple[tuple[str, str, str], ...]  # type, reason, message
    log: tuple[str, ...] = ()
    exit_code: int | None = None
    word: str = ""  # Kubernetes' own, of the container


TRACES: Mapping[Reason, Trace] = {
    Reason.POD_FAILED: Trace((ASSIGNED, STARTED), CRASH_LOG, 1, "Error"),
    Reason.RUNNER_NEVER_REGISTERED: Trace((ASSIGNED, STARTED), LOST_LOG),
    Reason.POD_STUCK_PENDING: Trace(
        (ASSIGNED, ("Warning", "Failed", "Failed to pull image: no space left on device")),
        word="ErrImagePull",
    ),
    Reason.NODE_UNREACHABLE: Trace((ASSIGNED, STARTED, ("Warning", "NodeNotReady", "Node is not ready"))),
}


def failure_info(reason: Reason, node: str, at: datetime) -> dict[str, Any]:
    """What the leader would have kept of a worker that failed on this board."""
    trace = TRACES[reason]
    return {
        "containers": [{"name": "runner", "exit_code": trace.exit_code, "reason": trace.word}],
        "log_tail": "\n".join(trace.log),
        "events": [
            {"type": kind, "reason": word, "message": said.format(node=node), "last_time": at.isoformat()}
            for kind, word, said in trace.events
        ],
    }
