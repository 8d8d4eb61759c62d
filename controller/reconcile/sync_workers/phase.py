"""What all phases share: writing what was decided."""

from dataclasses import replace

from controller.domain.changes import Adopt, Decided, Fail, Finish, WorkerChange
from controller.domain.views import View
from controller.ports import LockedWorkers
from controller.telemetry.redaction import cleaned


async def write(view: View, workers: LockedWorkers, decided: Decided) -> tuple[View, Decided]:
    """Write the changes; the view for the next phase is without the workers that ended.

    What a row would not take is taken out of the answer, so that it is not counted as done.
    """
    changes = [_clean(change) for change in decided.changes]
    written = list(zip(changes, await workers.apply(changes, view.now), strict=True))
    done = [change for change, taken in written if taken]
    ended = frozenset(change.name for change in done if isinstance(change, Fail | Finish))
    refused = frozenset(
        change.name for change, taken in written if not taken and not isinstance(change, Adopt)
    )
    effects = tuple(
        effect for effect in decided.effects if effect.name not in refused or effect.name in ended
    )
    return view.without(ended), Decided(tuple(done), effects)


def _clean(change: WorkerChange) -> WorkerChange:
    """What a pod told goes into its row as its report does."""
    return replace(change, info=cleaned(change.info)) if isinstance(change, Fail) else change
