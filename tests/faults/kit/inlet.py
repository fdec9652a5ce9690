"""A connector from MQTT to RocketMQ or a file, whose devices all say the same: what was published and has arrived."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.session import Session
from connect_core.systems.topic_filters import is_shared
from tests.faults.kit.journeys import TRY_AGAIN
from tests.faults.kit.processes import LIMIT_S, ended
from tests.faults.rows import FaultRow
from tests.mqtt_brokers import MqttBroker
from tests.mqtt_devices import devices
from tests.site import Site

NAME = "devices-in"
SAME = b"on"
FIRST, MORE = 400, 60
A_BATCH = 50
_IDLE_RUNS = 5
_ATTEMPTS = 3
POINTS = {
    "received": "the worker, received and not written",
    "batch-durable": "the worker, written and not acknowledged",
    "acknowledged": "the worker, acknowledged and not settled",
    "before-receipt": "the worker, before the receipt",
    "executed": "the driver, after the receipt, before settle",
    "settled": "the driver, after settle",
}


class Inlet:
    """MQTT → RocketMQ, or a file; applied when it is made. `published` counts what the broker has acknowledged."""

    def __init__(self, site: Site, broker: MqttBroker, target: str = "RocketMQ", /, **options: Any) -> None:
        self.site, self.broker, self.target = site, broker, target
        self.published = 0
        self.run_limit_s = LIMIT_S
        """Of one run: more where the broker itself needs it to work off what it has."""
        self.was_killed = False
        """Whether the broker was: it may have forgotten acknowledgements, and send again what it has them of."""
        self._shares = any(map(is_shared, options.get("filters", ())))
        sinks = {
            "RocketMQ": {"rocketmq": {"name_servers": site.name_servers, "topic": site.topic, "queues": 1}},
            "a file": {"file": {"path": "out.txt"}},
        }
        place = {"host": broker.host, "port": broker.port, "filters": ["devices/#"], "receive_maximum": A_BATCH}
        self.document = {"source": {"mqtt": {**place, **options}}, "sink": sinks[target]}
        site.settings |= {"WAYBILL_QUANTUM_S": "3s", "WAYBILL_LINGER_S": "400ms", "WAYBILL_LEASE_TTL_S": "8s"}
        site.settings |= {"WAYBILL_LEASE_MARGIN_S": "2s", "WAYBILL_SEND_TIMEOUT_S": "2s"}
        site.apply(NAME, self.document)

    def change(self, **options: Any) -> None:
        """Of the source, in the document."""
        self.document["source"]["mqtt"] |= options
        self.site.apply(NAME, self.document)

    def limited_to(self, records: int) -> None:
        """So many in each range."""
        self.document["limits"] = {"range_records": records}
        self.site.apply(NAME, self.document)

    def session(self, number: int, protocol: str = "5") -> Session:
        """The connector's own, taken over by somebody who knows its client id."""
        uid = self.site.json("connectors", "show", NAME)["uid"]
        place = {"host": self.broker.host, "port": self.broker.port, "protocol": protocol}
        options = MqttSourceOptions.model_validate({**place, "filters": ["#"], "uid": uid})
        return Session(options, options.client_id(number))

    def close(self) -> None:
        """Nothing of it stays at the broker."""
        self.site.waybill("connectors", "delete", NAME, "--yes")

    def publish(self, count: int) -> None:
        self.publish_all([SAME] * count)

    def publish_all(self, payloads: Sequence[bytes], topic: str = "devices/1/state", **more: Any) -> None:
        with devices(self.broker) as all_of_them:
            all_of_them.publish(topic, payloads, **more)
            all_of_them.wait()
        self.published += len(payloads)

    def run(self) -> None:
        """As a scheduler does it: on a busy machine a lane may run out of its lease, and the next attempt goes on."""
        for _ in range(_ATTEMPTS):
            if (code := ended(self.site.start("run", NAME, "--engine", "inline"), self.run_limit_s)) not in TRY_AGAIN:
                break
        assert code == 0

    def run_until_nothing_comes(self) -> None:
        """Into a file a quantum takes what the broker sends without acknowledgement. What is missing is lost only when
        several runs in a row have not brought it."""
        before, idle = -1, 0
        while idle == 0 or (before < self.published and idle < _IDLE_RUNS):
            self.run()
            there = len(self.arrived())
            before, idle = there, idle + 1 if there == before else 0

    def killed(self, row: FaultRow, point: str, passes: int = 0) -> None:
        """A run in which whoever comes to the point is killed, after `passes` that were let go on."""
        self.site.fault(point, "kill", passes)
        code = ended(self.site.start("run", NAME, "--engine", "inline"))
        row.strikes()
        assert code in (-signal.SIGKILL, *TRY_AGAIN), "the fault has struck"

    def goes_on(self, row: FaultRow) -> None:
        """Behind the fault: more is published, all of it is moved, and compared; nothing stays at the broker."""
        self.publish(MORE)
        self.run()
        row.moves_again()
        self.comes_to_rest(row)

    def comes_to_rest(self, row: FaultRow) -> None:
        """The rest is moved, and compared; nothing stays at the broker."""
        self.run_until_nothing_comes()
        self.check(row)
        self.close()

    def arrived(self) -> list[bytes]:
        if self.target == "RocketMQ":
            return self.site.messages()
        out = Path(self.site.folder / "out.txt")
        return out.read_bytes().splitlines() if out.exists() else []

    def has_more_than(self, count: int) -> bool:
        return len(self.arrived()) > count

    def receipts(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.site.json("receipts", NAME, "--last", "1000")["receipts"]
        return sorted(found, key=lambda one: (one["begin"], one["end"]))

    def check(self, row: FaultRow) -> None:
        """Mosquitto repeats nothing, of a shared subscription either, unless it was killed. What else is repeated is
        told, but for what HiveMQ CE gives out twice to members of a group: it does that of itself
        (docs/decisions/mqtt-push-source.md)."""
        there, receipts = self.arrived(), self.receipts()
        assert {*there} <= {SAME}
        extra, told = len(there) - self.published, sum(one["possible_duplicates"] for one in receipts)
        row.lost, row.repeated, row.duplicates = (
            max(-extra, 0),
            max(extra, 0),
            sum(one["duplicates"] for one in receipts),
        )
        row.reordered = 0
        assert extra >= 0, f"{-extra} of {self.published} are lost"
        if extra:
            row.condition = f"reported: {told} possible duplicates"
        if self.broker.kind == "Mosquitto" and not self.was_killed:
            assert extra == 0, f"{extra} repeated"
        elif not self._shares:
            assert extra <= told, f"{extra} repeated, {told} told"
        elif extra > told:
            row.condition += "; the others are HiveMQ CE's own"
        at: dict[str, int] = {}
        for one in receipts:
            assert one["begin"] == at.get(one["partition"], 0)
            at[one["partition"]] = one["end"]
        assert sum(one["delivered"] + one["deduplicated"] for one in receipts) == len(there)


def begun(site: Site, broker: MqttBroker, target: str = "RocketMQ", **options: Any) -> Inlet:
    """Subscribed: from now on the broker keeps what comes. A loaded machine may need more than one attempt."""
    inlet = Inlet(site, broker, target, **options)
    while (code := ended(site.start("run", NAME, "--engine", "inline"))) in TRY_AGAIN:
        pass
    assert code == 0
    return inlet


@contextmanager
def devices_at_work(inlet: Inlet, pause_s: float = 0.05, each: int = 10, taken_within_s: float = 60) -> Iterator[None]:
    """They publish while the block lasts, a few together; what the broker has acknowledged counts, and that is all of
    it soon after the end."""
    over = threading.Event()

    def publish() -> None:
        with devices(inlet.broker) as all_of_them:
            due = time.monotonic() + pause_s
            while not over.wait(max(due - time.monotonic(), 0)):
                all_of_them.publish("devices/1/state", [SAME] * each)
                due += pause_s
            all_of_them.wait(taken_within_s)
            inlet.published += all_of_them.published

    with ThreadPoolExecutor(1) as alone:
        published = alone.submit(publish)
        try:
            yield
        finally:
            over.set()
    published.result()
