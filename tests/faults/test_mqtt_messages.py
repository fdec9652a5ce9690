"""MQTT into RocketMQ while members, targets and workers fail; shared subscriptions, unusual messages, and many."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.faults.kit import processes
from tests.faults.kit.fixtures import MakeSite
from tests.faults.kit.inlet import FIRST, NAME, POINTS, Inlet, begun, devices_at_work
from tests.faults.kit.journeys import TRY_AGAIN
from tests.faults.kit.processes import ended, stopped_at, wait_for
from tests.faults.rows import FaultRow
from tests.mqtt_brokers import Mosquitto, MqttBroker
from tests.mqtt_devices import devices
from tests.servers import RocketMQ
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True)]

COSTLY = pytest.mark.fault(costly=True)


def shared(site: Site, broker: MqttBroker) -> Inlet:
    """Four members of a group of this test's own: members that another test left behind would take their share."""
    return begun(site, broker, sessions=4, filters=[f"$share/{site.topic}/devices/#"])


@pytest.mark.parametrize("kind", ["mosquitto", pytest.param("hivemq", marks=COSTLY)])
@pytest.mark.parametrize("point", ["received", "batch-durable", "acknowledged", "before-receipt", "executed"])
def test_a_member_of_a_shared_subscription_that_is_killed(
    kind: str, point: str, site_on: MakeSite, request: pytest.FixtureRequest, row: FaultRow
) -> None:
    """What it has not acknowledged stays with it (Mosquitto), or goes to the others as new messages (HiveMQ CE)."""
    broker: MqttBroker = request.getfixturevalue(kind)
    row.describe(f"shared subscription, four members, SIGKILL of {POINTS[point]} of one of them")
    row.where, row.database = f"MQTT ({broker.kind}) → RocketMQ", "SQLite"
    inlet = shared(site_on("SQLite"), broker)
    inlet.publish(FIRST)
    inlet.killed(row, point, 1 if point in ("received", "batch-durable", "acknowledged") else 0)
    inlet.goes_on(row)


@pytest.mark.parametrize("kind", ["mosquitto", pytest.param("hivemq", marks=COSTLY)])
def test_a_shared_subscription_loses_members_under_load(
    kind: str, site_on: MakeSite, request: pytest.FixtureRequest, row: FaultRow
) -> None:
    """Those that leave are unsubscribed, emptied and ended, in this order."""
    broker: MqttBroker = request.getfixturevalue(kind)
    row.describe("shared subscription, four members become two under load")
    row.where, row.database = f"MQTT ({broker.kind}) → RocketMQ", "SQLite"
    inlet = shared(site_on("SQLite"), broker)
    row.strikes()
    with devices_at_work(inlet, pause_s=0.2):
        staying = inlet.site.start("run", NAME, "--engine", "inline", "--window", "60s")
        wait_for(lambda: len(inlet.arrived()) > 100, "messages in RocketMQ")
        inlet.change(sessions=2)
        assert ended(staying) == 0
        assert ended(inlet.site.start("run", NAME, "--engine", "inline", "--window", "8s")) in (0, *TRY_AGAIN)
    inlet.run_until_nothing_comes()
    row.moves_again()
    inlet.check(row)
    there = []
    for number in range(4):
        session = inlet.session(number)
        there.append(session.kept)
        session.close()
    assert there == [True, True, False, False]
    inlet.close()


@pytest.mark.parametrize("kind", ["mosquitto", pytest.param("hivemq", marks=COSTLY)])
def test_rocketmq_is_gone_while_devices_go_on(
    kind: str, site_on: MakeSite, rocketmq: RocketMQ, request: pytest.FixtureRequest, row: FaultRow
) -> None:
    """The MQTT broker keeps what comes meanwhile."""
    broker: MqttBroker = request.getfixturevalue(kind)
    row.describe("SIGKILL of the RocketMQ broker in mid-run, back after 20 s; devices continue")
    row.where, row.database = f"MQTT ({broker.kind}) → RocketMQ", "SQLite"
    inlet = begun(site_on("SQLite"), broker)
    inlet.publish(FIRST)
    with devices_at_work(inlet, pause_s=0.2):
        inlet.site.fault("batch-written", "stop")
        driver = inlet.site.start("run", NAME, "--engine", "inline")
        there = stopped_at(inlet.site, "batch-written", driver)
        assert there is not None, ended(driver)
        rocketmq.kill()
        row.strikes()
        back = time.monotonic() + 20
        try:
            processes.go_on(there)
            assert ended(driver) in (0, *TRY_AGAIN)
            while time.monotonic() < back:
                assert ended(inlet.site.start("run", NAME, "--engine", "inline")) in TRY_AGAIN
        finally:
            rocketmq.start()
    inlet.run()
    row.moves_again()
    inlet.comes_to_rest(row)


@pytest.mark.parametrize("kind", ["mosquitto", pytest.param("hivemq", marks=COSTLY)])
@pytest.mark.parametrize("what", ["1,000 topics", "retained messages", "empty payloads and 1 MB"])
def test_unusual_messages_survive_a_kill(
    kind: str, what: str, site_on: MakeSite, request: pytest.FixtureRequest, row: FaultRow
) -> None:
    """Killed when they are written and not acknowledged; each of them is there once, HiveMQ's as often as told."""
    broker: MqttBroker = request.getfixturevalue(kind)
    row.describe(f"{what}: SIGKILL of {POINTS['batch-durable']}")
    row.where, row.database = f"MQTT ({broker.kind}) → RocketMQ", "SQLite"
    site, group = site_on("SQLite"), f"odd/{what.replace(' ', '-').replace(',', '')}"
    big = [b"%d" % n * 500_000 for n in range(1, 4)]
    said = {
        "1,000 topics": [(f"{group}/{n}", b"%d" % n) for n in range(1_000)],
        "retained messages": [(f"{group}/{n}", b"kept %d" % n) for n in range(20)],
        "empty payloads and 1 MB": [(f"{group}/0", one) for one in (b"", *big, b"", b"end")],
    }[what]
    retained = what.startswith("retained")
    if retained:
        publish_each(broker, said, retain=True)
    inlet = Inlet(site, broker, filters=[f"{group}/#"])
    if not retained:
        inlet.run()
        publish_each(broker, said)
    inlet.killed(row, "batch-durable")
    inlet.run()
    row.moves_again()
    inlet.run_until_nothing_comes()
    there, wanted = Counter(site.messages()), Counter(payload for _, payload in said)
    told = sum(one["possible_duplicates"] for one in inlet.receipts())
    row.lost, row.repeated, row.reordered = (wanted - there).total(), (there - wanted).total(), 0
    row.condition = f"reported: {told} possible duplicates" if row.repeated else ""
    assert row.lost == 0
    assert row.repeated <= (0 if broker.kind == "Mosquitto" else told)
    inlet.close()


def publish_each(broker: MqttBroker, said: Sequence[tuple[str, bytes]], **more: Any) -> None:
    with devices(broker) as all_of_them:
        for topic, payload in said:
            all_of_them.publish(topic, [payload], **more)
        all_of_them.wait()


@pytest.mark.timeout(1800)
def test_packet_ids_come_round_in_one_session(mosquitto: Mosquitto, site_on: MakeSite, row: FaultRow) -> None:
    """All the same; ids begin anew among those that come when the kill does. HiveMQ CE, that gives out the lowest free
    id, never gets to the last one."""
    row.describe(f"70,000 messages in one session, more than there are packet ids; SIGKILL of {POINTS['acknowledged']}")
    row.where, row.database = "MQTT (Mosquitto) → RocketMQ", "SQLite"
    inlet = begun(site_on("SQLite"), mosquitto, receive_maximum=4096)
    for _ in range(8):
        inlet.publish(8_000)
        inlet.run_until_nothing_comes()
    inlet.publish(6_000)
    inlet.killed(row, "acknowledged", 1)
    inlet.goes_on(row)


SOAK_MESSAGES = int(os.environ.get("WAYBILL_SOAK_MESSAGES", "1000000"))
SOAK_S = float(os.environ.get("WAYBILL_SOAK_S", "600"))
KILL_EVERY_S = 30.0
TOGETHER = 100
WAITING = 20_000
"""So many messages wait at the broker when the first run comes."""


@pytest.mark.timeout(3 * SOAK_S + 600)
def test_many_messages_while_whoever_works_is_killed(
    fast_mosquitto: Mosquitto, site_on: MakeSite, row: FaultRow, seeded: random.Random
) -> None:
    """WAYBILL_SOAK_MESSAGES in WAYBILL_SOAK_S seconds, at an even pace. What a run has in memory does not grow with
    what was moved."""
    row.describe(f"up to {SOAK_MESSAGES:,} messages in {SOAK_S:g} s, SIGKILL of the run every {KILL_EVERY_S:g} s")
    row.where, row.database = "MQTT (Mosquitto) → RocketMQ", "SQLite"
    inlet = begun(site_on("SQLite"), fast_mosquitto, receive_maximum=4096)
    with devices_at_work(inlet, pause_s=SOAK_S * TOGETHER / SOAK_MESSAGES, each=TOGETHER):
        most_mib = killed_again_and_again(inlet, SOAK_S, seeded)
    inlet.comes_to_rest(row)
    assert inlet.published > SOAK_MESSAGES / 2, "this machine is too slow for so many: WAYBILL_SOAK_MESSAGES"
    half = len(most_mib) // 2
    first, last = max(most_mib[:half]), max(most_mib[half:])
    row.condition += f"{inlet.published:,} published; at most {first} MiB in the first half, {last} MiB in the second"
    assert last < 1.2 * first


@pytest.mark.timeout(1800)
def test_a_broker_falls_behind_while_whoever_works_is_killed(
    mosquitto: Mosquitto, site_on: MakeSite, row: FaultRow, seeded: random.Random
) -> None:
    """Mosquitto writes all that waits with every acknowledgement, and sends ten thousand and more again to each run. A
    run stays until it has worked that off: minutes, since the time for it grows with the square of what waits."""
    row.describe(f"more comes than the broker can work off, SIGKILL of the run every {KILL_EVERY_S:g} s")
    row.where, row.database = "MQTT (Mosquitto) → RocketMQ", "SQLite"
    inlet = begun(site_on("SQLite"), mosquitto, receive_maximum=4096)
    inlet.run_limit_s = 600
    # So long, since a broker that is busy with its own answers late, and a lane must not run out of its lease for that.
    inlet.site.settings |= {"WAYBILL_LEASE_TTL_S": "24s", "WAYBILL_LEASE_MARGIN_S": "4s"}
    inlet.publish(WAITING)
    with devices_at_work(inlet, pause_s=0.06, each=TOGETHER, taken_within_s=600):
        killed_again_and_again(inlet, 60, seeded)
        arrived = len(inlet.arrived())
    row.condition = f"{inlet.published:,} published, {arrived:,} of them moved when no more came; "
    assert arrived < inlet.published
    inlet.run_until_nothing_comes()
    inlet.check(row)
    again = sum(one["absent"] or 0 for one in inlet.receipts())
    inlet.close()
    row.condition += f"{again:,} packets came again"


def killed_again_and_again(inlet: Inlet, seconds: float, seeded: random.Random) -> list[int]:
    """Runs that are killed every KILL_EVERY_S or so, the driver with its workers; how much each had in memory (MiB)."""
    most_mib, over = list[int](), time.monotonic() + seconds
    while time.monotonic() < over:
        strike = time.monotonic() + min(KILL_EVERY_S * seeded.uniform(0.8, 1.2), seconds / 3)
        driver = inlet.site.start("run", NAME, "--engine", "inline", "--window", "1h")
        most_mib.append(0)
        while driver.poll() is None and time.monotonic() < strike:
            most_mib[-1] = max(most_mib[-1], processes.resident_mib(driver.pid))
            time.sleep(0.05)
        processes.kill(driver.pid)
        assert ended(driver) in (-signal.SIGKILL, *TRY_AGAIN)
    assert len(most_mib) >= min(seconds // (2 * KILL_EVERY_S), 2)
    return most_mib
