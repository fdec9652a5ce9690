"""MQTT into a file, which cannot tell its lines: the ledger comes back from a backup, or a worker is killed and the
document changes its path. The sessions are moved on, nothing is lost without a word, and no repeat is uncounted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pytest

from tests.faults.kit.journeys import TRY_AGAIN
from tests.faults.kit.processes import ended
from tests.faults.rows import FaultRow
from tests.faults.test_restored_ledgers import FileCopy
from tests.mqtt_brokers import Mosquitto
from tests.mqtt_devices import devices
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]

NAME = "filed"


@dataclass
class Filed:
    """Messages of one topic into a file of `site`."""

    site: Site
    broker: Mosquitto
    topic: str = field(default_factory=lambda: f"filed/{uuid4().hex[:8]}")
    published: list[bytes] = field(default_factory=list)

    def apply(self, path: str) -> None:
        source = {"host": self.broker.host, "port": self.broker.port, "filters": [self.topic]}
        self.site.apply(NAME, {"source": {"mqtt": source}, "sink": {"file": {"path": path}}, "engine": "inline"})

    def publish(self, count: int) -> None:
        payloads = [b"%06d" % (len(self.published) + n) for n in range(count)]
        with devices(self.broker) as made:
            made.publish(self.topic, payloads)
            made.wait()
        self.published += payloads

    def run(self) -> str:
        return self.site.waybill("run", NAME)

    def lines(self, pattern: str) -> Counter[bytes]:
        return Counter(line for path in self.site.folder.glob(pattern) for line in path.read_bytes().splitlines())

    def told(self) -> int:
        receipts = self.site.json("receipts", NAME, "--last", "1000")["receipts"]
        return sum(one["duplicates"] + one["possible_duplicates"] for one in receipts)


@pytest.fixture
def filed(bare_site: Site, mosquitto: Mosquitto) -> Filed:
    return Filed(bare_site, mosquitto)


@pytest.mark.fault(costly=True)
@pytest.mark.parametrize("told", [False, True], ids=["noticed", "told"])
def test_the_ledger_is_restored_and_the_session_is_moved_on(
    filed: Filed, tmp_path: Path, row: FaultRow, told: bool
) -> None:
    by = "reported with `waybill db restored`" if told else "noticed by what the home remembers"
    row.describe(f"ledger restored from a backup, {by}", where="MQTT (Mosquitto) → file", database="SQLite")
    filed.apply("out.txt")
    filed.run()
    filed.publish(10)
    filed.run()
    backup = FileCopy(filed.site.database_url, tmp_path)
    backup.keep()
    filed.publish(3)
    filed.run()
    row.strikes()
    backup.bring_back()
    if told:
        filed.site.waybill("db", "restored", "--why", "a drill")
    filed.publish(5)
    filed.run()
    row.moves_again()
    there, aside = filed.lines("out.txt"), filed.lines("out.txt.unsettled-*")
    row.lost, row.repeated = (
        (Counter(filed.published) - there - aside).total(),
        (there - Counter(filed.published)).total(),
    )
    row.condition = f"{aside.total()} lines that the source does not send again are beside the file, and reported"
    assert (row.lost, row.repeated) == (0, 0)
    assert (there, aside) == (Counter([*filed.published[:10], *filed.published[13:]]), Counter(filed.published[10:13]))
    [gap] = filed.site.json("gaps", NAME)["gaps"]
    assert "restored from a backup: the last 21 bytes of" in gap["reason"]


def test_a_worker_is_killed_and_the_document_names_another_file(filed: Filed, row: FaultRow) -> None:
    row.describe("SIGKILL while a file is written, and another path since", where="MQTT (Mosquitto) → file")
    row.database = "SQLite"
    filed.apply("former.txt")
    filed.run()
    filed.publish(1_000)
    filed.site.fault("batch-written")
    assert ended(filed.site.start("run", NAME)) in TRY_AGAIN
    row.strikes()
    filed.apply("other.txt")
    filed.run()
    filed.run()
    row.moves_again()
    there = filed.lines("former.txt") + filed.lines("other.txt")
    row.lost = (Counter(filed.published) - there).total()
    row.repeated, row.duplicates = (there - Counter(filed.published)).total(), filed.told()
    assert row.lost == 0
    assert 0 < row.repeated <= row.duplicates
