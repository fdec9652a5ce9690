"""A topic on two brokers, one of which is away: its queues are put aside, those of the other one are moved on, and what
is there when it is back arrives once (delivery rules 25 and 26)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from connect_core.rocketmq import Client, ClientOptions, encode_batch
from tests.faults.kit import processes
from tests.faults.kit.processes import ended, stopped_at, wait_for
from tests.faults.kit.second_broker import NAME, SecondBroker
from tests.faults.rows import FaultRow
from tests.servers import RocketMQ, end, rocketmq_in
from tests.site import Site, new_site

pytestmark = [pytest.mark.server, pytest.mark.fault]

AWAY = 3
QUEUES = 2
"""Of the topic on each of the brokers."""
Absence = Callable[[SecondBroker], AbstractContextManager[None]]


@dataclass
class Pair:
    """The topic's queues on both brokers, and the file that their messages go to; read by no part of the product."""

    site: Site
    second: SecondBroker
    sent: dict[str, list[bytes]] = field(default_factory=lambda: {"broker-a": [], NAME: []})

    def send(self, word: str, records: int = 50, brokers: tuple[str, ...] = ("broker-a", NAME)) -> None:
        """So many to each queue on these brokers."""
        deadline = time.monotonic() + 60
        with Client(ClientOptions(name_servers=tuple(self.site.name_servers))) as client:
            if not client.topics.exists(self.site.topic):
                client.topics.create(self.site.topic, QUEUES)
            for queue in client.topics.write_queues(self.site.topic):
                if queue.broker in brokers:
                    bodies = [f"{queue.broker} {queue.queue_id} {word} {n}".encode() for n in range(records)]
                    sender = client.sender(queue)
                    sender.submit(encode_batch(bodies, [b""] * records), deadline=deadline)
                    sender.finish(deadline=deadline)
                    self.sent[queue.broker] += bodies
            for broker in brokers:
                client.barrier(broker, deadline=deadline)

    def run(self, *options: str, code: int = 0) -> str:
        return self.site.waybill("run", "pair", "--engine", "inline", *options, code=code)

    def moved(self) -> list[bytes]:
        return (self.site.folder / "out" / "lines.txt").read_bytes().splitlines()

    def missing(self, broker: str) -> int:
        return (Counter(self.sent[broker]) - Counter(self.moved())).total()

    def check(self, row: FaultRow) -> None:
        """Everything is there once, in the order of its queue."""
        given, there = Counter(line for lines in self.sent.values() for line in lines), Counter(self.moved())
        row.lost, row.repeated = (given - there).total(), (there - given).total()
        starts = [f"{broker} {number} ".encode() for broker in self.sent for number in range(QUEUES)]
        row.reordered = sum(
            [line for line in self.moved() if line.startswith(start)]
            != [line for line in self.sent[start.split()[0].decode()] if line.startswith(start)]
            for start in starts
        )
        row.duplicates = sum(
            one["duplicates"] for one in self.site.json("receipts", "pair", "--last", "1000")["receipts"]
        )
        assert (row.lost, row.repeated, row.reordered, row.duplicates) == (0, 0, 0, 0)

    def aside(self, *words: str) -> dict[str, str]:
        """Why which partitions are no more than known by name, as this command says."""
        told = self.site.json(*words)
        parts = told["aside"] if "aside" in told else told["partitions"]
        return {one["partition"]: one["reason"] for one in parts if one["state"] != "active"}

    def of_second(self) -> list[str]:
        return [f"{self.site.topic}/{NAME}/{number}" for number in range(QUEUES)]


@pytest.fixture(scope="module")
def two_brokers(worker_folder: Path) -> Iterator[tuple[RocketMQ, SecondBroker]]:
    first = rocketmq_in(worker_folder / "two-brokers", "5.5.0")
    second = SecondBroker(first, worker_folder / "two-brokers" / "second")
    yield first, second
    second.close()
    end(first.home)


@pytest.fixture
def pair(tmp_path: Path, two_brokers: tuple[RocketMQ, SecondBroker]) -> Pair:
    first, second = two_brokers
    site = new_site(tmp_path, f"sqlite:///{tmp_path}/.waybill/ledger.db", None)
    site.name_servers.extend(first.name_servers)
    (tmp_path / "out").mkdir()
    made = Pair(site, second)
    made.send("first")
    source = {"rocketmq": {"name_servers": ";".join(first.name_servers), "topics": [site.topic]}}
    sink = {"file": {"path": "out/lines.txt"}}
    site.apply("pair", {"source": source, "sink": sink, "limits": {"range_records": 200}})
    return made


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("absence", [SecondBroker.killed, SecondBroker.paused], ids=["killed", "paused"])
def test_a_broker_that_is_away_when_a_run_begins(pair: Pair, absence: Absence, row: FaultRow) -> None:
    word = absence.__name__
    row.describe(f"one of two brokers {word} between two runs", where="RocketMQ → file", database="SQLite")
    pair.run()
    pair.send("second")
    with absence(pair.second):
        row.strikes()
        told = pair.run(code=AWAY)
        assert "put aside" in told
        assert all(key in told for key in pair.of_second())
        assert (pair.missing("broker-a"), pair.missing(NAME)) == (0, 50 * QUEUES)
        for words in (("plan", "pair"), ("connectors", "show", "pair")):
            reasons = pair.aside(*words)
            assert sorted(reasons) == pair.of_second()
            assert all(reasons.values())
        [lag] = pair.site.json("lag", "pair")["connectors"]
        assert sorted(one["partition"] for one in lag["aside"]) == pair.of_second()
    pair.run()
    row.moves_again()
    pair.check(row)
    assert pair.aside("connectors", "show", "pair") == {}


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("absence", [SecondBroker.killed, SecondBroker.paused], ids=["killed", "paused"])
def test_a_broker_that_goes_away_in_a_window(pair: Pair, absence: Absence, row: FaultRow) -> None:
    """What comes to the other one is moved in the same window."""
    word = absence.__name__
    row.describe(f"one of two brokers {word} in a window", where="RocketMQ → file", database="SQLite")
    window = pair.site.start("run", "pair", "--engine", "inline", "--window", "5m")
    try:
        wait_for(lambda: (pair.site.folder / "out" / "lines.txt").exists() and not pair.missing(NAME), "a first run")
        with absence(pair.second):
            row.strikes()
            wait_for(lambda: sorted(pair.aside("connectors", "show", "pair")) == pair.of_second(), "to be put aside")
            for turn in range(3):
                pair.send(f"turn {turn}", brokers=("broker-a",))
                wait_for(lambda: pair.missing("broker-a") == 0, "what came to the other broker")
                assert window.poll() is None
            row.moves_again()
            pair.site.waybill("connectors", "pause", "pair")
            assert ended(window) == AWAY
            pair.site.waybill("connectors", "resume", "pair")
            pair.send("behind", brokers=("broker-a",))
            pair.run(code=AWAY)
            assert pair.missing("broker-a") == 0
    finally:
        window.kill()
    pair.send("last")
    pair.run()
    pair.check(row)


@pytest.mark.parametrize("absence", [SecondBroker.killed, SecondBroker.paused], ids=["killed", "paused"])
def test_a_broker_that_goes_away_while_a_worker_reads(pair: Pair, absence: Absence, row: FaultRow) -> None:
    word = absence.__name__
    row.describe(f"one of two brokers {word} in mid-range", where="RocketMQ → file", database="SQLite")
    pair.send("second", records=400)
    pair.site.fault("batch-written", "stop", 1)
    driver = pair.site.start("run", "pair", "--engine", "inline")
    there = stopped_at(pair.site, "batch-written", driver)
    assert there is not None
    with absence(pair.second):
        row.strikes()
        processes.go_on(there)
        assert ended(driver) == AWAY
        assert pair.missing("broker-a") == 0
    pair.run()
    row.moves_again()
    pair.check(row)
