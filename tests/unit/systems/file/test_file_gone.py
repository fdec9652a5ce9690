"""A file that was read completely and is gone is no loss; one with bytes that were seen and not read is."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower, limit, range_of
from connect_core.sdk.values import OPEN_END, Gap, Position
from connect_core.systems.file import identity
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.source import FileSource


def follow(path: Path | str, **options: object) -> Follower:
    return Follower(FileSource(FileSourceOptions.model_validate({"path": str(path), "rotation_quiet_s": 0, **options})))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "app.log"
    path.write_bytes(b"one\ntwo\n")
    return path


def gaps(follower: Follower, partition: Partition) -> tuple[Gap, ...]:
    return follower.source.available_offsets(follower.positions)[partition].gaps


@pytest.mark.parametrize("pattern", ["app.log", "*.log"])
def test_read_completely_and_deleted_is_the_end_of_it(log: Path, pattern: str) -> None:
    follower = follow(log.with_name(pattern))
    assert follower.run() == [b"one", b"two"]
    log.unlink()
    (told,) = gaps(follower, Partition(str(log)))
    assert told == Gap(0, 8, 8, "ended")
    assert not told.loses
    assert follower.source.partitions([Partition(str(log))]) == [Partition(str(log))], "it may come back"


def test_another_process_knows_it_from_what_was_settled(log: Path) -> None:
    first = follow(log)
    first.run()
    second = Follower(follow(log).source, first.positions)
    log.unlink()
    assert [gap.loses for gap in gaps(second, Partition(str(log)))] == [False]


@pytest.mark.parametrize("unread", [b"three\n", b"no line feed"])
def test_bytes_that_were_there_when_it_was_settled_are_lost(log: Path, unread: bytes) -> None:
    first = follow(log)
    first.max_records, first.positions = 2, {Partition(str(log)): None}
    log.write_bytes(b"one\ntwo\n" + unread)
    first.step()
    second = Follower(follow(log).source, first.positions)
    log.unlink()
    assert gaps(second, Partition(str(log))) == (Gap(0, 8, None, "deleted"),)


def test_bytes_that_were_seen_since_are_lost(log: Path) -> None:
    follower = follow(log)
    follower.run()
    with log.open("ab") as file:
        file.write(b"three\n")
    assert gaps(follower, Partition(str(log))) == ()
    log.unlink()
    assert gaps(follower, Partition(str(log))) == (Gap(0, 8, None, "deleted"),)


@pytest.mark.parametrize(("unread", "end"), [(b"", 8), (b"no line feed", None)])
def test_what_was_planned_and_taken_back_tells_how_much_there_was(log: Path, unread: bytes, end: int | None) -> None:
    """A run keeps what its plan saw when nobody could read it: by then the file may have gone."""
    first = follow(log)
    first.run()
    with log.open("ab") as file:
        file.write(unread)
    settled(first, log)
    second = Follower(follow(log).source, first.positions)
    log.unlink()
    assert gaps(second, Partition(str(log))) == (Gap(0, 8, end, "deleted" if end is None else "ended"),)


@pytest.mark.parametrize("how", ["deleted", "moved"])
@pytest.mark.parametrize("lines", [1, 2])
def test_bytes_that_were_there_when_it_went_while_it_was_read_are_lost(
    log: Path, tmp_path: Path, how: str, lines: int
) -> None:
    """The range closes short, or ends before a line that is not whole; by then the path leads nowhere."""
    log.write_bytes(b"one\ntwo\nhalf a li")
    partition, first = Partition(str(log)), follow(log)
    wanted = range_of(partition, first.source.available_offsets({partition: None})[partition], max_records=lines)
    for _ in first.source.read(wanted, limit()):
        away(log, tmp_path, how)
    after = Position(0, 4 * lines, first.source.evidence(wanted, 4 * lines))
    second = Follower(follow(log).source, {partition: after})
    assert gaps(second, partition) == (Gap(0, 4 * lines, None, "deleted"),)


@pytest.mark.parametrize("how", ["deleted", "moved"])
def test_the_beginning_of_a_line_that_was_seen_while_it_was_followed_is_lost(
    log: Path, tmp_path: Path, how: str
) -> None:
    partition, first = Partition(str(log)), follow(log)
    wanted = replace(range_of(partition, first.source.available_offsets({partition: None})[partition]), end=OPEN_END)
    for _ in first.source.follow([wanted], limit(), idle_timeout_s=0.3):
        with log.open("ab") as file:
            file.write(b"half a li")
        away(log, tmp_path, how)
    second = Follower(follow(log).source, {partition: Position(0, 8, first.source.evidence(wanted, 8))})
    assert gaps(second, partition) == (Gap(0, 8, None, "deleted"),)


def away(log: Path, folder: Path, how: str) -> None:
    if how == "deleted":
        log.unlink()
    else:
        (folder / "done").mkdir()
        log.rename(folder / "done" / log.name)


def test_renamed_read_with_its_last_line_and_deleted(log: Path) -> None:
    follower = follow(log)
    follower.run()
    with log.open("ab") as file:
        file.write(b"no line feed")
    old = log.rename(f"{log}.1")
    assert follower.run() == [b"no line feed"]
    old.unlink()
    assert [gap.loses for gap in gaps(follower, Partition(str(log)))] == [False]


def test_a_file_that_was_at_the_path_before_another_one_was_gone_is_asked_about(log: Path) -> None:
    """Replaced, and the new file renamed, before anybody looked: nothing at the path tells of it."""
    follower = follow(log)
    follower.run()
    log.unlink()
    log.write_bytes(b"three\n")
    missed = log.rename(f"{log}.1")
    assert follower.tell() == [Gap(0, 8, 8, "ended")]
    asked_about(follower, log, missed, Gap(1, 0, None, "-"))
    log.write_bytes(b"four\n")
    assert follower.run() == [b"four"]


@pytest.mark.parametrize("answer", ["named", "moved"])
@pytest.mark.parametrize("looked", [True, False])
def test_what_is_asked_can_be_answered_when_the_next_log_is_there(
    log: Path, tmp_path: Path, answer: str, looked: bool
) -> None:
    """Whether somebody looked in between or not."""
    follower = follow(log)
    follower.run()
    log.unlink()
    log.write_bytes(b"three\n")
    missed = log.rename(f"{log}.1")
    assert follower.tell() == [Gap(0, 8, 8, "ended")]
    if looked:
        assert [gap.loses for gap in gaps(follower, Partition(str(log)))] == [True]
    log.write_bytes(b"four\n")
    if answer == "moved":
        (tmp_path / "elsewhere").mkdir()
        missed.rename(tmp_path / "elsewhere" / "app.log.1")
    else:
        follower.source = follow(f"{log}*").source
    assert sorted(follower.run()) == ([b"four"] if answer == "moved" else [b"four", b"three"])
    assert follower.gaps == []


@pytest.mark.parametrize("answered", [True, False])
def test_a_loss_does_not_hide_what_may_have_come_next(log: Path, answered: bool) -> None:
    """As with two rotations between two looks, where one rotated file is kept."""
    follower = follow(log)
    follower.run()
    log.unlink()
    log.write_bytes(b"three\n")
    missed = log.rename(f"{log}.1")
    log.write_bytes(b"four\n")
    (told,) = gaps(follower, Partition(str(log)))
    assert told.reason.startswith(f"replaced; before you accept that: {missed} may be the file that came next")
    assert (told.begin, told.end, told.loses) == (8, None, True)
    if answered:
        follower.source = follow(f"{log}*[!z]").source
        (told,) = gaps(follower, Partition(str(log)))
        assert told.reason == "replaced"
    assert sorted(follower.run()) == ([b"four", b"three"] if answered else [b"four"])
    assert follower.gaps == [told]


@pytest.mark.parametrize("binary", [True, False])
def test_what_is_asked_of_a_compressed_file_can_be_done(log: Path, binary: bool) -> None:
    """One that is read as it is must be decompressed for that; else it need only be named."""
    follower = follow(log, binary=binary)
    follower.run()
    log.unlink()
    follower.tell()
    packed = log.with_name("app.log.1.gz")
    packed.write_bytes(gzip.compress(b"three\n"))
    (told,) = gaps(follower, Partition(str(log)))
    decompress = "decompress it, remove the compressed file, and name the other one in the source's path" in told.reason
    assert decompress == binary
    if decompress:
        log.with_name("app.log.1").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    follower.source = follow(f"{log}*", binary=binary).source
    assert follower.run() == [b"three"]
    assert gaps(follower, Partition(str(log))) == ()


@pytest.mark.parametrize("name", ["app.log.1", "app-1.log", "app.log.20261123", "app.log.old", "app.log~"])
def test_a_file_that_was_at_the_path_after_a_log_had_ended_is_asked_about(log: Path, name: str) -> None:
    follower = follow(log)
    follower.run()
    log.unlink()
    settled(follower, log)
    log.write_bytes(b"three\n")
    missed = log.rename(log.with_name(name))
    log.write_bytes(b"four\n")
    asked_about(follower, log, missed, Gap(1, 0, None, "-"))
    assert follower.run() == [b"four"]


def test_a_file_between_one_that_rotation_has_deleted_and_the_present_one_is_asked_about(log: Path) -> None:
    """One rotated file is kept, and the program makes its log when it has something to write."""
    follower = follow(log)
    follower.run()
    old = log.rename(f"{log}.1")
    old.write_bytes(old.read_bytes() + b"three\n")
    assert follower.run() == [b"three"]
    log.write_bytes(b"four\n")
    missed = log.rename(old)
    log.write_bytes(b"five\n")
    asked_about(follower, log, missed, Gap(0, 14, None, "-"))
    assert follower.run() == [b"five"]


@pytest.mark.parametrize("name", ["app.log.old", "app.log.Mon"])
def test_a_file_that_took_the_place_of_one_that_was_read_to_its_end_is_asked_about(log: Path, name: str) -> None:
    follower = follow(log)
    follower.run()
    old = log.rename(log.with_name(name))
    old.write_bytes(old.read_bytes() + b"three\n")
    assert follower.run() == [b"three"]
    log.write_bytes(b"four\n")
    missed = log.rename(old)
    log.write_bytes(b"five\n")
    asked_about(follower, log, missed, Gap(0, 14, None, "-"))
    assert follower.run() == [b"five"]


def asked_about(follower: Follower, log: Path, missed: Path, gap: Gap) -> None:
    """A look stops there and names the file. Once a person has let it go on, it is not asked about again."""
    partition = Partition(str(log))
    (told,) = gaps(follower, partition)
    assert told.loses
    assert replace(told, reason="-") == gap
    assert told.reason.startswith(f"{missed} may be the file that came next")
    settled(follower, log)
    with missed.open("ab") as file:
        file.write(b"later, by whoever writes it\n")
    assert gaps(follower, partition) == ()


def settled(follower: Follower, log: Path) -> None:
    """What the look has found, gaps included, is settled."""
    bounds = follower.source.available_offsets(follower.positions)[Partition(str(log))]
    follower.positions[Partition(str(log))] = Position(bounds.incarnation, bounds.begin, bounds.evidence)


@pytest.mark.parametrize(
    ("content", "age_ns"),
    [
        (b"three\n", 2_000_000),
        (b"three\n", 7_200 * 10**9),
        (b"one\ntwo\nthree\n", 2_000_000),
        (b"one\nTWO\n", 2_000_000),
        (gzip.compress(b"three\n"), 1),
    ],
    ids=["a little older", "much older", "more", "other in the middle", "packed"],
)
def test_what_looks_older_than_it_is_and_holds_what_nobody_read_is_asked_about(
    log: Path, content: bytes, age_ns: int
) -> None:
    """Its time was set, as people and rsync do it: it is no copy for that."""
    follower = follow(log)
    follower.run()
    log.unlink()
    log.write_bytes(content)
    missed = log.rename(f"{log}.1")
    with identity.OpenFile(str(missed)) as file:
        os.utime(missed, ns=(0, file.born - age_ns))
    assert follower.tell() == [Gap(0, 8, 8, "ended")]
    asked_about(follower, log, missed, Gap(1, 0, None, "-"))


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("kept", [True, False])
def test_a_compressed_copy_of_what_was_read_is_not_asked_about(log: Path, kept: bool, binary: bool) -> None:
    """One that is not read as it is, is the log itself from then on."""
    follower = follow(log, binary=binary)
    follower.run()
    packed = log.with_name("app.log.1.gz")
    packed.write_bytes(gzip.compress(log.read_bytes()))
    if kept:
        os.utime(packed, ns=(0, log.stat().st_mtime_ns - 1_000_000))
    log.unlink()
    assert follower.run() == []
    assert follower.tell() == ([Gap(0, 8, 8, "ended")] if binary else [])
    assert gaps(follower, Partition(str(log))) == ()


def test_a_compressed_file_that_was_written_before_the_log_was_made_is_not_asked_about(log: Path) -> None:
    """Of a log that nobody ever read: rotation compresses it when the next one is there."""
    follower = follow(log)
    follower.run()
    packed = log.with_name("app.log.1.gz")
    packed.write_bytes(gzip.compress(b"zero\n"))
    os.utime(packed, ns=(0, log.stat().st_mtime_ns - 10**12))
    log.unlink()
    assert follower.tell() == [Gap(0, 8, 8, "ended")]
    assert gaps(follower, Partition(str(log))) == ()


@pytest.mark.parametrize("how", ["copy", "empty", "foreign", "older"])
def test_what_cannot_have_been_a_log_that_is_gone_is_not_asked_about(log: Path, how: str) -> None:
    beside = log.with_name("other.log.1" if how == "foreign" else "app.log.1")
    if how == "older":
        log.rename(beside)
        log.write_bytes(b"one\ntwo\n")
    follower = follow(log)
    follower.run()
    if how == "copy":
        shutil.copy(log, beside)
        os.utime(beside, ns=(0, log.stat().st_mtime_ns - 1_000_000_000))
    elif how != "older":
        beside.write_bytes(b"" if how == "empty" else b"somebody's\n")
    log.unlink()
    assert follower.tell() == [Gap(0, 8, 8, "ended")]
    assert gaps(follower, Partition(str(log))) == ()


@pytest.mark.parametrize("left_alone", [True, False])
def test_deleted_behind_a_rotation(log: Path, left_alone: bool) -> None:
    """One that was seen to be left by its writer is complete; of another one nobody knows."""
    follower = follow(log)
    follower.run()
    old = log.rename(f"{log}.1")
    if left_alone:
        old.write_bytes(old.read_bytes() + b"three\n")
        assert follower.run() == [b"three"]
    old.unlink()
    log.write_bytes(b"new\n")
    assert [gap.loses for gap in gaps(follower, Partition(str(log)))] == [not left_alone]


def test_the_open_part_of_a_file_ends_with_it(tmp_path: Path) -> None:
    log = tmp_path / "large.log"
    log.write_bytes(b"".join(b"line %03d\n" % number for number in range(100)))
    follower = follow(log, parallel=True, sub_partition_bytes=300)
    assert len(follower.run()) == 100
    log.unlink()
    told = [gap for seen in follower.source.available_offsets(follower.positions).values() for gap in seen.gaps]
    assert [gap.loses for gap in told] == [False]


def test_evidence_of_an_earlier_version_says_not_how_much_there_was(log: Path) -> None:
    follower = follow(log)
    follower.run()
    position = follower.positions[Partition(str(log))]
    assert position is not None
    for added in ("size", "born"):
        del position.evidence[added]
    log.unlink()
    assert gaps(follower, Partition(str(log))) == (Gap(0, 8, None, "deleted"),)


def test_evidence_of_a_later_version_is_read(log: Path) -> None:
    follower = follow(log)
    follower.run()
    position = follower.positions[Partition(str(log))]
    assert position is not None
    position.evidence["of_tomorrow"] = 1
    assert gaps(follower, Partition(str(log))) == ()


# ------------------------------------------------------------------------------------------------------ it comes back


@pytest.mark.parametrize("pattern", ["app.log", "*.log"])
def test_a_file_that_was_away_goes_on_where_it_was_left(log: Path, tmp_path: Path, pattern: str) -> None:
    follower = follow(log.with_name(pattern))
    for number in range(2):
        follower.run()
        away(log, tmp_path, "moved")
        assert [gap.reason for gap in follower.tell()] == ["ended"]
        assert follower.run() == []
        back(log, tmp_path)
        assert follower.run() == [], "all of it was read"
        with log.open("ab") as file:
            file.write(b"more %d\n" % number)
        assert follower.run() == [b"more %d" % number]
    assert follower.gaps == []


def test_what_was_given_up_of_a_file_that_was_away_is_read_when_it_is_back(log: Path, tmp_path: Path) -> None:
    follower = follow(log)
    follower.run()
    with log.open("ab") as file:
        file.write(b"three\n")
    follower.source.available_offsets(follower.positions)
    away(log, tmp_path, "moved")
    assert follower.tell() == [Gap(0, 8, None, "deleted")]
    back(log, tmp_path)
    assert follower.run() == [b"three"]


def test_a_file_that_another_one_stood_in_for_goes_on_where_it_was_left(log: Path, tmp_path: Path) -> None:
    """As under a mount point whose volume is not there for a while."""
    follower = follow(log)
    follower.run()
    away(log, tmp_path, "moved")
    log.write_bytes(b"other\n")
    assert follower.run() == [b"other"]
    log.rename(tmp_path / "done" / "other")
    back(log, tmp_path)
    with log.open("ab") as file:
        file.write(b"three\n")
    assert follower.run() == [b"three"]


@pytest.mark.parametrize("content", [b"other\nfile\nnow\n", b"one\nTWO\nthree\n", b"one\n"])
def test_a_file_that_comes_back_with_other_content_is_begun(log: Path, tmp_path: Path, content: bytes) -> None:
    """It has the inode and the birth of the one that was away, and perhaps the same first line."""
    log.write_bytes(b"one\n" * 2_000)
    follower = follow(log)
    follower.run()
    away(log, tmp_path, "moved")
    follower.tell()
    back(log, tmp_path)
    header = log.read_bytes()[: identity.HEAD_BYTES]
    log.write_bytes(header + content)
    assert b"\n".join(follower.run()) + b"\n" == header + content


def test_a_file_that_was_away_and_comes_back_under_another_name_is_not_read_again(log: Path, tmp_path: Path) -> None:
    follower = follow(tmp_path / "*.log")
    follower.run()
    away(log, tmp_path, "moved")
    follower.tell()
    (tmp_path / "done" / log.name).rename(tmp_path / "app-1.log")
    assert follower.run() == []


def test_evidence_of_an_earlier_version_of_files_that_were_left(log: Path, tmp_path: Path) -> None:
    follower = follow(log)
    follower.run()
    away(log, tmp_path, "moved")
    follower.tell()
    position = follower.positions[Partition(str(log))]
    assert position is not None
    for entry in position.evidence["former"]:
        del entry["tail"], entry["tail_bytes"]
    back(log, tmp_path)
    assert follower.run() == []


def back(log: Path, folder: Path) -> None:
    (folder / "done" / log.name).rename(log)
    for left in (folder / "done").iterdir():
        left.unlink()
    (folder / "done").rmdir()


# ----------------------------------------------------------------------------------------------------- what is named


def test_what_the_path_does_not_name_any_more_is_no_partition(log: Path, tmp_path: Path) -> None:
    gone, here, other = tmp_path / "gone.log", log, tmp_path / "other.txt"
    other.write_bytes(b"")
    known = [Partition(str(path)) for path in (gone, here, other)]
    assert follow(tmp_path / "*.log").source.partitions(known) == known[:2]
    assert follow(other).source.partitions(known) == known[2:]


def test_parts_of_a_file_that_is_not_named_any_more(tmp_path: Path, log: Path) -> None:
    parts = follow(log, parallel=True).source.partitions([])
    assert follow(log).source.partitions(parts) == parts
    assert follow(tmp_path / "*.txt").source.partitions(parts) == []


def test_a_path_that_was_stored_without_its_links_goes_on(tmp_path: Path, log: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    known = [Partition(str(log))]
    for path in (tmp_path / "link" / "app.log", tmp_path / "link" / "*.log"):
        assert follow(path).source.partitions(known) == known


# --------------------------------------------------------------------------------------------------------- which file


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A folder where inode numbers are given out again: those of tests may be in memory."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


def test_an_equal_file_in_its_place_is_another_one(log: Path, on_disk: Path) -> None:
    """Equal bytes and the same inode: only its birth tells."""
    log = Path(shutil.copy(log, on_disk))
    inode, content = log.stat().st_ino, log.read_bytes()
    follower = follow(log)
    follower.run()
    log.unlink()
    log.write_bytes(content)
    if log.stat().st_ino != inode:
        pytest.skip("this file system did not give the inode again")
    assert gaps(follower, Partition(str(log))) == (Gap(0, 8, None, "replaced"),)


def test_a_log_of_equal_lines_that_was_cut_and_grew_again_looks_as_if_it_had_only_grown(log: Path) -> None:
    """docs/delivery.md and docs/guarantees.md state this limit: change it there, too."""
    log.write_bytes(b"alive\n" * 5_000)
    follower = follow(log)
    assert len(follower.run()) == 5_000
    os.truncate(log, 0)
    with log.open("ab") as file:
        file.write(b"alive\n" * 7_000)
    assert len(follower.run()) == 2_000
    assert follower.gaps == []


def test_a_log_of_equal_lines_that_was_cut_is_told_of_as_long_as_it_is_shorter(log: Path) -> None:
    log.write_bytes(b"alive\n" * 5_000)
    follower = follow(log)
    follower.run()
    os.truncate(log, 0)
    with log.open("ab") as file:
        file.write(b"alive\n" * 4_999)
    assert len(follower.run()) == 4_999
    assert [gap.reason for gap in follower.gaps] == ["truncated"]
