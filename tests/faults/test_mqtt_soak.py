"""Three sessions, messages of QoS 0 and 1 at an even pace for minutes, and the worker killed again and again.

Of QoS 1 nothing is missing. Of QoS 0 a broker keeps nothing for who is not connected: what is missing was published
around a kill, so it is one stretch of each session for each kill at most. WAYBILL_MQTT_SOAK_S says for how long.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from tests.faults.kit import processes
from tests.faults.kit.journeys import TRY_AGAIN
from tests.faults.kit.processes import ended, wait_for
from tests.faults.rows import FaultRow
from tests.mqtt_brokers import Mosquitto
from tests.mqtt_devices import devices
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True)]

SOAK_S = float(os.environ.get("WAYBILL_MQTT_SOAK_S", "300"))
KILL_EVERY_S = 40.0
SESSIONS, RATE = 3, 300
NAME = "soaked-in"


@dataclass
class Published:
    """Numbers by session, of each QoS; every session's messages of a QoS count up from 0."""

    of: dict[tuple[int, int], int] = field(default_factory=lambda: {(n, q): 0 for n in range(SESSIONS) for q in (0, 1)})

    @staticmethod
    def body(session: int, qos: int, number: int) -> bytes:
        return b"%d %d %d" % (session, qos, number)

    def bodies(self, qos: int) -> Counter[bytes]:
        return Counter(
            self.body(session, one, number)
            for (session, one), count in self.of.items()
            if one == qos
            for number in range(count)
        )


@contextmanager
def publishing(broker: Mosquitto, published: Published) -> Iterator[None]:
    """RATE messages a second, to the sessions in turn, every other one of QoS 1, until the block ends."""
    over = threading.Event()

    def publish() -> None:
        with devices(broker) as all_of_them:
            began = time.monotonic()
            for turn in range(1 << 30):
                session, qos = turn % SESSIONS, turn // SESSIONS % 2
                if over.wait(max(began + turn / RATE - time.monotonic(), 0)):
                    break
                number = published.of[session, qos]
                all_of_them.publish(f"soak/{session}", [Published.body(session, qos, number)], qos)
                published.of[session, qos] += 1
            all_of_them.wait()

    with ThreadPoolExecutor(1) as alone:
        publisher = alone.submit(publish)
        try:
            yield
        finally:
            over.set()
    publisher.result()


def stretches(numbers: Sequence[int]) -> int:
    """How many runs of numbers without a gap there are."""
    all_of_them = {*numbers}
    return sum(number - 1 not in all_of_them for number in numbers)


@pytest.mark.timeout(3 * SOAK_S + 900)
def test_qos_0_and_1_in_three_sessions_while_workers_are_killed(
    fast_mosquitto: Mosquitto, inline_site: Site, row: FaultRow, seeded: random.Random
) -> None:
    site, published = inline_site, Published()
    row.describe(f"{RATE} messages/s of QoS 0 and 1 for {SOAK_S:g} s, SIGKILL of the worker every {KILL_EVERY_S:g} s")
    row.where, row.database = f"MQTT (Mosquitto), {SESSIONS} sessions → RocketMQ", "SQLite"
    site.settings |= {"WAYBILL_QUANTUM_S": "3s", "WAYBILL_LINGER_S": "400ms"}
    source = {"host": fast_mosquitto.host, "port": fast_mosquitto.port, "sessions": SESSIONS}
    source["filters"] = [f"soak/{session}" for session in range(SESSIONS)]
    sink = {"rocketmq": {"name_servers": site.name_servers, "topic": site.topic, "queues": 1}}
    site.apply(NAME, {"source": {"mqtt": source}, "sink": sink})
    site.waybill("run", NAME, "--engine", "inline")
    with devices(fast_mosquitto) as first:  # whoever gets it is connected
        first.publish("soak/0", [b"first"])
        first.wait()
    driver = window(site)
    wait_for(site.messages, "a session that is connected")
    kills, over = 0, time.monotonic() + SOAK_S
    with publishing(fast_mosquitto, published):
        strike = time.monotonic() + KILL_EVERY_S * seeded.uniform(0.8, 1.2)
        while time.monotonic() < over:
            if driver.poll() is not None:
                assert ended(driver) in TRY_AGAIN
                driver = window(site)
            if time.monotonic() > strike and (workers := processes.children_of(driver.pid)):
                processes.kill(*workers)
                row.strikes()
                kills, strike = kills + 1, time.monotonic() + KILL_EVERY_S * seeded.uniform(0.8, 1.2)
            time.sleep(0.05)
    site.waybill("connectors", "pause", NAME)
    assert ended(driver) in (0, -signal.SIGKILL, *TRY_AGAIN)
    site.waybill("connectors", "resume", NAME)
    for _ in range(3):
        assert ended(site.start("run", NAME, "--engine", "inline")) in (0, *TRY_AGAIN)
    row.moves_again()
    check(row, site, published, kills)
    site.waybill("connectors", "delete", NAME, "--yes")


def window(site: Site) -> subprocess.Popen[str]:
    return site.start("run", NAME, "--engine", "inline", "--window", "1h")


def check(row: FaultRow, site: Site, published: Published, kills: int) -> None:
    there = Counter(site.messages()) - Counter([b"first"])
    receipts = site.json("receipts", NAME, "--last", "100000")["receipts"]
    told = sum(one["possible_duplicates"] for one in receipts)
    wanted, zero = published.bodies(1), published.bodies(0)
    row.lost, row.repeated, row.reordered = (wanted - there).total(), (there - wanted - zero).total(), 0
    row.duplicates = sum(one["duplicates"] for one in receipts)
    missing: dict[int, list[int]] = {session: [] for session in range(SESSIONS)}
    for body in zero - there:
        session, _, number = map(int, body.split())
        missing[session].append(number)
    most = max(stretches(numbers) for numbers in missing.values())
    gone = (zero - there).total()
    row.condition = (
        f"{wanted.total():,} of QoS 1 and {zero.total():,} of QoS 0, {kills} kills; of QoS 0 {gone:,} are missing, in "
        f"at most {most} stretches of a session; reported: {told} possible duplicates"
    )
    print(row.condition)
    assert row.lost == 0
    assert row.repeated <= told
    assert kills >= SOAK_S // KILL_EVERY_S - 2
    assert most <= kills
