"""What was heard of devices, against what they said."""

from __future__ import annotations

from connect_core.demo.devices import difference, sha256_of

SAID = [b"device-000 1", b"device-001 1", b"device-000 2"]


def test_the_same_in_any_order_differs_in_nothing() -> None:
    heard = SAID[::-1]
    assert difference(SAID, heard, 0) == []
    assert sha256_of(SAID) == sha256_of(heard)


def test_what_is_missing_strange_or_repeated_is_told() -> None:
    assert difference(SAID, SAID[1:], 0) == ["1 messages of devices are missing"]
    assert difference(SAID, [*SAID, b"stranger"], 0) == ["1 messages are of no device"]
    assert difference(SAID, [*SAID, SAID[0], SAID[0]], 1) == ["2 messages were repeated, the receipts count 1"]
    assert sha256_of([*SAID, SAID[0]]) != sha256_of(SAID)


def test_repeats_that_receipts_tell_are_no_fault() -> None:
    assert difference(SAID, [*SAID, SAID[0]], 1) == []
