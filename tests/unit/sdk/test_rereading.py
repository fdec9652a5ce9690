"""What is read again of a range, against what its receipt says."""

from __future__ import annotations

import pytest

from connect_core.sdk.batches import record_batch
from connect_core.sdk.digest import RecordDigest
from connect_core.sdk.records import Lineage, Record
from connect_core.sdk.rereading import Claim, Tally, Verdict

LINEAGE = Lineage("uid", "live", "p", 0)
ELSEWHERE = Lineage("uid", "live", "p", 1)
RECORDS = [Record(b"body %d" % offset, f"k{offset}") for offset in range(10)]


def claim(**other: object) -> Claim:
    digest = RecordDigest(LINEAGE)
    digest.add(record_batch(RECORDS, range(10)))
    return Claim(1, LINEAGE, 0, 10, 10, digest.text(), {}, {})._replace(**other)  # type: ignore[arg-type]


def verdict(one: Claim, *parts: list[int], lineage: Lineage = LINEAGE, expired: int = 0) -> Verdict:
    tally = Tally([one])
    for offsets in parts:
        tally.add(lineage, record_batch([RECORDS[offset % 10] for offset in offsets], offsets), "a queue")
    return tally.reread(one, expired=expired).verdict


EACH = list(range(10))


@pytest.mark.parametrize("parts", [(EACH,), ([7, 8, 9], [0, 1, 2, 3, 4, 5, 6]), ([*EACH, 10, 11],)])
def test_every_record_once_in_whatever_order(parts: tuple[list[int], ...]) -> None:
    assert verdict(claim(), *parts) is Verdict.SAME


def test_a_record_that_is_missing() -> None:
    assert verdict(claim(), [0, 1, 2, 3, 5, 6, 7, 8, 9]) is Verdict.DIFFERS
    assert verdict(claim()) is Verdict.DIFFERS
    assert verdict(claim(), EACH, lineage=ELSEWHERE) is Verdict.DIFFERS, "a record of another incarnation is none"


@pytest.mark.parametrize("parts", [(EACH, [3, 4]), ([*EACH, 3, 4],)])
def test_copies_are_what_the_receipt_tells_or_too_many(parts: tuple[list[int], ...]) -> None:
    assert verdict(claim(), *parts) is Verdict.DIFFERS
    assert verdict(claim(copies=1), *parts) is Verdict.DIFFERS
    assert verdict(claim(copies=2), *parts) is Verdict.SAME


def test_a_record_that_is_another_one() -> None:
    tally, one = Tally([claim()]), claim()
    tally.add(LINEAGE, record_batch([*RECORDS[:9], Record(b"body 9", "k8")], range(10)), "a queue")
    found = tally.reread(one)
    assert (found.verdict, found.place) == (Verdict.DIFFERS, "a queue")


def test_what_the_target_deletes_by_itself_is_no_fault() -> None:
    assert verdict(claim(), [4, 5, 6, 7, 8, 9], expired=4) is Verdict.GONE
    assert verdict(claim(), EACH, expired=4) is Verdict.SAME
    assert verdict(claim(), [4, 5, 6, 7, 8, 9, 9], expired=4) is Verdict.DIFFERS


def test_what_was_deleted_does_not_hide_what_is_missing_besides() -> None:
    assert verdict(claim(), [4, 5, 6, 7, 8, 9], expired=3) is Verdict.DIFFERS


def test_a_receipt_without_a_digest_counts() -> None:
    assert verdict(claim(digest=""), EACH) is Verdict.UNCOMPARED
    assert verdict(claim(digest=""), EACH[1:]) is Verdict.DIFFERS


def test_ranges_beside_each_other() -> None:
    whole = claim()
    halves = [whole._replace(range_id=2, end=5, outputs=5), whole._replace(range_id=3, begin=5, outputs=5)]
    tally = Tally([one._replace(digest="") for one in halves])
    tally.add(LINEAGE, record_batch(RECORDS, range(10)), "a queue")
    assert [tally.reread(one._replace(digest="")).verdict for one in halves] == [Verdict.UNCOMPARED] * 2
