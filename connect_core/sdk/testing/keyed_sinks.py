"""What a sink that is made with `KeyedSink` promises beyond the contract of every sink that is made with a kit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from connect_core.sdk.kits.keyed import AGAIN, Answer
from connect_core.sdk.testing.driving import attempt, limit, records
from connect_core.sdk.testing.kits import ROWS, ChangedCase, RefusingContract
from connect_core.sdk.testing.sink_content import ContentCase
from connect_core.sdk.testing.sinks import SettledState, SinkCase, in_order, numbers


def busy_at_first(connection: Any) -> Any:
    """Of the first put its first row is not taken."""
    put, busy = connection.put, [True]

    def later(ids: Sequence[str], versions: Sequence[int], records: pa.RecordBatch) -> Sequence[Answer]:
        if not busy:
            return put(ids, versions, records)  # type: ignore[no-any-return]
        busy.clear()
        return [AGAIN, *put(ids[1:], versions[1:], records.slice(1))]

    connection.put = later
    return connection


OLDER_AND_NEWER = [
    *[(0, 1), (7, 1 << 31), ((1 << 31) + 7, 1 << 32), (5, 1 << 40), ((1 << 40) + 9, 3 << 40)],
    *[((1 << 46) + 9, 3 << 46), ((1 << 62) + 8, (1 << 62) + 9)],
]


class KeyedContract(RefusingContract):
    """Of a sink that stores rows by their coordinates, or `by_key`. In which order rows stand in the target does not
    matter."""

    def there(self, target: SinkCase, behind: int = 0) -> list[bytes | None]:
        return in_order(super().there(target, behind))

    def kept(self, values: Sequence[bytes | None]) -> list[bytes | None]:
        """A row without a value deletes what has its id."""
        return in_order(value for value in values if value is not None)

    def test_a_late_writer_stores_nothing_over_what_is_newer(self, target: ContentCase) -> None:
        """A writer that was stopped while its successor finished the range, and goes on then."""
        ledger = SettledState(target)
        ledger.attempt(ROWS, settle_at=None)
        assert ledger.open
        with target.sink().writer(attempt(1, ledger.uid), ledger.open) as late:
            ledger.attempt(ROWS, settle_at=ROWS)
            late.write(ledger.rows(0, ROWS), limit())
        assert self.there(target) == numbers(ROWS)

    @pytest.mark.parametrize(("older", "newer"), OLDER_AND_NEWER)
    def test_an_older_version_is_not_stored_over_a_newer_one(self, target: ContentCase, older: int, newer: int) -> None:
        self._put(target, [(older, b"older")])
        self._put(target, [(newer, b"newer")])
        assert self.there(target) == [b"newer"]
        self._put(target, [(older, b"older")])
        assert self.there(target) == [b"newer"]

    def test_the_same_version_may_be_stored_again(self, target: ContentCase) -> None:
        """As of two outputs of one record with the same key: the later one stands."""
        self._put(target, [(7, b"first")])
        self._put(target, [(7, b"second")])
        assert self.there(target) == [b"second"]

    def test_versions_within_one_put_are_compared(self, target: ContentCase) -> None:
        self._put(target, [(3, b"three"), (5, b"five"), (4, b"four")])
        assert self.there(target) == [b"five"]

    def test_an_older_version_is_not_stored_over_a_deletion(self, target: ContentCase) -> None:
        """A deletion keeps its version: a late writer would bring the row back."""
        self._put(target, [(5, b"five")])
        self._put(target, [(7, None)])
        assert self.there(target) == []
        self._put(target, [(6, b"six")])
        assert self.there(target) == []
        self._put(target, [(8, b"eight")])
        assert self.there(target) == [b"eight"]

    def test_ids_that_are_alike_are_others(self, target: ContentCase) -> None:
        ids = ["key", "Key", "KEY", " key", "key ", *(f"{'k' * 300}{number}" for number in range(3))]
        self._put(target, [(1, b"%d" % number) for number in range(len(ids))], ids)
        assert self.there(target) == numbers(len(ids))

    def test_a_later_record_of_a_key_takes_the_place_of_an_earlier_one(self, target: ContentCase) -> None:
        if not getattr(target.sink(), "by_key", False):
            pytest.skip("rows are stored by their coordinates")
        for incarnation, offset in ((0, 5), (0, 3), (0, 1 << 45), (1, 0), (0, 7), (1, 2), (1, 1)):
            ledger = SettledState(target, uid="0123456789ab", incarnation=incarnation, first=offset)
            with target.sink().writer(attempt(1, ledger.uid), ledger.planned(target.sink(), 1)) as writer:
                writer.write(records([b"%d/%d" % (incarnation, offset)], offset, key=["k"]), limit())
        assert self.there(target) == [b"1/2"]

    def test_of_several_outputs_with_one_key_the_last_one_stands_however_busy_the_target_is(
        self, target: ContentCase
    ) -> None:
        if not getattr(target.sink(), "by_key", False):
            pytest.skip("rows are stored by their coordinates")
        ledger, sink = SettledState(target), ChangedCase(target, busy_at_first).sink()
        rows = records([b"1", b"2", b"3"], offset=[0, 0, 0], ordinal=[0, 1, 2], key=["k", "another", "k"])
        with sink.writer(attempt(1, ledger.uid), ledger.planned(target.sink(), 1)) as writer:
            assert writer.write(rows, limit()) == 3
            assert writer.flush(limit()).records == 3
        assert self.there(target) == [b"2", b"3"]

    def _put(
        self, target: ContentCase, rows: Sequence[tuple[int, bytes | None]], ids: Sequence[str] | None = None
    ) -> None:
        """Stores versions and values, all of one id unless there are more; the target has to say that they are there.
        Rows for which it has no time are put again, in their order."""
        sink: Any = target.sink()
        sink.targets(0, (), {})
        left = [(id_, *row) for id_, row in zip(ids or ["id"] * len(rows), rows, strict=True)]
        with sink.connect() as connection:
            for _ in range(100):
                batch = records([value for _, _, value in left], key=[id_ for id_, _, _ in left])
                answers = connection.put([one[0] for one in left], [one[1] for one in left], batch)
                assert [answer.refused for answer in answers] == [""] * len(left)
                left = [one for one, answer in zip(left, answers, strict=True) if not answer.stored]
                if not left:
                    return
        pytest.fail("a row is never stored, whose version is that of the target or an older one")
