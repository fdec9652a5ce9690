"""A broker that dies while it stores a batch keeps the first messages of it, and may keep one of them in parts."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from connect_core import stack
from tests.faults.kit import torn
from tests.faults.kit.checker import EXACT, Account
from tests.faults.kit.fixtures import MakeSite
from tests.faults.kit.journeys import (
    TRY_AGAIN,
    Inward,
    begun_and_trapped,
    receipts_of,
    run_until_done,
    settled_up,
)
from tests.faults.kit.processes import ended
from tests.faults.kit.proxy import RocketMQProxy, Trap, sends_to
from tests.faults.kit.topics import JavaReader
from tests.faults.kit.torn import DAMAGED
from tests.faults.rows import FaultRow
from tests.servers import RocketMQ
from tests.site import new_site

pytestmark = [pytest.mark.server, pytest.mark.fault]

BATCH = 1_000


@pytest.mark.parametrize("message", [0, 43], ids=["the first", "one in the middle"])
@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("between two messages", EXACT),
        ("within a head", EXACT),
        ("within a body", EXACT),
        ("before the properties", DAMAGED),
        ("within the message id", DAMAGED),
        ("within the coordinates", DAMAGED),
        ("before the last byte", DAMAGED),
    ],
)
def test_a_message_that_was_torn_is_delivered_again_and_told(
    site_on: MakeSite,
    java_reader: JavaReader,
    rocketmq: RocketMQ,
    proxy: RocketMQProxy,
    place: str,
    expected: Account,
    message: int,
    row: FaultRow,
) -> None:
    row.describe(f"SIGKILL of the broker in mid-batch: its log ends {place}", where=Inward.where, database="SQLite")
    site = site_on("SQLite")
    journey = Inward(site, java_reader, records=4_000, range_records=2_500, partitions=1, name_servers=[proxy.address])
    with _killed_with_a_batch_unanswered(journey, proxy, rocketmq, row, passes=1):
        path, batch = torn.batch_at_the_end(rocketmq, site.topic, BATCH)
        torn.tear(path, torn.PLACES[place](batch[message]))
    run_until_done(journey)
    row.moves_again()
    assert settled_up(journey, row) == expected


@contextmanager
def _killed_with_a_batch_unanswered(
    journey: Inward, proxy: RocketMQProxy, broker: RocketMQ, row: FaultRow, passes: int
) -> Iterator[None]:
    """Inside the broker is dead and its log may be changed; behind it the run that had sent the batch has ended."""
    trap = proxy.set(Trap(sends_to(journey.site.topic), passes, answer=False))
    driver = begun_and_trapped(journey, trap)
    trap.wait_for_answer()
    row.strikes()
    broker.kill()
    try:
        yield
    finally:
        broker.start()
    assert ended(driver) in TRY_AGAIN


@pytest.mark.fault(costly=True)
@pytest.mark.timeout(7_200)
def test_brokers_killed_at_any_moment_of_a_batch_lose_nothing_and_repeat_nothing_unseen(
    request: pytest.FixtureRequest,
    spark_remote: str,
    java_reader: JavaReader,
    rocketmq: RocketMQ,
    tmp_path: Path,
    row: FaultRow,
) -> None:
    """`--kills` times, while another process keeps the second core busy. Every other time the batch is torn at a byte
    of it, because a kill by itself seldom strikes within the copy of one."""
    kills = request.config.getoption("--kills")
    row.describe(f"{kills} times SIGKILL of the broker in mid-batch, second core busy", where=Inward.where)
    chance = random.Random(request.config.getoption("--seed"))
    places: Counter[str] = Counter()
    repeats: Counter[str] = Counter()
    with _busy():
        for number in range(kills):
            folder = tmp_path / str(number)
            folder.mkdir()
            site = new_site(folder, f"sqlite:///{folder}/.waybill/ledger.db", rocketmq)
            with _proxy(rocketmq) as proxy:
                journey = Inward(site, java_reader, records=3_500, partitions=1, name_servers=[proxy.address])
                strike = _torn_at_any_byte if number % 2 else _killed_at_any_moment
                place = strike(journey, proxy, rocketmq, row, chance)
                run_until_done(journey)
                found = settled_up(journey, row)
            possible = sum(one["possible_duplicates"] for one in receipts_of(journey))  # type: ignore[misc]
            places[place] += 1
            repeats[place] += found.repeated
            print(
                f"kill {number}: {place}: {found.repeated} twice, {found.duplicates} told, {possible} possible",
                flush=True,
            )
            assert found == Account(repeated=found.repeated, duplicates=found.duplicates)
            assert found.duplicates <= found.repeated <= found.duplicates + possible
    print(dict(places), "there twice:", dict(repeats))
    row.moves_again()
    row.repeated = row.duplicates = sum(repeats.values())


@contextmanager
def _proxy(rocketmq: RocketMQ) -> Iterator[RocketMQProxy]:
    """In front of the broker as it runs now."""
    running = stack.load(rocketmq.home)
    assert running is not None
    made = RocketMQProxy(rocketmq.name_servers[0], f"127.0.0.1:{running.part(stack.BROKER).ports['remoting']}")
    try:
        yield made
    finally:
        made.close()


def _torn_at_any_byte(
    journey: Inward, proxy: RocketMQProxy, broker: RocketMQ, row: FaultRow, chance: random.Random
) -> str:
    with _killed_with_a_batch_unanswered(journey, proxy, broker, row, passes=chance.randrange(3)):
        path, batch = torn.batch_at_the_end(broker, journey.site.topic, 500)
        at = chance.randrange(batch[0].begin, batch[-1].end)
        torn.tear(path, at)
        return torn.place_of(batch, at)


def _killed_at_any_moment(
    journey: Inward, proxy: RocketMQProxy, broker: RocketMQ, row: FaultRow, chance: random.Random
) -> str:
    """Within the milliseconds in which the broker reads a batch, stores it and answers."""
    pid, wait_s = broker.broker.pid, chance.uniform(0, 0.006)
    killer = threading.Timer(wait_s, os.kill, (pid, 9))
    trap = proxy.set(Trap(sends_to(journey.site.topic), chance.randrange(3), first=lambda line: killer.start()))
    driver = begun_and_trapped(journey, trap)
    row.strikes()
    killer.join()
    broker.kill()
    broker.start()
    assert ended(driver) in (0, *TRY_AGAIN)
    return "killed"


@contextmanager
def _busy() -> Iterator[None]:
    """A process that wants a whole core."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()
