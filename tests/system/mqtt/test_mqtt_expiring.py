"""Messages that are good for a while, with real brokers: what is published of them, when, and how it is counted."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from connect_core import systems
from connect_core.sdk.records import encode_headers
from connect_core.sdk.scan import Prefix
from connect_core.sdk.sink import Outdating, Scan, Writer
from connect_core.sdk.testing.driving import UID, attempt, limit, records
from connect_core.sdk.values import Attempt
from connect_core.work import Side
from tests.mqtt_brokers import Mosquitto, MqttBroker
from tests.mqtt_devices import devices, listening
from tests.site import Site
from tests.unit.systems.driving import Filler

pytestmark = pytest.mark.server


def filler(broker: MqttBroker, topic: str, **more: Any) -> Filler:
    given = {"host": broker.host, "port": broker.port, "topic": topic, "uid": uuid4().hex[:12], **more}
    return Filler(systems.sink(Side("mqtt", given)))


def waited(seconds: int, *good_for: int) -> pa.RecordBatch:
    came = datetime.now(UTC) - timedelta(seconds=seconds)
    headers: list[object] = [encode_headers([("MQTT_EXPIRY_S", str(one))]) for one in good_for]
    payloads: list[bytes | None] = [b"%d" % row for row in range(len(good_for))]
    return records(payloads, headers=headers, timestamp=[came] * len(good_for))


def write_in_time(writer: Writer, rows: pa.RecordBatch) -> None:
    """As a worker does."""
    assert isinstance(writer, Outdating)
    fresh = rows.filter(pa.array(~writer.outdated(rows)))
    assert writer.write(fresh, limit()) == len(fresh)


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_what_has_expired_is_not_published_and_the_others_have_what_is_left(
    mosquitto: Mosquitto, protocol: str
) -> None:
    task = filler(mosquitto, f"e/left/{protocol}", protocol=protocol)
    with (
        listening(mosquitto, f"e/left/{protocol}") as listener,
        task.sink.writer(attempt(), task.plan()) as writer,
    ):
        write_in_time(writer, waited(40, 39, 100, 40, 600, 1))
        assert writer.flush(limit()).records == 2
        heard = listener.heard(2)
    assert [bytes(one.payload) for one in heard] == [b"1", b"3"]
    if protocol == "5":
        left = [one.properties.MessageExpiryInterval for one in heard]
        assert left[0] in range(55, 61)
        assert left[1] in range(555, 561)


def test_the_next_attempt_does_not_take_what_was_left_out_for_delivered(mosquitto: Mosquitto) -> None:
    """The first one dies after two groups."""
    task = filler(mosquitto, "e/dead", progress_every=4)
    planned = task.plan()
    with task.sink.writer(attempt(), planned) as writer:
        write_in_time(writer, waited(40, *[600, 600, 1, 600, 1, 1, 600] * 3))
    found = task.sink.scan(Scan(Attempt(UID, 1), (replace(planned, inherited=True),), 10))[planned.id]
    assert found.prefix == Prefix(14, 8, 4, ((2, 3), (4, 6), (9, 10), (11, 13)))
    there = found.present(np.arange(21))
    assert np.flatnonzero(~there).tolist() == [2, 4, 5, 9, 11, 12, *range(14, 21)]


def test_what_expires_in_rocketmq_is_filtered_on_the_way_back(sqlite_site: Site, mosquitto: Mosquitto) -> None:
    site, name = sqlite_site, f"e{uuid4().hex[:8]}"
    broker = {"host": mosquitto.host, "port": mosquitto.port}
    topic = {"name_servers": "${stack:name_servers}", "topic": site.topic, "queues": 1}
    site.apply("in", {"source": {"mqtt": {**broker, "filters": [f"{name}/#"]}}, "sink": {"rocketmq": topic}})
    site.waybill("run", "in", "--engine", "inline")
    with devices(mosquitto) as all_of_them:
        for seconds in (5, 900, 6, None):
            all_of_them.publish(f"{name}/{seconds}", [b"x"], properties=_good_for(seconds))
        all_of_them.wait()
    site.waybill("run", "in", "--engine", "inline")
    came = time.monotonic()
    source = {"name_servers": "${stack:name_servers}", "topics": [site.topic], "start": "earliest"}
    sink = {**broker, "topic": "back/{header:MQTT_TOPIC}"}
    site.apply("out", {"source": {"rocketmq": source}, "sink": {"mqtt": sink}})
    time.sleep(max(6.5 - (time.monotonic() - came), 0))
    with listening(mosquitto, f"back/{name}/#") as listener:
        said = site.waybill("run", "out", "--engine", "inline")
        heard = listener.heard(2)
    assert [one.topic for one in heard] == [f"back/{name}/900", f"back/{name}/None"]
    assert 800 < heard[0].properties.MessageExpiryInterval <= 894
    assert "filtered: 2" in said
    [receipt] = site.json("receipts", "out")["receipts"]
    counts = ("read", "filtered", "rejected", "passed", "delivered", "possible_duplicates")
    assert [receipt[one] for one in counts] == [4, 2, 0, 2, 2, 0]


def _good_for(seconds: int | None) -> Properties:
    given = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    if seconds is not None:
        given.MessageExpiryInterval = seconds
    return given
