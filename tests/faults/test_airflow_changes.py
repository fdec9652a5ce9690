"""A connector that Airflow runs every two seconds is changed, stopped, deleted or made anew while a task of it works,
and the topic that it reads gets more queues and fewer again.

A row's seconds are those from the change until a receipt is settled behind it.
"""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from connect_core.ledger import Ledger
from connect_core.orchestration import names
from connect_core.rocketmq import Client, ClientOptions, TopicConfig, encode_batch
from tests.faults.kit.airflow import GrowingFiles, Scheduled, client_of, site_of, wait_for
from tests.faults.rows import FaultRow

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True), pytest.mark.timeout(900)]

INWARD = "file → RocketMQ, Airflow"
QUIET_S = 4.0
"""Two distances of the schedule: what has not begun by then was not going to begin."""


def test_the_document_changed_in_mid_run(journey: GrowingFiles, row: FaultRow) -> None:
    row.describe("document changed in mid-run", where=INWARD, database="PostgreSQL")
    journey.begin()
    journey.in_mid_range()
    row.strikes()
    journey.apply(limits={"range_records": 5_000})

    def smaller_ranges() -> bool:
        with Ledger.open(journey.site.database_url) as opened:
            connector = opened.connector(journey.name)
            newest = opened.receipts(connector.uid, limit=1)[0]
        return connector.revision > 1 and newest.pins.revision == connector.revision

    wait_for(smaller_ranges, "a receipt of the new revision")
    row.moves_again()
    journey.check(row)


def test_stopped_and_resumed_in_mid_run(journey: GrowingFiles, row: FaultRow) -> None:
    row.describe("stopped in mid-run, then resumed", where=INWARD, database="PostgreSQL")
    journey.begin()
    journey.in_mid_range()
    row.strikes()
    journey.site.waybill("connectors", "stop", journey.name)
    still = _nothing_moves_any_more(journey)
    journey.site.waybill("connectors", "resume", journey.name)
    journey.moves_again(row, still)
    journey.check(row)


def test_deleted_and_made_anew_in_mid_run(own_airflow: Path, journey: GrowingFiles, row: FaultRow) -> None:
    """The first one's topic keeps what was delivered, a beginning of each file, and its history stays; the second one
    begins at the beginning and takes nothing of the first, though its name is the same."""
    row.describe("deleted in mid-run, created again under the same name", where=INWARD, database="PostgreSQL")
    journey.begin()
    journey.in_mid_range()
    with Ledger.open(journey.site.database_url) as opened:
        first = opened.connector(journey.name).uid
    row.strikes()
    journey.site.waybill("connectors", "delete", journey.name, "--yes")
    of_the_first, journey.site.topic = journey.site.topic, f"t-{uuid.uuid4().hex[:12]}"
    journey.apply()
    journey.moves_again(row, 0)
    journey.check(row)
    with Ledger.open(journey.site.database_url) as opened:
        second = opened.connector(journey.name).uid
        told = sum(one.receipt.delivered for one in opened.receipts(first, limit=None))
        assert not opened.live_leases(first)
    assert second != first
    journey.site.topic = of_the_first
    _each_a_beginning(journey.site.messages(), at_least=told)


def _each_a_beginning(bodies: list[bytes], at_least: int) -> None:
    """Each file's lines from its first on, none twice: nobody has written beside the one who was deleted."""
    seen: dict[bytes, list[int]] = {}
    for body in bodies:
        host, number = body.split()
        seen.setdefault(host, []).append(int(number))
    assert all(numbers == list(range(len(numbers))) for numbers in seen.values())
    assert len(bodies) >= at_least


def test_deleted_in_mid_run(own_airflow: Path, journey: GrowingFiles, row: FaultRow) -> None:
    row.describe("deleted in mid-run", where=INWARD, database="PostgreSQL")
    journey.begin()
    journey.in_mid_range()
    with Ledger.open(journey.site.database_url) as opened:
        uid = opened.connector(journey.name).uid
    journey.site.waybill("connectors", "delete", journey.name, "--yes")
    with Ledger.open(journey.site.database_url) as opened:
        wait_for(lambda: not opened.live_leases(uid), "the end of its run")
        history = opened.receipts(uid, limit=None)
    there = journey.site.messages()
    time.sleep(QUIET_S)
    assert journey.site.messages() == there
    assert len(there) >= sum(one.receipt.delivered for one in history) > 0
    with client_of(own_airflow) as client:
        dag = names.live_dag(journey.name)
        wait_for(lambda: dag not in {known.dag_id for known in client.dags("waybill")}, "Airflow to forget it")
    _each_a_beginning(there, at_least=1)
    journey.apply(schedule={"manual": True})  # for the end of the test, which deletes what has this name


def _nothing_moves_any_more(journey: GrowingFiles) -> int:
    wait_for(lambda: not journey.is_at_work(), "the run to end")
    still = journey.settled()
    time.sleep(QUIET_S)
    assert journey.settled() == still
    return still


@dataclass
class GrowingTopic(Scheduled):
    """Messages that keep coming into every queue there is, and the connector that moves them into files."""

    sent: dict[int, int] = field(default_factory=dict)
    """Messages by queue id; each says its queue and number."""
    _writing: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    wrong: list[BaseException] = field(default_factory=list)

    def begin(self, queues: int, assignment: str) -> None:
        (self.site.folder / self.name).mkdir()
        self.resize(queues, queues)
        self.site.apply(
            self.name,
            {
                "source": {"rocketmq": {"name_servers": self.site.name_servers[0], "topics": [self.site.topic]}},
                "sink": {"file": {"path": f"{self.name}/lines.txt"}},
                "schedule": {"every": "2s"},
                "tasks": 2,
                "assignment": assignment,
            },
        )
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()
        wait_for(lambda: self.settled() > 0, "the first receipt")

    def resize(self, read: int, write: int) -> None:
        with self._writing, self._client() as client:
            (broker,) = client.brokers.masters()
            client.topics.put(TopicConfig(self.site.topic, read, write), broker)
            wait_for(lambda: self._shows(client, read, write), "the new route")

    def _shows(self, client: Client, read: int, write: int) -> bool:
        topic, topics = self.site.topic, client.topics
        known = topics.exists(topic)  # asks the name server anew
        return known and (len(topics.read_queues(topic)), len(topics.write_queues(topic))) == (read, write)

    def _client(self) -> Client:
        return Client(ClientOptions(name_servers=tuple(self.site.name_servers)))

    def _feed(self) -> None:
        try:
            with self._client() as client:
                while not self._over.wait(0.1):
                    self._send(client, 100)
        except BaseException as error:  # told by `check`, in the test's own thread
            self.wrong.append(error)

    def _send(self, client: Client, count: int) -> None:
        """A batch to each queue that may be written now."""
        with self._writing:
            client.topics.exists(self.site.topic)
            for queue in client.topics.write_queues(self.site.topic):
                first = self.sent.get(queue.queue_id, 0)
                bodies = [b"%d %d" % (queue.queue_id, number) for number in range(first, first + count)]
                sender, deadline = client.sender(queue), time.monotonic() + 60
                sender.submit(encode_batch(bodies, [b""] * count), deadline=deadline)
                sender.finish(deadline=deadline)
                self.sent[queue.queue_id] = first + count

    def arrived(self) -> dict[Path, list[tuple[int, int]]]:
        found = {}
        for path in sorted((self.site.folder / self.name).glob("lines.*")):
            found[path] = [(int(queue), int(number)) for queue, number in map(str.split, path.read_text().splitlines())]
        return found

    def dry_up(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def check(self, row: FaultRow) -> None:
        self.dry_up()
        assert not self.wrong
        wait_for(
            lambda: sum(map(len, self.arrived().values())) >= sum(self.sent.values()), "every message in the files"
        )
        copies = [one for records in self.arrived().values() for one in records]
        fed = {(queue, number) for queue, count in self.sent.items() for number in range(count)}
        row.lost, row.repeated = len(fed - set(copies)), len(copies) - len(set(copies))
        row.reordered = 0
        for records in self.arrived().values():
            for queue in self.sent:
                mine = [number for of, number in records if of == queue]
                row.reordered += sum(left > right for left, right in pairwise(mine))
        row.duplicates = self.duplicates()
        assert (row.lost, row.repeated, row.reordered, row.duplicates) == (0, 0, 0, 0)


@pytest.mark.parametrize("assignment", ["even", "consistent-hash"])
def test_queues_added_and_taken_away_under_load(own_airflow: Path, row: FaultRow, assignment: str) -> None:
    """Fewer again as people do it: first nobody writes to the last four, then they are not read any more."""
    row.describe(f"queues 4 → 8 → 4 under load, {assignment}", where="RocketMQ → file, Airflow", database="PostgreSQL")
    journey = GrowingTopic(site_of(own_airflow), f"queues-{uuid.uuid4().hex[:8]}")
    try:
        journey.begin(4, assignment)
        row.strikes()
        journey.resize(8, 8)
        wait_for(lambda: _settled_queues(journey) == 8, "receipts of eight queues")
        row.moves_again()
        journey.resize(8, 4)
        wait_for(lambda: _drained(journey, range(4, 8)), "the last four to be empty")
        journey.resize(4, 4)
        behind = journey.settled()
        wait_for(lambda: journey.settled() > behind, "a receipt with four queues")
        journey.check(row)
        assert _settled_queues(journey) == 8  # their history stays
    finally:
        journey.dry_up()
        journey.site.waybill("connectors", "delete", journey.name, "--yes")


def _settled_queues(journey: GrowingTopic) -> int:
    with Ledger.open(journey.site.database_url) as opened:
        settled = opened.receipts(opened.connector(journey.name).uid, limit=None)
    return len({one.partition for one in settled})


def _drained(journey: GrowingTopic, queues: range) -> bool:
    seen = {one for records in journey.arrived().values() for one in records}
    return all((queue, journey.sent[queue] - 1) in seen for queue in queues)
