"""Which file follows one that was renamed: those that were at its path, in their order, whatever others are called."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower
from connect_core.sdk.values import Position
from connect_core.systems.file import birth, identity
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.patterns import Scheme
from connect_core.systems.file.source import FileSource


def follow(path: Path | str, **options: object) -> Follower:
    return Follower(FileSource(FileSourceOptions.model_validate({"path": str(path), "rotation_quiet_s": 0, **options})))


def append(path: Path, *lines: str) -> None:
    with path.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def aged(path: Path, seconds: float = 3600) -> None:
    """Last written so long ago."""
    at = path.stat().st_mtime - seconds
    os.utime(path, (at, at))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "worker.log"
    append(path, "one", "two")
    return path


@pytest.fixture
def begun(log: Path) -> Follower:
    follower = follow(log)
    assert follower.run() == [b"one", b"two"]
    return follower


def numbered(log: Path, count: int) -> None:
    """worker.log.1 is the newest, as logrotate has it."""
    for number in range(count, 0, -1):
        if (old := log.with_name(f"{log.name}.{number}")).exists():
            old.rename(log.with_name(f"{log.name}.{number + 1}"))
    log.rename(f"{log}.1")


def stem_numbered(log: Path, count: int) -> None:
    for number in range(count, 0, -1):
        if (old := log.with_name(f"worker-{number}.log")).exists():
            old.rename(log.with_name(f"worker-{number + 1}.log"))
    log.rename(log.with_name("worker-1.log"))


def rising(log: Path, count: int) -> None:
    """worker.log.1 is the oldest, as log4j has it."""
    log.rename(f"{log}.{count + 1}")


def dated(log: Path, count: int) -> None:
    log.rename(f"{log}-202611{23 + count}")


def stem_dated(log: Path, count: int) -> None:
    log.rename(log.with_name(f"worker.2026-11-{23 + count}.0.log"))


def tai64n(log: Path, count: int) -> None:
    """As multilog does: `current` becomes `@` and 24 hexadecimal digits."""
    log.rename(log.with_name(f"@4000000067{count:014x}.s"))


SCHEMES = [numbered, stem_numbered, rising, dated, stem_dated, tai64n]


@pytest.mark.parametrize("births", [True, False], ids=["births", "no-births"])
@pytest.mark.parametrize("rotate", SCHEMES, ids=lambda scheme: scheme.__name__)
def test_all_files_between_two_plans_are_read_in_their_order(
    log: Path, begun: Follower, rotate: Callable[[Path, int], None], births: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not births:
        monkeypatch.setattr(identity, "born_ns", lambda fd: birth.UNKNOWN)
    append(log, "three")
    for count in range(4):
        rotate(log, count)
        append(log, f"file {count}")
    assert begun.run() == [b"three", b"file 0", b"file 1", b"file 2", b"file 3"]
    assert begun.gaps == []
    assert begun.run() == []


# -------------------------------------------------------------------------------------------------------- other files


def test_a_dated_copy_of_what_was_read_is_not_read(log: Path, begun: Follower) -> None:
    aged(log)
    shutil.copy2(log, f"{log}.20261123")
    log.rename(f"{log}.1")
    append(log, "new")
    assert begun.run() == [b"new"]
    assert begun.gaps == []


def test_a_copy_that_is_called_as_the_rotated_files_are_is_not_read(log: Path, begun: Follower) -> None:
    aged(log)
    shutil.copy2(log, f"{log}-20261122")
    append(log, "three")
    log.rename(f"{log}-20261123")
    append(log, "new")
    assert begun.run() == [b"three", b"new"]
    assert begun.gaps == []


def test_a_copy_of_the_log_that_is_there_now_is_not_read(log: Path, begun: Follower) -> None:
    log.rename(f"{log}.1")
    append(log, "new")
    aged(log)
    shutil.copy2(log, f"{log}.901")
    append(log, "newer")
    assert begun.run() == [b"new", b"newer"]
    assert begun.gaps == []


def test_a_copy_that_bears_what_was_cut_from_the_log_is_not_passed_over(log: Path, begun: Follower) -> None:
    log.rename(f"{log}.1")
    append(log, "cut")
    aged(log)
    copy = Path(f"{log}.901")
    shutil.copy2(log, copy)
    log.write_bytes(b"")
    append(log, "new")
    assert "name it in the source's path" in undecided(begun, copy)


@pytest.mark.parametrize("when", ["before", "between", "after"])
def test_another_programs_log_is_not_read(log: Path, begun: Follower, when: str) -> None:
    foreign = log.with_name("worker-1.log")
    moments = {
        "before": lambda: append(foreign, "foreign"),
        "between": lambda: None,
        "after": lambda: append(foreign, "foreign, younger"),
    }
    if when == "before":
        moments["before"]()
    append(log, "three")
    log.rename(f"{log}.1")
    append(foreign, "foreign")
    append(log, "new")
    moments["after"]()
    assert begun.run() == [b"three", b"new"]
    assert begun.gaps == []


def test_an_older_rotated_file_is_not_read(log: Path) -> None:
    append(log.with_name("worker.log.2"), "of last week")
    append(log.with_name("worker.log.1"), "of yesterday")
    os.utime(log.with_name("worker.log.1"))
    new = log.with_name("fresh")
    append(new, "one")
    new.replace(log)
    begun = follow(log)
    assert begun.run() == [b"one"]
    for number in (2, 1):
        Path(f"{log}.{number}").rename(f"{log}.{number + 1}")
    log.rename(f"{log}.1")
    append(log, "new")
    assert begun.run() == [b"new"]
    assert begun.gaps == []


# ------------------------------------------------------------------------------------------------------- not decided


def undecided(begun: Follower, path: Path) -> str:
    """The reason of the gap at which the run stops; nothing of `path` is read."""
    (partition,) = begun.positions
    gaps = begun.source.available_offsets(begun.positions)[partition].gaps
    assert [(gap.loses, gap.end) for gap in gaps] == [(True, None)]
    assert str(path) in gaps[0].reason
    return gaps[0].reason


def test_a_copy_without_its_times_may_be_the_next_file(log: Path, begun: Follower) -> None:
    """A log of equal lines looks like that, too."""
    copy = Path(f"{log}.2")
    shutil.copy(log, copy)
    log.rename(f"{log}.1")
    append(log, "new")
    assert "move it to another folder" in undecided(begun, copy)
    copy.rename(copy.with_name("aside"))
    assert begun.run() == [b"new"]
    assert begun.gaps == []


def test_a_higher_number_beside_the_stem_may_be_another_log(log: Path, begun: Follower) -> None:
    log.rename(log.with_name("worker-1.log"))
    second = log.with_name("worker-2.log")
    append(second, "whose?")
    append(log, "new")
    assert "name it in the source's path" in undecided(begun, second)
    source = follow(log.with_name("worker*.log")).source
    begun.source = source
    assert sorted(begun.run()) == [b"new", b"whose?"]


NAMED_OTHERWISE = [
    ("worker-30-Nov-2026.log", "worker-01-Dec-2026.log"),
    ("worker.log.older", "worker.log.old"),
    ("worker.log-20261125", "worker.log-20261125.1"),
    ("worker.log.Mon", "worker.log.Tue"),
    ("worker.log.1", "worker.log-20261125"),
]


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize(("first", "second"), NAMED_OTHERWISE)
def test_a_file_that_is_named_otherwise_may_be_the_next_one(
    log: Path, begun: Follower, first: str, second: str, there: bool
) -> None:
    """Once a person has let the run go on, it is not asked about again."""
    log.rename(log.with_name(first))
    append(log, "between")
    between = log.rename(log.with_name(second))
    if there:
        append(log, "new")
    assert "name it in the source's path" in undecided(begun, between)
    begun.positions[Partition(str(log))] = _settled(begun, log)
    if not there:
        assert begun.run() == []
        append(log, "new")
    assert begun.run() == [b"new"]
    assert begun.gaps == []


def test_a_file_that_is_named_otherwise_is_asked_about_before_a_later_one_is_read(log: Path, begun: Follower) -> None:
    log.rename(f"{log}-20261125")
    append(log, "second of the day")
    unsure = log.rename(f"{log}-20261125.1")
    append(log, "next day")
    log.rename(f"{log}-20261126")
    append(log, "new")
    undecided(begun, unsure)
    assert begun.run() == [b"next day", b"new"]
    assert [gap.end for gap in begun.gaps] == [None]


@pytest.mark.parametrize("name", ["worker-1.log", "worker-01-Dec.log", "worker.log.lock", "worker.log.9.gz"])
def test_what_is_not_named_like_a_file_that_is_there_or_holds_what_was_read_is_not_asked_about(
    log: Path, begun: Follower, name: str
) -> None:
    log.rename(f"{log}.1")
    log.with_name(name).write_bytes(gzip.compress(b"one\ntwo\n") if name.endswith("gz") else b"somebody's\n")
    append(log, "new")
    assert begun.run() == [b"new"]
    assert begun.gaps == []


@pytest.mark.parametrize("binary", [True, False])
def test_a_file_that_is_being_compressed_is_not_asked_about(log: Path, binary: bool) -> None:
    lines = [os.urandom(30).hex() for _ in range(5_000)]
    append(log, *lines)
    begun = follow(log, binary=binary)
    begun.run()
    old = log.rename(f"{log}.1")
    packed = Path(f"{log}.1.gz")
    packed.write_bytes(gzip.compress(old.read_bytes())[:100_000])
    assert begun.run() == []
    assert begun.source.available_offsets(begun.positions)[Partition(str(log))].gaps == ()


def test_a_file_from_a_backup_may_be_the_next_one(log: Path, begun: Follower, tmp_path: Path) -> None:
    (tmp_path / "backup").mkdir()
    old = tmp_path / "backup" / "old"
    append(old, "of last month")
    aged(old)
    log.rename(f"{log}.1")
    shutil.copy2(old, f"{log}.2")
    append(log, "new")
    undecided(begun, Path(f"{log}.2"))


MINUTES = {  # when the three files of a log were made and last written, by a clock that was set back in between
    "before the last": ((0, 3), (3, 4), (-7, -6)),
    "before the last, a little": ((0, 3), (3, 9), (1, 2)),
    "before the one between": ((0, 3), (-7, -5), (-5, -4)),
    "while the first was written": ((0, -2), (-2, 1), (1, 2)),
}


@pytest.mark.parametrize("minutes", MINUTES.values(), ids=MINUTES)
def test_a_file_between_two_others_is_not_passed_over_when_the_clock_was_set_back(
    log: Path, monkeypatch: pytest.MonkeyPatch, minutes: tuple[tuple[int, int], ...]
) -> None:
    made = {log.stat().st_ino: minutes[0]}
    now = log.stat().st_mtime_ns

    def at(minute: int) -> int:
        return now + minute * 60 * 10**9

    monkeypatch.setattr(identity, "born_ns", lambda fd: at(made[os.fstat(fd).st_ino][0]))
    begun = follow(log)
    assert begun.run() == [b"one", b"two"]
    log.rename(f"{log}.1")
    between = Path(f"{log}.1")
    append(log, "between")
    made[log.stat().st_ino] = minutes[1]
    between.rename(f"{log}.2")
    log.rename(between)
    append(log, "new")
    made[log.stat().st_ino] = minutes[2]
    for path in (Path(f"{log}.2"), between, log):
        written = at(made[path.stat().st_ino][1])
        os.utime(path, ns=(written, written))
    undecided(begun, between)


# --------------------------------------------------------------------------------------------------------------- links


def test_a_link_that_moved_on_twice_is_followed_through_all_files(tmp_path: Path) -> None:
    link = tmp_path / "current.log"
    foreign = tmp_path / "app-20261130.log"
    append(foreign, "written ahead of its time")
    days = [tmp_path / f"app-202611{day}.log" for day in (23, 24, 25)]
    append(days[0], "one")
    link.symlink_to(days[0].name)
    begun = follow(link)
    assert begun.run() == [b"one"]
    append(days[0], "two")
    for day in days[1:]:
        append(day, day.stem)
        link.unlink()
        link.symlink_to(day.name)
    assert begun.run() == [b"two", b"app-20261124", b"app-20261125"]
    assert begun.gaps == []


def test_a_link_to_a_container_log_that_is_rotated_and_started_anew(tmp_path: Path) -> None:
    """As a kubelet has it: it renames the log, and a container that starts again has the next number."""
    pod = tmp_path / "pod"
    pod.mkdir()
    link = tmp_path / "web.log"
    append(pod / "0.log", "one")
    link.symlink_to(pod / "0.log")
    begun = follow(tmp_path / "*.log")
    assert begun.run() == [b"one"]
    append(pod / "0.log", "two")
    (pod / "0.log").rename(pod / "0.log.20261123-101112")
    append(pod / "0.log", "three")
    assert begun.run() == [b"two", b"three"]
    append(pod / "0.log", "four")
    append(pod / "1.log", "five")
    link.unlink()
    link.symlink_to(pod / "1.log")
    assert begun.run() == [b"four", b"five"]
    assert begun.gaps == []


def test_a_link_to_a_folder_moves_on(tmp_path: Path) -> None:
    for day in ("monday", "tuesday"):
        (tmp_path / day).mkdir()
    today = tmp_path / "today"
    today.symlink_to("monday")
    append(today / "app.log", "one")
    begun = follow(today / "*.log")
    assert begun.run() == [b"one"]
    append(today / "app.log", "two")
    append(tmp_path / "tuesday" / "app.log", "three")
    today.unlink()
    today.symlink_to("tuesday")
    assert begun.run() == [b"two", b"three"]
    assert begun.gaps == []


def test_a_link_to_a_folder_that_moved_on_twice(tmp_path: Path) -> None:
    today = tmp_path / "today"
    days = [tmp_path / f"2026-11-{day}" for day in (23, 24, 25)]
    for number, day in enumerate(days):
        day.mkdir()
        today.unlink(missing_ok=True)
        today.symlink_to(day.name)
        if not number:
            begun = follow(today / "app.log")
        append(today / "app.log", day.name)
        assert number or begun.run() == [b"2026-11-23"]
    assert begun.run() == [b"2026-11-24", b"2026-11-25"]
    assert begun.gaps == []


def test_a_link_that_comes_back_goes_on_where_it_left(tmp_path: Path) -> None:
    blue, green, link = tmp_path / "blue.log", tmp_path / "green.log", tmp_path / "live"
    append(blue, "blue 1")
    append(green, "green 1")
    link.symlink_to(blue)
    begun = follow(link)
    read = begun.run()
    for number, target in enumerate((green, blue, green), 2):
        link.unlink()
        link.symlink_to(target)
        append(target, f"{target.stem} {number}")
        read += begun.run()
    assert read == [b"blue 1", b"green 1", b"green 2", b"blue 3", b"green 4"]
    assert begun.gaps == []


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("name", ["current", "c*"])
def test_a_link_out_of_the_roots_is_refused_by_name(tmp_path: Path, name: str, parallel: bool) -> None:
    """Also one that led elsewhere when the document was applied; the other files are read."""
    inside, outside = tmp_path / "logs", tmp_path / "secret"
    for folder in (inside, outside):
        folder.mkdir()
        append(folder / "a.log", folder.name)
    link = inside / "current"
    link.symlink_to(inside / "a.log")
    begun = follow(inside / name, roots=[str(inside)], parallel=parallel)
    assert begun.run() == [b"logs"]
    link.unlink()
    link.symlink_to(outside / "a.log")
    append(inside / "cron.log", "other")
    partitions = dict.fromkeys(begun.source.partitions([*begun.positions])) | begun.positions
    seen = begun.source.available_offsets(partitions)
    failure = seen[Partition(str(link))].failure
    assert failure is not None
    assert failure.kind == "ConfigError"
    assert str(outside / "a.log") in failure.what
    assert [one.failure for key, one in seen.items() if key != Partition(str(link))] == [None] * (len(seen) - 1)
    link.unlink()
    link.symlink_to(inside / "a.log")
    begun.positions = partitions
    assert begun.run() == ([b"other"] if name == "c*" else [])


# --------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("name", "others", "strangers"),
    [
        ("app.log.2", ["app.log.1", "app.log.12"], ["app.log.20261123", "app-1.log", "app.log", "app.log.1.gz"]),
        ("app.log-20261123", ["app.log-20261124"], ["app.log-1", "app.log.20261124", "app.log-20261124.1"]),
        ("app-1.log", ["app-2.log"], ["app.log.2", "app-x.log", "appp-2.log", "app-2.log.1"]),
        ("app.2026-11-23.0.log", ["app.2026-11-24.1.log"], ["app.0.log", "app.2026-11-23.log"]),
        ("app.log.2026-11-23T10-00-00", ["app.log.2026-11-24T01-02-03"], ["app.log.2026-11-24"]),
        ("@400000006743c1f62c3a1b2c.s", ["@400000006743c1f72c3a1b2c.s"], ["@4000.s", "current"]),
    ],
)
def test_the_names_of_a_rotation_are_learnt_from_one(name: str, others: list[str], strangers: list[str]) -> None:
    scheme = Scheme.learnt(name, ["app.log"])
    assert scheme is not None
    assert [other for other in (name, *others) if scheme.numbers(other) is None] == []
    assert [other for other in strangers if scheme.numbers(other) is not None] == []


@pytest.mark.parametrize("name", ["app.log.old", "app.log~", "archive.log", "app.log"])
def test_a_name_without_a_number_is_one_of_a_kind(name: str) -> None:
    assert Scheme.learnt(name, ["app.log"]) is None


# ------------------------------------------------------------------------------------------------- files before these


@pytest.mark.parametrize("pattern", ["worker.log", "worker.log*"])
def test_a_hundred_kept_files_make_no_position_long(log: Path, pattern: str) -> None:
    follower = follow(log.with_name(pattern))
    follower.run()
    for count in range(100):
        numbered(log, count)
        append(log, f"file {count}")
        assert follower.run() == [b"file %d" % count]
    stored = follower.positions[Partition(str(log))]
    assert stored is not None
    assert len(str(stored.evidence)) < (4_000 if pattern == "worker.log" else 5_500)
    assert follower.run() == []
    assert follower.gaps == []
    with Path(f"{log}.8").open("a") as late:
        late.write("late\n")
    append(log, "last")
    assert follower.run() == [b"last"]
    assert [gap.reason for gap in follower.gaps] == ["written after rotation"]


def test_a_file_that_went_is_not_forgotten_to_have_been_read(log: Path) -> None:
    """The pattern names what is left of it by then."""
    follower = follow(log.with_name("worker.log*"))
    follower.run()
    numbered(log, 0)
    append(log, "new")
    assert follower.run() == [b"new"]
    log.unlink()
    assert follower.run() == []
    follower.positions[Partition(str(log))] = _settled(follower, log)
    assert follower.run() == []
    append(log, "anew")
    assert follower.run() == [b"anew"]


def _settled(follower: Follower, log: Path) -> Position:
    seen = follower.source.available_offsets(follower.positions)[Partition(str(log))]
    return Position(seen.incarnation, seen.begin, seen.evidence)
