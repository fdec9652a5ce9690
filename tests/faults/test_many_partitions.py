"""Very many partitions, a first run that is killed in mid-way, and a machine that has other things to do: every attempt
that follows settles something, until each record is there once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from connect_core.rocketmq import Client, ClientOptions
from tests.faults.kit.checker import EXACT, Span
from tests.faults.kit.fixtures import MakeSite
from tests.faults.kit.journeys import TRY_AGAIN, arrived, lines_of, numbered, receipts_of, settled_up
from tests.faults.kit.processes import ended, wait_for
from tests.faults.kit.topics import JavaReader
from tests.faults.rows import FaultRow
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

LINES = 100
ATTEMPTS = 12
LIMIT_S = 240.0
"""Of one attempt."""
DEFAULTS = {
    "WAYBILL_QUANTUM_S": "5s",
    "WAYBILL_LEASE_TTL_S": "15s",
    "WAYBILL_LEASE_MARGIN_S": "4s",
    "WAYBILL_SEND_TIMEOUT_S": "3s",
}
"""The times that an installation begins with."""


@dataclass
class ManyFiles:
    """A journey of so many files, into so many queues, in two tasks."""

    site: Site
    reader: JavaReader
    partitions: int
    queues: int
    name: str = "many"
    where: str = "files → RocketMQ"
    tasks: int = 2

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.feed(0, LINES)
        sink = {"name_servers": "${stack:name_servers}", "topic": self.site.topic, "queues": self.queues}
        source = {"file": {"path": "logs/*.log"}}
        self.site.apply(self.name, {"source": source, "sink": {"rocketmq": sink}, "tasks": self.tasks})

    @property
    def folder(self) -> Path:
        return self.site.folder / "logs"

    def feed(self, begin: int, end: int) -> None:
        for number in range(self.partitions):
            with (self.folder / f"{number:04d}.log").open("ab") as file:
                file.write(b"".join(record + b"\n" for record in numbered(number, begin, end)))

    def source(self) -> dict[str, list[bytes]]:
        return {str(path): lines_of(path) for path in sorted(self.folder.iterdir())}

    def spans(self) -> dict[str, Span]:
        return {str(path): Span(0, path.stat().st_size) for path in sorted(self.folder.iterdir())}

    def target(self) -> dict[str, list[bytes]]:
        return arrived(self.site, self.reader)

    def started(self) -> subprocess.Popen[str]:
        return self.site.start("run", self.name, "--engine", "inline")

    def there(self) -> int:
        """Records in the topic, each copy counted."""
        with Client(ClientOptions(name_servers=tuple(self.site.name_servers))) as client:
            if not client.topics.exists(self.site.topic):
                return 0
            return sum(seen.end - seen.begin for seen in client.offsets.bounds(self.site.topic).values())


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("files", "queues"),
    [(60, 8), pytest.param(1_000, 64, marks=pytest.mark.fault(costly=True))],
    ids=["60 files", "1,000 files"],
)
def test_a_run_of_many_files_that_was_killed_is_taken_over_on_a_busy_machine(
    site_on: MakeSite, java_reader: JavaReader, files: int, queues: int, row: FaultRow
) -> None:
    row.describe(f"SIGKILL of a run of {files:,} files, then a busy machine", where=ManyFiles.where, database="SQLite")
    site = site_on("SQLite")
    site.settings = dict(DEFAULTS)
    journey = ManyFiles(site, java_reader, files, queues)
    first = journey.started()
    wait_for(lambda: journey.there() >= files * LINES // 4, "a fourth of all records", LIMIT_S)
    first.kill()
    first.communicate()
    row.strikes()
    with _busy():
        seen = [_settled(journey)]
        assert seen[0] < files, "all was settled before the kill"
        while (code := ended(journey.started(), LIMIT_S)) != 0:
            assert code in TRY_AGAIN
            seen.append(_settled(journey))
            assert seen[-1] > seen[-2], f"an attempt has settled nothing: {seen}"
            assert len(seen) <= ATTEMPTS, f"receipts after each attempt: {seen}"
    row.moves_again()
    assert settled_up(journey, row) == EXACT


def _settled(journey: ManyFiles) -> int:
    """How many receipts there are."""
    return len(receipts_of(journey))


@contextmanager
def _busy() -> Iterator[None]:
    """Somebody else wants all of both cores."""
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
