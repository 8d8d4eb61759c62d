"""Work beside the loop: named, one of a name at a time, and droppable at any moment."""

import asyncio

from controller.errors import GitHubUnavailable
from controller.reconcile.beside import Beside


class Bell:
    """Counts its rings."""

    def __init__(self) -> None:
        self.rings = 0

    def ring(self) -> None:
        self.rings += 1


async def forever() -> bool:
    await asyncio.Event().wait()
    return True


async def done() -> bool:
    return True


async def broken() -> bool:
    raise GitHubUnavailable("no answer")


async def test_of_one_name_there_is_one_under_way() -> None:
    beside = Beside(Bell().ring)
    assert beside.start("look", forever)
    assert not beside.start("look", done)
    assert beside.under_way == ("look",)
    await beside.stop()


async def test_work_that_changed_something_rings_the_bell_and_work_that_failed_does_not() -> None:
    bell = Bell()
    beside = Beside(bell.ring)
    beside.start("one", done)
    beside.start("two", broken)
    await beside.idle()
    assert (bell.rings, beside.under_way) == (1, ())


async def test_work_dropped_before_its_first_step_may_be_begun_again() -> None:
    bell = Bell()
    beside = Beside(bell.ring)
    beside.start("look", done)
    await beside.stop()
    await asyncio.sleep(0)
    assert beside.under_way == ()
    assert beside.start("look", done)
    await beside.idle()
    assert bell.rings == 1


async def test_waiting_for_some_names_does_not_wait_for_others() -> None:
    beside = Beside(Bell().ring)
    beside.start("long", forever)
    beside.start("short", done)
    await beside.finished(["short", "unheard of"])
    assert beside.under_way == ("long",)
    await beside.stop()
