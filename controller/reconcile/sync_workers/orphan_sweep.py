"""Phase 1: rows without a pod, and pods without a row."""

from controller.decide.orphans import find_orphans
from controller.domain.changes import Decided
from controller.domain.views import View
from controller.ports import LockedWorkers
from controller.reconcile.sync_workers.phase import write


async def orphan_sweep(view: View, workers: LockedWorkers) -> tuple[View, Decided]:
    """End the live rows whose pod is gone; adopt or end the pods whose row is."""
    return await write(view, workers, find_orphans(view))
