"""UnreachableNodeCheck: workers stranded on a node whose kubelet is gone. Pure."""

from controller.domain.changes import Decided, Effect, Fail, ForceDeletePod, WorkerChange
from controller.domain.reasons import Reason
from controller.domain.views import View


def find_stranded(view: View) -> Decided:
    """Fail the workers on unreachable nodes and force-delete their pods; nothing if nodes are unknown."""
    changes: list[WorkerChange] = []
    effects: list[Effect] = []
    for worker in view.workers.values():
        pod = view.pod(worker.name)
        node = view.node(pod.node) if pod is not None else None
        if pod is None or node is None or not node.unreachable or pod.phase.ended:
            continue
        if worker.status.live:
            changes.append(Fail(worker.name, Reason.NODE_UNREACHABLE, {"node": node.name}))
        effects.append(ForceDeletePod(worker.name))
    return Decided(tuple(changes), tuple(effects))
