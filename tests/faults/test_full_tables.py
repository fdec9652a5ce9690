"""A table of SQLite on a disk that is full.

No mark `server`: whoever may not mount a file system has this row skipped, with the reason.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.rows import FaultRow
from tests.site import Site
from tests.table_connectors import FIELDS, UNREACHABLE, apply, run, write

pytestmark = pytest.mark.fault

DISK_BYTES = 4 << 20
LEFT_BYTES = 64 << 10
ROWS = 20_000


@pytest.fixture
def small(bare_site: Site) -> Iterator[Path]:
    folder = bare_site.folder / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "waybill-tests", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"needs the right to mount a small file system: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_table_on_a_full_disk_is_waited_for(bare_site: Site, small: Path, row: FaultRow, journal: str) -> None:
    row.describe(f"disk full in mid-range, journal_mode {journal}", where="file → SQLite", database="SQLite")
    with closing(sqlite3.connect(small / "shop.db")) as database:
        database.execute(f"PRAGMA journal_mode = {journal}")
        database.execute("CREATE TABLE t (id INTEGER, name TEXT)")
    ballast = small / "ballast"
    with ballast.open("wb") as file:
        seen = os.statvfs(small)
        os.posix_fallocate(file.fileno(), 0, seen.f_bavail * seen.f_frsize - LEFT_BYTES)
    write(bare_site, *({"id": number, "name": "x" * 50} for number in range(ROWS)))
    sink = {"sql": {"url": f"sqlite:///{small}/shop.db", "table": "t"}}
    apply(bare_site, sink, FIELDS, limits={"range_records": 5_000})
    row.strikes()
    assert "The disk is full" in run(bare_site, code=UNREACHABLE)
    ballast.unlink()
    run(bare_site)
    row.moves_again()
    with closing(sqlite3.connect(small / "shop.db")) as database:
        found = [number for (number,) in database.execute("SELECT id FROM t ORDER BY rowid")]
    row.lost, row.repeated = ROWS - len(set(found)), len(found) - len(set(found))
    assert found == list(range(ROWS))
