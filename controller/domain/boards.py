"""Boards as pages show them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Board:
    """A row of `boards`."""

    node: str
    board: str | None  # value of the board label
    state: str
    slots: int
    free: int  # of these
    worker: str | None
