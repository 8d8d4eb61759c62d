"""Tells pages what the boards are doing: rows of `boards`, written on change by the leader."""

from collections.abc import Callable

from controller.decide.boards import describe_boards
from controller.decide.capacity import SlotMap
from controller.decide.pace import is_time
from controller.domain.boards import Board
from controller.domain.constants import HEARTBEAT_EVERY
from controller.domain.sightings import Unknown
from controller.ports import Boards, Clock


class BoardWatch:
    """One step of the loop."""

    def __init__(
        self,
        boards: Boards,
        matched: Callable[[], SlotMap | Unknown],
        clock: Clock,
        board_label: str,
    ) -> None:
        self._boards = boards
        self._matched = matched
        self._clock = clock
        self._label = board_label
        self._written: dict[str, Board] | None = None
        self._beat_at = clock.now()

    async def run(self, epoch: int) -> None:
        """Write the boards that changed; all of them at every heartbeat. An unknown view writes nothing."""
        slots, now = self._matched(), self._clock.now()
        if isinstance(slots, Unknown):
            return
        seen = {board.node: board for board in describe_boards(slots, self._label)}
        known = self._written if self._written is not None else dict.fromkeys(await self._boards.known())
        beat = is_time(self._beat_at, HEARTBEAT_EVERY, now)
        changed = [board for node, board in seen.items() if beat or known.get(node) != board]
        gone = known.keys() - seen.keys()
        if changed or gone:
            await self._boards.write(changed, gone, epoch, now)
        self._written = seen
        if beat:
            self._beat_at = now
