"""The statuses that a kubelet writes. Each function changes a pod that it is given for that; none reads a clock."""

from dataclasses import dataclass
from datetime import datetime

from controller.simulators.cluster.objects import Json, set_condition, timestamp, uid_of

NOT_READY = "ContainersNotReady"
DEADLINE = "DeadlineExceeded"
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"
LOST = "ContainerStatusUnknown"
LOST_MESSAGE = "The container could not be located when the pod was terminated"
KILLED, TERMINATED = 137, 143


@dataclass(frozen=True, slots=True)
class Ending:
    """How a pod's container ended, and what the pod itself says of it."""

    exit_code: int
    reason: str  # of the container: Completed, Error, ContainerStatusUnknown
    pod_reason: str = ""
    pod_message: str = ""

    @classmethod
    def by_itself(cls, exit_code: int) -> "Ending":
        """The program ended."""
        return cls(exit_code, "Completed" if exit_code == 0 else "Error")

    @property
    def phase(self) -> str:
        """Succeeded only if nobody had to end it."""
        return "Succeeded" if self.exit_code == 0 and not self.pod_reason else "Failed"


STOPPED = Ending(TERMINATED, "Error")
DEADLINE_EXCEEDED = Ending(TERMINATED, "Error", DEADLINE, DEADLINE_MESSAGE)
POWER_LOST = Ending(KILLED, LOST)


def accept(pod: Json, now: datetime, host_ip: str) -> None:
    """A kubelet has taken the pod and prepares its container."""
    status = pod["status"]
    status.setdefault("startTime", timestamp(now))
    status["phase"] = "Pending"
    status["hostIP"] = host_ip
    status["hostIPs"] = [{"ip": host_ip}]
    set_condition(status, "PodReadyToStartContainers", "False", now)
    set_condition(status, "Initialized", "True", now)
    _not_ready(pod, now)
    set_condition(status, "PodScheduled", "True", now)
    wait(pod, "ContainerCreating", "")


def wait(pod: Json, reason: str, message: str) -> None:
    """The container cannot start yet, or not at all."""
    waiting = {"reason": reason, **({"message": message} if message else {})}
    _containers(pod, {"waiting": waiting}, ready=False, started=False)


def start(pod: Json, now: datetime, pod_ip: str) -> None:
    """The container runs."""
    status = pod["status"]
    status["phase"] = "Running"
    status["podIP"] = pod_ip
    status["podIPs"] = [{"ip": pod_ip}]
    for kind in ("PodReadyToStartContainers", "Ready", "ContainersReady"):
        set_condition(status, kind, "True", now)
    _containers(pod, {"running": {"startedAt": timestamp(now)}}, ready=True, started=True)


def end(pod: Json, now: datetime, ending: Ending) -> None:
    """The container has ended for good; one that never ran is reported as lost."""
    status = pod["status"]
    running = next((each["state"].get("running") for each in status.get("containerStatuses") or ()), None)
    ended: Json = {"exitCode": ending.exit_code, "reason": ending.reason}
    if running is None:
        ended = {
            "exitCode": KILLED,
            "reason": LOST,
            "message": LOST_MESSAGE,
            "startedAt": None,
            "finishedAt": None,
        }
    else:
        ended |= {"startedAt": running["startedAt"], "finishedAt": timestamp(now)}
        ended["containerID"] = f"containerd://{uid_of(pod).replace('-', '')}"
        if ending.reason == LOST:
            ended["message"] = LOST_MESSAGE
    status["phase"] = ending.phase if running is not None else "Failed"
    for field, text in (("reason", ending.pod_reason), ("message", ending.pod_message)):
        if text:
            status[field] = text
    set_condition(status, "PodReadyToStartContainers", "False", now)
    reason = "PodCompleted" if status["phase"] == "Succeeded" else "PodFailed"
    for kind in ("Ready", "ContainersReady"):
        set_condition(status, kind, "False", now, reason=reason)
    _containers(pod, {"terminated": ended}, ready=False, started=False)


def _not_ready(pod: Json, now: datetime) -> None:
    names = " ".join(container["name"] for container in pod["spec"]["containers"])
    message = f"containers with unready status: [{names}]"
    for kind in ("Ready", "ContainersReady"):
        set_condition(pod["status"], kind, "False", now, reason=NOT_READY, message=message)


def _containers(pod: Json, state: Json, *, ready: bool, started: bool) -> None:
    """Write the same state for every container: they begin and end together here, and never restart."""
    known = "waiting" not in state
    pod["status"]["containerStatuses"] = [
        {
            "name": container["name"],
            "state": state,
            "lastState": {},
            "ready": ready,
            "restartCount": 0,
            "image": container["image"],
            "imageID": container["image"] if known else "",
            **({"containerID": f"containerd://{uid_of(pod).replace('-', '')}"} if known else {}),
            "started": started,
        }
        for container in pod["spec"]["containers"]
    ]
