"""Parts of one file: every byte belongs to exactly one, each begins with a line, and each belongs to its file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.errors import Unreachable
from connect_core.ledger import PartitionState
from connect_core.replication.driver.lifecycle import to_be_told
from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower
from connect_core.sdk.values import Gap, Position
from connect_core.systems.file import folders, packed
from connect_core.systems.file.identity import OpenFile
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.parts import FilePart, split_points
from connect_core.systems.file.source import FileSource


def follow(path: Path | str, step: int = 20, **options: object) -> Follower:
    given_options = {"path": str(path), "rotation_quiet_s": 0, "parallel": True, "sub_partition_bytes": step, **options}
    return Follower(FileSource(FileSourceOptions.model_validate(given_options)))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "app.log"
    path.write_bytes(b"".join(b"line %02d\n" % number for number in range(10)))  # 8 bytes each
    return path


@pytest.fixture
def away(tmp_path: Path) -> Path:
    """Where nobody looks for the file."""
    (tmp_path / "away").mkdir()
    return tmp_path / "away" / "app.log"


@given(st.lists(st.binary(max_size=9).filter(lambda b: b"\n" not in b), min_size=1), st.integers(1, 40))
def test_parts_begin_with_lines_and_cover_everything_once(lines: list[bytes], step: int) -> None:
    data = b"".join(line + b"\n" for line in lines)

    def next_line(offset: int) -> int:
        found = data.find(b"\n", offset)
        return found + 1 if found >= 0 else len(data)

    points = split_points(next_line, len(data), step)
    assert points[0] == 0
    assert points == sorted(set(points))
    assert all(data[point - 1 : point] == b"\n" for point in points[1:])
    assert points[-1] < len(data)
    spans = zip(points, [*points[1:], len(data)], strict=True)
    assert b"".join(data[begin:end] for begin, end in spans) == data


def test_every_line_is_read_once(log: Path) -> None:
    follower = follow(log)
    assert sorted(follower.run()) == [b"line %02d" % number for number in range(10)]
    assert len(follower.positions) == 4


def test_parts_stay_as_they_were_and_the_last_one_grows(log: Path) -> None:
    follower = follow(log)
    follower.run()
    before = set(follower.positions)
    with log.open("ab") as file:
        file.write(b"more\n" * 20)
    assert follower.run() == [b"more"] * 20
    assert set(follower.positions) == before


def test_another_file_at_the_path_gets_parts_of_its_own(log: Path) -> None:
    follower = follow(log)
    follower.run()
    before = len(follower.positions)
    with log.open("ab") as file:
        file.write(b"rest")
    log.rename(log.with_suffix(".1"))
    log.write_bytes(b"new line\n" * 10)
    assert follower.run() == [b"rest", *[b"new line"] * 10]
    assert len(follower.positions) > before
    assert follower.gaps == []


@pytest.mark.parametrize(("gone", "next_one"), [(False, False), (False, True), (True, False)])
def test_a_file_that_was_renamed_before_it_was_seen_is_asked_about(log: Path, gone: bool, next_one: bool) -> None:
    """It has no parts, and nothing at the path tells of it. When a person has let it be, it is asked about no more."""
    follower = follow(log)
    follower.run()
    log.unlink() if gone else log.rename(f"{log}.2")
    log.write_bytes(b"unseen line\n")
    unseen = log.rename(f"{log}.1")
    if next_one:
        log.write_bytes(b"new line\n" * 10)
    for _ in range(2):  # also when the parts of the next file were read meanwhile
        assert follower.run() == ([b"new line"] * 10 if next_one else [])
        next_one = False
        (gap,) = [
            gap for bounds in follower.source.available_offsets(follower.positions).values() for gap in bounds.gaps
        ]
        assert gap.loses
        assert (gap.end, gap.reason.partition(" ")[0]) == (None, str(unseen))
    assert follower.tell() == [gap]
    assert follower.tell() == []
    with log.open("ab") as file:
        file.write(b"more\n")
    assert follower.run() == [b"more"]


def test_a_renamed_file_that_the_pattern_matches_gets_no_parts_again(log: Path, tmp_path: Path) -> None:
    follower = follow(tmp_path / "app*")
    follower.run()
    log.rename(tmp_path / "app-1")
    assert follower.run() == []


def test_a_part_whose_file_went_is_a_gap(log: Path) -> None:
    follower = follow(log)
    for partition in follower.source.partitions([]):
        follower.positions[partition] = None
    log.unlink()
    seen = follower.source.available_offsets(follower.positions)
    gaps = [gap for bounds in seen.values() for gap in bounds.gaps]
    assert gaps == [
        Gap(0, 0, 24, "deleted"),
        Gap(0, 24, 40, "deleted"),
        Gap(0, 40, 64, "deleted"),
        Gap(0, 64, None, "deleted"),
    ]
    assert all(bounds.begin == bounds.end for bounds in seen.values())


def test_a_part_that_was_read_does_not_need_its_file(log: Path) -> None:
    follower = follow(log)
    follower.run()
    os.unlink(log)
    assert [len(bounds.gaps) for bounds in follower.source.available_offsets(follower.positions).values()] == [
        0,
        0,
        0,
        1,
    ]


@pytest.mark.parametrize("step", [20, 1000])
@pytest.mark.parametrize("rest", [b"", b"rest\n", b"no line feed"])
@pytest.mark.parametrize("same_inode", [False, True])
def test_a_file_that_was_rotated_and_read_may_be_deleted(log: Path, step: int, rest: bytes, same_inode: bool) -> None:
    """Said once, and nothing is lost: another file at the path says nothing of it, nor one with its inode."""
    head, new = b"line 00\n", b"line 00\nnew\n"
    log.write_bytes(head * 10)
    follower = follow(log, step)
    follower.run()
    append(log, rest)
    log.rename(f"{log}.1")
    assert follower.run() == rest.splitlines()
    log.write_bytes(new * 10)
    if same_inode:
        give_its_inode(follower, log)
    else:
        assert follower.run() == new.splitlines() * 10
    os.unlink(f"{log}.1")
    assert [(gap.reason, gap.loses) for gap in follower.tell()] == [("ended", False)]
    assert follower.run() == (new.splitlines() * 10 if same_inode else [])
    append(log, b"more\n")
    assert follower.run() == [b"more"]
    assert (follower.tell(), follower.gaps) == ([], [])


def test_a_file_that_went_before_anybody_saw_that_it_was_rotated_is_a_gap(log: Path) -> None:
    """It may have grown since it was read."""
    follower = follow(log, 1000)
    follower.run()
    log.unlink()
    log.write_bytes(b"new line\n" * 10)
    follower.run()
    assert [(gap.reason, gap.loses) for gap in follower.tell()] == [("replaced", True)]


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def give_its_inode(follower: Follower, log: Path) -> None:
    """As a file system does that gives the inode of a deleted file to the next one: here the parts get that of `log`,
    which begins as their file did."""
    ino = log.stat().st_ino
    for partition, position in list(follower.positions.items()):
        part = FilePart.of(partition)
        assert part is not None
        assert position is not None
        del follower.positions[partition]
        moved = replace(position, evidence={**position.evidence, "ino": ino})
        follower.positions[replace(part, ino=ino).partition()] = moved


@pytest.mark.parametrize("step", [20, 1000])
@pytest.mark.parametrize("unread", [b"", b"unread\n"])
def test_a_file_that_was_away_and_grows_is_read_on(log: Path, away: Path, step: int, unread: bytes) -> None:
    """In one part or in several. What was told as lost is read as well when it is there again."""
    follower = follow(log, step)
    follower.run()
    before = set(follower.positions)
    for number in range(2):
        with log.open("ab") as file:
            file.write(unread)
        follower.source.available_offsets(follower.positions)
        log.rename(away)
        assert [gap.loses for gap in follower.tell()] == [bool(unread)]
        assert follower.run() == []
        away.rename(log)
        assert follower.run() == unread.splitlines()
        with log.open("ab") as file:
            file.write(b"more %d\n" % number)
        assert follower.run() == [b"more %d" % number]
    assert set(follower.positions) == before


@pytest.mark.parametrize("written", ["more", "anew"])
def test_a_part_that_a_former_version_called_over(log: Path, written: str) -> None:
    """Nothing was kept of its file but how it begins: it is read on where a line begins."""
    follower = follow(log, 1000)
    follower.run()
    (partition,) = follower.positions
    follower.positions[partition] = Position(1, 80, {"over": True})
    if written == "more":
        with log.open("ab") as file:
            file.write(b"more\n")
        assert follower.run() == [b"more"]
    else:
        log.write_bytes(log.read_bytes()[:78] + b"98\nother\n")
        assert follower.source.available_offsets(follower.positions)[partition].end == 80


def test_a_part_whose_file_is_another_one_stays_over(log: Path, away: Path) -> None:
    log.write_bytes(b"line\n" * 1000)
    follower = follow(log, 10_000)
    follower.run()
    log.rename(away)
    follower.tell()
    (partition,) = follower.positions
    log.write_bytes(b"line\n" * 1100)
    away.unlink()
    seen = follower.source.available_offsets(follower.positions)[partition]
    assert (seen.begin, seen.end, seen.gaps) == (5000, 5000, ())


HEAD = b"# what stands in every log of this program\n" * 30
"""Longer than what the key of a part is told by."""


@pytest.mark.parametrize("step", [400, 10_000])
@pytest.mark.parametrize("grown", [1, 1000])
@pytest.mark.parametrize("renamed", [False, True])
def test_a_file_that_was_cut_and_begins_as_before_is_read_from_its_start(
    log: Path, step: int, grown: int, renamed: bool
) -> None:
    """Its parts claim it, so it gets none of its own: the open one reads it, once what was lost is told."""
    log.write_bytes(HEAD + b"line\n" * 100)
    follower = follow(log, step)
    follower.run()
    for number in range(2):
        with log.open("r+b") as file:
            file.truncate(0)
            file.write(HEAD + b"new %d\n" % number * grown * (number + 1))
        if renamed:
            log = log.rename(log.with_name(f"app.log.{number}"))
        assert [gap.reason in ("truncated", "replaced") for gap in follower.tell()] == [True]
        assert follower.run() == [*HEAD.splitlines(), *[b"new %d" % number] * grown * (number + 1)]
        with log.open("ab") as file:
            file.write(b"more\n")
        assert follower.run() == [b"more"]


def test_one_part_reads_a_file_that_two_claim(log: Path) -> None:
    """Of the file with all of its head, and of the one that was seen when it had its first line only."""
    log.write_bytes(HEAD + b"old\n")
    follower = follow(log, 10_000)
    follower.run()
    with log.open("r+b") as file:
        file.truncate(0)
        file.write(HEAD[:43])
    follower.tell()
    assert follower.run() == [HEAD[:42]]
    with log.open("ab") as file:
        file.write(HEAD[43:] + b"rest\n")
    assert follower.run() == [*HEAD[43:].splitlines(), b"rest"]
    for number in range(2):
        with log.open("r+b") as file:
            file.truncate(0)
            file.write(HEAD + b"%d\n" % number * 9)
        follower.tell()
        assert follower.run() == [*HEAD.splitlines(), *[b"%d" % number] * 9]
        assert follower.run() == []


def test_a_source_is_told_of_parts_that_have_ended_and_not_of_files(log: Path) -> None:
    """A file is there again when it is seen; a part is found again by itself alone."""
    source = follow(log).source
    parts = source.partitions([])
    states = {one: PartitionState("ended") for one in (*parts, Partition(str(log)))}
    assert to_be_told(source, states, states) == parts


def test_a_file_that_is_read_whole_is_not_split_later(log: Path) -> None:
    whole = follow(log, parallel=False)
    whole.run()
    split = follow(log)
    split.positions = whole.positions
    assert split.run() == []


def rotate(log: Path, kept: int, new: bytes) -> None:
    for number in range(kept, 0, -1):
        os.rename(f"{log}.{number}", f"{log}.{number + 1}")
    log.rename(f"{log}.1")
    log.write_bytes(new)


@pytest.mark.parametrize("step", [20, 1000])
def test_a_rotated_file_that_was_read_whole_is_not_split_under_a_new_name(log: Path, tmp_path: Path, step: int) -> None:
    """The document became parallel, and rotation gives names that nobody has read under."""
    whole = follow(tmp_path / "app.log*", parallel=False)
    whole.run()
    rotate(log, 0, b"second\n" * 10)
    assert whole.run() == [b"second"] * 10
    split = follow(tmp_path / "app.log*", step)
    split.positions = whole.positions
    rotate(log, 1, b"third\n" * 10)
    append(Path(f"{log}.1"), b"rest\n")
    assert sorted(map(bytes, filter(None, split.run()))) == [b"rest", *[b"third"] * 10]
    rotate(log, 2, b"fourth\n" * 10)
    assert split.run() == [b"fourth"] * 10
    os.unlink(f"{log}.3")
    assert [gap.reason for gap in split.tell() if gap.loses] == []
    assert split.run() == []
    (tmp_path / "app.log.new").write_bytes(b"new line\n" * 10)
    assert split.run() == [b"new line"] * 10
    assert split.gaps == []


def test_a_file_that_came_while_nobody_looked_is_read_whole_or_in_parts(log: Path, tmp_path: Path) -> None:
    """Its log finds it between two others, and its name is new: the first of both has it."""
    whole = follow(tmp_path / "app.log*", parallel=False)
    whole.run()
    split = follow(tmp_path / "app.log*")
    split.positions = whole.positions
    rotate(log, 0, b"between\n" * 10)
    rotate(log, 1, b"third\n" * 10)
    assert sorted(map(bytes, filter(None, split.run()))) == [*[b"between"] * 10, *[b"third"] * 10]


def test_a_file_that_could_not_be_opened_once_is_read_once(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It became a partition by its path, whose rotated files get new names."""
    split = follow(tmp_path / "app.log*")
    with monkeypatch.context() as refused:
        refused.setattr(packed, "open_if_there", refuse)
        assert split.source.partitions([]) == [Partition(str(log))]
    split.positions = {Partition(str(log)): None}
    assert len(split.run()) == 10
    rotate(log, 0, b"new line\n" * 10)
    assert split.run() == [b"new line"] * 10


@pytest.fixture
def clones(log: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of another file system with the inode of the log and its beginning, as on volumes that were cloned."""
    ino, opening, listing = log.stat().st_ino, OpenFile.__init__, folders._regular_files

    def other(self: OpenFile, path: str, flags: int = os.O_RDONLY) -> None:
        opening(self, path, flags)
        if "other" in path:
            self.dev, self.ino = self.dev + 1, ino

    def listed(folder: str) -> dict[int, list[str]]:
        return {ino: [str(clone)]} if "other" in folder and clone.exists() else listing(folder)

    monkeypatch.setattr(OpenFile, "__init__", other)
    monkeypatch.setattr(folders, "_regular_files", listed)
    clone = log.parent / "other" / "app.log"
    clone.parent.mkdir()
    return clone


@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("together", [False, True])
def test_two_files_with_one_inode_and_one_beginning_are_both_read(
    log: Path, tmp_path: Path, clones: Path, together: bool, renamed: bool
) -> None:
    log.write_bytes(HEAD + b"one\n")
    split = follow(tmp_path / "**" / "app.log*", 10_000)
    if not together:
        assert split.run()[-1] == b"one"
    if renamed:
        log.rename(f"{log}.1")
    clones.write_bytes(HEAD + b"other one\n")
    values = split.run()
    assert values.count(b"one") == together
    assert values.count(b"other one") == 1
    append(Path(f"{log}.1") if renamed else log, b"two\n")
    append(clones, b"other two\n")
    assert sorted(split.run()) == [b"other two", b"two"]
    assert split.run() == []


def test_a_clone_that_was_cut_and_begins_as_before_is_read_from_its_start(
    log: Path, tmp_path: Path, clones: Path
) -> None:
    for path in (log, clones):
        path.write_bytes(HEAD + b"line\n" * 100)
    split = follow(tmp_path / "**" / "app.log*", 10_000)
    split.run()
    with clones.open("r+b") as file:
        file.truncate(0)
        file.write(HEAD + b"new\n")
    assert [gap.reason for gap in split.tell()] == ["truncated"]
    assert split.run() == [*HEAD.splitlines(), b"new"]


def refuse(path: str) -> OpenFile | None:
    raise Unreachable("it may not be read", where=path)


def test_a_file_that_is_read_in_parts_is_not_read_whole_later(log: Path) -> None:
    split = follow(log)
    split.run()
    whole = follow(log, parallel=False)
    whole.positions = split.positions
    assert whole.run() == []


def test_keys_come_back(log: Path) -> None:
    for partition in follow(log).source.partitions([]):
        part = FilePart.of(partition)
        assert part is not None
        assert part.partition() == partition
