"""How long nothing is judged after wrong tokens."""

from datetime import timedelta

import pytest

from controller.web.brake import ADDRESSES, FORGOTTEN, FREE, LONGEST, Brake
from tests.clocks import EPOCH


def after(failures: int, address: str = "a") -> Brake:
    brake = Brake()
    for _ in range(failures):
        brake.note(address, EPOCH, right=False)
    return brake


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 0), (FREE - 1, 0), (FREE, 1), (FREE + 1, 2), (FREE + 3, 8), (10_000, 30)]
)
def test_the_pause_grows_with_the_wrong_tokens_and_stays_short(failures: int, seconds: int) -> None:
    brake = after(failures)
    assert brake.pause("a", EPOCH) == timedelta(seconds=seconds)
    assert brake.pause("a", EPOCH + timedelta(seconds=seconds)) == timedelta()
    assert brake.pause("b", EPOCH) == timedelta()


def test_the_right_token_and_time_forget_the_wrong_ones() -> None:
    brake = after(FREE + 9)
    assert brake.pause("a", EPOCH - timedelta(seconds=1)) == timedelta()  # the clock was set back
    brake.note("a", EPOCH, right=True)
    brake.note("a", EPOCH, right=False)
    assert brake.pause("a", EPOCH) == timedelta()
    late = EPOCH + FORGOTTEN
    brake = after(FREE + 9)
    brake.note("a", late, right=False)
    assert brake.pause("a", late) == timedelta()
    assert after(FREE + 9).pause("a", EPOCH + LONGEST - timedelta(seconds=1)) == timedelta(seconds=1)


def test_many_addresses_take_no_more_room_than_a_thousand() -> None:
    brake = after(FREE)
    for number in range(ADDRESSES - 1):
        brake.note(str(number), EPOCH, right=False)
    assert brake.pause("a", EPOCH)
    brake.note("one more", EPOCH, right=False)
    assert not brake.pause("a", EPOCH)
