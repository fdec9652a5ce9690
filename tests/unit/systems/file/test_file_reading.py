"""Lines out of files: line ends, empty and long lines, limits, and changes while reading."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.errors import Retriable, Unreachable
from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.sdk.values import Position, Range, SourceBatch
from connect_core.systems.file import reading
from connect_core.systems.file.line_rules import LineRules
from connect_core.systems.file.lines import line_batch, line_feeds
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.source import FileSource


def source(path: Path | str, **options: object) -> FileSource:
    return FileSource(FileSourceOptions.model_validate({"path": str(path), "rotation_quiet_s": 0, **options}))


def planned(path: Path, **limits: int) -> tuple[FileSource, Range]:
    files = source(path)
    (partition,) = files.partitions([])
    return files, range_of(partition, files.available_offsets({partition: None})[partition], **limits)


def read(path: Path, **limits: int) -> list[SourceBatch]:
    files, wanted = planned(path, **limits)
    return list(files.read(wanted, limit()))


def values(batches: list[SourceBatch]) -> list[bytes]:
    return [value for batch in batches for value in batch.records.column("value").to_pylist()]


def offsets(batches: list[SourceBatch]) -> list[int]:
    return [offset for batch in batches for offset in batch.records.column("offset").to_pylist()]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "app.log"


@pytest.mark.parametrize(
    ("content", "lines", "begins"),
    [
        (b"a\nbc\n", [b"a", b"bc"], [0, 2]),
        (b"a\r\nb\r\n", [b"a", b"b"], [0, 3]),
        (b"\n\r\n\n", [b"", b"", b""], [0, 1, 3]),
        (b"a\r\r\n\rb\n", [b"a\r", b"\rb"], [0, 4]),
        (b"\xff\xfe\n\xc3\n", [b"\xff\xfe", b"\xc3"], [0, 3]),
        (b"whole\nnot yet", [b"whole"], [0]),
    ],
)
def test_lines_and_their_offsets(log: Path, content: bytes, lines: list[bytes], begins: list[int]) -> None:
    log.write_bytes(content)
    batches = read(log)
    assert values(batches) == lines
    assert offsets(batches) == begins
    assert batches[-1].next_offset == content.rindex(b"\n") + 1
    assert batches[0].records.schema == RECORD_SCHEMA


@pytest.mark.parametrize(
    ("data", "expected"), [(b"a\r\nbc\r", [b"a", b"bc\r"]), (b"bc\r", [b"bc\r"]), (b"\r\n\r", [b"", b"\r"])]
)
def test_a_carriage_return_that_no_line_feed_follows_is_part_of_the_last_line(
    log: Path, data: bytes, expected: list[bytes]
) -> None:
    """Of a file that was renamed and left alone."""
    log.write_bytes(b"first\n")
    follower = Follower(source(log))
    assert follower.run() == [b"first"]
    with log.open("ab") as file:
        file.write(data)
    log.rename(f"{log}.1")
    assert follower.run() == expected


@given(st.lists(st.binary(max_size=6).filter(lambda b: b"\n" not in b and not b.endswith(b"\r")), min_size=1))
def test_every_line_comes_back(lines: list[bytes]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    batch = line_batch(data, line_feeds(data), 100, LineRules(10))
    assert batch.records.column("value").to_pylist() == lines
    assert batch.next_offset == 100 + len(data)
    begins = [100 + sum(len(line) + 1 for line in lines[:row]) for row in range(len(lines))]
    assert batch.records.column("offset").to_pylist() == begins


def test_large_ranges_come_in_bounded_batches(log: Path) -> None:
    lines = [b"%07d" % number for number in range(400_000)]
    log.write_bytes(b"\n".join(lines) + b"\n")
    batches = read(log)
    assert values(batches) == lines
    assert max(len(batch.records) for batch in batches) <= reading.MAX_ROWS
    assert max(batch.records.column("value").nbytes for batch in batches) <= 2 * reading.CHUNK_BYTES


def test_lines_longer_than_a_chunk_are_read(log: Path) -> None:
    long = b"y" * (reading.CHUNK_BYTES + 17)
    log.write_bytes(b"a\n" + long + b"\nb\n")
    assert values(read(log)) == [b"a", long, b"b"]


@pytest.mark.parametrize("length", [11, 70_000, reading.CHUNK_BYTES + 1])
def test_lines_that_are_too_long_are_rejected(log: Path, length: int) -> None:
    log.write_bytes(b"a" * 10 + b"\n" + b"x" * length + b"\nb\n")
    follower = Follower(source(log, max_line_bytes=10))
    assert follower.run() == [b"a" * 10, b"b"]
    (reject,) = follower.rejects
    assert (reject.offset, reject.stage, reject.kind) == (11, "read", "LineTooLong")
    assert reject.original == b"x" * min(length, 64 * 1024)


def test_a_carriage_return_does_not_count_towards_the_longest_line(log: Path) -> None:
    exact = b"x" * (reading.CHUNK_BYTES + 5)
    log.write_bytes(exact + b"\r\n")
    assert Follower(source(log, max_line_bytes=len(exact))).run() == [exact]


def test_a_range_holds_no_more_records_than_wanted(log: Path) -> None:
    log.write_bytes(b"a\nb\nc\n")
    batches = read(log, max_records=2)
    assert values(batches) == [b"a", b"b"]
    assert batches[-1].next_offset == 4


def test_a_range_holds_no_more_bytes_than_wanted_but_always_one_line(log: Path) -> None:
    log.write_bytes(b"aaaa\nbb\nc\n")
    assert values(read(log, max_bytes=8)) == [b"aaaa", b"bb"]
    assert values(read(log, max_bytes=7)) == [b"aaaa"]
    assert values(read(log, max_bytes=1)) == [b"aaaa"]


def test_small_ranges_cover_the_file_exactly(log: Path) -> None:
    lines = [b"x" * (number % 7) for number in range(50)]
    log.write_bytes(b"\n".join(lines) + b"\n")
    assert Follower(source(log), max_records=3, max_bytes=9).run() == lines


def test_reading_stops_with_the_quantum(log: Path) -> None:
    log.write_bytes(b"a\n" * 30_000)
    files, wanted = planned(log)
    assert list(files.read(wanted, limit(quantum_s=-1))) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda path: os.truncate(path, 10),
        lambda path: path.write_bytes(b"other content\n" * 100_000),
    ],
    ids=["cut", "cut and grown past"],
)
def test_a_file_that_changes_while_it_is_read_is_not_trusted(log: Path, change: Callable[[Path], None]) -> None:
    log.write_bytes(b"line of text\n" * 100_000)
    files, wanted = planned(log)
    batches = files.read(wanted, limit())
    next(batches)
    change(log)
    with pytest.raises(Retriable, match="cut or written over"):
        list(batches)


def test_a_file_that_was_replaced_after_the_plan_is_not_read(log: Path) -> None:
    log.write_bytes(b"one\n")
    files, wanted = planned(log)
    log.unlink()
    log.write_bytes(b"two\n")
    with pytest.raises(Retriable, match="no longer the one that was planned"):
        list(files.read(wanted, limit()))


def test_a_file_renamed_after_the_plan_is_read_where_it_is(log: Path) -> None:
    log.write_bytes(b"one\n")
    files, wanted = planned(log)
    log.rename(log.with_suffix(".1"))
    assert values(list(files.read(wanted, limit()))) == [b"one"]
    assert files.evidence(wanted, 4)["path"] == str(log.with_suffix(".1"))


def test_patterns_find_files_and_pass_over_folders(tmp_path: Path) -> None:
    for name in ("b.log", "a.log", "c.txt"):
        (tmp_path / name).write_bytes(b"x\n")
    (tmp_path / "d.log").mkdir()
    (tmp_path / "link.log").symlink_to(tmp_path / "a.log")
    assert [p.key for p in source(tmp_path / "*.log").partitions([])] == [
        str(tmp_path / "a.log"),
        str(tmp_path / "b.log"),
    ]


def test_known_partitions_stay_in_front(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"x\n")
    gone = Partition(str(tmp_path / "z.log"))
    assert source(tmp_path / "*.log").partitions([gone]) == [gone, Partition(str(tmp_path / "a.log"))]


def test_a_symbolic_link_is_followed(tmp_path: Path, log: Path) -> None:
    log.write_bytes(b"x\n")
    (tmp_path / "current").symlink_to(log)
    assert Follower(source(tmp_path / "current")).run() == [b"x"]


def test_a_file_that_is_not_there_yet_is_waited_for(log: Path) -> None:
    follower = Follower(source(log))
    assert follower.run() == []
    log.write_bytes(b"x\n")
    assert follower.run() == [b"x"]
    assert follower.gaps == []


@pytest.mark.parametrize("parallel", [False, True])
def test_what_is_no_file_is_refused_by_name_and_stops_no_other(tmp_path: Path, parallel: bool) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket.log"))
        (tmp_path / "folder.log").mkdir()
        (tmp_path / "nowhere.log").symlink_to("is-not-there")
        (tmp_path / "itself.log").symlink_to("itself.log")
        (tmp_path / "app.log").write_bytes(b"one\n")
        files = source(tmp_path / "*.log", parallel=parallel)
        seen = {
            one.key.split("/")[-1]: at
            for one, at in files.available_offsets(dict.fromkeys(files.partitions([]))).items()
        }
    kinds = {name.partition("#")[0]: at.failure.kind if at.failure else "" for name, at in seen.items()}
    assert kinds == {"app.log": "", "pipe.log": "ConfigError", "socket.log": "Unreachable"}
    assert sum(at.end - at.begin for at in seen.values()) == len(b"one\n")


@pytest.mark.parametrize("parallel", [False, True])
def test_a_file_whose_name_is_not_text_is_refused_by_name_and_stops_no_other(tmp_path: Path, parallel: bool) -> None:
    bad = Path(os.fsdecode(os.fsencode(tmp_path) + b"/m\xfcller.log"))
    bad.write_bytes(b"of m\n")
    (tmp_path / "app.log").write_bytes(b"one\n")
    follower = Follower(source(tmp_path / "*.log", parallel=parallel))
    refused = follower.source.available_offsets(dict.fromkeys(follower.source.partitions([])))
    failure = refused[Partition(f"{tmp_path}/m\\xfcller.log")].failure
    assert failure is not None
    assert (failure.kind, failure.what) == ("ConfigError", "The file's name is not UTF-8")
    assert sum(seen.end - seen.begin for seen in refused.values()) == len(b"one\n")
    bad.rename(tmp_path / "mueller.log")
    assert sorted(follower.run()) == [b"of m", b"one"]


def test_a_log_that_was_renamed_to_what_is_no_text_is_a_gap(tmp_path: Path, log: Path) -> None:
    log.write_bytes(b"one\n")
    follower = Follower(source(log))
    assert follower.run() == [b"one"]
    with log.open("ab") as file:
        file.write(b"two\n")
    log.rename(os.fsdecode(os.fsencode(tmp_path) + b"/app.log-\xfc"))
    log.write_bytes(b"three\n")
    follower.run()
    assert [(gap.begin, gap.end) for gap in follower.gaps] == [(4, None)]


def test_an_unreadable_file_is_told_by_name(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write_bytes(b"x\n")

    def refuse(path: str, *args: object) -> int:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "open", refuse)  # the tests may run as root, whom no permission stops
    with pytest.raises(Unreachable, match=r"app\.log"):
        Follower(source(log)).run()


HEAD = b"# the same beginning %s\n" % (b"-" * 1500)


@pytest.mark.parametrize("now", [b"old\n", b"new\nand longer than before\n"], ids=["cut", "regrown"])
def test_a_range_is_only_read_from_what_was_planned(log: Path, now: bytes) -> None:
    """Another attempt of it comes later: a file written over in between is not taken for the one that was planned,
    although it begins alike and nothing of it was settled yet."""
    log.write_bytes(HEAD + b"old\nplanned\n")
    files, wanted = planned(log)
    log.write_bytes(HEAD + now)
    with pytest.raises(Retriable, match="no longer the one that was planned"):
        list(files.read(wanted, limit()))
    position = Position(wanted.incarnation, wanted.begin, wanted.evidence)
    (seen,) = files.available_offsets({wanted.partition: position}).values()
    assert (seen.incarnation, seen.begin, seen.gaps[0].end) == (1, 0, None)


def test_a_planned_range_is_read_although_the_file_has_grown(log: Path) -> None:
    log.write_bytes(HEAD + b"planned\n")
    files, wanted = planned(log)
    log.write_bytes(HEAD + b"planned\nmore\n")
    assert values(list(files.read(wanted, limit()))) == [HEAD[:-1], b"planned"]
