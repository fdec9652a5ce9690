"""SIGKILL of a run that empties an MQTT session, and of its broker: devices that all say the same, counted.

A broker that counts packet ids up (Mosquitto) repeats nothing. One that uses them again (HiveMQ CE) repeats no more
than the receipts tell of. Nothing is lost with either.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.faults.kit import processes
from tests.faults.kit.fixtures import MakeSite
from tests.faults.kit.journeys import TRY_AGAIN
from tests.faults.kit.processes import ended, stopped_at
from tests.faults.rows import FaultRow
from tests.mqtt_brokers import MqttBroker
from tests.mqtt_devices import devices
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True)]

NAME = "devices-in"
SAME = b"on"
FIRST, MORE = 400, 60
A_BATCH = 50
POINTS = {
    "received": "the worker, received and not written",
    "batch-durable": "the worker, written and not acknowledged",
    "acknowledged": "the worker, acknowledged and not settled",
    "before-receipt": "the worker, before the receipt",
    "executed": "the driver, after the receipt, before settle",
    "settled": "the driver, after settle",
}
INTO_A_FILE = ("received", "batch-written", "before-receipt", "executed", "settled")
COSTLY = pytest.mark.fault(costly=True)


class Inlet:
    """MQTT → RocketMQ, or a file. `published` counts what the broker has acknowledged."""

    def __init__(self, site: Site, broker: MqttBroker, target: str = "RocketMQ", **options: Any) -> None:
        self.site, self.broker, self.target = site, broker, target
        self.published = 0
        sinks = {
            "RocketMQ": {"rocketmq": {"name_servers": "${stack:name_servers}", "topic": site.topic, "queues": 1}},
            "a file": {"file": {"path": "out.txt"}},
        }
        place = {"host": broker.host, "port": broker.port, "filters": ["devices/#"], "receive_maximum": A_BATCH}
        site.settings |= {"WAYBILL_QUANTUM_S": "3s", "WAYBILL_LINGER_S": "400ms", "WAYBILL_LEASE_TTL_S": "8s"}
        site.settings |= {"WAYBILL_LEASE_MARGIN_S": "2s", "WAYBILL_SEND_TIMEOUT_S": "2s"}
        site.apply(NAME, {"source": {"mqtt": {**place, **options}}, "sink": sinks[target]})
        self.run()

    def publish(self, count: int) -> None:
        with devices(self.broker) as all_of_them:
            all_of_them.publish("devices/1/state", [SAME] * count)
            all_of_them.wait()
        self.published += count

    def run(self) -> None:
        self.site.waybill("run", NAME, "--engine", "inline")

    def run_until_nothing_comes(self) -> None:
        """Into a file a quantum takes what the broker sends without acknowledgement."""
        before = -1
        while len(self.arrived()) != before:
            before = len(self.arrived())
            self.run()

    def arrived(self) -> list[bytes]:
        if self.target == "RocketMQ":
            return self.site.messages()
        out = Path(self.site.folder / "out.txt")
        return out.read_bytes().splitlines() if out.exists() else []

    def receipts(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.site.json("receipts", NAME, "--last", "1000")["receipts"]
        return sorted(found, key=lambda one: (one["begin"], one["end"]))

    def check(self, row: FaultRow) -> None:
        there, receipts = self.arrived(), self.receipts()
        assert {*there} == {SAME}
        extra, told = len(there) - self.published, sum(one["possible_repeats"] for one in receipts)
        row.lost, row.repeated, row.surplus = max(-extra, 0), max(extra, 0), sum(one["surplus"] for one in receipts)
        row.reordered = 0
        assert extra >= 0, f"{-extra} of {self.published} are lost"
        assert extra <= (told if self.broker.kind != "Mosquitto" else 0), f"{extra} repeated, {told} told"
        if extra:
            row.condition = f"told: {told} possible repeats"
        at = 0
        for one in receipts:
            assert one["begin"] == at
            at = one["end"]
        assert sum(one["delivered"] + one["already"] for one in receipts) == len(there)


CHOICES = [
    *product(["RocketMQ"], POINTS),
    *product(["a file"], INTO_A_FILE),
]


@pytest.mark.parametrize("kind", ["mosquitto", pytest.param("hivemq", marks=COSTLY)])
@pytest.mark.parametrize(("target", "point"), CHOICES)
def test_a_kill_loses_nothing_and_what_is_repeated_is_told(
    kind: str,
    target: str,
    point: str,
    site_on: MakeSite,
    request: pytest.FixtureRequest,
    row: FaultRow,
    seeded: random.Random,
) -> None:
    broker: MqttBroker = request.getfixturevalue(kind)
    row.describe(f"SIGKILL of {POINTS.get(point, 'the worker, between two batches')}; all devices say the same")
    row.where, row.database = f"MQTT ({broker.kind}) → {target}", "SQLite"
    inlet = Inlet(site_on("SQLite"), broker, target)
    inlet.publish(FIRST)
    within = point in ("received", "batch-durable", "acknowledged")
    inlet.site.fault(point, "kill", seeded.randrange(2) if within and target == "RocketMQ" else 0)
    code = ended(inlet.site.start("run", NAME, "--engine", "inline"))
    row.strikes()
    assert code in (-signal.SIGKILL, *TRY_AGAIN), "the fault has struck"
    inlet.publish(MORE)
    inlet.run()
    row.moves_again()
    inlet.run_until_nothing_comes()
    inlet.check(row)


@pytest.mark.parametrize("kind", ["mosquitto", pytest.param("hivemq", marks=COSTLY)])
@pytest.mark.parametrize("target", ["RocketMQ", pytest.param("a file", marks=COSTLY)])
def test_a_broker_that_is_killed_while_messages_come(
    kind: str, target: str, site_on: MakeSite, request: pytest.FixtureRequest, row: FaultRow
) -> None:
    """It saves every change, so it has what it has acknowledged."""
    broker: MqttBroker = request.getfixturevalue(kind)
    row.describe("SIGKILL of the MQTT broker in mid-run, started again; all devices say the same")
    row.where, row.database = f"MQTT ({broker.kind}) → {target}", "SQLite"
    inlet = Inlet(site_on("SQLite"), broker, target)
    inlet.publish(FIRST)
    time.sleep(1.5)  # the broker saves its changes once a second
    inlet.site.fault("batch-written", "stop")
    driver = inlet.site.start("run", NAME, "--engine", "inline")
    there = stopped_at(inlet.site, "batch-written", driver)
    assert there is not None, ended(driver)
    row.strikes()
    broker.kill()
    back = threading.Thread(target=broker.start)
    back.start()
    processes.go_on(there)
    ended(driver)
    back.join()
    inlet.run_until_nothing_comes()
    row.moves_again()
    inlet.publish(MORE)
    inlet.run_until_nothing_comes()
    inlet.check(row)
