"""The directions as a test sees them: what is fed, how it is run, where it has to arrive.

Small on purpose, but every partition is several ranges long and every range several batches, so that each step of a run
is passed more than once.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from connect_core.ledger import Ledger
from connect_core.rocketmq import Client, ClientOptions
from connect_core.sdk.values import LIVE
from connect_core.stack.processes import wait_until
from tests.faults.kit.checker import Account, Span, account
from tests.faults.kit.processes import ended, kill, stopped_at, wait_for
from tests.faults.kit.proxy import Trap
from tests.faults.kit.topics import JavaReader, fill, records_of
from tests.faults.rows import FaultRow
from tests.servers import RocketMQ
from tests.site import Site

PARTITIONS = 2
ATTEMPTS = 8
SHORT_LEASES = {
    "WAYBILL_QUANTUM_S": "1.5s",
    "WAYBILL_LEASE_TTL_S": "6.5s",
    "WAYBILL_LEASE_MARGIN_S": "2s",
    "WAYBILL_SEND_TIMEOUT_S": "2s",
}
TRY_AGAIN = (1, 3, 4)
"""Exit codes after which a scheduler runs a connector again: failed, something away, somebody else at work."""
_SHOWN_S = 0.2
"""A broker shows what it has stored a moment later, those of tests up to 20 ms (`servers.coarse_timers`)."""


def numbered(partition: int, begin: int, end: int, record_bytes: int = 50) -> list[bytes]:
    """Records of about that size that say where they belong."""
    return [b"partition %d record %07d %s" % (partition, n, b"x" * (record_bytes - 28)) for n in range(begin, end)]


class Journey(Protocol):
    """One connector of a site, fed and applied."""

    site: Site
    name: str
    where: str
    partitions: int
    tasks: int

    def feed(self, begin: int, end: int) -> None:
        """Appends records of these numbers to every partition."""

    def source(self) -> dict[str, list[bytes]]:
        """What was fed, by partition."""

    def spans(self) -> dict[str, Span]:
        """The positions that receipts must cover."""

    def target(self) -> dict[str, list[bytes]]:
        """What has arrived, by place."""


@dataclass
class Inward:
    """file → RocketMQ. A batch of the source is at most 4,000 lines, so that a range has two."""

    site: Site
    reader: JavaReader
    records: int = 10_000
    range_records: int = 4_500
    record_bytes: int = 50
    partitions: int = PARTITIONS
    name_servers: str | list[str] = "${stack:name_servers}"
    tasks: int = 1
    sink: dict[str, str] = field(default_factory=dict)
    name: str = "lines-in"
    where: str = "file → RocketMQ"

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.feed(0, self.records)
        place = {"name_servers": self.name_servers, "topic": self.site.topic}
        sink = {**place, "queues": self.partitions, **self.sink}
        self.site.apply(
            self.name,
            {
                "source": {"file": {"path": "logs/*.log"}},
                "sink": {"rocketmq": sink},
                "limits": {"range_records": self.range_records},
            },
        )

    @property
    def folder(self) -> Path:
        return self.site.folder / "logs"

    def feed(self, begin: int, end: int) -> None:
        for number in range(self.partitions):
            with (self.folder / f"log-{number}.log").open("ab") as file:
                file.write(b"".join(record + b"\n" for record in numbered(number, begin, end, self.record_bytes)))

    def source(self) -> dict[str, list[bytes]]:
        return {str(path): lines_of(path) for path in sorted(self.folder.iterdir())}

    def spans(self) -> dict[str, Span]:
        return {str(path): Span(0, path.stat().st_size) for path in sorted(self.folder.iterdir())}

    def target(self) -> dict[str, list[bytes]]:
        return arrived(self.site, self.reader)


@dataclass
class Outward:
    """RocketMQ → file. A batch of the source is at most 4,000 messages, so that a range has two."""

    site: Site
    reader: JavaReader
    records: int = 10_000
    range_records: int = 4_500
    partitions: int = PARTITIONS
    name_servers: str | list[str] = "${stack:name_servers}"
    errors: dict[str, str] = field(default_factory=dict)
    tasks: int = 1
    start: str = "earliest"
    name: str = "lines-out"
    where: str = "RocketMQ → file"

    def __post_init__(self) -> None:
        self.feed(0, self.records)
        self.path.parent.mkdir()
        self.site.apply(
            self.name,
            {
                "source": {
                    "rocketmq": {"name_servers": self.name_servers, "topics": [self.site.topic], "start": self.start}
                },
                "sink": {"file": {"path": "out/lines.log"}},
                "limits": {"range_records": self.range_records},
                "errors": self.errors,
            },
        )

    @property
    def path(self) -> Path:
        return self.site.folder / "out" / "lines.log"

    def feed(self, begin: int, end: int) -> None:
        queues = [numbered(number, begin, end) for number in range(self.partitions)]
        fill(self.site.name_servers, self.site.topic, queues)

    def source(self) -> dict[str, list[bytes]]:
        return arrived(self.site, self.reader)

    def spans(self) -> dict[str, Span]:
        with Client(ClientOptions(name_servers=tuple(self.site.name_servers))) as client:
            bounds = client.offsets.bounds(self.site.topic)
        return {str(queue): Span(seen.begin, seen.end) for queue, seen in bounds.items()}

    def target(self) -> dict[str, list[bytes]]:
        return {str(self.path): lines_of(self.path)}


@dataclass(frozen=True)
class OldCluster:
    """The cluster that is copied, and its own client."""

    rocketmq: RocketMQ
    reader: JavaReader


@dataclass
class Across:
    """RocketMQ → RocketMQ: each queue of a topic to the one of its number in another cluster, where the topic is made.
    Two tasks have two queues each."""

    site: Site
    reader: JavaReader
    old: OldCluster
    records: int = 5_000
    range_records: int = 2_250
    partitions: int = 4
    tasks: int = 2
    name_servers: str | list[str] = "${stack:name_servers}"
    sink: dict[str, Any] = field(default_factory=dict)
    name: str = "lines-across"
    where: str = "RocketMQ → RocketMQ, two clusters"

    def __post_init__(self) -> None:
        self.feed(0, self.records)
        self.apply()

    def apply(self, **document: Any) -> None:
        """The connector's document, changed by `document`."""
        sink = {"name_servers": self.name_servers, "topic": "{topic}", "queues": 0, "order": "queue", **self.sink}
        self.site.apply(
            self.name,
            {
                "source": {"rocketmq": {"name_servers": self.origin, "topics": [self.site.topic]}},
                "sink": {"rocketmq": sink},
                "tasks": self.tasks,
                "limits": {"range_records": self.range_records},
                **document,
            },
        )

    @property
    def origin(self) -> list[str]:
        return self.old.rocketmq.name_servers

    def feed(self, begin: int, end: int) -> None:
        fill(self.origin, self.site.topic, [numbered(number, begin, end) for number in range(self.partitions)])

    def source(self) -> dict[str, list[bytes]]:
        return self.old.reader.records(self.site.topic)

    def spans(self) -> dict[str, Span]:
        with Client(ClientOptions(name_servers=tuple(self.origin))) as client:
            bounds = client.offsets.bounds(self.site.topic)
        return {str(queue): Span(seen.begin, seen.end) for queue, seen in bounds.items()}

    def target(self) -> dict[str, list[bytes]]:
        return arrived(self.site, self.reader)


WAYS = {"in": Inward, "out": Outward, "across": Across}


def lines_of(path: Path) -> list[bytes]:
    """Whole lines; what stands behind the last line feed is a record of its own."""
    lines = path.read_bytes().split(b"\n")
    return lines if lines[-1] else lines[:-1]


def arrived(site: Site, reader: JavaReader) -> dict[str, list[bytes]]:
    """The records of the site's topic by RocketMQ's own client, which has to agree with ours."""
    time.sleep(_SHOWN_S)
    theirs = reader.records(site.topic)
    assert records_of(site.name_servers, site.topic) == theirs
    return theirs


def begun_and_stopped(journey: Journey, step: str, passes: int = 0) -> tuple[subprocess.Popen[str], int]:
    """Starts a run; returns it and the pid of the process that stands still at the step.

    A run that fails before somebody gets there is started again: with short leases a loaded machine is enough for that.
    """
    fault = journey.site.fault(step, "stop", passes)
    driver = journey.site.start("run", journey.name)
    for _ in range(ATTEMPTS):
        if (pid := stopped_at(journey.site, step, driver)) is not None:
            return driver, pid
        assert ended(driver) in TRY_AGAIN, f"the run ended and nobody had come to {step}"
        assert fault.exists()
        driver = journey.site.start("run", journey.name)
    raise AssertionError(f"nobody came to {step} in {ATTEMPTS} runs")


_LOOK_AGAIN_S = 2.0


def begun_and_trapped(journey: Journey, trap: Trap) -> subprocess.Popen[str]:
    """Starts a run, again when one fails before, until a request of it is caught; returns the run."""
    for _ in range(ATTEMPTS):
        driver = journey.site.start("run", journey.name)
        wait_for(lambda driver=driver: trap.caught or driver.poll() is not None, "a request to catch")
        if trap.caught or wait_until(lambda: trap.caught, _LOOK_AGAIN_S):  # it may have ended its sender a moment ago
            return driver
        assert ended(driver) in TRY_AGAIN, "the run ended and no such request had come"
    raise AssertionError(f"no such request came in {ATTEMPTS} runs")


def run_until_done(journey: Journey, attempts: int = ATTEMPTS, limit_s: float = 120) -> list[int]:
    """Runs the connector, again as a scheduler would, until it ends well; the exit codes on the way."""
    seen: list[int] = []
    while not seen or seen[-1] != 0:
        assert len(seen) < attempts, f"runs ended with {seen}"
        seen.append(ended(journey.site.start("run", journey.name), limit_s))
        assert seen[-1] in (0, *TRY_AGAIN), f"a run ended with {seen[-1]}"
    return seen


def receipts_of(journey: Journey, stream: str = LIVE) -> list[dict[str, object]]:
    """As the ledger has them, with the names under which the command prints them."""
    with Ledger.open(journey.site.database_url) as ledger:
        uid = ledger.connector(journey.name).uid
        return [
            {**vars(settled.receipt), "partition": settled.partition.key, "incarnation": settled.incarnation}
            for settled in ledger.receipts(uid, stream=stream, limit=100_000)
        ]


def settled_up(journey: Journey, row: FaultRow) -> Account:
    """What became of every record, told in the row. `waybill verify` has to come to the same result as the receipts."""
    assert journey.site.json("verify", journey.name)["differs"] == 0
    return account(journey.source(), journey.target(), receipts_of(journey), journey.spans()).into(row)


def worker_killed(journey: Journey, row: FaultRow, passes: int = 0) -> None:
    """Starts a run, kills its worker between two batches (after `passes` of them), and returns when it has ended."""
    driver, there = begun_and_stopped(journey, "batch-written", passes)
    row.strikes()
    kill(there)
    assert ended(driver) in TRY_AGAIN


def struck(journey: Journey, trap: Trap, row: FaultRow) -> None:
    """Starts a run and returns when it has ended because of what the trap did to a request of it."""
    driver = begun_and_trapped(journey, trap)
    row.strikes()
    assert ended(driver) in TRY_AGAIN


def made_up_for(journey: Journey, row: FaultRow) -> Account:
    """Runs the connector until it ends well; what became of every record then."""
    run_until_done(journey)
    row.moves_again()
    return settled_up(journey, row)


def told_exactly(journey: Journey, former: Callable[[int], list[bytes]]) -> Account:
    """Of what was moved of each partition up to where its gap begins, and of all that is in the source now. `former`
    gives the records that the partition of a number had and the source has no more."""
    gaps = journey.site.json("gaps", journey.name)["gaps"]
    ends = {gap["partition"]: gap["begin"] for gap in gaps}
    now = journey.spans()
    there = journey.source()
    source = {
        queue: former(number)[: ends.get(queue)] + there.get(queue, []) for number, queue in enumerate(sorted(now))
    }
    if gaps[0]["end"] is not None:
        spans = {queue: Span(0, span.end) for queue, span in now.items()}
    else:  # a topic that was created anew is counted from 0 again
        spans = {queue: Span(0, end) for queue, end in ends.items()}
        spans |= {f"{queue}~1": Span(0, span.end) for queue, span in now.items()}
    return account(source, journey.target(), receipts_of(journey), spans, gaps)


def database_of(site: Site) -> str:
    """For the row."""
    return "SQLite" if site.database_url.startswith("sqlite") else "PostgreSQL"


def start_changed(journey: Journey, *change: str) -> subprocess.Popen[str]:
    """Runs its connector with something changed in the command (`programs`)."""
    command = [sys.executable, "-m", "tests.faults.kit.programs", *change, "run", journey.name]
    site = journey.site
    environment = {**site.environment(), "PYTHONPATH": str(Path(__file__).parents[3])}
    return subprocess.Popen(
        command, cwd=site.folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
