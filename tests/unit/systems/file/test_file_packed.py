"""Compressed files are read by line, as if they were not compressed."""

from __future__ import annotations

import bz2
import gzip
import os
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from connect_core.errors import ContentRefused
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.sdk.values import Bounds
from connect_core.systems.file import packed, streams
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.peeking import newest
from connect_core.systems.file.source import FileSource
from connect_core.systems.file.unpacking import INPUT_BYTES, MAGIC, STEP_BYTES, DamagedPacking, Unpacker

LINES = [b"line %d of many" % number for number in range(30_000)]
TEXT = b"".join(line + b"\n" for line in LINES)
KINDS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
    "bzip2": bz2.compress,
    "lz4": lz4.frame.compress,
}


def source(path: Path, **options: object) -> FileSource:
    return FileSource(FileSourceOptions.model_validate({"path": str(path), "rotation_quiet_s": 0, **options}))


def follower(path: Path, **options: object) -> Follower:
    return Follower(source(path, **options))


def bounds(path: Path, **options: object) -> Bounds:
    return source(path, **options).available_offsets({Partition(str(path)): None})[Partition(str(path))]


@pytest.mark.parametrize("kind", KINDS)
def test_the_lines_in_a_compressed_file_are_read(tmp_path: Path, kind: str) -> None:
    """Whatever its name, with several members, and with a last line that has no line feed."""
    compress = KINDS[kind]
    (tmp_path / "a.log").write_bytes(compress(TEXT) + compress(b"") + compress(b"more\nlast"))
    files = follower(tmp_path / "*")
    assert files.run() == [*LINES, b"more", b"last"]
    assert files.run() == []
    files.source = source(tmp_path / "*")
    assert files.run() == []
    (tmp_path / "a.log").unlink()
    assert [gap.reason for gap in files.tell()] == ["ended"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_range_goes_on_where_the_last_one_ended(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the same process and in new ones, with ranges shorter and longer than what is looked at ahead."""
    monkeypatch.setattr(streams, "AHEAD_BYTES", 50_000)
    monkeypatch.setattr(streams, "LEAST_AHEAD_BYTES", 5_000)
    (tmp_path / "a").write_bytes(KINDS[kind](TEXT))
    files = follower(tmp_path / "*", parallel=kind == "lz4")
    files.max_records = 4_001
    files.positions = dict.fromkeys(files.source.partitions([]))
    read = []
    for turn in range(40):
        read += files.step()
        if turn % 3 == 0:
            files.source = source(tmp_path / "*")
    assert read == LINES


def test_the_last_lines_in_a_compressed_file_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(TEXT * 3))
    shown = newest(FileSourceOptions(path=str(path)), 2)
    assert shown.column("value").to_pylist() == LINES[-2:]
    assert shown.column("offset")[1].as_py() == len(TEXT) * 3 - len(LINES[-1]) - 1
    assert path.read_bytes()[-20:-10] in newest(FileSourceOptions(path=str(path), binary=True), 1)["value"][0].as_py()


def test_reading_on_costs_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Driver and worker have a stream each, which goes through the file once."""
    begun = []
    monkeypatch.setattr(streams, "Stream", lambda kind, of=streams.Stream: begun.append(kind) or of(kind))
    monkeypatch.setattr(streams, "AHEAD_BYTES", 50_000)
    (tmp_path / "a").write_bytes(gzip.compress(TEXT))
    driver, worker = source(tmp_path / "a"), source(tmp_path / "a")
    files = Follower(driver, {Partition(str(tmp_path / "a")): None}, max_records=1_000)
    read = []
    while files.source is driver and (there := driver.available_offsets(files.positions)):
        ((partition, seen),) = there.items()
        if seen.end == seen.begin:
            break
        files.source = worker
        read += files._read(partition, seen)
        files.source = driver
    assert read == LINES
    assert len(begun) == 2


def test_a_line_that_is_too_long_takes_no_memory(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(gzip.compress(b"first\n" + b"x" * 300_000_000 + b"\nlast\n", 1))
    files = follower(tmp_path / "a", max_line_bytes=10_000)
    tracemalloc.start()
    read = files.run()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert read == [b"first", b"last"]
    assert [reject.kind for reject in files.rejects] == ["LineTooLong"]
    assert peak < 100_000_000


def test_a_line_without_an_end_is_not_walked_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_LONGEST_LINE_BYTES", 5_000_000)
    (tmp_path / "a").write_bytes(zstandard.ZstdCompressor().compress(b"x" * 50_000_000))
    seen = bounds(tmp_path / "a")
    assert seen.failure is not None
    assert "longer than 5000000 bytes" in seen.failure.what


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_being_compressed_is_waited_for(tmp_path: Path, kind: str) -> None:
    """Its whole lines are read. The rest is, when it has come."""
    whole = KINDS[kind](TEXT + os.urandom(1_000_000).hex().encode() + b"\nlast\n")
    path = tmp_path / "a.log"
    path.write_bytes(whole[: len(whole) // 2])
    files = follower(path)
    read = files.run()
    assert read == LINES[: len(read)]
    assert files.run() == []
    files.source = source(path)
    assert files.run() == []
    with path.open("ab") as file:
        file.write(whole[len(whole) // 2 :])
    read += files.run()
    assert (read[:-2], read[-1]) == (LINES, b"last")
    assert files.gaps == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("anew", [True, False])
def test_a_whole_file_in_the_place_of_a_beginning_is_read(tmp_path: Path, kind: str, anew: bool) -> None:
    """Of the beginning nothing was read, nor could be."""
    path = tmp_path / "a.log"
    path.write_bytes(KINDS[kind](b"another\n" * 9)[:-6])
    files = follower(path)
    assert files.run() == []
    if anew:
        path.unlink()
    path.write_bytes(KINDS[kind](TEXT))
    assert files.run() == LINES
    assert files.gaps == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_nobody_completes_is_named(tmp_path: Path, kind: str) -> None:
    whole = KINDS[kind](TEXT)
    path, other = tmp_path / "a.log", tmp_path / "b.log"
    path.write_bytes(whole[:-1])
    other.write_bytes(whole)
    os.utime(path, (0, time.time() - 1000))
    files = source(tmp_path / "*")
    seen = files.available_offsets(dict.fromkeys(files.partitions([])))
    failure = seen[Partition(str(path))].failure
    assert failure is not None
    assert (failure.kind, "ends in the middle" in failure.what) == ("ContentRefused", True)
    assert failure.where.startswith(f"{path}, behind byte ")
    assert seen[Partition(str(other))].end == len(TEXT)
    assert bounds(path, unfinished_s=3600).failure is None
    path.write_bytes(whole)
    assert follower(path).run() == LINES


def _changed(whole: bytes) -> bytes:
    return (
        whole[: len(whole) // 2]
        + bytes(255 - one for one in whole[len(whole) // 2 :][:100])
        + whole[-len(whole) // 2 :]
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", [_changed, lambda whole: whole + b"garbage", lambda whole: whole + b"\0\0no"])
def test_a_damaged_file_is_named_and_nothing_of_it_is_read(
    tmp_path: Path, kind: str, how: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(how(KINDS[kind](TEXT)))
    failure = bounds(path).failure
    assert failure is not None
    assert (failure.kind, f"compressed ({kind}) and is damaged" in failure.what) == ("ContentRefused", True)
    assert failure.where.startswith(f"{path}, behind byte ")


def test_damage_behind_what_was_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a process that has not read the file: who read before it has looked."""
    monkeypatch.setattr(streams, "AHEAD_BYTES", 50_000)
    monkeypatch.setattr(streams, "LEAST_AHEAD_BYTES", 50_000)
    monkeypatch.setattr(packed, "AHEAD_S", 60)
    path = tmp_path / "a.log"
    path.write_bytes(gzip.compress(TEXT * 5) + b"no")
    files = follower(path)
    read = []
    files.positions = {Partition(str(path)): None}
    with suppress(ContentRefused):
        while more := files.step():
            read += more
    assert 0 < len(read) <= 150_000
    assert read == (LINES * 5)[: len(read)]
    files.source = source(path)
    with pytest.raises(ContentRefused, match="damaged"):
        files.step()


def test_zeros_behind_gzip_are_padding(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(gzip.compress(TEXT) + b"\0" * 512 + gzip.compress(b"more\n") + b"\0" * 512)
    assert follower(tmp_path / "a").run() == [*LINES, b"more"]


def test_frames_without_content_are_passed_over(tmp_path: Path) -> None:
    """As pzstd writes them before each frame."""
    skipped = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
    frame = zstandard.ZstdCompressor().compress
    (tmp_path / "a").write_bytes(skipped + frame(TEXT) + skipped + frame(b"more\n"))
    assert follower(tmp_path / "a").run() == [*LINES, b"more"]


def test_a_file_to_which_a_member_is_appended_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(TEXT))
    files = follower(path)
    files.run()
    with path.open("ab") as file:
        file.write(gzip.compress(b"more\n"))
    assert files.run() == [b"more"]
    path.write_bytes(gzip.compress(TEXT + b"other\n"))
    assert files.run() == [*LINES, b"other"]
    assert [(gap.reason, gap.warns) for gap in files.gaps] == [("deleted after it was read", True)]


def test_a_worker_that_does_not_reach_its_range_in_time_goes_on_next_time(tmp_path: Path) -> None:
    path, partition = tmp_path / "a", Partition(str(tmp_path / "a"))
    path.write_bytes(gzip.compress(TEXT * 10))
    files = follower(path)
    files.max_records = 250_000
    files.positions = {partition: None}
    files.step()
    begun, worker = files.source.available_offsets(files.positions)[partition], source(path)
    wanted, came = range_of(partition, begun), [0]
    while not (batches := list(worker.read(wanted, limit(quantum_s=0.001)))):
        came.append(worker.reached(wanted))
        assert came[-1] >= came[-2]
        assert len(came) < 2_000, "it never gets there"
    assert batches[0].records.column("value")[0].as_py() == LINES[10_000]
    assert len(came) > 2


@given(
    kind=st.sampled_from(sorted(KINDS)),
    members=st.lists(st.binary(max_size=200), max_size=3),
    behind=st.binary(max_size=40),
    changed=st.none() | st.tuples(st.integers(0, 200), st.integers(0, 255)),
    cut=st.integers(0, 20),
    piece=st.integers(1, 50),
)
def test_whatever_bytes_a_compressed_file_has(
    kind: str, members: list[bytes], behind: bytes, changed: tuple[int, int] | None, cut: int, piece: int
) -> None:
    """It is read, waited for, or damaged: nothing else, and in bounded steps."""
    data = bytearray(MAGIC[kind] if not members else b"".join(KINDS[kind](one) for one in members))
    data += behind
    if changed:
        data[changed[0] % len(data)] = changed[1]
    del data[len(data) - min(cut, len(data)) :]
    unpacker, plain, at, steps = Unpacker(kind), b"", 0, 0
    try:
        while at < len(data) or not unpacker.wants:
            fed = bytes(data[at : at + piece]) if unpacker.wants else b""
            at, steps = at + len(fed), steps + 1
            step = unpacker.feed(fed)
            assert len(step) <= 33 * STEP_BYTES
            plain += step
            assert steps < 10_000
    except DamagedPacking:
        assert behind or changed or not members
        return
    if not behind and not changed and not cut and members:
        assert unpacker.whole
        assert plain == b"".join(members)


@given(kind=st.sampled_from(sorted(KINDS)), text=st.binary(max_size=300), behind=st.binary(max_size=60))
def test_whatever_is_in_a_file_is_read_or_refused(kind: str, text: bytes, behind: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.log"
        whole = (KINDS[kind](text) if text else MAGIC[kind]) + behind
        path.write_bytes(whole)
        seen = bounds(path)
        if seen.failure:
            assert seen.failure.kind == "ContentRefused"
            return
        lines = follower(path, line_end="lf").run()
        read = b"".join(bytes(line or b"") + b"\n" for line in lines)
        assert read in (text, text + b"\n", b"") or (not text and whole.startswith(read)), "three characters are text"


@pytest.mark.parametrize("kind", KINDS)
def test_what_blows_up_comes_in_bounded_steps(kind: str) -> None:
    data = KINDS[kind](bytes(200_000_000))
    unpacker, at, most, size = Unpacker(kind), 0, 0, 0
    while at < len(data) or not unpacker.wants:
        fed = data[at : at + INPUT_BYTES] if unpacker.wants else b""
        at += len(fed)
        step = len(unpacker.feed(fed))
        most, size = max(most, step), size + step
    assert size == 200_000_000
    assert most <= 33 * STEP_BYTES
