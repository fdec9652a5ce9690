"""A log that is compressed after it was read, or while it is, stays the log that it was."""

from __future__ import annotations

import bz2
import gzip
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import lz4.frame
import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.rotation import PERHAPS_READ
from connect_core.systems.file.source import FileSource

KINDS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
    ".bz2": bz2.compress,
    ".lz4": lz4.frame.compress,
}
LINES = [b"line %d of many" % number for number in range(5_000)]
TEXT = b"".join(line + b"\n" for line in LINES)


def source(path: Path | str, **options: object) -> FileSource:
    return FileSource(FileSourceOptions.model_validate({"path": str(path), "rotation_quiet_s": 0, **options}))


def compress(log: Path, to: str | None = None, *, keeps: bool = False) -> Path:
    """As the commands do it: the file bears the times of the log, which is removed then."""
    ending = Path(to).suffix if to else ".gz"
    made = log.with_name(to) if to else Path(f"{log}.gz")
    made.write_bytes(KINDS[ending](log.read_bytes()))
    shutil.copystat(log, made)
    if not keeps:
        log.unlink()
    return made


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "app.log"
    path.write_bytes(TEXT)
    return path


@pytest.mark.parametrize("pattern", ["app.log", "app.log*", "*"])
@pytest.mark.parametrize(
    "name", ["app.log.1.gz", "app.log.2.gz", "app.log-20261127.zst", "app.log.1.bz2", "app-1.log.lz4"]
)
@pytest.mark.parametrize("read", [1, 2_000, 5_000])
def test_a_log_that_is_compressed_goes_on_where_it_was_left(log: Path, pattern: str, name: str, read: int) -> None:
    """Before all of it was read, and with lines that came in between; a new log is at its path."""
    files = Follower(source(log.with_name(pattern)), max_records=read)
    files.positions = {Partition(str(log)): None}
    lines = files.step()
    assert len(lines) == read
    with log.open("ab") as file:
        file.write(b"late\n")
    old = log.rename(log.with_name(name).with_suffix(""))
    log.write_bytes(b"new\n")
    files.max_records = 10**6
    for compressed in (False, True, True):
        if compressed and old.exists():
            compress(old, name)
        files.source = source(log.with_name(pattern))
        lines += files.run() if compressed else []
    assert lines == [*LINES, b"late", b"new"]
    assert [gap.reason for gap in files.gaps] == []


@pytest.mark.parametrize("keeps", [True, False])
def test_a_log_that_was_read_is_not_read_again_when_it_is_compressed(log: Path, keeps: bool) -> None:
    """Nor when it is rotated on under that name, nor while both are there."""
    files = Follower(source(f"{log}*"))
    lines = files.run()
    old = log.rename(f"{log}.1")
    log.write_bytes(b"new\n")
    lines += files.run()
    made = compress(old, "app.log.1.gz", keeps=keeps)
    assert files.run() == []
    old.unlink(missing_ok=True)
    log.write_bytes(b"new\nnewer\n")
    assert files.run() == [b"newer"]
    for number in range(2, 15):
        made = made.rename(log.with_name(f"app.log.{number}.gz"))
        log.rename(f"{log}.1")
        log.write_bytes(b"log %d\n" % number)
        files.source = source(f"{log}*")
        assert files.run() == [b"log %d" % number]
        log.with_name("app.log.1").unlink()
    assert lines == [*LINES, b"new"]
    assert [gap for gap in files.gaps if gap.loses] == []


def test_a_range_that_is_open_is_read_from_the_compressed_file(log: Path) -> None:
    """Its records keep the name of the file that they were in: who looks for them in the target finds them."""
    files, partition = source(log), Partition(str(log))
    wanted = range_of(partition, files.available_offsets({partition: None})[partition])
    compress(log.rename(f"{log}.1"))
    log.write_bytes(b"new\n")
    values = [value for batch in files.read(wanted, limit()) for value in batch.records.column("value").to_pylist()]
    assert values == LINES
    after = files.evidence(wanted, wanted.end)
    assert after["origin"] == wanted.origin != ""
    assert after["path"] == f"{log}.1.gz"


def test_a_file_that_is_compressed_while_its_range_is_read_is_read_on(log: Path) -> None:
    log.write_bytes(TEXT * 100)
    files, partition = source(log), Partition(str(log))
    wanted = range_of(partition, files.available_offsets({partition: None})[partition])
    values = []
    for batch in files.read(wanted, limit()):
        values += batch.records.column("value").to_pylist()
        if log.exists():
            compress(log)
    assert values == LINES * 100


def test_while_a_log_is_being_compressed_the_new_file_is_not_begun(log: Path) -> None:
    """However much of it is there."""
    log.write_bytes(b"".join(os.urandom(20).hex().encode() + b"\n" for _ in range(20_000)))
    files = Follower(source(f"{log}*"))
    read = files.run()
    old = log.rename(f"{log}.1")
    made = compress(old, "app.log.1.gz", keeps=True)
    whole = made.read_bytes()
    for share in (0, 5, 1_000, len(whole) // 2, len(whole) - 1, len(whole)):
        made.write_bytes(whole[:share])
        files.source = source(f"{log}*")
        assert files.run() == []
    old.unlink()
    assert files.run() == []
    assert len(read) == 20_000


def test_logs_that_were_compressed_before_they_were_read_come_next(log: Path) -> None:
    """Of a pattern that names the log alone: several rotations between two looks."""
    files = Follower(source(log))
    files.run()
    for name in ("second", "third", "fourth"):
        for number in (3, 2):
            old = log.with_name(f"app.log.{number}.gz")
            if old.exists():
                old.rename(log.with_name(f"app.log.{number + 1}.gz"))
        if log.with_name("app.log.1").exists():
            compress(log.with_name("app.log.1"), "app.log.2.gz")
        log.rename(f"{log}.1")
        log.write_bytes(name.encode() + b"\n")
    assert files.run() == [b"second", b"third", b"fourth"]
    assert [gap.reason for gap in files.gaps] == []


@pytest.mark.parametrize("gone", [True, False])
@pytest.mark.parametrize(("first", "second"), [("a.csv", "b.csv.gz"), ("day-1.csv", "day-2.csv.gz")])
def test_equal_files_of_others_are_read(tmp_path: Path, first: str, second: str, gone: bool) -> None:
    """Exports without rows, of which the next one comes compressed."""
    (tmp_path / first).write_bytes(b"id,name\n")
    files = Follower(source(tmp_path / "*"))
    assert files.run() == [b"id,name"]
    later = tmp_path / second
    later.write_bytes(gzip.compress(b"id,name\n"))
    os.utime(later, (0, (tmp_path / first).stat().st_mtime + 3600))
    if gone:
        (tmp_path / first).unlink()
    assert files.run() == [b"id,name"]


def rotated(log: Path, to: str, written_s: float, *, times: bool = True) -> Path:
    """Compressed; its last write was at `written_s`, and it says so where the command keeps times."""
    os.utime(log, (0, written_s))
    made = compress(log.rename(f"{log}.1"), to)
    os.utime(made, (0, written_s if times else written_s + 500))
    return made


@pytest.mark.parametrize("pattern", ["app.log", "app.log*"])
@pytest.mark.parametrize("times", [True, False])
@pytest.mark.parametrize("lines", [1, 500])
def test_logs_that_begin_alike_are_read_in_the_order_of_their_age(
    tmp_path: Path, pattern: str, times: bool, lines: int
) -> None:
    """Of the first one a run has seen the beginning alone: by that each of them may be it."""
    log, now = tmp_path / "app.log", time.time()
    banner = b"".join(b"# banner %d\n" % number for number in range(lines))
    log.write_bytes(banner)
    files = Follower(source(tmp_path / pattern))
    assert files.run() == banner.splitlines()
    with log.open("ab") as file:
        file.write(b"first\n")
    rotated(log, "app.log.3.gz", now + 100, times=times)
    for number, name in ((2, b"second\n"), (1, b"third\n")):
        log.write_bytes(banner + name)
        rotated(log, f"app.log.{number}.gz", now + 400 - 100 * number, times=times)
    log.write_bytes(b"new\n")
    read = [line for line in files.run() if line not in banner.splitlines()]
    in_order = [b"first", b"second", b"third", b"new"]
    assert read == in_order if pattern == "app.log" else sorted(read) == sorted(in_order)
    assert files.gaps == []


@pytest.mark.parametrize("pattern", ["app.log", "app.log*"])
@pytest.mark.parametrize("times", [True, False])
@pytest.mark.parametrize("gone", [True, False])
def test_a_log_that_holds_the_same_as_one_that_was_read_is_read_or_asked_about(
    tmp_path: Path, pattern: str, times: bool, gone: bool
) -> None:
    log, now = tmp_path / "app.log", time.time()
    log.write_bytes(b"beat\n" * 1_000)
    os.utime(log, (0, now))
    files = Follower(source(tmp_path / pattern))
    assert len(files.run()) == 1_000
    if gone:
        log.unlink()
    else:
        rotated(log, "app.log.2.gz", now, times=times)
    log.write_bytes(b"beat\n" * 1_000)
    rotated(log, "app.log.1.gz", now + 100, times=times)
    log.write_bytes(b"beat\n" * 10)
    read = files.run()
    assert len(read) == 1_010 or any(gap.end is None for gap in files.gaps)


OPERATIONS = st.lists(
    st.sampled_from(["write", "write", "rotate", "compress", "read", "read few", "new process"]),
    max_size=40,
)


ENDINGS, PATTERNS = st.sampled_from(sorted(KINDS)), st.sampled_from(["app.log", "app.log*"])


@given(operations=OPERATIONS, ending=ENDINGS, pattern=PATTERNS)
def test_whatever_rotation_does_each_line_is_read_once(operations: list[str], ending: str, pattern: str) -> None:
    with TemporaryDirectory() as folder:
        journey = Journey(Path(folder), ending, pattern).through(operations)
        assert sorted(journey.read) == sorted(journey.written)
        assert [gap.reason for gap in journey.files.gaps if gap.loses] == []


@given(operations=OPERATIONS, ending=ENDINGS, pattern=PATTERNS)
@example(["rotate", "write", "rotate", "read few", "read few", "compress", "compress"], ".gz", "app.log*")
@example(["rotate", "write", "read", "rotate", "compress", "rotate", "compress", "compress"], ".gz", "app.log*")
def test_of_equal_lines_none_is_lost_or_repeated_without_a_word(
    operations: list[str], ending: str, pattern: str
) -> None:
    with TemporaryDirectory() as folder:
        journey = Journey(Path(folder), ending, pattern, b"beat").through(operations)
        gaps = (*journey.files.gaps, *journey.files.tell())
        told = any(gap.loses or gap.end is None or gap.reason == PERHAPS_READ for gap in gaps)
        assert told or len(journey.read) == len(journey.written)


class Journey:
    """A log that is written, rotated and compressed, in the order of the operations, and read in between. Its lines are
    numbered; or all are `alike`."""

    def __init__(self, folder: Path, ending: str, pattern: str, alike: bytes = b"") -> None:
        self._ending, self._pattern, self._alike = ending, folder / pattern, alike
        self.log = folder / "app.log"
        self.files = Follower(source(self._pattern))
        self.read: list[bytes | None] = []
        self.written: list[bytes] = []
        self.does("write")
        self.does("read")

    def through(self, operations: Sequence[str]) -> Journey:
        """All of these; then what is left is read, by the same process and by another."""
        for operation in (*operations, "write", "read", "new process", "read"):
            self.does(operation)
        return self

    def does(self, operation: str) -> None:
        word = operation.split()[0]
        getattr(self, "reads" if word == "read" else word)(operation)

    def write(self, how: str) -> None:
        numbers = range(len(self.written), len(self.written) + 3)
        lines = [self._alike or b"line %d" % number for number in numbers]
        with self.log.open("ab") as file:
            file.write(b"".join(line + b"\n" for line in lines))
        self.written += lines

    def rotate(self, how: str) -> None:
        for number in range(30, 0, -1):
            for old in self.log.parent.glob(f"app.log.{number}*"):
                if old.name.removesuffix(self._ending) == f"app.log.{number}":
                    old.rename(old.with_name(old.name.replace(f".{number}", f".{number + 1}", 1)))
        self.log.rename(f"{self.log}.1")
        self.write(how)

    def compress(self, how: str) -> None:
        """The oldest that is not."""
        plain = [path for path in self.log.parent.glob("app.log.*") if path.suffix != self._ending]
        if plain:
            old = max(plain, key=lambda path: int(path.suffix[1:]))
            compress(old, old.name + self._ending)

    def reads(self, how: str) -> None:
        self.files.max_records = 2 if "few" in how else 10**6
        if "few" in how:
            for partition in self.files.source.partitions(list(self.files.positions)):
                self.files.positions.setdefault(partition, None)
            self.read += self.files.step()
        else:
            self.read += self.files.run()

    def new(self, how: str) -> None:
        self.files.source = source(self._pattern)
