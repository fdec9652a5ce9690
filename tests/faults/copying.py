"""A connector from one log file to one file without any server, for faults of files: every line that was ever
written is remembered, so that the target can be compared with it line by line."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from connect_core.ledger import Ledger, StoredGap
from connect_core.ledger.history import SettledRange
from tests.faults.kit.processes import LIMIT_S, go_on, stopped_at
from tests.faults.rows import FaultRow
from tests.site import Site

NAME = "copy"
HEADER = b"# a header that every file of this application begins with %s\n" % (b"-" * 1500)


@dataclass
class Copying:
    """`written` holds every line ever given to the source, in order; `gone` those that the test has destroyed before
    anybody could read them."""

    site: Site
    source: dict[str, Any] = field(default_factory=dict)
    sink: dict[str, Any] = field(default_factory=dict)
    written: list[bytes] = field(default_factory=list)
    gone: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        for path in (self.log, self.out):
            path.parent.mkdir(exist_ok=True)
        self.apply()

    @property
    def log(self) -> Path:
        return self.site.folder / "logs" / "app.log"

    @property
    def out(self) -> Path:
        return self.site.folder / "out" / "lines.txt"

    def apply(self, **document: Any) -> None:
        """The connector's document, changed by `document`."""
        source = {"file": {"path": "logs/app.log", "rotation_quiet_s": 0, **self.source}}
        self.site.apply(NAME, {"source": source, "sink": {"file": {"path": "out/lines.txt", **self.sink}}, **document})

    # ------------------------------------------------------------------------------------------------------ the source

    def lines(self, count: int) -> list[bytes]:
        """New lines, none like another; remembered as written."""
        begin = len(self.written)
        made = [b"line %07d of the application's log" % number for number in range(begin, begin + count)]
        self.written += made
        return made

    def append(self, count: int, path: Path | None = None) -> list[bytes]:
        made = self.lines(count)
        with (path or self.log).open("ab") as file:
            file.writelines(line + b"\n" for line in made)
        return made

    # ------------------------------------------------------------------------------------------------------------ runs

    def start(self) -> subprocess.Popen[str]:
        return self.site.start("run", NAME, "--engine", "inline")

    def run(self, *options: str, code: int = 0) -> str:
        return self.site.waybill("run", NAME, "--engine", "inline", *options, code=code)

    @contextmanager
    def stopped_at(self, step: str, passes: int = 0) -> Iterator[subprocess.Popen[str]]:
        """A run one process of which stands still at the step; it goes on behind the block."""
        self.site.fault(step, "stop", passes)
        driver = self.start()
        try:
            stopped = stopped_at(self.site, step, driver)
            assert stopped is not None, driver.communicate()
            yield driver
            go_on(stopped)
            driver.wait(LIMIT_S)
        finally:
            end(driver)

    # ---------------------------------------------------------------------------------------------------------- checks

    def delivered(self) -> list[bytes]:
        return self.out.read_bytes().splitlines() if self.out.exists() else []

    def gaps(self) -> list[StoredGap]:
        with Ledger.open(self.site.database_url) as ledger:
            return ledger.gaps(ledger.connector(NAME).uid)

    def receipts(self) -> list[SettledRange]:
        """In the order in which they were settled."""
        with Ledger.open(self.site.database_url) as ledger:
            return ledger.receipts(ledger.connector(NAME).uid, limit=None)[::-1]

    def committed(self) -> int:
        """The offset of the one partition; 0 before it is settled."""
        with Ledger.open(self.site.database_url) as ledger:
            offsets = ledger.offsets(ledger.connector(NAME).uid)
        return offsets[0].position.offset if offsets else 0

    def check(self, row: FaultRow, *, headers: int = 0, again: Sequence[bytes] = (), ordered: bool = True) -> None:
        """Each line once, and in order where that is promised, but for those that are gone; `headers` header lines
        besides. `again` are lines that stand there twice, as the row's condition says."""
        delivered = [line for line in self.delivered() if line + b"\n" != HEADER]
        assert len(self.delivered()) - len(delivered) == headers
        gone = set(self.gone)
        expected = [line for line in self.written if line not in gone]
        duplicates = Counter(delivered) - Counter(expected)
        row.lost = sum((Counter(expected) - Counter(delivered)).values())
        row.repeated = sum(duplicates.values())
        once = list(dict.fromkeys(delivered))
        row.reordered = sum(1 for before, after in pairwise(once) if before > after)
        row.duplicates = sum(settled.receipt.duplicates for settled in self.receipts())
        assert (row.lost, duplicates) == (0, Counter(again))
        assert not ordered or row.reordered == 0
        self._check_receipts(len(delivered) + headers)

    def _check_receipts(self, lines: int) -> None:
        receipts = [settled.receipt for settled in self.receipts()]
        assert [fault for receipt in receipts for fault in receipt.identity_faults()] == []
        assert sum(receipt.delivered for receipt in receipts) == lines
        with Ledger.open(self.site.database_url) as ledger:
            assert ledger.open_ranges(ledger.connector(NAME).uid, "live") == []


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()
