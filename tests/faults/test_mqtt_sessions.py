"""Sessions of MQTT that last longer than the broker was asked to keep them, that expire, whose filters overlap, and
whose broker comes back granting less than before."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from connect_core.stack import mqtt_broker as kinds
from connect_core.stack.processes import Launch
from tests.faults.kit import processes
from tests.faults.kit.inlet import FIRST, MORE, NAME, POINTS, SAME, begun
from tests.faults.kit.journeys import TRY_AGAIN
from tests.faults.kit.processes import ended, wait_for
from tests.faults.rows import FaultRow
from tests.mqtt_brokers import HiveMQ, Mosquitto, MqttBroker, running
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]
COSTLY = pytest.mark.fault(costly=True)
BOTH = pytest.mark.parametrize("kind", ["mosquitto", pytest.param("hivemq", marks=COSTLY)])

EXPIRY_S = 60
"""The shortest that a document may ask for."""
WRONG, LOST = 2, 5


@COSTLY
@BOTH
@pytest.mark.timeout(1200)
def test_a_window_longer_than_a_session_is_kept_and_one_that_expires(
    kind: str, inline_site: Site, request: pytest.FixtureRequest, row: FaultRow
) -> None:
    """While a worker is connected nothing expires, but the session beside it, which nobody holds, would. What expires
    between two runs is told."""
    broker: MqttBroker = request.getfixturevalue(kind)
    row.describe(
        f"a window of {EXPIRY_S + 30} s, sessions kept for {EXPIRY_S} s, SIGKILL of a worker; then they expire"
    )
    row.where, row.database = f"MQTT ({broker.kind}) → RocketMQ", "SQLite"
    inlet = begun(inline_site, broker, session_expiry_s=EXPIRY_S)
    inlet.publish(FIRST)
    over = time.monotonic() + EXPIRY_S + 30
    driver = inlet.site.start("run", NAME, "--engine", "inline", "--window", f"{EXPIRY_S + 30}s")
    wait_for(lambda: len(inlet.arrived()) >= FIRST, "what came first")
    time.sleep(max(over - 20 - time.monotonic(), 0))
    assert driver.poll() is None, ended(driver)
    row.strikes()
    processes.kill(*processes.children_of(driver.pid))
    inlet.publish(MORE)
    assert ended(driver) in (0, *TRY_AGAIN)
    inlet.run_until_nothing_comes()
    row.moves_again()
    assert inlet.site.json("gaps", NAME)["gaps"] == []
    inlet.check(row)
    time.sleep(EXPIRY_S + 15)
    inlet.publish(MORE)  # into a session that has ended
    inlet.published -= MORE
    assert "has lost the session" in inlet.site.waybill("run", NAME, "--engine", "inline", code=LOST)
    inlet.site.waybill("run", NAME, "--engine", "inline", "--accept-gaps")
    inlet.publish(MORE)
    inlet.comes_to_rest(row)


OVERLAPPING = ["devices/+/state", "devices/1/#"]


@BOTH
@pytest.mark.parametrize("protocol", ["5", pytest.param("3.1.1", marks=COSTLY)])
@pytest.mark.parametrize("point", ["batch-durable", pytest.param("acknowledged", marks=COSTLY)])
def test_filters_that_overlap_and_a_worker_that_is_killed(
    kind: str, protocol: str, point: str, inline_site: Site, request: pytest.FixtureRequest, row: FaultRow
) -> None:
    """Mosquitto sends with MQTT 5 a copy for each of them, under an id of its own (MQTT 5, 3.3.4), which is no repeat:
    it is delivered, and counted."""
    broker: MqttBroker = request.getfixturevalue(kind)
    row.describe(f"SIGKILL of {POINTS[point]}; two filters that match each message, MQTT {protocol}")
    row.where, row.database = f"MQTT ({broker.kind}) → RocketMQ", "SQLite"
    inlet = begun(inline_site, broker, filters=OVERLAPPING, protocol=protocol)
    sends_copies = (broker.kind, protocol) == ("Mosquitto", "5")
    inlet.publish(FIRST)
    inlet.killed(row, point, 1 if protocol == "5" else 0)  # 3.1.1 has no receive maximum: all may be one batch
    inlet.publish(MORE)
    copies = inlet.published if sends_copies else 0
    inlet.published += copies
    inlet.run()
    row.moves_again()
    inlet.run_until_nothing_comes()
    inlet.check(row)
    counted = sum(one["possible_duplicates"] for one in inlet.receipts())
    if sends_copies:
        row.condition = f"two of each message; {counted} possible duplicates told"
        assert counted == copies
    inlet.close()


# -------------------------------------------------------------------------------------------------- it grants less


@dataclass
class LimitedHiveMQ(HiveMQ):
    """`most_qos` as its own configuration says it."""

    most_qos: int = 2

    def _launch(self) -> Launch:
        launch = super()._launch()
        file = self.folder / "conf" / "config.xml"
        granted = f"<quality-of-service><max-qos>{self.most_qos}</max-qos></quality-of-service>"
        file.write_text(file.read_text().replace("</queued-messages>", f"</queued-messages>{granted}"))
        return launch


@dataclass
class LimitedMosquitto(Mosquitto):
    most_qos: int = 2

    def _launch(self) -> Launch:
        self.listeners = f"max_qos {self.most_qos}"
        return super()._launch()


REFUSED = r"QoS 0.*qos is 1"
Limited = LimitedMosquitto | LimitedHiveMQ
LIMITED: dict[str, Callable[[Path], Limited]] = {"mosquitto": LimitedMosquitto, "hivemq": LimitedHiveMQ}


@pytest.fixture
def limited(kind: str, worker_folder: Path) -> Iterator[Any]:
    if kind == "mosquitto" and kinds.program() is None:
        pytest.skip("mosquitto is not installed")
    yield from running(LIMITED[kind](worker_folder / f"limited-{uuid4().hex[:8]}"))


@BOTH
def test_a_broker_that_comes_back_in_a_window_and_grants_less(
    kind: str, limited: Limited, inline_site: Site, row: FaultRow
) -> None:
    """It says so before it is asked to subscribe, which would take the QoS from the subscription: what is published
    before the next run, to a broker that grants again what it did, arrives."""
    row.describe("the broker comes back in mid-window and grants QoS 0")
    row.where, row.database = f"MQTT ({limited.kind}) → RocketMQ", "SQLite"
    inlet = begun(inline_site, limited)
    driver = inlet.site.start("run", NAME, "--engine", "inline", "--window", "60s")
    inlet.publish(MORE)
    wait_for(lambda: len(inlet.arrived()) >= MORE, "what came first")
    limited.stop()
    limited.most_qos = 0
    row.strikes()
    limited.start()
    assert ended(driver) in (WRONG, *TRY_AGAIN)
    assert re.search(REFUSED, inlet.site.waybill("run", NAME, "--engine", "inline", code=WRONG))
    assert inlet.arrived() == [SAME] * MORE
    limited.stop()
    limited.most_qos = 2
    limited.start()
    inlet.publish(FIRST)
    inlet.run()
    row.moves_again()
    inlet.comes_to_rest(row)


@BOTH
@pytest.mark.fault(costly=True)
def test_a_broker_that_grants_less_is_refused_before_anything_is_moved(
    kind: str, limited: Limited, inline_site: Site, row: FaultRow
) -> None:
    """Messages wait already."""
    row.describe("the broker comes back and grants QoS 0 when messages wait")
    row.where, row.database = f"MQTT ({limited.kind}) → RocketMQ", "SQLite"
    inlet = begun(inline_site, limited)
    inlet.publish(MORE)
    limited.stop()
    limited.most_qos = 0
    row.strikes()
    limited.start()
    assert re.search(REFUSED, inlet.site.waybill("run", NAME, "--engine", "inline", code=WRONG))
    assert inlet.arrived() == []
    limited.stop()
    limited.most_qos = 2
    limited.start()
    inlet.goes_on(row)
