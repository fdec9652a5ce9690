"""Where a backfill may begin and end in a file: never in the middle of a line, whatever became of the file's name."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from connect_core.errors import ConfigError, Retriable
from connect_core.sdk.records import Partition
from connect_core.sdk.values import Position
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.source import FileSource

DATA = b"one\ntwo\r\n\nthree\nlast without end"
BEGINS = [0, 4, 9, 10, 16]


def opened(path: Path | str, **options: object) -> FileSource:
    return FileSource(FileSourceOptions.model_validate({"path": str(path), "rotation_quiet_s": 0, **options}))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "app.log"
    path.write_bytes(DATA)
    return path


def test_every_place_moves_on_to_where_a_line_begins(log: Path) -> None:
    source, partition = opened(log), Partition(str(log))
    seen = source.available_offsets({partition: None})[partition]
    assert seen.end == 16
    for offset in range(seen.end + 1):
        assert source.align_offset(partition, seen, offset) == min(begin for begin in BEGINS if begin >= offset)


def test_lines_are_those_of_the_file_that_is_read_under_whatever_name(log: Path) -> None:
    source, partition = opened(log), Partition(str(log))
    first = source.available_offsets({partition: None})[partition]
    log.rename(log.with_name("app.log.1"))
    log.write_bytes(b"another file, one long line\n")
    position = Position(0, 4, source.available_offsets({partition: Position(0, 4, first.evidence)})[partition].evidence)
    seen = opened(log).available_offsets({partition: position})[partition]
    assert source.align_offset(partition, seen, 5) == 9
    os.unlink(log.with_name("app.log.1"))
    with pytest.raises(Retriable, match="no longer the one that was planned"):
        source.align_offset(partition, seen, 5)


def test_parts_of_a_file_begin_where_they_were_cut(tmp_path: Path) -> None:
    log = tmp_path / "large.log"
    log.write_bytes(b"".join(b"line %03d\n" % number for number in range(100)))
    source = opened(log, parallel=True, sub_partition_bytes=300)
    partitions = source.partitions([])
    assert len(partitions) == 3
    for partition, seen in source.available_offsets(dict.fromkeys(partitions)).items():
        assert source.align_offset(partition, seen, seen.oldest) == seen.oldest
        assert source.align_offset(partition, seen, seen.oldest + 1) == seen.oldest + 9
        assert source.align_offset(partition, seen, seen.end) == seen.end


def test_a_file_knows_no_times(log: Path) -> None:
    with pytest.raises(ConfigError, match=r"does not say when its lines were written.*--range"):
        opened(log).offsets_for_time([Partition(str(log))], datetime.now(UTC))
