"""Quanta that end in the middle of what has come: the next one begins with the rest, over the same connection, and of
QoS 0 nothing is lost. With a real Mosquitto, whose log counts connections, and RocketMQ."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from tests.faults.kit.processes import ended, wait_for
from tests.faults.kit.proxy import RocketMQProxy
from tests.mqtt_brokers import Mosquitto
from tests.mqtt_devices import devices
from tests.site import Site

pytestmark = pytest.mark.server
COSTLY = pytest.mark.fault(costly=True)
TOPIC = "rest/1"
SLOW_S, SLOW_BYTES = 0.02, 50_000
"""So long the slow target takes for a record, and so large it is: a batch of the sink is one of about twenty."""

MANY_RANGES: dict[str, Any] = {"range_records": 20}
A_RATE: dict[str, Any] = {"records_per_second": 200}


def connections(site: Site, broker: Mosquitto) -> int:
    """How often a worker has connected to the session, by the broker's log."""
    uid = site.json("connectors", "show", "in")["uid"]
    log = (broker.folder / "broker.log").read_text()
    return len(re.findall(rf"New client connected from \S+ as waybill-{uid}-0 ", log))


def number_of(body: bytes) -> int:
    return int(body.rstrip(b"x"))


@pytest.mark.parametrize(
    ("limits", "messages", "seconds", "engine"),
    [
        (MANY_RANGES, 1500, 3.0, "inline"),
        (A_RATE, 1200, 2.0, "inline"),
        ({}, 300, 2.0, "inline"),
        pytest.param(MANY_RANGES, 1500, 3.0, "", marks=COSTLY),
    ],
    ids=["records-of-a-range", "rate", "slow-target", "records-of-a-range-spark"],
)
def test_what_a_quantum_leaves_is_moved_by_the_next_one(
    sqlite_site: Site,
    fast_mosquitto: Mosquitto,
    proxy: RocketMQProxy,
    limits: dict[str, Any],
    messages: int,
    seconds: float,
    engine: str,
) -> None:
    """Messages of QoS 0 without pause, faster than they are moved; where there is no limit the target is slow."""
    site, on = sqlite_site, ["--engine", engine] if engine else []
    site.settings |= {"WAYBILL_QUANTUM_S": "1s", "WAYBILL_LINGER_S": "300ms"}
    source = {"mqtt": {"host": fast_mosquitto.host, "port": fast_mosquitto.port, "filters": [TOPIC]}}
    sink = {"rocketmq": {"name_servers": [proxy.address], "topic": site.topic, "queues": 1}}
    site.apply("in", {"source": source, "sink": sink, "limits": limits})
    site.waybill("run", "in", *on)
    before = connections(site, fast_mosquitto)
    staying = site.start("run", "in", *on, "--window", "300s")
    with devices(fast_mosquitto) as all_of_them:
        all_of_them.publish(TOPIC, [b"-1"])
        wait_for(lambda: site.messages() != [], "a session that is connected")
        proxy.seconds_a_record, size = (0.0, 0) if limits else (SLOW_S, SLOW_BYTES)
        began = time.monotonic()
        for number in range(messages):
            all_of_them.publish(TOPIC, [b"%d" % number + b"x" * size], 0)
            time.sleep(max(began + seconds * number / messages - time.monotonic(), 0))
        all_of_them.publish(TOPIC, [b"%d" % messages])
        wait_for(lambda: number_of(site.messages()[-1]) == messages, "the last one", limit_s=120)
    site.waybill("connectors", "pause", "in")
    assert ended(staying) == 0
    assert [number_of(body) for body in site.messages()] == [*range(-1, messages + 1)]
    assert connections(site, fast_mosquitto) - before == 1
    receipts = [one for one in site.json("receipts", "in")["receipts"] if one["read"]]
    assert sum(one["possible_duplicates"] for one in receipts) == 0
    site.waybill("connectors", "delete", "in", "--yes")
