"""The log of a container, asked of the kubelet that has it."""

from datetime import timedelta

from controller.ports import Clock
from controller.simulators.cluster.fleet import Fleet
from controller.simulators.cluster.objects import NODES, PODS, Json, node_of, uid_of
from controller.simulators.cluster.programs import Container
from controller.simulators.cluster.requests import Ask
from controller.simulators.cluster.status import ApiError, bad_request, not_found
from controller.simulators.cluster.store import Store

KUBELET_PORT = 10250


class Logs:
    """Answers `pods/log`; what is not there yet is not waited for."""

    def __init__(self, store: Store, fleet: Fleet, clock: Clock) -> None:
        self._store = store
        self._fleet = fleet
        self._clock = clock

    def read(self, ask: Ask) -> str | None:
        """The text, cut as the query says; None while the pod has no node."""
        name = ask.name or ""
        pod = self._store.get(PODS, ask.place, name)
        container = _container(ask, pod)
        if not node_of(pod):
            return None
        if self._store.find(NODES, "", node_of(pod)) is None:
            raise not_found(PODS, node_of(pod))  # the real one calls it a pod too
        kubelet = self._fleet.kubelet(node_of(pod))
        if kubelet is None or not kubelet.alive.is_set():
            host = pod["status"].get("hostIP", node_of(pod))
            path = f"containerLogs/{ask.place}/{name}/{container}"
            at = f"{host}:{KUBELET_PORT}"
            why = f'Get "https://{at}/{path}": dial tcp {at}: connect: no route to host'
            raise ApiError(500, "InternalError", why)
        output = kubelet.logs.get(uid_of(pod))
        if output is None:
            raise bad_request(f'container "{container}" in pod "{name}" is {_waiting_for(pod)}')
        return self._cut(ask, output)

    def _cut(self, ask: Ask, output: Container) -> str:
        lines = output.lines
        since = ask.number("sinceSeconds")
        if since is not None:
            start = self._clock.now() - timedelta(seconds=since)
            lines = [line for line in lines if line[0] >= start]
        tail = ask.number("tailLines")
        if tail is not None:
            lines = lines[-tail:] if tail else []
        stamped = ask.flag("timestamps")
        text = "".join(f"{at.isoformat()} {line}\n" if stamped else f"{line}\n" for at, line in lines)
        limit = ask.number("limitBytes")
        return text if limit is None else text.encode()[:limit].decode(errors="ignore")


def _container(ask: Ask, pod: Json) -> str:
    names = [container["name"] for container in pod["spec"]["containers"]]
    wanted = ask.query.get("container") or (names[0] if len(names) == 1 else "")
    name = pod["metadata"]["name"]
    if not wanted:
        raise bad_request(
            f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]"
        )
    if wanted not in names:
        raise bad_request(f"container {wanted} is not valid for pod {name}")
    return str(wanted)


def _waiting_for(pod: Json) -> str:
    statuses = pod["status"].get("containerStatuses") or [{}]
    state = statuses[0].get("state") or {}
    if "terminated" in state:
        return "terminated"
    reason = (state.get("waiting") or {}).get("reason", "ContainerCreating")
    if reason in ("ErrImagePull", "ImagePullBackOff"):
        return f"waiting to start: trying and failing to pull image ({reason})"
    return f"waiting to start: {reason}"
