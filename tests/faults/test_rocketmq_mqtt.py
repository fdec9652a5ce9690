"""What breaks between Waybill and RocketMQ-MQTT (its stand-in), in both directions: workers and drivers that are killed
or hang, lines that are cut, the broker restarted and killed. Devices all say the same.

Nothing is lost while the broker itself is not killed, and no more is repeated than the receipts tell of.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest

from tests.faults.kit import processes
from tests.faults.kit.fixtures import MakeSite
from tests.faults.kit.inlet import FIRST, MORE, NAME, POINTS, Inlet
from tests.faults.kit.journeys import TRY_AGAIN
from tests.faults.kit.mqtt_proxy import PUBACK, PUBLISH, MqttProxy, Strike
from tests.faults.kit.outlet import COUNT, GROUP, Outlet
from tests.faults.kit.processes import ended, stopped_at, wait_for
from tests.faults.rows import FaultRow
from tests.faults.test_mqtt_sink import POINTS as SINK_POINTS
from tests.rocketmq_mqtt.broker import SECRET, Device, RocketMqMqtt, device
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True)]

TARGETS = ["RocketMQ", "a file"]
NOT_AWAITED = 32
"""So many messages of a connection count for the broker as acknowledged when they are sent."""
_PATIENCE_S = 4.0
"""Before it sends again what it had put aside, RocketMQ-MQTT lets three seconds pass."""


class RocketMqMqttInlet(Inlet):
    """The devices' topics are below `d`, a topic of RocketMQ. Each has its own: who subscribes first to a topic gets
    what was published before."""

    def __init__(self, site: Site, broker: RocketMqMqtt, target: str, port: int = 0, **options: Any) -> None:
        site.settings["MQTT_SECRET"] = SECRET
        self.topic = f"d/{uuid4().hex[:8]}/state"
        given = broker.options(filters=[self.topic], **options)
        super().__init__(site, broker, target, **given | ({"port": port} if port else {}))
        while (code := ended(site.start("run", NAME, "--engine", "inline"))) in TRY_AGAIN:
            pass
        assert code == 0

    def publish_all(self, payloads: Sequence[bytes], topic: str = "", **more: Any) -> None:
        with device(self.broker) as one:
            one.publish(topic or self.topic, payloads, **more)
        self.published += len(payloads)

    def comes_to_rest(self, row: FaultRow) -> None:
        time.sleep(_PATIENCE_S)
        super().comes_to_rest(row)


@pytest.fixture
def proxy(rocketmq_mqtt: RocketMqMqtt) -> Iterator[MqttProxy]:
    made = MqttProxy(rocketmq_mqtt.host, rocketmq_mqtt.port)
    yield made
    made.close()


def inlet_of(row: FaultRow, what: str, site: Site, broker: RocketMqMqtt, target: str, **options: Any) -> Inlet:
    row.describe(f"{what}; all devices say the same", where=f"{broker.kind} → {target}", database="SQLite")
    return RocketMqMqttInlet(site, broker, target, **options)


# -------------------------------------------------------------------------------------------------------- as a source


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("point", ["received", "acknowledged", "before-receipt", "executed", "settled"])
def test_a_kill_loses_nothing_and_what_is_repeated_is_told(
    target: str, point: str, site_on: MakeSite, rocketmq_mqtt: RocketMqMqtt, row: FaultRow
) -> None:
    if (target, point) == ("a file", "acknowledged"):
        pytest.skip("into a file nothing is acknowledged before it is settled")
    inlet = inlet_of(row, f"SIGKILL of {POINTS[point]}", site_on("SQLite"), rocketmq_mqtt, target)
    inlet.publish(FIRST)
    inlet.killed(row, point)
    inlet.goes_on(row)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("packet", [PUBLISH, PUBACK], ids=["PUBLISH", "PUBACK"])
@pytest.mark.parametrize("action", ["cut before", "cut within", "cut behind"])
def test_a_line_that_is_cut(
    target: str,
    packet: int,
    action: Any,
    site_on: MakeSite,
    rocketmq_mqtt: RocketMqMqtt,
    proxy: MqttProxy,
    row: FaultRow,
    seeded: random.Random,
) -> None:
    name = {PUBLISH: "PUBLISH", PUBACK: "PUBACK"}[packet]
    what = f"the line is cut {action.removeprefix('cut ')} a {name}"
    inlet = inlet_of(row, what, site_on("SQLite"), rocketmq_mqtt, target, port=proxy.port)
    inlet.publish(FIRST)
    strike = proxy.set(Strike(packet, action, seeded.randrange(NOT_AWAITED)))
    with suppress(AssertionError):
        inlet.run()
    row.strikes()
    assert strike.struck.is_set()
    inlet.goes_on(row)


@pytest.mark.parametrize("target", TARGETS)
def test_a_settle_that_the_broker_does_not_wait_for(
    target: str, site_on: MakeSite, rocketmq_mqtt: RocketMqMqtt, row: FaultRow
) -> None:
    """The worker stands still with what it has written, for so long that all of it is sent again under its ids, and
    then as new messages."""
    inlet = inlet_of(row, "a worker that stands still for 10 s", site_on("SQLite"), rocketmq_mqtt, target)
    inlet.site.settings |= {"WAYBILL_LEASE_TTL_S": "30s", "WAYBILL_LEASE_MARGIN_S": "4s", "WAYBILL_QUANTUM_S": "3s"}
    inlet.publish(FIRST)
    inlet.site.fault("batch-written", "stop")
    driver = inlet.site.start("run", NAME, "--engine", "inline")
    there = stopped_at(inlet.site, "batch-written", driver)
    assert there is not None, ended(driver)
    row.strikes()
    time.sleep(10)
    processes.go_on(there)
    ended(driver)
    inlet.goes_on(row)


def test_a_worker_that_hangs_beside_the_next_one(site_on: MakeSite, rocketmq_mqtt: RocketMqMqtt, row: FaultRow) -> None:
    """The broker lets both be connected: it sends everything to each of them."""
    inlet = inlet_of(
        row, "SIGSTOP of the worker, until its lease is over", site_on("SQLite"), rocketmq_mqtt, "RocketMQ"
    )
    inlet.publish(FIRST)
    inlet.site.fault("batch-durable", "stop")
    driver = inlet.site.start("run", NAME, "--engine", "inline")
    assert stopped_at(inlet.site, "batch-durable", driver) is not None, ended(driver)
    row.strikes()
    driver.kill()
    inlet.publish(MORE)
    inlet.run()
    ended(driver)
    inlet.goes_on(row)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sign", ["SIGTERM", "SIGKILL"])
def test_a_broker_that_is_restarted_while_messages_come(
    target: str, sign: str, site_on: MakeSite, rocketmq_mqtt: RocketMqMqtt, row: FaultRow
) -> None:
    """Killed, it loses of each connection what it has sent, counted as acknowledged, and stored as that."""
    inlet = inlet_of(row, f"{sign} to the MQTT broker in mid-run", site_on("SQLite"), rocketmq_mqtt, target)
    inlet.publish(FIRST)
    inlet.site.fault("batch-written", "stop")
    driver = inlet.site.start("run", NAME, "--engine", "inline")
    there = stopped_at(inlet.site, "batch-written", driver)
    assert there is not None, ended(driver)
    row.strikes()
    (rocketmq_mqtt.kill if sign == "SIGKILL" else rocketmq_mqtt.stop)()
    back = threading.Thread(target=rocketmq_mqtt.start)
    back.start()
    processes.go_on(there)
    ended(driver)
    back.join()
    inlet.run_until_nothing_comes()
    row.moves_again()
    inlet.publish(MORE)
    missing = _missing(inlet)
    if sign == "SIGKILL" and missing:
        row.condition = "RocketMQ-MQTT is not killed"
        assert missing <= NOT_AWAITED
        inlet.published -= missing
    inlet.comes_to_rest(row)
    row.lost = missing if sign == "SIGKILL" else row.lost


def _missing(inlet: Inlet) -> int:
    """How many of the messages will not come: nothing is left to wait for."""
    time.sleep(_PATIENCE_S)
    inlet.run_until_nothing_comes()
    return max(inlet.published - len(inlet.arrived()), 0)


def test_a_broker_that_is_killed_when_all_is_acknowledged(
    site_on: MakeSite, rocketmq_mqtt: RocketMqMqtt, row: FaultRow
) -> None:
    """It has not stored how far that was: all of the last seconds comes again, as new messages with new ids."""
    inlet = inlet_of(row, "SIGKILL of the idle MQTT broker", site_on("SQLite"), rocketmq_mqtt, "RocketMQ")
    inlet.site.fault("executed", "stop")
    inlet.publish(FIRST)
    driver = inlet.site.start("run", NAME, "--engine", "inline")
    there = stopped_at(inlet.site, "executed", driver)
    assert there is not None, ended(driver)
    row.strikes()
    rocketmq_mqtt.restart()
    processes.go_on(there)
    ended(driver)
    inlet.goes_on(row)


# ---------------------------------------------------------------------------------------------------------- as a sink


@pytest.fixture
def topic() -> str:
    return f"plant/{uuid4().hex[:8]}"


@pytest.fixture
def listener(rocketmq_mqtt: RocketMqMqtt, topic: str) -> Iterator[Device]:
    with device(rocketmq_mqtt, topic) as made:
        yield made


def outlet_of(
    row: FaultRow, what: str, site: Site, broker: RocketMqMqtt, listener: Device, topic: str, port: int = 0
) -> Outlet:
    row.describe(what, where=f"file → {broker.kind}", database="SQLite")
    site.settings["MQTT_SECRET"] = SECRET
    given = broker.options(in_flight=1) | ({"port": port} if port else {})
    return Outlet(site, broker, listener, topic, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("point", SINK_POINTS)
def test_a_kill_at_a_step_of_the_sink(
    point: str, site_on: MakeSite, rocketmq_mqtt: RocketMqMqtt, listener: Device, topic: str, row: FaultRow
) -> None:
    what = f"SIGKILL of {SINK_POINTS[point]}"
    outlet = outlet_of(row, what, site_on("SQLite"), rocketmq_mqtt, listener, topic)
    outlet.site.fault(point, "kill")
    code = ended(outlet.start())
    row.strikes()
    outlet.deaths += 1
    assert code in (-signal.SIGKILL, *TRY_AGAIN), "the fault has struck"
    outlet.run()
    row.moves_again()
    outlet.check(row)


@pytest.mark.parametrize("packet", [PUBLISH, PUBACK], ids=["PUBLISH", "PUBACK"])
@pytest.mark.parametrize("action", ["cut before", "cut behind", "kill before", "kill behind"])
def test_a_strike_at_a_packet_of_the_sink_twice(
    packet: int,
    action: Any,
    site_on: MakeSite,
    rocketmq_mqtt: RocketMqMqtt,
    proxy: MqttProxy,
    listener: Device,
    topic: str,
    row: FaultRow,
    seeded: random.Random,
) -> None:
    """One attempt after the other, so that both count. A broker is not killed: of its packets the line is cut."""
    if packet == PUBACK and action.startswith("kill"):
        pytest.skip("it would be the broker")
    done, where = action.split()
    words = "SIGKILL of the worker" if done == "kill" else "the line is cut"
    what = f"{words} {where} a {'PUBLISH' if packet == PUBLISH else 'PUBACK'}, twice"
    outlet = outlet_of(row, what, site_on("SQLite"), rocketmq_mqtt, listener, topic, port=proxy.port)
    outlet.struck(row, proxy.set(Strike(packet, action, GROUP + seeded.randrange(GROUP))))
    outlet.struck(row, proxy.set(Strike(packet, action, seeded.randrange(GROUP))))
    outlet.run()
    row.moves_again()
    outlet.check(row)


@pytest.mark.parametrize("sign", ["SIGTERM", "SIGKILL"])
def test_a_broker_that_is_restarted_while_it_is_published_to(
    sign: str, site_on: MakeSite, rocketmq_mqtt: RocketMqMqtt, listener: Device, topic: str, row: FaultRow
) -> None:
    """The listener has acknowledged all that came: what it is sent again is the broker's own doing, and not counted."""
    what = f"{sign} to the MQTT broker while it is published to"
    outlet = outlet_of(row, what, site_on("SQLite"), rocketmq_mqtt, listener, topic)
    outlet.site.fault("batch-written", "stop")
    driver = outlet.start()
    there = stopped_at(outlet.site, "batch-written", driver)
    assert there is not None, ended(driver)
    wait_for(lambda: len(listener.heard) >= GROUP, "the first of them")
    row.strikes()
    outlet.deaths += 1
    (rocketmq_mqtt.kill if sign == "SIGKILL" else rocketmq_mqtt.stop)()
    rocketmq_mqtt.start()
    processes.go_on(there)
    ended(driver)
    outlet.run()
    row.moves_again()
    there_now = {int(one) for one in listener.payloads(COUNT)}
    row.lost = COUNT - len(there_now)
    assert row.lost == 0
