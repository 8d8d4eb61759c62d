"""Phase 5: ended pods past their grace."""

from controller.decide.leftovers import find_terminal_pods
from controller.domain.changes import Decided
from controller.domain.views import View
from controller.ports import LockedWorkers
from controller.reconcile.sync_workers.phase import write


async def delete_terminal_pods(view: View, workers: LockedWorkers) -> tuple[View, Decided]:
    """Delete the pods whose logs have been kept for long enough."""
    return await write(view, workers, find_terminal_pods(view))
