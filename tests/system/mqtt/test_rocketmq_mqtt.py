"""RocketMQ-MQTT in both directions, by its stand-in (`tests/rocketmq_mqtt`): what it does otherwise than MQTT promises,
and what comes of that."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
import yaml

from connect_core.rocketmq import Client, ClientOptions, encode_batch
from connect_core.rocketmq.wire.properties import decode, encode
from tests.faults.kit.processes import ended, wait_for
from tests.pages import DOCS
from tests.rocketmq_mqtt.broker import SECRET, RocketMqMqtt, device
from tests.rocketmq_mqtt.store import EMPTY, Message, properties
from tests.site import Site

pytestmark = pytest.mark.server


def settings(site: Site) -> None:
    site.settings |= {"WAYBILL_QUANTUM_S": "3s", "WAYBILL_LINGER_S": "400ms", "MQTT_SECRET": SECRET}


def reading(site: Site, broker: RocketMqMqtt, *filters: str, **more: Any) -> None:
    settings(site)
    source = {"mqtt": broker.options(filters=list(filters), **more)}
    site.apply("in", {"source": source, "sink": {"file": {"path": "out.txt"}}})


def run(site: Site, name: str = "in", *words: str, code: int = 0) -> str:
    return site.waybill("run", name, "--engine", "inline", *words, code=code)


def lines(site: Site) -> list[bytes]:
    out = site.folder / "out.txt"
    return out.read_bytes().splitlines() if out.exists() else []


def told(site: Site, name: str) -> int:
    return sum(one["possible_duplicates"] for one in site.json("receipts", name, "--last", "1000")["receipts"])


def test_what_came_while_nobody_was_connected_arrives(bare_site: Site, rocketmq_mqtt: RocketMqMqtt) -> None:
    """No run calls the session lost, and none repeats anything."""
    reading(bare_site, rocketmq_mqtt, "d/first/+", "d/second")
    run(bare_site)
    said = [b"%d" % n for n in range(90)]
    for begin in (0, 30, 60):
        with device(rocketmq_mqtt) as one:
            one.publish("d/second", said[begin : begin + 30])
        run(bare_site)
    run(bare_site)
    assert lines(bare_site) == said
    assert told(bare_site, "in") == 0
    assert bare_site.json("gaps", "in")["gaps"] == []


def test_records_become_messages_in_order(bare_site: Site, rocketmq_mqtt: RocketMqMqtt) -> None:
    settings(bare_site)
    with device(rocketmq_mqtt, "d/out") as listener:
        said = [b"%d" % n for n in range(250)]
        (bare_site.folder / "in.txt").write_bytes(b"".join(one + b"\n" for one in said))
        sink = {"mqtt": rocketmq_mqtt.options(topic="d/out", progress_every=100)}
        bare_site.apply("out", {"source": {"file": {"path": "in.txt"}}, "sink": sink})
        run(bare_site, "out")
        assert listener.payloads(250) == said
    receipts = bare_site.json("receipts", "out")["receipts"]
    assert [one["delivered"] for one in receipts] == [50, 100, 100]
    assert told(bare_site, "out") == 0


def test_a_filter_that_is_left_out_is_told(bare_site: Site, rocketmq_mqtt: RocketMqMqtt) -> None:
    """What waits for it does not come, and nobody else would say so."""
    reading(bare_site, rocketmq_mqtt, "d/kept", "d/left")
    run(bare_site)
    with device(rocketmq_mqtt) as one:
        one.publish("d/left", [b"waits"])
        one.publish("d/kept", [b"comes"])
    reading(bare_site, rocketmq_mqtt, "d/kept")
    run(bare_site)
    run(bare_site)
    assert lines(bare_site) == [b"comes"]
    [gap] = bare_site.json("gaps", "in")["gaps"]
    assert gap["reason"].startswith("d/left is not subscribed from now on")
    said = bare_site.json("connectors", "delete", "in", "--yes")["notes"]
    assert said == ["the places of its sessions stay in RocketMQ; what waits there is not moved"]


def test_a_window_outlives_the_patience_of_the_broker(bare_site: Site, rocketmq_mqtt: RocketMqMqtt) -> None:
    """It ends a connection that has no keep-alive, or says nothing for too long."""
    reading(bare_site, rocketmq_mqtt, "d/window")
    run(bare_site)
    staying = bare_site.start("run", "in", "--engine", "inline", "--window", "60s")
    wait_for(lambda: "running" in bare_site.waybill("runs", "in"), "a run at work")
    for n in range(3):
        time.sleep(6)
        with device(rocketmq_mqtt) as one:
            one.publish("d/window", [b"%d" % n])
        wait_for(lambda n=n: b"%d" % n in lines(bare_site), "the message")  # type: ignore[misc]
    bare_site.waybill("connectors", "pause", "in")
    assert ended(staying) == 0
    assert lines(bare_site) == [b"0", b"1", b"2"]


@pytest.mark.parametrize(
    ("filters", "code", "expected"),
    [
        (["d/+/state"], 0, "at least once: RocketMQ-MQTT does not say"),
        (["nowhere/1"], 3, "no answer at all where the first level of a topic is no topic of RocketMQ"),
    ],
)
def test_what_a_probe_says(
    bare_site: Site, rocketmq_mqtt: RocketMqMqtt, filters: list[str], code: int, expected: str
) -> None:
    settings(bare_site)
    source = {"mqtt": rocketmq_mqtt.options(filters=filters, connect_timeout_s=2)}
    document = {"version": 1, "name": "in", "source": source, "sink": {"file": {"path": "out.txt"}}}
    (bare_site.folder / "in.yaml").write_text(yaml.safe_dump(document))
    with bare_site.start("check", "in.yaml", "--probe") as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert expected in " ".join((out + err).split())


def test_a_topic_that_rocketmq_does_not_have_ends_a_run_with_advice(
    bare_site: Site, rocketmq_mqtt: RocketMqMqtt
) -> None:
    settings(bare_site)
    (bare_site.folder / "in.txt").write_bytes(b"one\n")
    sink = {"mqtt": rocketmq_mqtt.options(topic="nowhere/1")}
    bare_site.apply("out", {"source": {"file": {"path": "in.txt"}}, "sink": sink})
    said = " ".join(run(bare_site, "out", code=1).split())
    assert "no answer at all where the first level of a topic is no topic of RocketMQ" in said


def test_a_filter_that_rocketmq_does_not_have_ends_a_run_with_advice(
    bare_site: Site, rocketmq_mqtt: RocketMqMqtt
) -> None:
    """In time: a lane lives for no longer than its lease."""
    reading(bare_site, rocketmq_mqtt, "nowhere/1")
    bare_site.settings |= {"WAYBILL_LEASE_TTL_S": "15s", "WAYBILL_LEASE_MARGIN_S": "4s", "WAYBILL_SEND_TIMEOUT_S": "3s"}
    said = " ".join(run(bare_site, code=3).split())
    assert "does not answer SUBSCRIBE" in said
    assert "the first level of a topic is no topic of RocketMQ" in said


def test_its_store_is_read_with_the_mqtt_topic_as_key(sqlite_site: Site) -> None:
    """The example of the page, with messages as its `LmqQueueStoreManager` stores them."""
    page = (DOCS / "rocketmq-mqtt.md").read_text()
    text = next(one for one in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "name: store-in" in one)
    document = yaml.safe_load(text)
    topic = sqlite_site.topic
    document["source"]["rocketmq"]["topics"] = [topic]
    document["sink"]["rocketmq"] |= {"topic": f"{topic}-states", "queues": 1}
    document["rules"][0]["to"] = f"{topic}-signals"
    stored = [Message("d/1/state", b"on"), Message("d/2/state", b"off"), Message("d/1/state", b"")]
    with Client(ClientOptions(name_servers=tuple(sqlite_site.name_servers))) as client:
        client.topics.create(topic, 1)
        client.topics.create(f"{topic}-signals", 1)
        (queue,) = client.topics.write_queues(topic)
        sender = client.sender(queue)
        made = [encode(properties(one, [f"{one.topic}/"])) for one in stored]
        sender.submit(encode_batch([one.payload or EMPTY for one in stored], made), deadline=time.monotonic() + 10)
        sender.finish(deadline=time.monotonic() + 10)
        given = {key: value for key, value in document.items() if key not in ("version", "name")}
        sqlite_site.apply("store-in", given)
        sqlite_site.waybill("run", "store-in", "--engine", "inline")
        told = {name: keyed(client, f"{topic}-{name}") for name in ("states", "signals")}
    assert told == {"states": [("d/1/state", b"on"), ("d/2/state", b"off")], "signals": [("d/1/state", EMPTY)]}


def keyed(client: Client, topic: str) -> list[tuple[str, bytes]]:
    """Key and body of each message of a topic with one queue."""
    ((queue, seen),) = client.offsets.bounds(topic).items()
    parts = client.read(queue, seen.begin, seen.end, deadline=time.monotonic() + 60)
    return [(decode(one.properties)["KEYS"], bytes(one.body)) for part in parts for one in part.messages]
