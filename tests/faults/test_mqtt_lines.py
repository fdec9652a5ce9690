"""MQTT into RocketMQ over lines that are cut, with brokers that are slow or stand still, and clients with our name."""

from __future__ import annotations

import random
import signal
import time
from contextlib import closing
from functools import partial

import pytest

from connect_core.systems.mqtt.session import wait
from tests.faults.kit import processes
from tests.faults.kit.fixtures import MakeSite
from tests.faults.kit.inlet import FIRST, NAME, begun, devices_at_work
from tests.faults.kit.journeys import TRY_AGAIN
from tests.faults.kit.mqtt_proxy import MqttProxy
from tests.faults.kit.processes import ended, stopped_at, wait_for
from tests.faults.rows import FaultRow
from tests.mqtt_brokers import Mosquitto, MqttBroker
from tests.mqtt_line import MqttLine
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True)]

COSTLY = pytest.mark.fault(costly=True)
TAKEN_OVER = 6


def test_a_connection_that_is_cut_in_the_middle_of_a_packet(
    mosquitto: Mosquitto, site_on: MakeSite, row: FaultRow, seeded: random.Random
) -> None:
    row.describe("the line is cut in the middle of a PUBLISH, three times")
    row.where, row.database = "MQTT (Mosquitto) → RocketMQ", "SQLite"
    with MqttLine(mosquitto) as line:
        inlet = begun(site_on("SQLite"), mosquitto, port=line.port, packet_ids="count_up")
        for _ in range(3):
            inlet.publish(FIRST)
            line.cut_after = seeded.randrange(500, 4_000)
            row.strikes()
            assert ended(inlet.site.start("run", NAME, "--engine", "inline")) in (0, *TRY_AGAIN)
            assert line.cut_after < 0, "it was cut"
        inlet.run()
        row.moves_again()
        inlet.comes_to_rest(row)


@pytest.mark.parametrize("kind", ["mosquitto", pytest.param("hivemq", marks=COSTLY)])
def test_strangers_with_the_client_id_of_the_session(
    kind: str, site_on: MakeSite, request: pytest.FixtureRequest, row: FaultRow, seeded: random.Random
) -> None:
    """They get messages and acknowledge none. The run ends, or throws them out. What a stranger acknowledges it has for
    good, and nobody else hears of it."""
    broker: MqttBroker = request.getfixturevalue(kind)
    row.describe("strangers connect with the session's client id in mid-run, five times")
    row.where, row.database = f"MQTT ({broker.kind}) → RocketMQ", "SQLite"
    inlet, taken = begun(site_on("SQLite"), broker), 0
    with devices_at_work(inlet, pause_s=0.2):
        for _ in range(5):
            before = len(inlet.arrived())
            working = inlet.site.start("run", NAME, "--engine", "inline", "--window", "4s")
            wait_for(partial(inlet.has_more_than, before), "messages in RocketMQ")
            time.sleep(seeded.random())
            row.strikes()
            workers = processes.children_of(working.pid)
            for worker in workers:  # or it would have the session back at once
                processes.send(worker, signal.SIGSTOP)
            stranger = inlet.session(0)
            assert stranger.kept
            wait([stranger], 1.0)
            taken += len(stranger.receive())
            for worker in workers:
                processes.go_on(worker)
            assert ended(working) in (0, *TRY_AGAIN, TAKEN_OVER)
            stranger.close()
    inlet.run()
    row.moves_again()
    assert taken, "they got something"
    inlet.comes_to_rest(row)


EACH_VERSION = pytest.mark.parametrize("protocol", ["5", pytest.param("3.1.1", marks=COSTLY)])
IDS = {"Mosquitto": "count_up", "HiveMQ CE": "used_again"}


@pytest.mark.parametrize("kind", ["mosquitto", pytest.param("hivemq", marks=COSTLY)])
@EACH_VERSION
@pytest.mark.parametrize("seconds", [0.02, pytest.param(0.2, marks=COSTLY)])
def test_a_slow_broker(
    kind: str, protocol: str, seconds: float, inline_site: Site, request: pytest.FixtureRequest, row: FaultRow
) -> None:
    """It takes its time for each packet of ours: to connect and to subscribe takes longer than the silence that ends a
    run, and acknowledgements that it has not come to when a quantum ends are lost."""
    broker: MqttBroker = request.getfixturevalue(kind)
    row.describe(
        f"a broker that takes {seconds:g} s for each packet, so that acknowledgements are lost; MQTT {protocol}"
    )
    row.where, row.database = f"MQTT ({broker.kind}) → RocketMQ", "SQLite"
    with closing(MqttProxy(broker.host, broker.port)) as proxy:
        inlet = begun(inline_site, broker, port=proxy.port, packet_ids=IDS[broker.kind], protocol=protocol)
        inlet.publish(100)
        proxy.seconds_a_packet = seconds
        row.strikes()
        for _ in range(3):
            before = len(inlet.arrived())
            working = inlet.site.start("run", NAME, "--engine", "inline")
            assert ended(working, limit_s=150) in (0, *TRY_AGAIN)
            assert len(inlet.arrived()) > before or before == inlet.published, "each run makes progress"
        row.moves_again()
        proxy.seconds_a_packet = 0.0
        inlet.comes_to_rest(row)


@pytest.mark.parametrize("kind", ["mosquitto", pytest.param("hivemq", marks=COSTLY)])
@EACH_VERSION
def test_a_backlog_over_a_slow_line(
    kind: str, protocol: str, inline_site: Site, request: pytest.FixtureRequest, row: FaultRow
) -> None:
    """What waits comes before the answer to SUBSCRIBE, which takes longer than a broker may take to answer."""
    broker: MqttBroker = request.getfixturevalue(kind)
    row.describe(f"200 messages wait, and each packet of the broker takes 0.1 s; MQTT {protocol}")
    row.where, row.database = f"MQTT ({broker.kind}) → RocketMQ", "SQLite"
    with closing(MqttProxy(broker.host, broker.port)) as proxy:
        more = {"packet_ids": IDS[broker.kind], "protocol": protocol, "receive_maximum": 4096}
        inlet = begun(inline_site, broker, port=proxy.port, **more)
        inlet.publish(200)
        proxy.seconds_back = 0.1
        row.strikes()
        for _ in range(2):
            before = len(inlet.arrived())
            working = inlet.site.start("run", NAME, "--engine", "inline")
            assert ended(working, limit_s=150) in (0, *TRY_AGAIN)
            assert len(inlet.arrived()) > before or before == inlet.published, "each run makes progress"
        row.moves_again()
        proxy.seconds_back = 0.0
        inlet.comes_to_rest(row)


def test_a_broker_that_stands_still(mosquitto: Mosquitto, site_on: MakeSite, row: FaultRow) -> None:
    """For longer than a lease lasts; nobody can tell it from one that is gone, until it goes on with what it had."""
    row.describe("SIGSTOP of the MQTT broker in mid-run, for 12 s")
    row.where, row.database = "MQTT (Mosquitto) → RocketMQ", "SQLite"
    inlet = begun(site_on("SQLite"), mosquitto, connect_timeout_s=2)
    inlet.publish(FIRST)
    inlet.site.fault("batch-durable", "stop")
    driver = inlet.site.start("run", NAME, "--engine", "inline")
    there = stopped_at(inlet.site, "batch-durable", driver)
    assert there is not None, ended(driver)
    assert mosquitto.process is not None
    processes.send(mosquitto.process.pid, signal.SIGSTOP)
    row.strikes()
    over = time.monotonic() + 12
    try:
        processes.go_on(there)
        assert ended(driver) in (0, *TRY_AGAIN)
        while time.monotonic() < over:
            assert ended(inlet.site.start("run", NAME, "--engine", "inline")) in TRY_AGAIN
    finally:
        processes.go_on(mosquitto.process.pid)
    inlet.goes_on(row)
