"""What becomes of a position when its file is renamed, cut, replaced or deleted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import Follower
from connect_core.sdk.values import ORIGIN, Gap, Json, Position
from connect_core.systems.file import birth, identity
from connect_core.systems.file.folders import Folders
from connect_core.systems.file.former import Owners
from connect_core.systems.file.identity import Former, Past
from connect_core.systems.file.options import FileSourceOptions
from connect_core.systems.file.source import FileSource


def follow(path: Path | str, **options: object) -> Follower:
    return Follower(FileSource(FileSourceOptions.model_validate({"path": str(path), "rotation_quiet_s": 0, **options})))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "app.log"
    path.write_bytes(b"one\ntwo\n")
    return path


@pytest.fixture
def begun(log: Path) -> Follower:
    follower = follow(log)
    assert follower.run() == [b"one", b"two"]
    return follower


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def incarnation(follower: Follower) -> int:
    (position,) = follower.positions.values()
    assert position is not None
    return position.incarnation


def test_growth_goes_on_where_it_ended(log: Path, begun: Follower) -> None:
    append(log, b"thr")
    assert begun.run() == []
    append(log, b"ee\nfour\n")
    assert begun.run() == [b"three", b"four"]
    assert incarnation(begun) == 0


def test_a_renamed_file_is_read_to_its_end_before_the_new_one(log: Path, begun: Follower) -> None:
    append(log, b"three\nno line feed")
    log.rename(log.with_suffix(".log.1"))
    log.write_bytes(b"new\n")
    assert begun.step() == [b"three", b"no line feed"]
    assert incarnation(begun) == 0
    assert begun.step() == [b"new"]
    assert incarnation(begun) == 1
    assert begun.gaps == []
    append(log, b"newer\n")
    assert begun.run() == [b"newer"]


def test_a_renamed_file_that_is_still_written_is_waited_for(log: Path) -> None:
    follower = follow(log, rotation_quiet_s=60)
    follower.run()
    append(log, b"three\nhal")
    log.rename(log.with_suffix(".1"))
    log.write_bytes(b"new\n")
    assert follower.run() == [b"three"]
    append(log.with_suffix(".1"), b"f\n")
    assert follower.run() == [b"half"]
    os.utime(log.with_suffix(".1"), (0, 0))
    assert follower.run() == [b"new"]


def test_what_comes_into_a_renamed_file_too_late_is_a_gap(log: Path, begun: Follower) -> None:
    log.rename(log.with_suffix(".1"))
    log.write_bytes(b"new\n")
    assert begun.run() == [b"new"]
    append(log.with_suffix(".1"), b"late\n")
    append(log, b"newer\n")
    assert begun.run() == [b"newer"]
    assert begun.gaps == [Gap(0, 8, 13, "written after rotation")]
    append(log, b"newest\n")
    assert begun.run() == [b"newest"]
    assert len(begun.gaps) == 1


def test_a_file_that_gets_another_name_during_a_look_is_found(log: Path) -> None:
    """The look has listed the folder before, for another file."""
    folders, inode = Folders(str(log)), log.stat().st_ino
    for name in ("app.log.1", "app.log.2"):
        with folders.moved(inode, (str(log),), lambda file: file.ino == inode) as file:
            assert file is not None
            Path(file.path).rename(log.with_name(name))
        log.write_bytes(b"new\n")
    former = Former(0, log.stat().st_dev, inode, 4, identity.fingerprint(b"one\n"), 8)
    assert folders.path_of(former, str(log)) == f"{log}.2"
    os.unlink(f"{log}.2")
    assert folders.path_of(former, str(log)) is None


def test_a_file_that_is_renamed_when_it_was_found_is_not_taken_for_the_next_one(
    log: Path, begun: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name that it had is by then that of a larger file."""
    log.rename(f"{log}.1")
    log.write_bytes(b"new\n" * 5)
    begun.run()
    path_of = Folders.path_of

    def rotating(self: Folders, former: Former, near: str) -> str | None:
        path = path_of(self, former, near)
        if log.exists():
            os.rename(f"{log}.1", f"{log}.2")
            log.rename(f"{log}.1")
        return path

    monkeypatch.setattr(Folders, "path_of", rotating)
    append(log, b"newer\n")
    assert begun.run() == [b"newer"]
    assert begun.gaps == []
    monkeypatch.undo()
    append(Path(f"{log}.2"), b"late\n")
    log.write_bytes(b"newest\n")
    assert begun.run() == [b"newest"]
    assert begun.gaps == [Gap(0, 8, 13, "written after rotation")]


def test_two_rotations_between_plans_lose_nothing(log: Path, begun: Follower) -> None:
    first, second = Path(f"{log}.2"), Path(f"{log}.1")
    append(log, b"three\n")
    log.rename(first)
    second.write_bytes(b"between\nlast")
    log.write_bytes(b"new\n")
    assert begun.run() == [b"three", b"between", b"last", b"new"]
    assert incarnation(begun) == 2
    assert begun.gaps == []


def test_a_renamed_file_that_the_pattern_matches_is_not_read_again(log: Path, tmp_path: Path) -> None:
    follower = follow(tmp_path / "app.log*")
    assert follower.run() == [b"one", b"two"]
    for number in range(3):
        for old in (2, 1):
            if Path(f"{log}.{old}").exists():
                os.rename(f"{log}.{old}", f"{log}.{old + 1}")
        append(log, b"rest %d\n" % number)
        log.rename(f"{log}.1")
        log.write_bytes(b"new %d\n" % number)
        assert sorted(follower.run()) == [b"new %d" % number, b"rest %d" % number]
    assert follower.gaps == []


@pytest.mark.parametrize("parallel", [False, True])
def test_two_hard_links_are_one_file(log: Path, tmp_path: Path, parallel: bool) -> None:
    """As a rotation by `ln` and `rm` leaves it for a moment."""
    follower = follow(tmp_path / "app.log*", parallel=parallel)
    os.link(log, f"{log}.1")
    assert follower.run() == [b"one", b"two"]
    log.unlink()
    append(Path(f"{log}.1"), b"three\n")
    log.write_bytes(b"new\n")
    assert sorted(follower.run()) == [b"new", b"three"]
    assert follower.gaps == []


def test_of_two_links_to_a_file_the_one_that_is_read_has_it(log: Path, tmp_path: Path) -> None:
    """A partition that the document names no more is told of last: it takes nothing from those that are read."""
    former = tmp_path / "former.log"
    former.symlink_to(log)
    follower = follow(log)
    follower.positions = {Partition(str(log)): None, Partition(str(former)): Position(3, 0, {"older": "x" * 12})}
    assert follower.run() == [b"one", b"two"]


@pytest.mark.parametrize(("rotations", "again"), [(8, []), (10, [b"file 0"])])
def test_a_pattern_that_names_more_knows_the_last_files_of_a_log(
    tmp_path: Path, rotations: int, again: list[bytes]
) -> None:
    """A limit that is told in the guarantees: eight of them, so that a position does not grow with each rotation."""
    log = tmp_path / "app.log"
    log.write_bytes(b"file 0\n")
    follower = follow(tmp_path / "*.log")
    follower.run()
    for number in range(rotations):
        log.rename(f"{log}.{100 + number}")
        log.write_bytes(b"file %d\n" % (number + 1))
        assert follower.run() == [b"file %d" % (number + 1)]
    wider = follow(tmp_path / "*")
    wider.positions = follower.positions
    assert wider.run() == again


@pytest.mark.parametrize("first", ["living", "dead"])
def test_a_file_with_the_inode_of_one_that_is_gone_belongs_to_its_own_log(
    log: Path, tmp_path: Path, begun: Follower, first: str
) -> None:
    """The one that is gone was read before the present one of another log."""
    mine, other = Partition(str(log)), Partition(str(tmp_path / "other.log"))
    status = log.stat()
    dead = Former(0, status.st_dev, status.st_ino, 4, identity.fingerprint(b"dead"), 80, born=1)
    positions = {mine: begun.positions[mine], other: Position(1, 0, Past((dead,)).as_json())}
    order = [mine, other] if first == "living" else [other, mine]
    owners = Owners(Folders(str(log)), [(one, positions[one]) for one in order])
    with identity.OpenFile(str(log)) as file:
        assert owners.of(file) == mine
    Path(f"{log}.1").write_bytes(b"dead\n")
    with identity.OpenFile(f"{log}.1") as file:
        assert owners.of(file) is None


def renumbered(kept: Json, by: int = 1) -> Json:
    """What was kept of files before their file system got the number that it has now."""
    former = [entry | {"dev": entry["dev"] + by} for entry in kept.get("former", ())]
    return kept | {"dev": kept["dev"] + by} | ({"former": former} if former else {})


@pytest.mark.parametrize("rotated", [False, True])
def test_a_file_system_that_has_another_number_holds_the_same_files(log: Path, tmp_path: Path, rotated: bool) -> None:
    """After a start of the machine, or when it was mounted again; the path names rotated files, too."""
    if not birth_of(log):
        pytest.skip("this file system does not tell when a file was made")
    follower = follow(tmp_path / "app.log*")
    follower.run()
    log.rename(f"{log}.1")
    log.write_bytes(b"new\n")
    assert follower.run() == [b"new"]
    follower.positions = {
        one: at and replace(at, evidence=renumbered(at.evidence)) for one, at in follower.positions.items()
    }
    append(log, b"more\n")
    if rotated:
        Path(f"{log}.1").rename(f"{log}.2")
        log.rename(f"{log}.1")
        log.write_bytes(b"newest\n")
    assert sorted(follower.run()) == [b"more", *([b"newest"] if rotated else [])]
    assert follower.gaps == []


@pytest.mark.parametrize("change", ["snapshot", "born", "head", "tail"])
def test_a_file_of_another_file_system_is_another_one(log: Path, begun: Follower, change: str) -> None:
    """Of a snapshot inode, birth and content are the same: but the folder has the device that it had."""
    if not birth_of(log):
        pytest.skip("this file system does not tell when a file was made")
    (partition,) = begun.positions
    position = begun.positions[partition]
    assert position is not None
    kept = renumbered(position.evidence)
    if change == "snapshot":
        kept = position.evidence
    else:
        kept |= {change: kept["born"] - 1 if change == "born" else "0" * 16}
    seen = identity.Evidence.of(kept)
    assert seen is not None
    with identity.OpenFile(str(log)) as file:
        file.dev += change == "snapshot"
        assert file.verdict(seen) is not identity.FileVerdict.SAME


def birth_of(log: Path) -> int:
    with identity.OpenFile(str(log)) as file:
        return file.born


def test_an_empty_file_between_two_rotations_stops_nothing(log: Path, begun: Follower) -> None:
    log.rename(f"{log}.2")
    Path(f"{log}.1").write_bytes(b"")
    log.write_bytes(b"new\n")
    assert begun.run() == [b"new"]
    assert begun.gaps == []


def test_a_file_moved_to_another_folder_of_the_pattern_is_not_read_again(log: Path, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.mkdir()
    follower = follow(tmp_path / "**" / "*.log*")
    follower.run()
    append(log, b"three\n")
    log.rename(archive / "app.log.1")
    log.write_bytes(b"new\n")
    assert follower.run() == [b"three", b"new"]
    append(log, b"newer\n")
    assert follower.run() == [b"newer"]
    assert follower.run() == []
    assert follower.gaps == []


def test_a_file_rotated_away_waits_for_its_successor(log: Path, begun: Follower) -> None:
    log.rename(log.with_suffix(".1"))
    assert begun.run() == []
    log.write_bytes(b"new\n")
    assert begun.run() == [b"new"]
    assert begun.gaps == []


def test_a_file_that_was_cut_is_a_gap(log: Path, begun: Follower) -> None:
    os.truncate(log, 0)
    append(log, b"new\n")
    assert begun.run() == [b"new"]
    assert begun.gaps == [Gap(0, 8, None, "truncated")]
    assert incarnation(begun) == 1


def test_what_came_into_a_file_after_it_was_cut_is_read_though_it_was_renamed(log: Path, begun: Follower) -> None:
    os.truncate(log, 0)
    append(log, b"three\nfour")
    log.rename(log.with_name("app.log.1"))
    append(log, b"five\n")
    assert begun.run() == [b"three", b"four", b"five"]
    assert begun.gaps == [Gap(0, 8, None, "truncated")]
    assert incarnation(begun) == 2


def test_another_file_with_the_inode_of_one_that_is_gone_is_not_read(
    log: Path, begun: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody tells when files were made the two look like one that was cut."""
    monkeypatch.setattr(identity, "born_ns", lambda fd: birth.UNKNOWN)
    os.truncate(log, 0)
    append(log, b"another program's\n")
    log.rename(log.with_name("other.txt"))
    append(log, b"five\n")
    assert begun.run() == [b"five"]
    assert begun.gaps == [Gap(0, 8, None, "replaced")]


def test_a_cut_file_that_the_pattern_names_under_its_new_name_is_read_once(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_bytes(b"one\ntwo\n")
    follower = follow(tmp_path / "app*")
    assert follower.run() == [b"one", b"two"]
    os.truncate(log, 0)
    append(log, b"three\n")
    log.rename(log.with_name("app.log.1"))
    append(log, b"four\n")
    assert sorted(follower.run()) == [b"four", b"three"]


@pytest.mark.parametrize("births", [True, False])
@pytest.mark.parametrize("first", ["app.log", "app.log.1"])
def test_a_file_that_was_empty_when_it_was_settled_is_read_once(
    tmp_path: Path, births: bool, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log finds it under its new name, which is that of a partition, too: the first of both has it."""
    if not births:
        monkeypatch.setattr(identity, "born_ns", lambda fd: birth.UNKNOWN)
    log = tmp_path / "app.log"
    log.write_bytes(b"one\ntwo\n")
    follower = follow(tmp_path / "app.log*")
    assert follower.run() == [b"one", b"two"]
    os.truncate(log, 0)
    assert follower.tell() == [Gap(0, 8, None, "truncated")]
    append(log, b"three\nfour\n")
    log.rename(f"{log}.1")
    log.write_bytes(b"five\n")
    follower.positions = {Partition(str(tmp_path / first)): None, **follower.positions}
    assert sorted(follower.run()) == [b"five", b"four", b"three"]
    append(log, b"six\n")
    assert follower.run() == [b"six"]
    assert follower.gaps == []
    assert follower.tell() == []


def test_a_copied_and_cut_file_that_grew_past_the_offset_is_a_gap(log: Path, begun: Follower) -> None:
    shutil.copy(log, log.with_suffix(".1"))
    os.truncate(log, 0)
    append(log, b"six\nseven\neight\n")
    assert begun.run() == [b"six", b"seven", b"eight"]
    assert begun.gaps == [Gap(0, 8, None, "replaced")]


def test_a_cut_file_with_the_same_header_is_a_gap(tmp_path: Path) -> None:
    log, header = tmp_path / "table.csv", b"#" * 2000 + b"\n"
    log.write_bytes(header + b"a\nb\n")
    follower = follow(log)
    assert len(follower.run()) == 3
    os.truncate(log, 0)
    append(log, header + b"c\nd\ne\n")
    assert follower.run()[1:] == [b"c", b"d", b"e"]
    assert [gap.reason for gap in follower.gaps] == ["replaced"]


def test_a_replaced_file_is_a_gap_even_when_it_has_the_inode(log: Path, begun: Follower) -> None:
    before = log.stat().st_ino
    log.unlink()
    log.write_bytes(b"entirely new\n")  # file systems give the freed inode to it
    assert begun.run() == [b"entirely new"]
    assert [gap.reason for gap in begun.gaps] == ["replaced"]
    if log.stat().st_ino == before:
        assert incarnation(begun) == 1


def test_a_file_replaced_from_aside_is_a_gap(log: Path, begun: Follower, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    aside = tmp_path / "elsewhere" / "app.log"
    aside.write_bytes(b"one\ntwo\nthree\n")  # the same beginning: still not the file that was read
    os.replace(aside, log)
    assert begun.run() == [b"one", b"two", b"three"]
    assert begun.gaps == [Gap(0, 8, None, "replaced")]


def test_a_file_deleted_with_unread_lines_is_a_gap_once(log: Path, begun: Follower) -> None:
    append(log, b"three\n")
    assert begun.source.available_offsets(begun.positions)
    log.unlink()
    (partition,) = begun.positions
    bounds = begun.source.available_offsets(begun.positions)[partition]
    assert (bounds.incarnation, bounds.begin, bounds.end) == (1, 0, 0)
    assert bounds.gaps == (Gap(0, 8, None, "deleted"),)
    begun.positions[partition] = Position(bounds.incarnation, bounds.begin, bounds.evidence)
    assert begun.source.available_offsets(begun.positions)[partition].gaps == ()
    log.write_bytes(b"new\n")
    assert begun.run() == [b"new"]
    assert begun.gaps == []
    assert incarnation(begun) == 1


def test_an_offset_set_by_a_person_is_read_from(log: Path) -> None:
    follower = follow(log)
    follower.positions[Partition(str(log))] = Position(0, 4)
    assert follower.run() == [b"two"]
    follower.positions[Partition(str(log))] = Position(0, 400)
    assert follower.run() == [b"one", b"two"]
    assert follower.gaps == [Gap(0, 400, None, "truncated")]


def test_a_link_that_leads_to_another_file_is_a_rotation(tmp_path: Path, log: Path) -> None:
    current = tmp_path / "current"
    current.symlink_to(log)
    follower = follow(current)
    assert follower.run() == [b"one", b"two"]
    append(log, b"three\n")
    (tmp_path / "next.log").write_bytes(b"new\n")
    current.unlink()
    current.symlink_to(tmp_path / "next.log")
    assert follower.run() == [b"three", b"new"]
    assert follower.gaps == []


@pytest.mark.parametrize(("others", "again"), [(8, []), (9, [b"file 0"])])
def test_a_link_that_leads_to_a_file_again_knows_the_last_ones(tmp_path: Path, others: int, again: list[bytes]) -> None:
    """A limit that the page on delivery states: eight of them, so that a position does not grow with each move."""
    link = tmp_path / "current"
    link.symlink_to(tmp_path / "file")
    follower = follow(link)
    for number in range(others + 1):
        (tmp_path / f"{number}.txt").write_bytes(b"file %d\n" % number)
        link.unlink()
        link.symlink_to(tmp_path / f"{number}.txt")
        assert follower.run() == [b"file %d" % number]
    link.unlink()
    link.symlink_to(tmp_path / "0.txt")
    assert follower.run() == again


class Listed:
    """An entry of a folder as some FUSE file systems list it: without the inode that the file has."""

    def __init__(self, entry: os.DirEntry[str]) -> None:
        self._entry, self.name, self.path = entry, entry.name, entry.path
        self.is_file, self.is_symlink, self.stat = entry.is_file, entry.is_symlink, entry.stat

    def inode(self) -> int:
        return 0xFFFFFFFF


def test_a_renamed_file_is_found_where_folders_list_other_inodes(
    log: Path, begun: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = os.scandir

    @contextmanager
    def listed(folder: str) -> Iterator[Iterator[Listed]]:
        with listing(folder) as entries:
            yield map(Listed, entries)

    append(log, b"three\n")
    log.rename(f"{log}.1")
    log.write_bytes(b"new\n")
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", listed)
        assert begun.run() == [b"three", b"new"]
    assert begun.gaps == []


def test_an_empty_file_that_is_renamed_leaves_no_trace(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_bytes(b"")
    follower = follow(log)
    assert follower.run() == []
    log.rename(log.with_suffix(".1"))
    log.write_bytes(b"new\n")
    assert follower.run() == [b"new"]
    assert follower.gaps == []


# ----------------------------------------------------------------------------------------------- a name of its own


def named(path: Path) -> tuple[str, bool]:
    """The name under which its records are delivered, and whether it is followed."""
    source = follow(path).source
    (seen,) = source.available_offsets(dict.fromkeys(source.partitions([]))).values()
    return str(seen.evidence.get(ORIGIN, "")), seen.grows


def test_a_file_is_followed_when_it_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first line gives it one: what is written under none is told by a number that a restored ledger forgets."""
    log = tmp_path / "app.log"
    for begin in (b"", b"first li"):
        log.write_bytes(begin)
        assert named(log) == ("", False)
    log.write_bytes(b"first line\n")
    name, followed = named(log)
    assert followed
    assert len(name) == 8
    monkeypatch.setattr(identity, "born_ns", lambda fd: 0)
    log.write_bytes(b"")
    assert named(log) == ("", True), "where births are not known a number has to do"


def test_a_file_keeps_its_name_until_it_begins_anew(log: Path, tmp_path: Path) -> None:
    name, _ = named(log)
    append(log, b"three\n" * 500)
    renamed = log.rename(tmp_path / "renamed.log")
    assert named(renamed)[0] == name
    os.truncate(renamed, 0)
    append(renamed, b"two\n")
    assert named(renamed)[0] != name
    log.write_bytes(b"one\ntwo\n")
    assert named(log)[0] != name, "another file, whatever it holds"
