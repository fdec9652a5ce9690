"""Files that are written: replaced, removed, cut, read-only, on a full disk, claimed by two, and with their folder
gone (delivery rule 16). What a person puts right is gone on with, and every line is there once."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
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
    "written over": (written_over, "no longer holds what was settled before byte"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("moment", ["between two runs", "between two batches of its worker"])
def test_a_target_that_somebody_changes_is_not_touched(
    bare_site: Site, row: FaultRow, moment: str, change: str
) -> None:
    """What was written into a file that its path does not lead to any more, or that lost what was settled, gets no
    receipt; put back, it is gone on with."""
    make, told = CHANGES[change]
    row.describe(f"target file {change} {moment}", **WHERE)
    copying = feed(bare_site)
    settled = copying.committed()
    if "batches" in moment:
        with copying.stopped_at("batch-written") as driver:
            row.strikes()
            make(copying.out)
        assert driver.returncode == 5
    else:
        row.strikes()
        make(copying.out)
    assert copying.committed() == settled
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


@pytest.mark.fault(costly=True)
def test_a_target_behind_a_link_that_moves_on(bare_site: Site, row: FaultRow) -> None:
    """The folder of the target is a symbolic link. Where it leads to another one nothing is begun there unasked; led
    back it is gone on with; where somebody says so, writing begins in the other one."""
    row.describe("folder of the target file is a link that moves on", **WHERE)
    copying = Copying(bare_site)
    link, first, second = copying.out.parent, bare_site.folder / "first", bare_site.folder / "second"
    link.rename(first)
    second.mkdir()
    link.symlink_to(first)
    copying.apply()
    copying.append(LINES)
    copying.run()
    copying.append(100)
    row.strikes()
    _lead(link, second)
    assert "The file is gone" in copying.run(code=5)
    assert list(second.iterdir()) == []
    _lead(link, first)
    copying.run()
    row.moves_again()
    copying.check(row)
    _lead(link, second)
    copying.sink["on_replaced"] = "continue"
    copying.apply()
    more = copying.append(100)
    copying.run()
    assert copying.delivered() == more


def _lead(link: Path, folder: Path) -> None:
    link.unlink()
    link.symlink_to(folder)


@pytest.mark.fault(costly=True)
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
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "waybill-test", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"no file system may be mounted here: {mounted.stderr.strip()}")
    try:
        yield lambda options: _run("mount", "-o", f"remount,{options}", str(folder))
    finally:
        _run("umount", "--lazy", str(folder))


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


@pytest.mark.parametrize("fault", ["disk full while it is written", "disk full when bytes are set aside", "read-only"])
def test_a_file_system_that_refuses(bare_site: Site, row: FaultRow, fault: str) -> None:
    """By a real file system. Nothing is cut off or left half written; it goes on when that has been put right."""
    row.describe(f"file system of the target: {fault}", **WHERE)
    told = "Read-only file system" if fault == "read-only" else "No space left on device"
    aside = "aside" in fault
    with small_disk(bare_site.folder / "out", "8M") as remount:
        copying = feed(bare_site)
        if aside:
            bare_site.fault("batch-written", passes=1)
            copying.run(code=1)
        before = copying.out.read_bytes()
        remount("ro" if fault == "read-only" else f"size={len(before) + 50_000}")
        row.strikes()
        for _ in range(2):
            said = copying.run(code=3)
            assert told in said
            assert str(copying.out) in said
            assert copying.out.read_bytes() == before
        remount("rw,size=8M")
        copying.run()
        row.moves_again()
        copying.check(row)
        assert len(list(copying.out.parent.iterdir())) == (2 if aside else 1)


@pytest.mark.parametrize("moment", ["before the first run", "between two runs", "while it is written"])
@pytest.mark.fault(costly=True)
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
    assert f"The folder {copying.out.parent} is missing" in said
    assert str(copying.out) in said
    away.rename(copying.out.parent)
    copying.run()
    row.moves_again()
    copying.check(row)


# ----------------------------------------------------------------------------------------------- two want the file


def second(copying: Copying) -> None:
    """Another connector with another log and the same target, as a ledger of before has it: `apply` refuses that."""
    other = copying.site.folder / "logs" / "other.log"
    other.write_bytes(b"a line of the other log\n" * 100)
    sink = {"file": {"path": "out/elsewhere.txt"}}
    copying.site.apply("other", {"source": {"file": {"path": "logs/other.log"}}, "sink": sink})
    document = copying.site.folder / "other.yaml"
    document.write_text(document.read_text().replace("elsewhere", "lines"))
    assert "is also written by connector" in copying.site.waybill("apply", "other.yaml", code=2)
    with closing(sqlite3.connect(copying.site.folder / ".waybill" / "ledger.db")) as ledger, ledger:
        ledger.execute("UPDATE connector_revisions SET document = replace(document, 'elsewhere.txt', 'lines.txt')")


@pytest.mark.parametrize("first", ["at work", "done", "killed"])
def test_a_second_connector_on_one_file_is_refused(bare_site: Site, row: FaultRow, first: str) -> None:
    """The file is the first one's: neither may take what the other has written for unsettled bytes of its own."""
    row.describe(f"a second connector wants the file of one that is {first}", **WHERE)
    copying = Copying(bare_site)
    copying.append(LINES)
    if first == "killed":
        bare_site.fault("batch-written")
    if first != "at work":
        copying.run(code=1 if first == "killed" else 0)
    second(copying)
    row.strikes()
    if first == "at work":
        run_beside(copying)
    said = bare_site.waybill("run", "other", "--engine", "inline", code=2)
    assert f"connector {NAME} writes this target, which can have one writer only" in said
    assert str(copying.out) in said
    copying.append(10)
    copying.run()
    row.moves_again()
    copying.check(row)


def run_beside(copying: Copying) -> None:
    """The second connector waits while the first one's run stands still, and is refused when that goes on: because it
    gave a sign of life, or, where it has ended before the next look, because the file is its own."""
    with copying.stopped_at("planned"):
        other = copying.site.start("run", "other", "--engine", "inline")
        try:
            assert other.stderr is not None
            assert "waiting for" in other.stderr.readline()
        except BaseException:
            end(other)
            raise
    _, said = other.communicate(timeout=60)
    assert other.returncode in (2, 4), said
    assert ("writes this target" if other.returncode == 2 else "is working on this [target:") in said
    assert "/out/lines.txt]" in said
