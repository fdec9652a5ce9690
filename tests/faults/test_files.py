"""Files that are read: rotated, cut, replaced, deleted and grown again, while nobody looks, while a run stands still
in the middle, and between a killed worker and the next attempt (delivery rules 9, 13 and 15)."""

from __future__ import annotations

import gzip
import lzma
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from connect_core.stack.processes import wait_until
from tests.faults.copying import HEADER, NAME, Copying, end
from tests.faults.kit.processes import LIMIT_S
from tests.faults.rows import FaultRow
from tests.packing import pack
from tests.site import Site

pytestmark = pytest.mark.fault

WHERE = {"where": "file → file", "database": "SQLite"}
READ, UNREAD = 12_000, 12_000
"""Lines: more than one batch of the source each."""


# ------------------------------------------------------------------------------------------------------------- changes


def rotated(copying: Copying) -> None:
    copying.log.rename(f"{copying.log}.1")
    copying.append(50)


def rotated_twice(copying: Copying) -> None:
    copying.log.rename(f"{copying.log}.2")
    copying.append(50)
    copying.log.rename(f"{copying.log}.1")
    copying.append(50)


def rotated_and_compressed(copying: Copying) -> None:
    copying.log.rename(f"{copying.log}.1")
    copying.append(50)
    pack(Path(f"{copying.log}.1"))


def rotated_twice_and_compressed(copying: Copying) -> None:
    """As logrotate does it with `delaycompress`: the last file but one is compressed."""
    rotated_twice(copying)
    pack(Path(f"{copying.log}.2"), ".zst")


def copied_and_truncated(copying: Copying) -> None:
    shutil.copy(copying.log, f"{copying.log}.1")
    os.truncate(copying.log, 0)
    copying.append(50)


def rotated_beside_a_copy_and_another_log(copying: Copying) -> None:
    """A person keeps a copy with its times, and another program begins a log of its own."""
    shutil.copy2(copying.log, f"{copying.log}.20261123")
    copying.log.rename(f"{copying.log}.1")
    copying.log.with_name("app-1.log").write_bytes(b"not ours\n" * 50)
    copying.append(50)


def linked_on_twice(copying: Copying) -> None:
    """The log was a file of its own until now; its path is a link from here on."""
    folder = copying.log.parent
    for day in (24, 25):
        new = folder / f"app-202611{day}.data"
        copying.append(50, new)
        link = folder / "new-link"
        link.symlink_to(new.name)
        link.replace(copying.log)


def replaced_with_the_same_header(copying: Copying) -> None:
    new = copying.log.with_suffix(".new")
    new.write_bytes(HEADER)
    copying.append(READ + UNREAD + 50, new)
    new.replace(copying.log)


def regrown_past_the_offset(copying: Copying) -> None:
    os.truncate(copying.log, 0)
    copying.log.write_bytes(HEADER)
    copying.append(READ + UNREAD + 50)


def deleted(copying: Copying) -> None:
    copying.log.unlink()


def deleted_and_its_inode_reused(copying: Copying) -> None:
    inode = copying.log.stat().st_ino
    copying.log.unlink()
    for number in range(10_000):  # another process may take the lowest free inode first
        new = copying.log.with_name(f"new-{number}")
        new.write_bytes(HEADER)
        if new.stat().st_ino == inode:
            copying.append(READ + UNREAD + 50, new)
            new.rename(copying.log)
            return
    pytest.fail("this file system did not give the inode again")


@dataclass(frozen=True)
class Change:
    """`keeps`: what was not read yet can still be had. `headers`: header lines that come with the new file.
    `in_place`: whoever has the file open sees the change. `ends`: nothing is there any more."""

    words: str
    make: Callable[[Copying], None]
    keeps: bool = False
    headers: int = 0
    reason: str = "replaced"
    in_place: bool = False
    ends: bool = False


CHANGES = {
    "rotated": Change("rotated by rename", rotated, keeps=True),
    "rotated-twice": Change("rotated by rename twice", rotated_twice, keeps=True),
    "compressed": Change("rotated by rename and compressed (gzip)", rotated_and_compressed, keeps=True),
    "compressed-later": Change(
        "rotated by rename twice, the first compressed (zstd)", rotated_twice_and_compressed, keeps=True
    ),
    "copied": Change(
        "rotated beside a copy and another program's log", rotated_beside_a_copy_and_another_log, keeps=True
    ),
    "copytruncate": Change("rotated by copytruncate", copied_and_truncated, reason="truncated", in_place=True),
    "same-header": Change("replaced by a file with the same header", replaced_with_the_same_header, headers=1),
    "regrown": Change("truncated and grown past the offset", regrown_past_the_offset, headers=1, in_place=True),
    "deleted": Change("deleted", deleted, reason="deleted", ends=True),
    "inode-reused": Change("deleted, its inode given to the next file", deleted_and_its_inode_reused, headers=1),
}


def feed(site: Site) -> Copying:
    """A log of which a part is read and settled and a part is not."""
    copying = Copying(site)
    copying.log.write_bytes(HEADER)
    copying.append(READ)
    copying.run()
    copying.append(UNREAD)
    return copying


def feed_link(site: Site) -> Copying:
    """The same, with a path that is a symbolic link from the beginning."""
    folder = site.folder / "logs"
    folder.mkdir()
    (folder / "app-20261123.data").touch()
    (folder / "app.log").symlink_to("app-20261123.data")
    return feed(site)


def change_file(copying: Copying, change: Change) -> None:
    before = copying.written[READ:]
    change.make(copying)
    if not change.keeps:
        copying.gone += before


def go_on(copying: Copying, change: Change, begin: int, row: FaultRow, *, missed: bool = True) -> None:
    """The attempts that follow the change, and what a person does in between. `missed`: it was seen that there was
    more than was read."""
    if change.ends and not missed:
        copying.run()
        row.moves_again()
        copying.check(row, headers=1)
        read = copying.out.stat().st_size
        assert [(gap.gap.begin, gap.gap.end, gap.gap.reason) for gap in copying.gaps()] == [(read, read, "ended")]
        return
    if not change.keeps:
        said = copying.run(code=5)
        assert f"{change.reason}: from {begin} to an unknown end" in said
        assert str(copying.log) in said
        assert "--accept-gaps" in said
        assert copying.committed() == begin
        assert f"gaps: 1 (waybill gaps {NAME})" in copying.run("--accept-gaps")
    copying.run()
    row.moves_again()
    copying.check(row, headers=1 + change.headers)
    told = [(gap.gap.begin, gap.gap.end, gap.gap.reason) for gap in copying.gaps()]
    assert told == ([] if change.keeps else [(begin, None, change.reason)])


# ------------------------------------------------------------------------------------------------------------- moments


def between_two_runs(copying: Copying, made: Change, row: FaultRow) -> None:
    begin = copying.committed()
    row.strikes()
    change_file(copying, made)
    go_on(copying, made, begin, row, missed=False)


def behind_its_plan(copying: Copying, made: Change, row: FaultRow) -> None:
    """The plan names bytes that are not what it saw, or not there any more."""
    begin = copying.committed()
    with copying.stopped_at("planned") as driver:
        row.strikes()
        change_file(copying, made)
    assert driver.returncode == (0 if made.keeps else 1)
    if not made.keeps:
        assert len(copying.delivered()) == READ + 1
    go_on(copying, made, begin, row)


def while_it_is_read(copying: Copying, made: Change, row: FaultRow) -> None:
    """What the worker has read before is settled, the rest is told of. It reads a file that is deleted to its end."""
    with copying.stopped_at("batch-written") as driver:
        row.strikes()
        made.make(copying)
    assert driver.returncode == (0 if made.keeps or made.ends else 1 if made.in_place else 5)
    if not made.keeps:
        read = len(copying.delivered())
        assert READ + 1 < read <= READ + 1 + UNREAD
        assert (read < READ + 1 + UNREAD) == made.in_place
        copying.gone += copying.written[read - 1 : READ + UNREAD]
    go_on(copying, made, copying.committed(), row, missed=False)


def after_a_kill(copying: Copying, made: Change, row: FaultRow) -> None:
    """The target holds lines that no receipt covers, and the source cannot give them again: they stay where they are
    until a person says that the run may set them aside (delivery rule 16)."""
    begin = copying.committed()
    copying.site.fault("batch-written")
    copying.run(code=1)
    row.strikes()
    change_file(copying, made)
    if not made.keeps:
        set_aside_by_a_person(copying, begin)
    copying.run()
    row.moves_again()
    copying.check(row, headers=1 + made.headers)
    assert [gap.gap.begin for gap in copying.gaps()] == ([] if made.keeps else [begin])


def set_aside_by_a_person(copying: Copying, begin: int) -> None:
    kept = copying.out.read_bytes()
    unsettled = kept[begin:]
    said = copying.run(code=5)
    assert f"the last {len(unsettled)} bytes of {copying.out}, which no receipt covers" in said
    assert copying.out.read_bytes() == kept
    copying.run("--accept-gaps")
    copying.append(10)
    copying.run()
    (aside,) = copying.out.parent.glob("*.unsettled-*")
    assert aside.read_bytes() == unsettled
    assert set(unsettled.splitlines()) <= set(copying.gone)


MOMENTS = {
    "between two runs": between_two_runs,
    "while the run is stopped after `planned`": behind_its_plan,
    "while its worker is stopped between two batches": while_it_is_read,
    "after its worker was killed": after_a_kill,
}


CHOICES = [
    (moment, change)
    for moment, when in MOMENTS.items()
    for change in CHANGES
    if (when, change) != (while_it_is_read, "inode-reused")  # a worker that reads the file keeps its inode from others
]


@pytest.mark.parametrize(("moment", "change"), CHOICES)
def test_a_log_that_changes_is_gone_on_with_or_told_of(
    bare_site: Site, row: FaultRow, moment: str, change: str
) -> None:
    made = CHANGES[change]
    row.describe(f"log {made.words} {moment}", **WHERE)
    MOMENTS[moment](feed(bare_site), made, row)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.fault(costly=True)
def test_a_link_that_moves_on_is_followed(bare_site: Site, row: FaultRow, moment: str) -> None:
    made = Change("a link that moves on twice", linked_on_twice, keeps=True)
    row.describe(f"log reached by {made.words} {moment}", **WHERE)
    MOMENTS[moment](feed_link(bare_site), made, row)


@pytest.mark.parametrize("window", [False, True], ids=["between-two-runs", "in-a-window"])
@pytest.mark.fault(costly=True)
def test_a_log_that_was_read_and_is_deleted(bare_site: Site, row: FaultRow, window: bool) -> None:
    row.describe(f"log deleted after it was read, {'in a window' if window else 'between two runs'}", **WHERE)
    copying = Copying(bare_site)
    copying.append(100)
    if window:
        driver = bare_site.start("run", NAME, "--engine", "inline", "--window", "12s")
        assert wait_until(lambda: copying.committed() == copying.log.stat().st_size, 60)
    else:
        copying.run()
    end_of_it = copying.log.stat().st_size
    row.strikes()
    copying.log.unlink()
    if window:
        out, err = driver.communicate(timeout=LIMIT_S)
        assert driver.returncode == 0, out + err
    copying.run()
    copying.run()
    assert [(gap.gap.begin, gap.gap.end) for gap in copying.gaps()] == [(end_of_it, end_of_it)]
    copying.append(100)
    copying.run()
    row.moves_again()
    copying.check(row)


@pytest.mark.parametrize("looked", [False, True], ids=["before-a-run-looks", "after-a-run-saw-it-gone"])
@pytest.mark.fault(costly=True)
def test_a_log_of_which_nobody_knows_whether_it_came_next(bare_site: Site, row: FaultRow, looked: bool) -> None:
    """The log is deleted; the next one is renamed before any run has seen it. A person names it: nothing is lost."""
    when = "a run saw the path empty in between" if looked else "all before the next run, and nothing is at the path"
    row.describe(f"log deleted after it was read, the next one renamed unseen; {when}", **WHERE)
    copying = Copying(bare_site)
    copying.append(100)
    copying.run()
    row.strikes()
    copying.log.unlink()
    if looked:
        copying.run()
    copying.append(100)
    unseen = copying.log.rename(f"{copying.log}.1")
    if looked:
        copying.append(100)
    for _ in range(2):
        assert f"{unseen} may be the file that came next" in copying.run(code=5)
    copying.source = {"path": "logs/app.log*"}
    copying.apply()
    copying.run()
    row.moves_again()
    copying.check(row, ordered=False)


@pytest.mark.fault(costly=True)
def test_a_compressed_file_beside_the_log(bare_site: Site, row: FaultRow) -> None:
    """Its bytes are no lines: it is refused by name, and the log is read on."""
    row.describe("file compressed as none is read (xz) that the pattern names", **WHERE)
    copying = Copying(bare_site, source={"path": "logs/app.log*"})
    copying.append(100)
    copying.run()
    packed = copying.log.with_name("app.log.1.xz")
    packed.write_bytes(lzma.compress(b"line of old\n" * 600))
    row.strikes()
    whole = [*copying.delivered(), *copying.append(100)]
    said = copying.run(code=5)
    assert "compressed (xz)" in said
    assert str(packed) in said
    assert copying.delivered() == whole
    packed.unlink()
    copying.append(100)
    copying.run()
    row.moves_again()
    copying.check(row)


@pytest.mark.fault(costly=True)
def test_a_damaged_compressed_file_beside_the_log(bare_site: Site, row: FaultRow) -> None:
    """It is named with the place, nothing of it is read, and the others are. A whole one in its place is read."""
    row.describe("damaged compressed file that the pattern names", **WHERE)
    copying = Copying(bare_site, source={"path": "logs/app*"})
    copying.append(100)
    copying.run()
    packed = copying.log.with_name("app-data.gz")
    lines = copying.lines(20_000)
    whole = gzip.compress(b"".join(line + b"\n" for line in lines))
    packed.write_bytes(whole[: len(whole) // 2] + b"\xff" * 9 + whole[len(whole) // 2 + 9 :])
    row.strikes()
    copying.append(100)
    said = copying.run(code=5)
    assert f"{packed}, behind byte " in said
    assert len(copying.delivered()) == 200
    new = packed.with_suffix(".part")
    new.write_bytes(whole)
    new.replace(packed)
    copying.run()
    row.moves_again()
    copying.check(row, ordered=False)


@pytest.mark.parametrize("pattern", ["logs/app.log", "logs/app.log*"])
@pytest.mark.parametrize("step", ["planned", "batch-written", "before-receipt", "executed", "settled"])
def test_logs_are_rotated_and_compressed_between_kills(bare_site: Site, row: FaultRow, step: str, pattern: str) -> None:
    """Each run is killed, and a whole rotation comes before the next: `app.log.1` is compressed to `app.log.2.gz`."""
    row.describe(f"rotated and compressed after each kill at {step}, path {pattern}", **WHERE)
    copying = Copying(bare_site, source={"path": pattern})
    copying.append(READ)
    copying.run()
    chosen = random.Random(len(step))
    row.strikes()
    for _ in range(4):
        copying.append(chosen.randrange(1, 9_000))
        copying.site.fault(step)
        copying.run(code=1 if step in ("batch-written", "before-receipt") else -9)
        rotated_as_by_logrotate(copying)
        copying.append(chosen.randrange(1, 50))
    copying.run()
    rotated_as_by_logrotate(copying)
    copying.append(10)
    copying.run()
    row.moves_again()
    copying.check(row, ordered=False)
    assert [one.gap for one in copying.gaps() if one.gap.loses] == []


def rotated_as_by_logrotate(copying: Copying) -> None:
    for number in range(9, 1, -1):
        old = copying.log.with_name(f"app.log.{number}.gz")
        if old.exists():
            old.rename(copying.log.with_name(f"app.log.{number + 1}.gz"))
    first, second = copying.log.with_name("app.log.1"), copying.log.with_name("app.log.2")
    if first.exists():
        first.rename(second)
        pack(second)
    copying.log.rename(first)


@pytest.mark.fault(costly=True)
def test_what_is_no_file_of_text_beside_the_log(bare_site: Site, row: FaultRow) -> None:
    """Each is told by name; the log is read on, and so is a file that was given a name of text."""
    row.describe("FIFO, and a file whose name is not UTF-8, that the pattern names", **WHERE)
    copying = Copying(bare_site, source={"path": "logs/*"})
    copying.append(100)
    copying.run()
    pipe, named = copying.log.with_name("pipe"), copying.log.with_name("m\udcfcller.log")
    os.mkfifo(pipe)
    named.write_bytes(b"")
    row.strikes()
    copying.append(100)
    other = copying.append(50, named)
    said = copying.run(code=2)
    assert "Not a regular file" in said
    assert "The file's name is not UTF-8" in said
    assert "m\\xfcller.log" in said
    assert copying.delivered() == [line for line in copying.written if line not in other]
    pipe.unlink()
    named.rename(copying.log.with_name("mueller.log"))
    copying.run()
    row.moves_again()
    copying.check(row, ordered=False)


@pytest.mark.fault(costly=True)
def test_a_window_over_more_files_than_descriptors(bare_site: Site, row: FaultRow) -> None:
    row.describe("window over 600 files, one of them rotated, with 300 descriptors", **WHERE)
    copying = Copying(bare_site, source={"path": "logs/*.log"})
    paths = [copying.log.with_name(f"{number:03}.log") for number in range(600)]
    for path in paths:
        copying.append(2, path)
    few = ("prlimit", "--nofile=300")
    driver = bare_site.start("run", NAME, "--engine", "inline", "--window", "40s", before=few)
    try:
        assert wait_until(lambda: len(copying.delivered()) == 1_200, 90)
        row.strikes()
        for path in paths[::50]:
            copying.append(2, path)
        paths[7].rename(f"{paths[7]}.1")
        copying.append(2, paths[7].with_name("007.log.1"))
        copying.append(2, paths[7])
        assert wait_until(lambda: len(copying.delivered()) == 1_228, 60)
        row.moves_again()
        out, err = driver.communicate(timeout=LIMIT_S)
    finally:
        end(driver)
    assert driver.returncode == 0, out + err
    copying.check(row, ordered=False)
    assert copying.gaps() == []


# --------------------------------------------------------------------------------------------------------------- lines


def test_a_log_that_was_cut(bare_site: Site, row: FaultRow) -> None:
    """Nobody can tell what is left from lines that were written anew: it is read again, as a file of its own."""
    row.describe("log cut to half of what was read of it", **WHERE)
    row.condition = "what is left of a file that was cut is read again, as a new file, once a person lets the run "
    "continue"
    copying = feed(bare_site)
    begin = copying.committed()
    left = copying.log.read_bytes()[: begin // 2].rpartition(b"\n")[0] + b"\n"
    row.strikes()
    os.truncate(copying.log, len(left))
    copying.gone += copying.written[READ:]
    assert f"truncated: from {begin} to an unknown end" in copying.run(code=5)
    copying.run("--accept-gaps")
    row.moves_again()
    copying.append(10)
    copying.run()
    copying.check(row, headers=2, again=left.splitlines()[1:])
    assert [(gap.gap.begin, gap.gap.end) for gap in copying.gaps()] == [(begin, None)]


@pytest.mark.fault(costly=True)
def test_lines_that_come_into_a_rotated_log_too_late(bare_site: Site, row: FaultRow) -> None:
    """It was read to its end and left alone, and the next file begun: what is written to it then is an exact gap."""
    row.describe("lines written to a rotated log after it was read and the next one begun", **WHERE)
    copying = Copying(bare_site)
    copying.append(100)
    copying.run()
    rotated(copying)
    copying.run()
    old = copying.log.with_name("app.log.1")
    begin = old.stat().st_size
    row.strikes()
    copying.gone += copying.append(3, old)
    copying.append(5)
    assert f"written after rotation: from {begin} to {old.stat().st_size}" in copying.run(code=5)
    copying.run("--accept-gaps")
    row.moves_again()
    copying.append(5)
    copying.run()
    copying.check(row)
    assert [(gap.gap.incarnation, gap.gap.begin, gap.gap.end) for gap in copying.gaps()] == [
        (0, begin, old.stat().st_size)
    ]


@pytest.mark.parametrize("rotate", [False, True], ids=["terminated-later", "rotated"])
def test_a_last_line_without_line_feed(bare_site: Site, row: FaultRow, rotate: bool) -> None:
    """It waits, over a kill as well, until its line feed comes or its file is rotated and left alone."""
    row.describe(f"last line without line feed, {'its file rotated' if rotate else 'terminated later'}", **WHERE)
    copying = Copying(bare_site)
    whole = copying.append(READ)
    (last,) = copying.lines(1)
    with copying.log.open("ab") as file:
        file.write(last)
    bare_site.fault("batch-written")
    row.strikes()
    copying.run(code=1)
    copying.run()
    assert copying.delivered() == whole
    if rotate:
        rotated(copying)
    else:
        with copying.log.open("ab") as file:
            file.write(b"\n")
        copying.append(5)
    copying.run()
    row.moves_again()
    copying.check(row)
    assert copying.gaps() == []


def test_parts_of_a_log_read_side_by_side_while_it_grows(bare_site: Site, row: FaultRow) -> None:
    """`parallel`: a worker is killed, lines are appended while the next one stands still, and no part takes the
    lines of another."""
    row.describe("worker killed, then lines appended to a log that is read in parts", **WHERE)
    row.condition = "`parallel: true`: order is kept within each part, not between them"
    copying = Copying(bare_site, source={"parallel": True, "sub_partition_bytes": "64KiB"})
    copying.append(READ)
    bare_site.fault("batch-written", passes=2)
    row.strikes()
    copying.run(code=1)
    with copying.stopped_at("batch-written", passes=1) as driver:
        copying.append(READ)
    assert driver.returncode == 0
    row.moves_again()
    copying.run()
    copying.check(row, ordered=False)
    assert len({settled.partition for settled in copying.receipts()}) > 5
