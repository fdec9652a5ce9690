"""Files that are read: rotated, cut, replaced, deleted and grown again, while nobody looks, while a run stands still
in the middle, and between a killed worker and the next attempt (delivery rules 9, 13 and 15)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.faults.copying import HEADER, Copying
from tests.faults.rows import FaultRow
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


def copied_and_truncated(copying: Copying) -> None:
    shutil.copy(copying.log, f"{copying.log}.1")
    os.truncate(copying.log, 0)
    copying.append(50)


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
    """`keeps`: what was not read yet can still be had. `headers`: header lines that come with the new file."""

    words: str
    make: Callable[[Copying], None]
    keeps: bool = False
    headers: int = 0
    reason: str = "replaced"


CHANGES = {
    "rotated": Change("rotated by rename", rotated, keeps=True),
    "rotated-twice": Change("rotated by rename twice", rotated_twice, keeps=True),
    "copytruncate": Change("rotated by copytruncate", copied_and_truncated, reason="truncated"),
    "same-header": Change("replaced by a file with the same header", replaced_with_the_same_header, headers=1),
    "regrown": Change("truncated and grown past the offset", regrown_past_the_offset, headers=1),
    "deleted": Change("deleted", deleted, reason="deleted"),
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


def change_file(copying: Copying, change: Change) -> None:
    before = copying.written[READ:]
    change.make(copying)
    if not change.keeps:
        copying.gone += before


def go_on(copying: Copying, change: Change, begin: int, row: FaultRow) -> None:
    """The attempts that follow the change, and what a person does in between."""
    if not change.keeps:
        said = copying.run(code=5)
        assert f"{change.reason}: from {begin} to an unknown end" in said
        assert str(copying.log) in said
        assert "--accept-gaps" in said
        assert copying.committed() == begin
        copying.run("--accept-gaps")
    copying.run()
    row.moves_again()
    copying.check(row, headers=1 + change.headers)
    told = [(gap.gap.begin, gap.gap.end, gap.gap.reason) for gap in copying.gaps()]
    assert told == ([] if change.keeps else [(begin, None, change.reason)])


@pytest.mark.parametrize("change", CHANGES)
def test_a_log_changed_between_two_runs(bare_site: Site, row: FaultRow, change: str) -> None:
    made = CHANGES[change]
    row.describe(f"log {made.words} between two runs", **WHERE)
    copying = feed(bare_site)
    begin = copying.committed()
    row.strikes()
    change_file(copying, made)
    go_on(copying, made, begin, row)
