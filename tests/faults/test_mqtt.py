"""SIGKILL of a run that empties an MQTT session, and of its broker: devices that all say the same, counted.

A broker that counts packet ids up (Mosquitto) repeats nothing. One that uses them again (HiveMQ CE) repeats no more
than the receipts tell of. Nothing is lost with either.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from itertools import product
from pathlib import Path

import pytest

from tests.faults.kit import processes
from tests.faults.kit.fixtures import MakeSite
from tests.faults.kit.inlet import A_BATCH, FIRST, MORE, NAME, POINTS, SAME, begun
from tests.faults.kit.processes import ended, stopped_at, wait_for
from tests.faults.rows import FaultRow
from tests.mqtt_brokers import FOR_THROUGHPUT, Mosquitto, MqttBroker
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True)]

COSTLY = pytest.mark.fault(costly=True)
WHOLE, IN_THE_REST = "whole-batches", "in-the-rest"
"""Whether quanta end with a batch, or in the middle of what has come: its rest is judged, and has its numbers, when
whoever holds it is killed."""
CHOICES = [
    *product(["RocketMQ"], POINTS, [WHOLE]),
    *product(["a file"], ("received", "batch-written", "before-receipt", "executed", "settled"), [WHOLE]),
    *product(["RocketMQ"], ("received", "batch-durable", "acknowledged", "before-receipt", "settled"), [IN_THE_REST]),
    *product(["a file"], ("received", "before-receipt", "settled"), [IN_THE_REST]),
]


@pytest.mark.parametrize("kind", ["mosquitto", pytest.param("hivemq", marks=COSTLY)])
@pytest.mark.parametrize(("target", "point", "quanta"), CHOICES)
def test_a_kill_loses_nothing_and_what_is_repeated_is_told(
    kind: str,
    target: str,
    point: str,
    quanta: str,
    site_on: MakeSite,
    request: pytest.FixtureRequest,
    row: FaultRow,
    seeded: random.Random,
) -> None:
    broker: MqttBroker = request.getfixturevalue(kind)
    limited = "" if quanta == WHOLE else "; quanta of 7 records, from batches of 50"
    row.describe(
        f"SIGKILL of {POINTS.get(point, 'the worker, between two batches')}{limited}; all devices say the same"
    )
    row.where, row.database = f"MQTT ({broker.kind}) → {target}", "SQLite"
    inlet = begun(site_on("SQLite"), broker, target)
    if limited:
        inlet.limited_to(7)
        after = seeded.randrange(1, 6)
    else:
        within = point in ("received", "batch-durable", "acknowledged")
        after = seeded.randrange(2) if within and target == "RocketMQ" else 0
    inlet.publish(2 * A_BATCH if limited else FIRST)
    inlet.killed(row, point, after)
    inlet.goes_on(row)


@pytest.mark.parametrize("kind", ["mosquitto", pytest.param("hivemq", marks=COSTLY)])
@pytest.mark.parametrize("target", ["RocketMQ", pytest.param("a file", marks=COSTLY)])
def test_a_broker_that_is_killed_while_messages_come(
    kind: str, target: str, site_on: MakeSite, request: pytest.FixtureRequest, row: FaultRow
) -> None:
    """It saves its changes once a second: of what came before it was killed it may have forgotten acknowledgements."""
    broker: MqttBroker = request.getfixturevalue(kind)
    row.describe("SIGKILL of the MQTT broker in mid-run, started again; all devices say the same")
    row.where, row.database = f"MQTT ({broker.kind}) → {target}", "SQLite"
    inlet = begun(site_on("SQLite"), broker, target)
    inlet.publish(FIRST)
    time.sleep(1.5)  # the broker saves its changes once a second
    inlet.site.fault("batch-written", "stop")
    driver = inlet.site.start("run", NAME, "--engine", "inline")
    there = stopped_at(inlet.site, "batch-written", driver)
    assert there is not None, ended(driver)
    row.strikes()
    inlet.was_killed = True
    broker.kill()
    back = threading.Thread(target=broker.start)
    back.start()
    processes.go_on(there)
    ended(driver)
    back.join()
    inlet.run_until_nothing_comes()
    row.moves_again()
    inlet.publish(MORE)
    inlet.comes_to_rest(row)


@pytest.mark.parametrize("sessions", [1, 3])
@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
@pytest.mark.parametrize("target", ["RocketMQ", "a file"])
def test_a_broker_that_is_killed_and_gives_out_packet_ids_again(
    target: str, protocol: str, sessions: int, inline_site: Site, tmp_path: Path, row: FaultRow
) -> None:
    """Mosquitto saves its counter with everything else, by default every half hour. Another connection was handed the
    new messages first, so that they are marked as sent again when the connector gets them."""
    several = f", {sessions} sessions" if sessions > 1 else ""
    row.describe(
        f"SIGKILL of the MQTT broker, which comes back with an older counter; all devices say the same; MQTT {protocol}"
        f"{several}"
    )
    row.where, row.database = f"MQTT (Mosquitto) → {target}", "SQLite"
    broker = Mosquitto(tmp_path / "broker", settings=FOR_THROUGHPUT)
    broker.start()
    topics = [f"devices/{number}/state" for number in range(sessions)]
    try:
        inlet = begun(inline_site, broker, target, protocol=protocol, sessions=sessions, filters=topics)
        inlet.was_killed = True
        assert broker.process is not None
        os.kill(broker.process.pid, signal.SIGUSR1)  # it saves what there is: the sessions, and their counters
        time.sleep(1.0)
        for topic in topics:
            inlet.publish_all([SAME] * A_BATCH, topic)
        inlet.run_until_nothing_comes()
        row.strikes()
        broker.restart()
        for number, topic in enumerate(topics):
            inlet.publish_all([SAME] * A_BATCH, topic)
            glance = inlet.session(number, protocol=protocol)
            wait_for(glance.has_some, "the new messages, at somebody who does not read them")
            glance.close()
        inlet.run_until_nothing_comes()
        row.moves_again()
        inlet.comes_to_rest(row)
    finally:
        broker.kill()
