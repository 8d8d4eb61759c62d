"""Phase 2: what the pods' phases say."""

from controller.decide.pod_phase import sync_pod_phases
from controller.domain.changes import Decided
from controller.domain.views import View
from controller.ports import LockedWorkers
from controller.reconcile.sync_workers.phase import write


async def pod_phase_sync(view: View, workers: LockedWorkers) -> tuple[View, Decided]:
    """Reflect Running, Succeeded and Failed onto the rows."""
    return await write(view, workers, sync_pod_phases(view))
