"""Phase 2.5: workers stranded on unreachable nodes."""

from controller.decide.unreachable import find_stranded
from controller.domain.changes import Decided
from controller.domain.views import View
from controller.ports import LockedWorkers
from controller.reconcile.sync_workers.phase import write


async def unreachable_node_check(view: View, workers: LockedWorkers) -> tuple[View, Decided]:
    """Fail the workers whose kubelet is gone."""
    return await write(view, workers, find_stranded(view))
