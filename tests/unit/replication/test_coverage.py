"""A receipt accounts for every position of its range, added up record by record: whatever was passed over is missing
in the sum, wherever the range ends (delivery rule 13)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pytest

from connect_core.errors import DataError
from connect_core.replication.worker.counts import covered, cut
from connect_core.replication.worker.lane import move
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import range_of
from connect_core.sdk.values import Bounds, Limit, Range, SourceBatch
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.source import FileSource
from connect_core.work import Receipt
from tests.unit.replication.memory import MemorySink, MemorySource, lane_of, open_range, records
from tests.unit.replication.world import World

BODIES = [b"line %d" % n for n in range(100)]
Change = Callable[[SourceBatch], SourceBatch]


def without_a_row(batch: SourceBatch) -> SourceBatch:
    return replace(batch, records=batch.records.slice(1))


def without_its_rows(batch: SourceBatch) -> SourceBatch:
    return replace(batch, records=batch.records.slice(0, 0))


CHANGES = [without_a_row, without_its_rows]


class Careless(MemorySource):
    """Its batch at 30 is not what stands there."""

    change: Change

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        for batch in super().read(wanted, limit):
            yield self.change(batch) if batch.next_offset == 40 else batch


@pytest.mark.parametrize("change", CHANGES)
def test_a_record_that_is_passed_over_is_not_accounted_for(change: Change) -> None:
    source = Careless(BODIES)
    source.change = change
    receipt = move(lane_of(open_range(0, 50)), source, MemorySink())[0].receipt
    assert receipt is not None
    assert "positions are accounted for, not the 50 from 0 to 50" in "".join(receipt.identity_faults())


@pytest.mark.parametrize(("lost", "room", "accounted"), [(7, 5, 6), (2, 4, 5)])
def test_where_a_batch_is_cut_each_side_accounts_for_its_own(lost: int, room: int, accounted: int) -> None:
    """The time is over at record 6, behind a hole. What the source passed over is missing on its own side."""
    source = Careless(BODIES, batch=40, holes=frozenset({4}))
    source.change = lambda batch: replace(batch, records=batch.records.filter(pc.field("offset") != lost))
    receipt = move(lane_of(open_range(0, 50)), source, MemorySink(room=room))[0].receipt
    assert receipt is not None
    assert (receipt.end, receipt.absent, receipt.covered) == (6, 1, accounted)
    assert len(receipt.identity_faults()) == (6 - accounted)


def test_the_pieces_of_a_batch_have_its_holes() -> None:
    whole = SourceBatch(records(dict.fromkeys((0, 4, 5, 9), b"x")), 12, ((1, 4), (6, 9), (10, 12)))
    pieces, rest = [], whole
    for _ in range(4):
        piece, following = cut(rest, 1)
        pieces.append((piece.next_offset, piece.holes))
        rest = following or rest
    assert pieces == [(4, ((1, 4),)), (5, ()), (9, ((6, 9),)), (12, ((10, 12),))]


def test_a_run_that_passes_records_over_settles_nothing(world: World) -> None:
    source = Careless(world.source.bodies)
    source.change = without_a_row
    world.source = world.engine.source = source
    with pytest.raises(DataError, match="199 positions are accounted for, not the 200"):
        world.run()
    assert world.receipts() == []
    source.change = lambda batch: batch
    world.run()
    assert sorted(offset for offset, _ in world.sink.rows) == list(range(200))
    assert sum(receipt.deduplicated for receipt in world.receipts()) == 199


# ------------------------------------------------------------------------------------------------------------- bytes


def read(path: Path, source: FileSource, tolerance: int = -1) -> Receipt:
    partition = Partition(str(path))
    seen = source.available_offsets({partition: None})[partition]
    item = replace(open_range(0, 1), range=range_of(partition, seen))
    receipt = move(lane_of(item, tolerance=tolerance), source, MemorySink())[0].receipt
    assert receipt is not None
    return receipt


def test_lines_account_for_the_bytes_that_they_take(tmp_path: Path) -> None:
    """With carriage returns, empty ones, and some that are too long, also for a whole chunk."""
    path = tmp_path / "a.log"
    lines = [b"one\n", b"two\r\n", b"\n", b"x" * 2000 + b"\n", b"\r\n", b"y" * 5_000_000 + b"\n", b"last\n"] * 3
    path.write_bytes(b"".join(lines))
    receipt = read(path, FileSource(FileSourceOptions(path=str(path), max_line_bytes=1000)))
    assert (receipt.end, receipt.covered) == (path.stat().st_size, path.stat().st_size)
    assert (receipt.read, receipt.rejected, receipt.identity_faults()) == (21, 6, [])


class Losing(FileSource):
    """Its second batch does not arrive."""

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        for number, batch in enumerate(super().read(wanted, limit)):
            if number != 1:
                yield batch


def test_lines_that_are_passed_over_are_not_accounted_for(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"".join(b"line %d\n" % n for n in range(12_000)))
    receipt = read(path, Losing(FileSourceOptions(path=str(path))))
    assert receipt.end == path.stat().st_size
    assert receipt.covered is not None
    assert receipt.covered < receipt.end
    assert len(receipt.identity_faults()) == 1


@pytest.mark.parametrize("size", [1, 7, 4000])
def test_pieces_account_for_as_much_as_the_whole(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"".join(b"line %d\r\n" % n for n in range(300)))
    source = FileSource(FileSourceOptions(path=str(path)))
    wanted = range_of(Partition(str(path)), Bounds(0, 0, 0, path.stat().st_size))
    total = 0
    for batch in source.read(wanted, lane_limit()):
        rest: SourceBatch | None = batch
        while rest is not None:
            piece, rest = cut(rest, size)
            end = piece.next_offset
            total += covered(piece, end, piece.records, piece.absent_before(end))
    assert total == path.stat().st_size


def lane_limit() -> Limit:
    return Limit(1 << 62, 1 << 62)
