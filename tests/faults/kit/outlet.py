"""A file that is published to MQTT, and what may end its attempts."""

from __future__ import annotations

import signal
from collections import Counter
from itertools import pairwise
from typing import Any

from tests.faults.kit.journeys import TRY_AGAIN
from tests.faults.kit.mqtt_proxy import Strike
from tests.faults.kit.processes import ended
from tests.faults.rows import FaultRow
from tests.mqtt_devices import Listener
from tests.site import Site

NAME = "devices-out"


COUNT, MORE = 700, 60


GROUP = 100


class Outlet:
    """A file → MQTT; `deaths` counts what has ended an attempt in the middle."""

    def __init__(self, site: Site, broker: Any, listener: Listener, topic: str, /, **options: Any) -> None:
        self.site, self.listener = site, listener
        self.written = self.deaths = 0
        site.settings |= {"WAYBILL_QUANTUM_S": "3s", "WAYBILL_LINGER_S": "400ms", "WAYBILL_LEASE_TTL_S": "8s"}
        site.settings |= {"WAYBILL_LEASE_MARGIN_S": "2s", "WAYBILL_SEND_TIMEOUT_S": "2s"}
        place = {"host": broker.host, "port": broker.port, "topic": topic, "progress_every": GROUP, "in_flight": 10}
        self.write(COUNT)
        site.apply(NAME, {"source": {"file": {"path": "in.txt"}}, "sink": {"mqtt": {**place, **options}}})

    def write(self, count: int, more_bytes: bytes = b"") -> None:
        with (self.site.folder / "in.txt").open("ab") as file:
            file.writelines(b"%d%s\n" % (self.written + n, more_bytes) for n in range(count))
        self.written += count

    def start(self) -> Any:
        return self.site.start("run", NAME, "--engine", "inline")

    def uid(self) -> str:
        return str(self.site.json("connectors", "show", NAME)["uid"])

    def run(self) -> None:
        self.site.waybill("run", NAME, "--engine", "inline")

    def receipts(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.site.json("receipts", NAME, "--last", "1000")["receipts"]
        return sorted(found, key=lambda one: (one["begin"], one["end"]))

    def check(self, row: FaultRow) -> None:
        heard = [int(one.split(b" ")[0]) for one in self.listener.payloads(self.written, quiet_s=1.0)]
        told, receipts = sum(one["possible_duplicates"] for one in self.receipts()), self.receipts()
        times = Counter(heard)
        row.lost = sum(n not in times for n in range(self.written))
        row.repeated = len(heard) - len(times)
        firsts = list(dict.fromkeys(heard))
        row.reordered = sum(one > other for one, other in pairwise(firsts))
        row.duplicates = sum(one["duplicates"] for one in receipts)
        if row.repeated:
            row.condition = f"reported: {told} possible duplicates"
        assert (row.lost, row.reordered) == (0, 0)
        assert row.repeated <= told, f"{row.repeated} repeated, {told} told"
        assert row.repeated <= GROUP * self.deaths
        assert sum(one["delivered"] + one["deduplicated"] for one in receipts) == self.written
        at = 0
        for one in receipts:
            assert one["begin"] == at
            at = one["end"]

    def struck(self, row: FaultRow, strike: Strike) -> None:
        """A run ends because of it."""
        driver = self.start()
        assert strike.struck.wait(60), ended(driver)
        row.strikes()
        self.deaths += 1
        assert ended(driver) in (-signal.SIGKILL, *TRY_AGAIN)
