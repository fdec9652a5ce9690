"""Backfills beside the live stream: killed and resumed, two at once, with the connector changed or deleted under them
(delivery rules 11, 16 and 23). The live stream is not disturbed, and each target holds exactly what was asked for."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from connect_core.ledger import Ledger
from connect_core.sdk.values import Part
from tests.faults.kit.checker import EXACT, Account, Span, account
from tests.faults.kit.journeys import (
    TRY_AGAIN,
    Inward,
    Journey,
    Outward,
    database_of,
    lines_of,
    receipts_of,
    run_until_done,
    settled_up,
)
from tests.faults.kit.processes import ended, go_on, kill, stopped_at
from tests.faults.kit.topics import JavaReader, records_of
from tests.faults.rows import FaultRow
from tests.site import Site

pytestmark = pytest.mark.fault
COSTLY = pytest.mark.fault(costly=True)

STREAM = "backfill-again"
RECORDS = 6_000
WHERE = {"where": "file → file", "database": "SQLite"}


@dataclass
class Asked:
    """What a backfill is to move: `words` of the command, and `records` by partition; `arrived` reads its target."""

    words: tuple[str, ...]
    records: dict[str, list[bytes]]
    arrived: Callable[[], dict[str, list[bytes]]]


def some_bytes(site: Site, reader: JavaReader) -> tuple[Journey, Asked]:
    """Lines 1,000 to 5,000 of each file, named by bytes in the middle of lines, into another topic."""
    journey = Inward(site, reader, records=RECORDS)
    topic = f"{site.topic}-again"
    words: list[str] = ["--sink", f"topic={topic}"]
    records = {}
    for path, lines in journey.source().items():
        length = len(lines[0]) + 1
        words += ["--range", f"{path}:{1_000 * length - 7}-{5_000 * length - 3}"]
        records[path] = lines[1_000:5_000]

    def arrived() -> dict[str, list[bytes]]:
        theirs = reader.records(topic)
        assert records_of(site.name_servers, topic) == theirs
        return theirs

    return journey, Asked(tuple(words), records, arrived)


def some_time(site: Site, reader: JavaReader) -> tuple[Journey, Asked]:
    """What was stored between two moments, into a file beside that of the live stream."""
    journey = Outward(site, reader, records=1_000)
    begin = datetime.now(UTC)
    journey.feed(1_000, RECORDS)
    end = datetime.now(UTC)
    journey.feed(RECORDS, RECORDS + 500)
    out = journey.path.with_name(f"{journey.path.name}.{STREAM}")
    records = {queue: found[1_000:RECORDS] for queue, found in journey.source().items()}
    words = ("--from", begin.isoformat(), "--to", end.isoformat())
    return journey, Asked(words, records, lambda: {str(out): lines_of(out)})


WAYS = {"in": some_bytes, "out": some_time}


def parts_of(site: Site, name: str) -> tuple[Part, ...]:
    with Ledger.open(site.database_url) as ledger:
        stored = ledger.backfill(ledger.connector(name).uid, STREAM)
    assert stored is not None
    assert stored.state == "done"
    return stored.parts


def moved_again(journey: Journey, asked: Asked) -> Account:
    """What became of the records that were asked for. The checker knows a partition by its name."""
    spans = {part.partition.key: Span(part.begin, part.end) for part in parts_of(journey.site, journey.name)}
    return account(asked.records, asked.arrived(), receipts_of(journey, STREAM), spans)


def until_done(site: Site, *words: str) -> None:
    codes: list[int] = []
    while not codes or codes[-1]:
        assert len(codes) < 8, codes
        codes.append(ended(site.start(*words), limit_s=120))
        assert codes[-1] in (0, *TRY_AGAIN), codes


def stopped_backfill(site: Site, name: str, step: str, *words: str) -> tuple[subprocess.Popen[str], int]:
    """A backfill that stands still at the step, and who of it does."""
    fault = site.fault(step, "stop")
    driver = site.start("backfill", name, "--id", "again", *words)
    for _ in range(8):
        if (pid := stopped_at(site, step, driver)) is not None:
            return driver, pid
        assert ended(driver) in TRY_AGAIN
        assert fault.exists()
        driver = site.start("backfill", name, "--id", "again")
    raise AssertionError(f"nobody came to {step}")


@pytest.mark.server
@pytest.mark.parametrize(
    ("way", "step", "database"),
    [
        pytest.param(way, step, database, marks=COSTLY)
        for way, step, database in (
            ("in", "batch-written", "PostgreSQL"),
            ("in", "executed", "SQLite"),
            ("out", "before-receipt", "PostgreSQL"),
            ("out", "planned", "SQLite"),
            ("out", "settled", "PostgreSQL"),
        )
    ],
)
def test_a_backfill_killed_beside_a_live_run(
    way: str, step: str, database: str, site_on: Callable[..., Site], java_reader: JavaReader, row: FaultRow
) -> None:
    """The live stream goes on while the backfill stands still, and while it is resumed."""
    site = site_on(database)
    journey, asked = WAYS[way](site, java_reader)
    row.describe(
        f"SIGKILL of a backfill's driver at {step}, beside a live run that continues",
        where=journey.where,
        database=database_of(site),
    )
    run_until_done(journey)
    driver, pid = stopped_backfill(site, journey.name, step, *asked.words)
    journey.feed(20_000, 23_000)
    live = site.start("run", journey.name)
    row.strikes()
    kill(driver.pid)
    go_on(pid)
    ended(driver)
    until_done(site, "backfill", journey.name, "--id", "again")
    row.moves_again()
    assert ended(live, limit_s=120) in (0, *TRY_AGAIN)
    run_until_done(journey)
    assert settled_up(journey, FaultRow()) == EXACT
    assert moved_again(journey, asked).into(row) == EXACT


@pytest.mark.server
@pytest.mark.parametrize("database", [pytest.param("PostgreSQL", marks=COSTLY)])
def test_a_backfill_into_the_topic_of_the_live_stream(
    database: str, site_on: Callable[..., Site], java_reader: JavaReader, row: FaultRow
) -> None:
    """Both write the same queues: neither takes the other's records for its own, or for duplicates."""
    site = site_on(database)
    journey, asked = some_bytes(site, java_reader)
    row.describe("SIGKILL of a backfill into the topic of the live stream", where=journey.where, database=database)
    run_until_done(journey)
    driver, pid = stopped_backfill(site, journey.name, "batch-written", *asked.words[2:])
    journey.feed(20_000, 23_000)
    live = site.start("run", journey.name)
    row.strikes()
    kill(driver.pid)
    go_on(pid)
    ended(driver)
    until_done(site, "backfill", journey.name, "--id", "again")
    row.moves_again()
    assert ended(live, limit_s=120) in (0, *TRY_AGAIN)
    run_until_done(journey)
    arrived = Counter(record for queue in journey.target().values() for record in queue)
    wanted = Counter(record for lines in (*journey.source().values(), *asked.records.values()) for record in lines)
    row.lost, row.repeated = sum((wanted - arrived).values()), sum((arrived - wanted).values())
    row.duplicates = sum(
        int(str(one["duplicates"])) for stream in ("live", STREAM) for one in receipts_of(journey, stream)
    )
    assert (row.lost, row.repeated, row.duplicates) == (0, 0, 0)


# ---------------------------------------------------------------------------------------------------- without a server


@dataclass
class Files:
    """Two logs into one file, run by the inline engine."""

    site: Site

    def __post_init__(self) -> None:
        self.lines = {n: [b"file %d line %07d" % (n, line) for line in range(12_000)] for n in (0, 1)}
        (self.site.folder / "out").mkdir()
        (self.site.folder / "logs").mkdir()
        for n, lines in self.lines.items():
            (self.site.folder / "logs" / f"log-{n}.log").write_bytes(b"".join(line + b"\n" for line in lines))
        self.apply()

    def apply(self, **document: object) -> None:
        source, sink = {"file": {"path": "logs/*.log"}}, {"file": {"path": "out/copy.log"}}
        limits = {"range_records": 5_000}
        self.site.apply("copy", {"source": source, "sink": sink, "limits": limits, **document})

    def killed_at(self, step: str, *words: str) -> None:
        self.site.fault(step, "stop")
        driver = self.site.start(*words, "--engine", "inline")
        pid = stopped_at(self.site, step, driver)
        assert pid is not None, driver.communicate()
        kill(pid, driver.pid)
        ended(driver)

    def check(self, row: FaultRow, pattern: str, wanted: dict[int, list[bytes]]) -> None:
        """The files of all tasks together; what was set aside as unsettled is not among them."""
        names = [path for path in (self.site.folder / "out").glob(pattern) if ".unsettled-" not in path.name]
        arrived = Counter(line for path in names for line in lines_of(path))
        expected = Counter(line for lines in wanted.values() for line in lines)
        row.lost, row.repeated = sum((expected - arrived).values()), sum((arrived - expected).values())
        assert (row.lost, row.repeated) == (0, 0)


@pytest.mark.parametrize(
    ("stream", "step"),
    [
        pytest.param("live", "planned", marks=COSTLY),
        pytest.param("live", "before-receipt", marks=COSTLY),
        pytest.param("backfill", "planned", marks=COSTLY),
        pytest.param("backfill", "before-receipt", marks=COSTLY),
    ],
)
def test_tasks_finish_what_is_open_in_one_file_one_after_the_other(
    bare_site: Site, row: FaultRow, stream: str, step: str
) -> None:
    """Killed with two ranges open in one file, then shared by two tasks: each has one of them to finish there."""
    row.describe(f"SIGKILL of a run ({stream}) at {step}, and tasks 1 → 2 before the next one", **WHERE)
    files = Files(bare_site)
    words = ("run", "copy") if stream == "live" else ("backfill", "copy", "--id", "again")
    ranges = ("--range", "log-0.log:-", "--range", "log-1.log:-") if stream == "backfill" else ()
    files.killed_at(step, *words, *ranges)
    row.strikes()
    files.apply(tasks=2)
    if stream == "backfill":
        until_done(bare_site, "run", "copy", "--engine", "inline")
    until_done(bare_site, *words, "--engine", "inline")
    row.moves_again()
    files.check(row, "copy*.log" if stream == "live" else f"copy.log*{STREAM}", files.lines)


@pytest.mark.parametrize(
    "change", [pytest.param("another target", marks=COSTLY), pytest.param("deleted", marks=COSTLY)]
)
def test_a_connector_that_is_changed_under_its_backfill(bare_site: Site, row: FaultRow, change: str) -> None:
    """A backfill keeps the document that it began with; it ends with its connector."""
    row.describe(f"connector: {change}, while a backfill of it is stopped", **WHERE)
    files = Files(bare_site)
    driver, pid = stopped_backfill(bare_site, "copy", "settled", "--range", "log-0.log:-", "--engine", "inline")
    row.strikes()
    if change == "deleted":
        bare_site.waybill("connectors", "delete", "copy", "--yes")
    else:
        files.apply(sink={"file": {"path": "out/other.log"}}, limits={"range_records": 1_000})
    go_on(pid)
    assert ended(driver) == (2 if change == "deleted" else 0)
    row.moves_again()
    arrived = lines_of(bare_site.folder / "out" / f"copy.log.{STREAM}")
    assert arrived == files.lines[0][: 5_000 if change == "deleted" else 12_000]
    row.lost, row.repeated = 0, 0


@pytest.mark.parametrize("third", [pytest.param("refused", marks=COSTLY)])
def test_two_backfills_at_once(bare_site: Site, row: FaultRow, third: str) -> None:
    """Each into a file of its own; a third that wants the file of the first is refused while that is not done."""
    row.describe("two backfills at once, and a third into the file of the first", **WHERE)
    files = Files(bare_site)
    driver, pid = stopped_backfill(bare_site, "copy", "planned", "--range", "log-0.log:-", "--engine", "inline")
    row.strikes()
    first = bare_site.folder / "out" / f"copy.log.{STREAM}"
    said = bare_site.waybill(
        "backfill", "copy", "--range", "log-1.log:-", "--sink", f"path={first}", "--engine", "inline", code=2
    )
    assert f"{STREAM} of copy writes to file:{first}" in said
    until_done(bare_site, "backfill", "copy", "--range", "log-1.log:-", "--id", "other", "--engine", "inline")
    go_on(pid)
    ended(driver)
    until_done(bare_site, "backfill", "copy", "--id", "again", "--engine", "inline")
    row.moves_again()
    files.check(row, f"copy.log.{STREAM}", {0: files.lines[0]})
    files.check(row, "copy.log.backfill-other", {1: files.lines[1]})
