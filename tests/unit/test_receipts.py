"""The identities of a receipt, known counts and unknown ones."""

from __future__ import annotations

from dataclasses import replace

from connect_core.ledger.tables import RANGES
from connect_core.work import COUNTS, Receipt

SOUND = Receipt(
    begin=0,
    end=10,
    read=10,
    absent=0,
    filtered=1,
    rejected=2,
    passed=7,
    emitted=7,
    delivered=4,
    deduplicated=3,
    duplicates=0,
    possible_duplicates=0,
    bytes_read=100,
    bytes_written=40,
    seconds=0.1,
    digest_read="",
    digest_sent="",
    where={},
    evidence={},
    floors=(),
)


def test_a_sound_receipt_has_no_faults() -> None:
    assert SOUND.identity_faults() == []


def test_every_identity_that_does_not_hold_is_told() -> None:
    wrong = replace(SOUND, filtered=0, deduplicated=2, end=-1)
    assert [fault.split()[0] for fault in wrong.identity_faults()] == ["read", "emitted", "end"]


def test_only_a_reconstructed_receipt_may_leave_counts_open() -> None:
    unknown = replace(SOUND, read=None, absent=None, filtered=None, rejected=None, bytes_read=None)
    assert unknown.identity_faults() == ["a count is missing"]
    assert replace(unknown, reconstructed=True).identity_faults() == []


def test_every_count_is_a_column_of_the_ledger() -> None:
    assert {"read", "possible_duplicates"} <= {*COUNTS}
    assert {*COUNTS} <= {*RANGES.c.keys()}
