"""Files that hold no lines are refused by name, one by one; what ends a line is the document's to say."""

from __future__ import annotations

import gzip
import lzma
from dataclasses import replace
from pathlib import Path

import pytest

from connect_core.errors import ContentRefused, Failure
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.sdk.values import OPEN_END, SourceBatch
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.source import FileSource

LINES = b"".join(b"line %d of many\n" % number for number in range(600))

REFUSED = {
    "xz": lzma.compress(LINES),
    "zip": b"PK\x03\x04 and so on\n",
    "compress": b"\x1f\x9d\x90\n",
    "NUL": b"text\n" * 100 + b"\0\n",
    "gzip within gzip": gzip.compress(gzip.compress(LINES)),
}


def source(path: Path, **options: object) -> FileSource:
    return FileSource(FileSourceOptions.model_validate({"path": str(path), "rotation_quiet_s": 0, **options}))


@pytest.mark.parametrize("kind", REFUSED)
def test_what_has_no_lines_is_refused_and_the_other_files_are_read(tmp_path: Path, kind: str) -> None:
    bad, good = tmp_path / "bad.log", tmp_path / "good.log"
    bad.write_bytes(REFUSED[kind])
    good.write_bytes(b"one\n")
    files = source(tmp_path / "*.log")
    bounds = files.available_offsets(dict.fromkeys(files.partitions([])))
    refused = bounds[Partition(str(bad))].failure
    assert refused is not None
    assert (refused.kind, refused.where) == ("ContentRefused", str(bad))
    assert kind.split()[0] in refused.what
    assert "binary: true" in refused.next_step
    read = files.read(range_of(Partition(str(good)), bounds[Partition(str(good))]), limit())
    assert [value for batch in read for value in batch.records.column("value").to_pylist()] == [b"one"]


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"line\n" * 100 + b"\0" * 3596, True),
        (b"line\n" * 100 + b"cut of" + b"\0" * 3590 + b"again\n" * 50, True),
        (b"line\n" * 100 + b"\0" * 20_000, True),
        (b"line\n\0\0\n" * 100, False),
        (b"line\n" + b"\0" * 8, False),
        (b"\x7fELF\x02\x01\n" + b"\0" * 100, False),
        (b"\0" * 4096, False),
    ],
)
def test_a_log_that_a_crash_has_padded_is_named_with_what_to_do(tmp_path: Path, content: bytes, named: bool) -> None:
    """Blocks that were given to it and never written are read as NULs, at its end or between lines."""
    path = tmp_path / "a.log"
    path.write_bytes(content)
    seen = source(path).available_offsets({Partition(str(path)): None})[Partition(str(path))]
    assert seen.failure is not None
    assert seen.failure.kind == "ContentRefused"
    assert (f"padded with NUL bytes from byte {content.index(0)} on" in seen.failure.what) == named
    assert ("tr -d" in seen.failure.next_step) == named
    assert (
        source(path, binary=True).available_offsets({Partition(str(path)): None})[Partition(str(path))].failure is None
    )


@pytest.mark.parametrize("kind", ["xz", "NUL"])
def test_any_bytes_are_read_where_that_is_asked_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "some.bin"
    path.write_bytes(REFUSED[kind] + b"\n")
    read = Follower(source(path, binary=True, line_end="lf")).run()
    assert b"".join(line + b"\n" for line in read) == REFUSED[kind] + b"\n"


@pytest.mark.parametrize(
    "text", [b"BZh9 is how it begins\n", b"PK\n", "größer\n".encode("latin-1"), b"\n" * 9000 + b"\0\n"]
)
def test_text_is_not_taken_for_something_else(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "some.log"
    path.write_bytes(text)
    assert b"".join(line + b"\n" for line in Follower(source(path)).run()) == text


def test_what_came_since_the_plan_is_refused_by_who_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(b"x\n" * 1000)
    files, partition = source(path), Partition(str(path))
    wanted = range_of(partition, files.available_offsets({partition: None})[partition])
    wanted = replace(wanted, evidence={})
    path.write_bytes(REFUSED["xz"] * 10)
    with pytest.raises(ContentRefused, match="xz"):
        list(files.read(wanted, limit()))


def test_what_comes_into_a_followed_file_is_looked_at_too(tmp_path: Path) -> None:
    """It is told of as that file's failure, and the others are followed on."""
    bad, good = tmp_path / "bad.log", tmp_path / "good.log"
    for path in (bad, good):
        path.write_bytes(b"")
    files = source(tmp_path / "*.log")
    bounds = files.available_offsets(dict.fromkeys(files.partitions([])))
    ranges = [range_of(partition, seen) for partition, seen in bounds.items()]
    live = [replace(one, end=OPEN_END) for one in ranges]
    bad.write_bytes(REFUSED["xz"])
    good.write_bytes(b"one\n")
    came = {one.partition.key: batch for one, batch in files.follow(live, limit(), idle_timeout_s=0.3)}
    assert isinstance(came[str(bad)], Failure)
    assert isinstance(came[str(good)], SourceBatch)


@pytest.mark.parametrize(("line_end", "lines"), [("any", [b"a", b"b\r\r", b""]), ("lf", [b"a\r", b"b\r\r\r", b"\r"])])
def test_a_carriage_return_belongs_to_the_line_end_unless_told(
    tmp_path: Path, line_end: str, lines: list[bytes]
) -> None:
    path = tmp_path / "dos.txt"
    path.write_bytes(b"a\r\nb\r\r\r\n\r\n")
    assert Follower(source(path, line_end=line_end)).run() == lines
