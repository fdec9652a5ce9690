"""Files are followed as they grow, and left to the next plan when they are renamed."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from connect_core.errors import Failure, Retriable
from connect_core.replication.worker.lane import move
from connect_core.sdk.digest import LinesDigest
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import limit, range_of
from connect_core.sdk.values import OPEN_END, OpenRange, Position, Range, SourceBatch
from connect_core.systems.file.options import FileSinkOptions, FileSourceOptions
from connect_core.systems.file.sink import FileSink
from connect_core.systems.file.source import FileSource
from connect_core.work import Outcome
from tests.unit.replication.memory import lane_of


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{name}.log" for name in "ab"]
    for path in paths:
        path.write_text(f"{path.stem}-0\n")
    return paths


@pytest.fixture
def source(tmp_path: Path) -> FileSource:
    return FileSource(FileSourceOptions(path=str(tmp_path / "?.log")))


def live(source: FileSource, *paths: Path) -> list[Range]:
    known = {Partition(str(path)): None for path in paths}
    return [replace(range_of(part, seen), end=OPEN_END) for part, seen in source.available_offsets(known).items()]


def add(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def followed(source: FileSource, ranges: list[Range], *happenings: Callable[[], object]) -> list[tuple[str, bytes]]:
    """What comes; behind each batch the next thing happens. Raises what a range cannot be followed for."""
    left, seen = list(happenings), []
    for wanted, batch in source.follow(ranges, limit(), idle_timeout_s=0.3):
        name = Path(wanted.partition.key).stem
        if isinstance(batch, Failure):
            raise batch.as_error()
        seen += [(name, value) for value in batch.records.column("value").to_pylist()]
        if left:
            left.pop(0)()
    return seen


def test_several_files_are_followed_at_once(source: FileSource, logs: list[Path]) -> None:
    a, b = logs
    happenings = [lambda: None, lambda: add(b, "b-1\n"), lambda: add(a, "a-1\na-2\n"), lambda: add(b, "b-2\n")]
    assert followed(source, live(source, a, b), *happenings) == [
        ("a", b"a-0"),
        ("b", b"b-0"),
        ("b", b"b-1"),
        ("a", b"a-1"),
        ("a", b"a-2"),
        ("b", b"b-2"),
    ]


def test_a_line_is_waited_for_until_it_is_whole(source: FileSource, logs: list[Path]) -> None:
    a, _ = logs
    ranges = live(source, a)
    assert followed(source, ranges, lambda: add(a, "half")) == [("a", b"a-0")]
    add(a, " and half\n")
    assert followed(source, ranges) == [("a", b"a-0"), ("a", b"half and half")]


@pytest.mark.parametrize("then", ["nothing", "another"])
def test_a_renamed_file_is_read_to_its_end_and_left(source: FileSource, logs: list[Path], then: str) -> None:
    """What is there behind it is the next plan's to find."""
    a, b = logs

    def renamed() -> None:
        add(a, "a-1\n")
        a.rename(a.with_suffix(".1"))
        if then == "another":
            a.write_text("new\n")

    endless = [lambda: add(b, "b\n")] * 1000
    seen = followed(source, live(source, a, b), renamed, *endless)
    assert [value for name, value in seen if name == "a"] == [b"a-0", b"a-1"]
    assert len(seen) < 900


@pytest.mark.parametrize("then", ["nothing", "another"])
@pytest.mark.parametrize("unread", [False, True])
def test_a_file_that_goes_behind_its_plan_is_left_to_the_next_one(
    source: FileSource, logs: list[Path], unread: bool, then: str
) -> None:
    """As long as the plan saw nothing in it that is not read: else it is said at once, and kept, that it is gone."""
    a, _ = logs
    partition = Partition(str(a))
    read = range_of(partition, source.available_offsets({partition: None})[partition])
    list(source.read(read, limit()))
    position = Position(0, read.end, source.evidence(read, read.end))
    if unread:
        add(a, "a-1\n")
    seen = source.available_offsets({partition: position})[partition]
    if then == "another":
        new = a.with_suffix(".new")
        new.write_text("new\n")
        new.rename(a)
    else:
        a.unlink()
    wanted = replace(range_of(partition, seen), end=OPEN_END)
    with pytest.raises(Retriable, match="no longer the one that was planned") if unread else nullcontext():
        assert followed(source, [wanted]) == []
    loses = [gap.loses for gap in source.available_offsets({partition: position})[partition].gaps]
    assert loses == [unread or then == "another"]


def test_a_file_cut_while_it_is_followed_is_not_trusted(source: FileSource, logs: list[Path]) -> None:
    a, _ = logs
    with pytest.raises(Retriable, match="cut or written over"):
        followed(source, live(source, a), lambda: a.write_text(""))


def test_the_other_files_are_followed_on(source: FileSource, logs: list[Path]) -> None:
    a, b = logs
    came = list[tuple[str, object]]()
    for wanted, batch in source.follow(live(source, a, b), limit(), idle_timeout_s=0.5):
        name = Path(wanted.partition.key).stem
        came.append((name, batch.kind if isinstance(batch, Failure) else batch.records.num_rows))
        if came[-1] == ("b", 1) and len(came) == 2:
            a.write_text("")
        if came[-1] == ("a", "Retriable"):
            add(b, "more\nlines\n")
    assert came == [("a", 1), ("b", 1), ("a", "Retriable"), ("b", 2)]


def test_a_part_that_ends_and_a_renamed_file_do_not_grow(tmp_path: Path, logs: list[Path]) -> None:
    a, _ = logs
    add(a, "more\n" * 10)
    source = FileSource(FileSourceOptions(path=str(a), parallel=True, sub_partition_bytes=20))
    parts = source.partitions([])
    assert [seen.grows for seen in source.available_offsets(dict.fromkeys(parts)).values()] == [False, False, True]
    whole = FileSource(FileSourceOptions(path=str(a), rotation_quiet_s=60))
    partition = Partition(str(a))
    seen = whole.available_offsets({partition: None})[partition]
    assert seen.grows
    a.rename(a.with_suffix(".1"))
    assert not whole.available_offsets({partition: Position(0, 0, seen.evidence)})[partition].grows


def test_a_missing_file_does_not_grow(tmp_path: Path) -> None:
    path = str(tmp_path / "none.log")
    source = FileSource(FileSourceOptions(path=path))
    assert not source.available_offsets({Partition(path): None})[Partition(path)].grows


# --------------------------------------------------------------------------------------------- into one file


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.txt"


def moved(source: FileSource, sink: FileSink, out: Path, ranges: list[Range]) -> list[Outcome]:
    target = sink.targets(0, [], {}).pins
    items = []
    for number, wanted in enumerate(ranges, 1):
        pinned = replace(wanted, pins=replace(wanted.pins, target=target))
        items.append(OpenRange(number, pinned, sink.floors(pinned, [])))
    return move(replace(lane_of(*items), idle_timeout_s=0.3), source, sink)


class Feeding(FileSource):
    """Lines come into both files in turn while it is followed."""

    logs: list[Path]
    rounds = 5

    def follow(self, *given):  # type: ignore[no-untyped-def]
        fed = 0
        for wanted, batch in super().follow(*given):
            yield wanted, batch
            if fed < self.rounds * 2:
                add(self.logs[fed % 2], f"{self.logs[fed % 2].stem}-{fed}\n")
                fed += 1


def test_live_ranges_take_turns_in_one_file(tmp_path: Path, logs: list[Path], out: Path) -> None:
    source = Feeding(FileSourceOptions(path=str(tmp_path / "?.log")))
    source.logs = logs
    outcomes = moved(source, FileSink(FileSinkOptions(path=str(out))), out, live(source, *logs))
    receipts = [outcome.receipt for outcome in outcomes]
    lines = out.read_bytes().splitlines()
    assert len(lines) == 12
    assert sorted(lines) == sorted(line for path in logs for line in path.read_bytes().splitlines())
    for path, receipt in zip(logs, receipts, strict=True):
        assert receipt is not None
        mine = [line for line in lines if line.startswith(path.stem.encode())]
        assert mine == path.read_bytes().splitlines()
        digest = LinesDigest()
        digest.add_lines(mine)
        assert (receipt.digest_sent, receipt.delivered, receipt.end) == (digest.text(), 6, path.stat().st_size)
        [(begin, end)] = receipt.where[str(out)]
        assert begin < end <= out.stat().st_size
        assert [(begin, floor.position) for begin, floor in receipt.floors] == [(0, out.stat().st_size)]


def test_they_stand_or_fall_together(tmp_path: Path, logs: list[Path], out: Path) -> None:
    """The file's settled length covers the lines of all of them: none has a receipt when one cannot have it."""
    source = Feeding(FileSourceOptions(path=str(tmp_path / "?.log")))
    source.logs = logs
    evidence = source.evidence

    def failing(wanted: Range, end: int) -> dict[str, object]:
        if wanted.partition.key == str(logs[1]):
            raise Retriable("the file went away")
        return evidence(wanted, end)

    source.evidence = failing  # type: ignore[method-assign]
    outcomes = moved(source, FileSink(FileSinkOptions(path=str(out))), out, live(source, *logs))
    assert [(outcome.receipt, outcome.clean) for outcome in outcomes] == [(None, False)] * 2
    assert all(outcome.failure for outcome in outcomes)


def test_one_into_which_nothing_came_has_neither_receipt_nor_failure(
    source: FileSource, logs: list[Path], out: Path
) -> None:
    logs[1].write_text("")
    first, second = moved(source, FileSink(FileSinkOptions(path=str(out))), out, live(source, *logs))
    assert first.receipt is not None
    assert (second.receipt, second.failure, second.clean) == (None, None, True)


def test_thousands_of_files_are_followed_with_few_descriptors(tmp_path: Path) -> None:
    """What comes into any of them is read, also into one that was renamed while it was not open: by the next plan."""
    paths = [tmp_path / f"{number:04}.log" for number in range(1_100)]
    for path in paths:
        add(path, f"{path.stem} begun\n")
    source = FileSource(FileSourceOptions(path=str(tmp_path / "*.log"), rotation_quiet_s=0))
    ranges = live(source, *paths)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = max(int(name) for name in os.listdir("/proc/self/fd"))  # by tests before this one as well
    resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + 400, hard))
    try:
        seen: dict[str, list[bytes]] = {}
        for wanted, batch in source.follow(ranges, limit(), idle_timeout_s=1.0):
            assert isinstance(batch, SourceBatch)
            values = seen.setdefault(Path(wanted.partition.key).stem, [])
            values += batch.records.column("value").to_pylist()
            if len(seen) == len(paths) and len(values) == 1 and Path(wanted.partition.key) == paths[-1]:
                for path in paths[::100]:
                    add(path, f"{path.stem} more\n")
            if len(values) == 2 and Path(wanted.partition.key) == paths[1_000]:
                paths[3].rename(paths[3].with_suffix(".old"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    more = {path.stem for path in paths[::100]}
    assert seen == {
        path.stem: [b"%s begun" % path.stem.encode(), *([b"%s more" % path.stem.encode()] if path.stem in more else [])]
        for path in paths
    }
