"""Which changes of a pod or a node are worth an iteration: they free or break a slot, or move a worker."""

from controller.domain.sightings import Node, Pod


def pod_matters(before: Pod, after: Pod) -> bool:
    """Whether a pod got further, ended, is being deleted, or waits for another reason."""
    return _stage(before) != _stage(after)


def node_matters(before: Node, after: Node) -> bool:
    """Whether anything but the heartbeat changed, which a Node does not hold."""
    return before != after


def _stage(pod: Pod) -> tuple[object, ...]:
    return (
        pod.uid,
        pod.phase,
        pod.accepted_at is None,
        pod.finished_at,
        pod.deleting_since is None,
        pod.waiting,
        pod.slots,
    )
