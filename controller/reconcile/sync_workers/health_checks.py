"""Phase 3: runners that never came, idle ones, stuck pods."""

from controller.decide.health import check_health
from controller.domain.changes import Decided
from controller.domain.views import View
from controller.ports import LockedWorkers
from controller.reconcile.sync_workers.phase import write


async def health_checks(view: View, workers: LockedWorkers) -> tuple[View, Decided]:
    """Write down the readings and the intents to kill."""
    return await write(view, workers, check_health(view))
