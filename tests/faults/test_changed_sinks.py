"""A connector whose sink was another system: what was planned is finished where it was planned to go, what comes then
goes to the new one, and back again. Each line is somewhere once (delivery rule 8)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.faults.kit.journeys import SHORT_LEASES, TRY_AGAIN, begun_and_stopped, run_until_done
from tests.faults.kit.processes import ended, kill
from tests.faults.kit.topics import JavaReader
from tests.faults.rows import FaultRow
from tests.mqtt_brokers import Mosquitto
from tests.mqtt_devices import Listener, listening
from tests.servers import RocketMQ
from tests.site import Site, new_site

pytestmark = [pytest.mark.server, pytest.mark.fault]

NAMES = ("a", "b")
LINES = 400
"""Of a round, for each of the two files."""


@dataclass
class Changing:
    """Two files, and what their lines may go to; each target is read by a client that is no part of the product."""

    site: Site
    reader: JavaReader
    listener: Listener
    sinks: dict[str, dict[str, Any]]
    written: list[bytes] = field(default_factory=list)
    name: str = "lines"

    def feed(self) -> None:
        begin = len(self.written) // len(NAMES)
        for name in NAMES:
            lines = [f"{name} {number:06d}".encode() for number in range(begin, begin + LINES)]
            with (self.site.folder / "logs" / f"{name}.log").open("ab") as file:
                file.write(b"".join(line + b"\n" for line in lines))
            self.written += lines

    def apply(self, sink: str) -> None:
        source = {"file": {"path": "logs/*.log"}}
        self.site.apply("lines", {"source": source, "sink": {sink: self.sinks[sink]}, "engine": "inline"})

    def run_until_done(self) -> None:
        run_until_done(self)  # type: ignore[arg-type]

    def kill_a_worker(self) -> None:
        """Some of a range is in the target then, and no receipt says so."""
        driver, there = begun_and_stopped(self, "batch-written")  # type: ignore[arg-type]
        kill(there)
        assert ended(driver) in TRY_AGAIN

    def there(self, sink: str) -> list[bytes]:
        if sink == "rocketmq":
            return [body for queue in self.reader.records(self.site.topic).values() for body in queue]
        if sink == "mqtt":
            return [bytes(message.payload) for message in self.listener.everything()]
        return (self.site.folder / "out.txt").read_bytes().splitlines()

    def told(self) -> int:
        """Repeats that the receipts speak of."""
        receipts = self.site.json("receipts", "lines", "--last", "10000")["receipts"]
        return sum(one["duplicates"] + one["possible_duplicates"] for one in receipts)


@pytest.fixture
def changing(tmp_path: Path, rocketmq: RocketMQ, java_reader: JavaReader, mosquitto: Mosquitto) -> Any:
    site = new_site(tmp_path, f"sqlite:///{tmp_path}/.waybill/ledger.db", None)
    site.settings |= SHORT_LEASES
    (tmp_path / "logs").mkdir()
    topic = f"changed/{site.topic}"
    sinks: dict[str, dict[str, Any]] = {
        "file": {"path": "out.txt"},
        "rocketmq": {"name_servers": rocketmq.name_servers, "topic": site.topic, "queues": 2},
        "mqtt": {"host": mosquitto.host, "port": mosquitto.port, "topic": topic, "progress_every": 100},
    }
    with listening(mosquitto, topic) as listener:
        yield Changing(site, java_reader, listener, sinks)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("file", "rocketmq"),
        ("file", "mqtt"),
        ("rocketmq", "mqtt"),
        ("rocketmq", "file"),
        ("mqtt", "rocketmq"),
        ("mqtt", "file"),
    ],
)
def test_a_sink_that_becomes_another_system_with_a_range_open(
    changing: Changing, row: FaultRow, before: str, after: str
) -> None:
    row.describe(f"sink {before} becomes {after} and {before} again, each time with an open range", where="file → …")
    row.database = "SQLite"
    changing.apply(before)
    changing.feed()
    changing.kill_a_worker()
    row.strikes()
    for sink in (after, before):
        changing.apply(sink)
        changing.feed()
        changing.run_until_done()
        row.moves_again()
        changing.feed()
        changing.kill_a_worker()
    changing.run_until_done()
    wanted = Counter(changing.written)
    there = Counter(changing.there(before)) + Counter(changing.there(after))
    row.lost, row.repeated = (wanted - there).total(), (there - wanted).total()
    row.reordered, row.duplicates = 0, changing.told()
    assert row.lost == 0
    assert row.repeated <= (row.duplicates if "mqtt" in (before, after) else 0)
    assert changing.there(after), "something went to the other system"
    assert changing.site.json("connectors", "show", "lines")["aside"] == []
