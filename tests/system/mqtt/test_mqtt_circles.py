"""Connectors that lead in a circle, with real brokers: what has passed one of them comes round no second time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.mqtt_brokers import Mosquitto
from tests.mqtt_devices import devices, listening
from tests.site import Site

pytestmark = pytest.mark.server

BOTH = ("there", "back")


def end(broker: Mosquitto, **more: Any) -> dict[str, Any]:
    return {"mqtt": {"host": broker.host, "port": broker.port, **more}}


def run(site: Site, *names: str) -> None:
    for name in names:
        site.waybill("run", name, "--engine", "inline")


def counted(site: Site, name: str) -> tuple[int, int, int, int]:
    receipts = site.json("receipts", name, "--last", "100")["receipts"]
    read, filtered, delivered, twice = (
        sum(one[count] for one in receipts) for count in ("read", "filtered", "delivered", "possible_duplicates")
    )
    return read, filtered, delivered, twice


def test_two_brokers_bridged_both_ways_do_not_send_back_what_came(
    bare_site: Site, mosquitto: Mosquitto, tmp_path: Path
) -> None:
    other = Mosquitto(tmp_path / "other")
    other.start()
    try:
        source = {"filters": ["c/#"], "max_hops": 1}
        for name, ends in zip(BOTH, ((mosquitto, other), (other, mosquitto)), strict=True):
            sink = end(ends[1], topic="{header:MQTT_TOPIC}")
            bare_site.apply(name, {"source": end(ends[0], **source), "sink": sink})
        run(bare_site, *BOTH)
        with listening(mosquitto, "c/#") as here, listening(other, "c/#") as there:
            for broker, payload in ((mosquitto, b"from here"), (other, b"from there")):
                with devices(broker) as all_of_them:
                    all_of_them.publish("c/1", [payload])
                    all_of_them.wait()
            for _ in range(3):
                run(bare_site, *BOTH)
            assert sorted(here.payloads(2)) == sorted(there.payloads(2)) == [b"from here", b"from there"]
    finally:
        other.kill()
    assert counted(bare_site, "there") == counted(bare_site, "back") == (2, 1, 1, 0)


def test_a_circle_through_a_topic_ends_where_it_began(sqlite_site: Site, mosquitto: Mosquitto) -> None:
    """The mark travels through RocketMQ. A connector that lets all pass would bring each message round and round."""
    site = sqlite_site
    queues = {"name_servers": "${stack:name_servers}", "topic": site.topic, "queues": 1}
    site.apply("in", {"source": end(mosquitto, filters=["r/#"], max_hops=8), "sink": {"rocketmq": queues}})
    read = {"name_servers": "${stack:name_servers}", "topics": [site.topic], "start": "earliest"}
    site.apply("out", {"source": {"rocketmq": read}, "sink": end(mosquitto, topic="r/back")})
    run(site, "in")
    with devices(mosquitto) as all_of_them:
        all_of_them.publish("r/1", [b"x", b"y"])
        all_of_them.wait()
    for _ in range(3):
        run(site, "in", "out")
    assert site.messages() == [b"x", b"y"]
    assert counted(site, "in") == (4, 2, 2, 0)
    assert counted(site, "out") == (2, 0, 2, 0)
