"""Files that are written: replaced, removed, cut, read-only, on a full disk, claimed by two, and with their folder
gone (delivery rule 16). What a person puts right is gone on with, and every line is there once."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.copying import NAME, Copying, end
from tests.faults.rows import FaultRow
from tests.site import Site

pytestmark = pytest.mark.fault

WHERE = {"where": "file → file", "database": "SQLite"}
LINES = 12_000
"""More than one batch of the source."""


def feed(site: Site) -> Copying:
    """A target in which a part is settled, and a source with more."""
    copying = Copying(site)
    copying.append(LINES)
    copying.run()
    copying.append(LINES)
    return copying


# --------------------------------------------------------------------------------- somebody else touches the file


def replaced(out: Path) -> None:
    out.rename(f"{out}.mine")
    out.write_bytes(b"somebody else's line, and there are enough of them\n" * LINES)


def moved_away(out: Path) -> None:
    out.rename(f"{out}.mine")


def cut(out: Path) -> None:
    shutil.copy(out, f"{out}.whole")
    os.truncate(out, 1000)


def written_over(out: Path) -> None:
    shutil.copy(out, f"{out}.whole")
    with out.open("r+b") as file:
        file.seek(LINES * 38 - 500)
        file.write(b"x" * 20)


def put_back(out: Path) -> None:
    """What a person does: the former file is there again, or its former content."""
    if Path(f"{out}.mine").exists():
        Path(f"{out}.mine").replace(out)
    else:
        out.write_bytes(Path(f"{out}.whole").read_bytes())


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "replaced": (replaced, "The file is another one than that of which"),
    "moved away": (moved_away, "The file is gone"),
    "cut": (cut, "The file has 1000 bytes, fewer than the"),
    "written over": (written_over, "does not hold any more what was settled before byte"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_target_changed_between_two_runs(bare_site: Site, row: FaultRow, change: str) -> None:
    make, told = CHANGES[change]
    row.describe(f"target file {change} between two runs", **WHERE)
    copying = feed(bare_site)
    row.strikes()
    make(copying.out)
    theirs = copying.out.read_bytes() if copying.out.exists() else None
    said = copying.run(code=5)
    assert told in said
    assert str(copying.out) in said
    assert "on_replaced: continue" in said
    assert (copying.out.read_bytes() if copying.out.exists() else None) == theirs
    put_back(copying.out)
    copying.run()
    row.moves_again()
    copying.check(row)


@pytest.mark.parametrize("change", ["replaced", "moved away"])
def test_a_target_changed_while_it_is_written(bare_site: Site, row: FaultRow, change: str) -> None:
    """What was written into a file that its path does not lead to any more gets no receipt."""
    make, told = CHANGES[change]
    row.describe(f"target file {change} between two batches of its worker", **WHERE)
    copying = feed(bare_site)
    settled = copying.committed()
    with copying.stopped_at("batch-written") as driver:
        row.strikes()
        make(copying.out)
    assert driver.returncode == 5
    assert copying.committed() == settled
    assert told in copying.run(code=5)
    put_back(copying.out)
    copying.run()
    row.moves_again()
    copying.check(row)


def test_a_target_removed_and_begun_anew(bare_site: Site, row: FaultRow) -> None:
    """`on_replaced: continue`: what stood in the removed file went with it; everything behind it is there."""
    row.describe("target file removed after its worker was killed, on_replaced: continue", **WHERE)
    copying = feed(bare_site)
    bare_site.fault("batch-written")
    copying.run(code=1)
    row.strikes()
    copying.out.unlink()
    assert "The file is gone" in copying.run(code=5)
    copying.sink["on_replaced"] = "continue"
    copying.apply()
    copying.run()
    row.moves_again()
    assert copying.delivered() == copying.written[LINES:]
    row.lost = row.repeated = row.reordered = 0
    row.condition = "lines of the removed file that were settled went with it"


# ---------------------------------------------------------------------------------------- the file system refuses


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Callable[[str], None]]:
    """A file system of its own at `folder`; gives the function that changes its options."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "waybill-test", folder], check=True)
    try:
        yield lambda options: _run("mount", "-o", f"remount,{options}", str(folder))
    finally:
        _run("umount", "--lazy", str(folder))


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


@pytest.mark.parametrize("moment", ["while it is written", "when unsettled bytes are set aside"])
def test_a_full_disk(bare_site: Site, row: FaultRow, moment: str) -> None:
    """ENOSPC of a real file system. Nothing is cut off or left half written; it goes on when there is room."""
    row.describe(f"disk full {moment}", **WHERE)
    aside = "aside" in moment
    with small_disk(bare_site.folder / "out", "8M") as remount:
        copying = feed(bare_site)
        before = copying.out.read_bytes()
        if aside:
            bare_site.fault("batch-written", passes=1)
            copying.run(code=1)
            before = copying.out.read_bytes()
        remount(f"size={len(before) + 50_000}")
        row.strikes()
        for _ in range(2):
            said = copying.run(code=3)
            assert "No space left on device" in said
            assert "Free space on the disk" in said
            assert str(copying.out) in said
            assert copying.out.read_bytes() == before
        remount("size=8M")
        copying.run()
        row.moves_again()
        copying.check(row)
        assert len(list(copying.out.parent.iterdir())) == (2 if aside else 1)


def test_a_target_that_may_only_be_read(bare_site: Site, row: FaultRow) -> None:
    row.describe("file system of the target mounted read-only", **WHERE)
    with small_disk(bare_site.folder / "out", "8M") as remount:
        copying = feed(bare_site)
        row.strikes()
        remount("ro")
        said = copying.run(code=3)
        assert "Read-only file system" in said
        assert str(copying.out) in said
        remount("rw")
        copying.run()
        row.moves_again()
        copying.check(row)


@pytest.mark.parametrize("moment", ["before the first run", "between two runs", "while it is written"])
def test_a_folder_that_is_not_there(bare_site: Site, row: FaultRow, moment: str) -> None:
    row.describe(f"folder of the target missing {moment}", **WHERE)
    copying = Copying(bare_site)
    copying.append(LINES)
    away = copying.out.parent.with_name("away")
    if moment == "between two runs":
        copying.run()
        copying.append(LINES)
    if moment == "while it is written":
        with copying.stopped_at("batch-written") as driver:
            row.strikes()
            copying.out.parent.rename(away)
        assert driver.returncode == 5
    else:
        row.strikes()
        copying.out.parent.rename(away)
    said = copying.run(code=3)
    assert "The folder is missing" in said
    assert str(copying.out) in said
    away.rename(copying.out.parent)
    copying.run()
    row.moves_again()
    copying.check(row)


# ----------------------------------------------------------------------------------------------- two want the file


def second(copying: Copying) -> None:
    """Another connector with another log and the same target."""
    other = copying.site.folder / "logs" / "other.log"
    other.write_bytes(b"a line of the other log\n" * 100)
    sink = {"file": {"path": "out/lines.txt"}}
    copying.site.apply("other", {"source": {"file": {"path": "logs/other.log"}}, "sink": sink})


def test_two_connectors_on_one_file_at_once(bare_site: Site, row: FaultRow) -> None:
    """The second finds the file in use, and is told by whom."""
    row.describe("a second connector writes to the file that another one is writing", **WHERE)
    copying = Copying(bare_site)
    copying.append(LINES)
    second(copying)
    with copying.stopped_at("planned"):
        row.strikes()
        other = bare_site.start("run", "other", "--engine", "inline")
        try:
            assert other.stderr is not None
            assert "waiting for" in other.stderr.readline()
        except BaseException:
            end(other)
            raise
    _, said = other.communicate(timeout=60)
    assert other.returncode == 4, said
    assert "works on this [target:" in said
    assert "/out/lines.txt]" in said
    row.moves_again()
    copying.check(row)


@pytest.mark.parametrize("first", ["settled", "killed"])
def test_two_connectors_on_one_file_in_turn(bare_site: Site, row: FaultRow, first: str) -> None:
    """The file is the first one's: what that has written must not be taken for unsettled bytes, nor the other's."""
    row.describe(f"a second connector on the file of one whose run is {first}", **WHERE)
    copying = Copying(bare_site)
    copying.append(LINES)
    if first == "killed":
        bare_site.fault("batch-written")
    copying.run(code=1 if first == "killed" else 0)
    second(copying)
    row.strikes()
    said = bare_site.waybill("run", "other", "--engine", "inline", code=2)
    assert f"connector {NAME} writes this target, which can have one writer only" in said
    assert str(copying.out) in said
    copying.append(10)
    copying.run()
    row.moves_again()
    copying.check(row)
