"""A log is followed from when it is seen first, also while it holds no whole line."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_core.sdk.testing.driving import Follower
from connect_core.sdk.values import Gap, Position
from connect_core.systems.file import birth, identity
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.source import FileSource
from connect_core.systems.file.succession import undecided


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "app.log"
    path.write_bytes(b"")
    return path


def follow(path: Path, pattern: str = "app.log") -> Follower:
    options = {"path": str(path.with_name(pattern)), "rotation_quiet_s": 0}
    return Follower(FileSource(FileSourceOptions.model_validate(options)))


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def rotate(log: Path, new: bytes = b"") -> None:
    """All of its files move up by one number."""
    for number in range(9, 0, -1):
        if (old := Path(f"{log}.{number}")).exists():
            old.rename(f"{log}.{number + 1}")
    log.rename(f"{log}.1")
    log.write_bytes(new)


@pytest.mark.parametrize("first", [b"", b"half a "])
@pytest.mark.parametrize("new", [b"", b"new\n"])
def test_a_log_without_a_whole_line_is_followed_under_its_new_name(log: Path, first: bytes, new: bytes) -> None:
    log.write_bytes(first)
    follower = follow(log)
    assert follower.run() == []
    append(log, b"line\nlast\n")
    rotate(log, new)
    assert follower.run() == [first + b"line", b"last", *new.splitlines()]
    assert follower.gaps == []


def test_a_log_that_nobody_has_looked_at_begins_with_the_file_that_is_there(log: Path) -> None:
    log.write_bytes(b"old\n")
    rotate(log, b"new\n")
    assert follow(log).run() == [b"new"]


@pytest.mark.parametrize("looked", [False, True])
def test_files_that_were_empty_one_after_the_other_are_followed_in_their_order(log: Path, looked: bool) -> None:
    follower = follow(log)
    follower.run()
    rotate(log)
    if looked:
        follower.run()
    append(log, b"second\n")
    rotate(log, b"third\n")
    assert follower.run() == [b"second", b"third"]


def test_a_half_line_that_is_renamed_is_read_as_the_last_line(log: Path) -> None:
    log.write_bytes(b"half")
    follower = follow(log)
    follower.run()
    rotate(log, b"new\n")
    assert follower.run() == [b"half", b"new"]


def test_a_half_line_that_is_gone_is_a_gap(log: Path) -> None:
    log.write_bytes(b"half")
    follower = follow(log)
    follower.run()
    log.unlink()
    assert follower.tell() == [Gap(0, 0, None, "deleted")]


def test_an_empty_log_that_was_filled_and_replaced_may_have_lost_lines(log: Path) -> None:
    follower = follow(log)
    follower.run()
    new = log.with_name("new")
    new.write_bytes(b"new\n")
    new.replace(log)
    assert follower.run() == [b"new"]
    assert follower.gaps == [Gap(0, 0, None, "replaced")]


def test_an_empty_log_that_the_pattern_names_under_both_names_is_read_once(log: Path) -> None:
    follower = follow(log, "*")
    follower.run()
    append(log, b"line\n")
    rotate(log, b"new\n")
    assert sorted(follower.run()) == [b"line", b"new"]
    assert follower.gaps == []


@pytest.fixture
def without_births(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "born_ns", lambda fd: birth.UNKNOWN)


@pytest.mark.usefixtures("without_births")
def test_where_an_inode_is_all_that_is_known_a_person_says_whose_the_file_is(log: Path) -> None:
    """The inode of an empty file that was deleted is soon that of another one."""
    follower = follow(log)
    follower.run()
    append(log, b"line\n")
    rotate(log, b"new\n")
    assert follower.run() == [b"new"]
    assert follower.gaps == [Gap(0, 0, None, undecided(f"{log}.1"))]


@pytest.mark.usefixtures("without_births")
def test_where_an_inode_is_all_that_is_known_a_file_that_the_pattern_names_is_a_log_of_its_own(log: Path) -> None:
    first = follow(log)
    first.run()
    append(log, b"line\n")
    rotate(log, b"new\n")
    named = Follower(follow(log, "app.log*").source, first.positions)
    assert sorted(named.run()) == [b"line", b"new"]
    assert named.gaps == []


@pytest.mark.usefixtures("without_births")
def test_where_an_inode_is_all_that_is_known_a_log_that_is_filled_in_its_place_is_read(log: Path) -> None:
    follower = follow(log)
    follower.run()
    append(log, b"line\n")
    assert follower.run() == [b"line"]
    assert follower.gaps == []


def test_what_comes_too_late_into_a_file_that_was_empty_when_it_was_renamed_is_a_gap(log: Path) -> None:
    log.write_bytes(b"first\n")
    follower = follow(log)
    assert follower.run() == [b"first"]
    rotate(log)
    assert follower.run() == []
    rotate(log, b"third\n")
    assert follower.run() == [b"third"]
    append(Path(f"{log}.1"), b"LATE\n")
    assert follower.tell() == [Gap(1, 0, 5, "written after rotation")]


def test_what_follows_a_loss_is_not_kept_before_that_is_settled(log: Path) -> None:
    log.write_bytes(b"first\nsecond\n")
    follower = follow(log)
    follower.run()
    log.write_bytes(b"")
    assert follower.run() == []
    (position,) = follower.positions.values()
    assert position is not None
    assert (position.incarnation, position.offset) == (0, 13)
    assert follower.tell() == [Gap(0, 13, None, "truncated")]


def test_a_position_that_says_nothing_of_its_file_is_kept_with_what_is_there(log: Path) -> None:
    """A person has set it to the end."""
    log.write_bytes(b"old\n")
    follower = follow(log)
    (partition,) = follower.source.partitions([])
    follower.positions[partition] = Position(0, 4)
    follower.run()
    append(log, b"line\n")
    rotate(log, b"new\n")
    assert follower.run() == [b"line", b"new"]


def parallel(path: Path) -> Follower:
    options = {"path": str(path), "rotation_quiet_s": 0, "parallel": True}
    return Follower(FileSource(FileSourceOptions.model_validate(options)))


@pytest.mark.parametrize("first", [b"", b"half a "])
@pytest.mark.parametrize("new", [b"", b"new\n"])
def test_a_log_in_parts_without_a_whole_line_is_followed_under_its_new_name(
    log: Path, first: bytes, new: bytes
) -> None:
    log.write_bytes(first)
    follower = parallel(log)
    assert follower.run() == []
    append(log, b"line\nlast\n")
    rotate(log, new)
    assert follower.run() == [first + b"line", b"last", *new.splitlines()]
    assert follower.gaps == []


def test_files_in_parts_that_were_empty_one_after_the_other_are_followed(log: Path) -> None:
    follower = parallel(log)
    follower.run()
    rotate(log)
    follower.run()
    append(log, b"second\n")
    rotate(log, b"third\n")
    append(Path(f"{log}.2"), b"late\n")
    assert sorted(follower.run()) == [b"late", b"second", b"third"]
    assert follower.gaps == []


def test_a_log_in_parts_that_was_empty_is_told_from_one_to_which_its_inode_was_given(log: Path) -> None:
    follower = parallel(log)
    follower.run()
    log.unlink()
    assert follower.tell() == [Gap(0, 0, 0, "ended")]
    for name in ("a", "b", "c"):  # one of them has the inode now
        log.with_name(name).write_bytes(b"not ours\n")
    assert follower.run() == []
    log.write_bytes(b"new\n")
    assert follower.run() == [b"new"]


def test_a_log_in_parts_is_followed_live_only_when_it_has_a_name(log: Path) -> None:
    source = parallel(log).source
    (part,) = source.partitions([])
    seen = source.available_offsets({part: None})[part]
    assert (seen.grows, seen.chosen) == (False, True)
    append(log, b"line\n")
    seen = source.available_offsets({part: Position(0, 0, seen.evidence)})[part]
    assert (seen.grows, seen.chosen, seen.end) == (True, False, 5)
