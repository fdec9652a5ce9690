"""When a part that died is started again: at once, then with growing pauses, anew after it ran for a while."""

from __future__ import annotations

from connect_core.stack.supervisor import BackOff


def starts(back_off: BackOff, seconds: int) -> list[int]:
    """At which of the given seconds a part that always dies is started."""
    found = []
    for now in range(1000, 1000 + seconds):
        if back_off.is_due("broker", now):
            back_off.tried("broker", now)
            found.append(now - 1000)
    return found


def test_the_pauses_double_up_to_a_minute() -> None:
    assert starts(BackOff(), 260) == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]


def test_a_part_that_ran_for_two_minutes_begins_anew() -> None:
    back_off = BackOff()
    assert starts(back_off, 20) == [0, 1, 3, 7, 15]
    assert back_off.is_due("broker", 1015 + 120)
    assert back_off.failures == {}


def test_one_part_does_not_hold_up_another() -> None:
    back_off = BackOff()
    starts(back_off, 20)
    assert back_off.is_due("engine", 1016)
