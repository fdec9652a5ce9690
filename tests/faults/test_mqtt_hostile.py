"""MQTT into RocketMQ from a broker that sends thousands of packets no broker should send, among good ones.

What becomes of each is known from the bytes that were sent. It is counted in the target by RocketMQ's topic, and in the
list of dead letters.
"""

from __future__ import annotations

import random
import re
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.faults.kit.hostile_broker import BREAKS, HostileBroker
from tests.faults.kit.processes import ended
from tests.faults.rows import FaultRow
from tests.mqtt_hostile import OWN_IDS, Fate, Hostility, Said
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault]
COSTLY = pytest.mark.fault(costly=True)

NAME = "hostile-in"
WINDOW = 500
MOST_MIB = 320
"""What a worker may ever have resident: that of an idle one, and what it holds of what has come (about 32 MiB of each
session, several times while it is shaped and written)."""
FINE, AWAY = 0, (1, 3)
_BROKEN = "sends a message that cannot be read"
_LIMIT_S = 900.0


def document(site: Site, broker: HostileBroker, protocol: str) -> dict[str, Any]:
    """Rules look into every payload, and pass each record once."""
    deep = "$.meta.meta.meta.meta IS NOT NULL"
    source = {"host": broker.host, "port": broker.port, "filters": ["hostile/#"], "protocol": protocol}
    return {
        "source": {"mqtt": {**source, "receive_maximum": WINDOW}},
        "sink": {"rocketmq": {"name_servers": site.name_servers, "topic": site.topic, "queues": 1}},
        "errors": {"tolerance": "all"},
        "rules": [{"name": "all"}, {"name": "never", "when": f"{deep} AND $.meta.no = 1 AND $.pad = 'no'"}],
    }


@contextmanager
def served(script: list[Said]) -> Iterator[HostileBroker]:
    broker = HostileBroker(script, WINDOW)
    try:
        yield broker
    finally:
        broker.close()


def most_mib(driver: subprocess.Popen[str], known: int = 0) -> int:
    """The most that one of its workers ever had resident (VmHWM)."""
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(driver.pid).children(recursive=True):
            with suppress(OSError):
                said = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{child.pid}/status").read_text())
                known = max(known, int(said[1]) >> 10 if said else 0)
    return known


def moved(site: Site, broker: HostileBroker) -> tuple[int, int]:
    """Runs until the broker has nothing left: how many were told that their connection was broken, and the most MiB of
    a worker."""
    told = most = 0
    until = time.monotonic() + _LIMIT_S
    while broker.left:
        assert time.monotonic() < until, f"{broker.left} packets are left"
        driver = site.start("run", NAME, "--engine", "inline", "--window", "1h")
        try:
            while driver.poll() is None and broker.left and time.monotonic() < until:
                most = most_mib(driver, most)
                time.sleep(0.05)
            if driver.poll() is None:
                site.waybill("connectors", "pause", NAME)
            out, err = driver.communicate(timeout=120)
        finally:
            driver.kill()
        assert driver.returncode in (FINE, *AWAY), out + err
        assert "Traceback" not in out + err
        told += driver.returncode in AWAY and _BROKEN in out + err
    site.waybill("connectors", "resume", NAME)
    return told, most


@pytest.mark.parametrize(
    ("protocol", "hostile", "breaks"),
    [
        ("5", 200, 1),
        pytest.param("5", 10_000, 20, marks=COSTLY),
        pytest.param("3.1.1", 10_000, 20, marks=COSTLY),
    ],
)
@pytest.mark.timeout(1800)
def test_hostile_packets(
    protocol: str, hostile: int, breaks: int, inline_site: Site, row: FaultRow, seeded: random.Random
) -> None:
    row.describe(
        f"{hostile:,} hostile packets among {hostile // 4:,} good ones, MQTT {protocol}; {breaks} end their connection"
    )
    row.where, row.database = "MQTT (hostile broker) → RocketMQ", "SQLite"
    seed = seeded.randrange(1 << 32)
    print(f"seed of the packets: {seed}")
    script = Hostility(random.Random(seed), five=protocol == "5", breaks=breaks).script(hostile, hostile // 4)
    site = inline_site
    site.settings |= {"WAYBILL_QUANTUM_S": "3s", "WAYBILL_LINGER_S": "400ms", "WAYBILL_SEND_TIMEOUT_S": "4s"}
    with served(script) as broker:
        site.apply(NAME, document(site, broker, protocol))
        row.strikes()
        told, most = moved(site, broker)
        ended(site.start("run", NAME, "--engine", "inline"))
        row.moves_again()
        check(row, site, broker, told)
    row.condition += f"; a worker had {most} MiB at most"
    assert most <= MOST_MIB


def check(row: FaultRow, site: Site, broker: HostileBroker, told: int) -> None:
    """A payload that is not in the target is among the dead letters, and none of these was a good packet's. What has
    QoS 0 may be lost with its connection. What comes under ids that are not its own may come again and be taken for
    something new; all other repeats are told."""
    wanted = {fate: Counter(_payloads(broker.script, fate)) for fate in Fate}
    good = Counter(one.expected.payload for one in broker.script if one.what == "valid")
    there, letters, receipts = Counter(site.messages()), _letters(site), _receipts(site)
    unread, refused = letters["read"], Counter[bytes]()
    for stage in letters.keys() - {"read"}:
        refused += letters[stage]
    doubtful = sum(one["possible_duplicates"] for one in receipts)
    missing = wanted[Fate.RECORD] - there
    strangers = {one.expected.payload for one in broker.script if one.expected.packet_id not in _OWN_IDS}
    at_most_once = Counter(one.expected.payload[:_LETTER_BYTES] for one in broker.script if not one.expected.qos)
    more = (there - wanted[Fate.RECORD]) + (unread - wanted[Fate.LETTER]) + (refused - missing)
    lost = (_cut(missing) - refused) + (wanted[Fate.LETTER] - unread)
    row.lost, row.reordered = (lost - at_most_once).total(), 0
    row.repeated, row.duplicates = more.total(), sum(one["duplicates"] for one in receipts)
    row.condition = (
        f"{(there & wanted[Fate.RECORD]).total():,} records, {(unread & wanted[Fate.LETTER]).total():,} dead letters, "
        f"{(_cut(missing) & refused).total():,} more that the rules or RocketMQ do not take; {broker.broken} that "
        f"cannot be read, told {told} times; {broker.cuts} cut; {lost.total():,} of {at_most_once.total():,} of QoS 0 "
        f"are lost; reported: {doubtful:,} possible duplicates"
    )
    print(row.condition)
    assert [payload[:80] for payload in lost - at_most_once] == [], "lost"
    assert [payload[:80] for payload in (unread | refused) & good] == [], "good ones that were rejected"
    assert [payload[:80] for payload in there.keys() - wanted[Fate.RECORD].keys()] == [], "from nowhere"
    assert sum(times for payload, times in more.items() if payload not in strangers) <= doubtful
    assert broker.ignored == []
    assert broker.broken == wanted[Fate.BREAK].total()
    assert told == BREAKS * broker.broken, "each time"


_OWN_IDS = range(1, OWN_IDS)
_LETTER_BYTES = 65_536
"""So much of a dead letter is kept."""


def _payloads(script: Sequence[Said], fate: Fate) -> Iterator[bytes]:
    """As far as a dead letter keeps them, where they are one."""
    for said in script:
        if said.expected.fate is fate:
            yield said.expected.payload if fate is Fate.RECORD else said.expected.payload[:_LETTER_BYTES]


def _cut(payloads: Counter[bytes]) -> Counter[bytes]:
    return Counter(payload[:_LETTER_BYTES] for payload in payloads.elements())


def _letters(site: Site) -> dict[str, Counter[bytes]]:
    """By stage, from the ledger's file; as many as the command lists."""
    with closing(sqlite3.connect(site.home / "ledger.db")) as ledger:
        rows = ledger.execute("SELECT stage, original FROM dead_letters").fetchall()
    assert len(rows) == len(site.json("dead-letters", "list", NAME, "--last", "100000")["dead_letters"])
    found: dict[str, Counter[bytes]] = {"read": Counter()}
    for stage, original in rows:
        found.setdefault(stage, Counter())[bytes(original)] += 1
    return found


def _receipts(site: Site) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = site.json("receipts", NAME, "--last", "100000")["receipts"]
    return found
