"""What runs inside simulated containers: the protocol of a program, its container, and how boards misbehave."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from controller.ports import Clock


@dataclass(slots=True)
class Container:
    """A running container as its program sees it; `env` has its Secret references resolved."""

    pod: str
    image: str
    node: str
    env: Mapping[str, str]
    clock: Clock
    lines: list[tuple[datetime, str]] = field(default_factory=list)

    def log(self, line: str) -> None:
        """Write a line of output."""
        self.lines.append((self.clock.now(), line))


class Program(Protocol):
    """The entrypoint of an image. It is cancelled when the container is killed."""

    async def run(self, container: Container) -> int:
        """Run, and answer the exit code."""
        ...


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How a board treats its containers."""

    pull_time: timedelta = timedelta(seconds=2)
    start_time: timedelta = timedelta(seconds=1)
    stop_time: timedelta = timedelta(seconds=1)  # from the signal to the end of the container
    fail_to_pull: str | None = None  # an image, or `*`
    crash: int | None = None  # exit with this code right after the start
    last_words: Sequence[str] = ("fatal: cannot start",)  # what a crashing container logs
    hang: bool = False  # Running, but its program never begins
    never_exits: bool = False  # the program ends, the container does not


class Sleeper:
    """A program that does nothing for so long."""

    def __init__(self, duration: timedelta, exit_code: int = 0) -> None:
        self._duration = duration
        self._exit_code = exit_code

    async def run(self, container: Container) -> int:
        """Sleep, and exit."""
        container.log("sleeping")
        await container.clock.sleep(self._duration)
        return self._exit_code


async def run_program(program: Program, container: Container, behaviour: Behaviour) -> int:
    """Run a program the way its board lets it."""
    if behaviour.crash is not None:
        for line in behaviour.last_words:
            container.log(line)
        return behaviour.crash
    if behaviour.hang:
        await asyncio.Event().wait()
    exit_code = await program.run(container)
    if behaviour.never_exits:
        await asyncio.Event().wait()
    return exit_code
