"""The MQTT sink with real brokers: the example of its page, what becomes of a record, what stops a run."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from connect_core import systems
from connect_core.errors import Fenced, Unreachable
from connect_core.rocketmq import Client, ClientOptions, encode_batch
from connect_core.sdk.scan import Prefix
from connect_core.sdk.sink import Scan, Writer
from connect_core.sdk.testing.driving import UID, attempt, limit, records
from connect_core.sdk.values import Attempt
from connect_core.work import Side
from tests.faults.kit.mqtt_proxy import MqttProxy
from tests.faults.kit.processes import ended, wait_for
from tests.mqtt_brokers import Mosquitto, MqttBroker
from tests.mqtt_devices import devices, listening
from tests.pages import example_done
from tests.site import Site
from tests.unit.systems.driving import Filler

pytestmark = pytest.mark.server

COSTLY = pytest.mark.fault(costly=True)
TOO_LARGE_IS_SAID = {"message_size_limit": "2000", "max_queued_messages": "1000"}
"""A limit of which Mosquitto says nothing before. Where its queues have none it does not refuse, it hangs up."""


def test_the_example_of_the_page(bare_site: Site, mosquitto: Mosquitto) -> None:
    assert "b'close'" in example_done("mqtt-sink.md", bare_site, "commands-out.yaml", mosquitto.port)


def place(broker: MqttBroker, topic: str, **more: Any) -> dict[str, Any]:
    return {"mqtt": {"host": broker.host, "port": broker.port, "topic": topic, **more}}


def applied(site: Site, target: dict[str, Any], **more: Any) -> None:
    site.apply("out", {"source": {"file": {"path": "in.txt"}}, "sink": target, **more})


def run(site: Site, code: int = 0) -> str:
    return site.waybill("run", "out", "--engine", "inline", code=code)


def append(site: Site, lines: list[bytes]) -> None:
    with (site.folder / "in.txt").open("ab") as file:
        file.writelines(line + b"\n" for line in lines)


def test_lines_of_a_file_in_order_and_once(bare_site: Site, mosquitto: Mosquitto) -> None:
    said = [b"%d" % n for n in range(250)]
    append(bare_site, said[:200])
    applied(bare_site, place(mosquitto, "f/lines", progress_every=64))
    with listening(mosquitto, "f/lines") as listener:
        run(bare_site)
        append(bare_site, said[200:])
        run(bare_site)
        run(bare_site)
        assert listener.payloads(250) == said
    receipts = bare_site.json("receipts", "out")["receipts"]
    assert sum(one["delivered"] for one in receipts) == 250
    assert sum(one["possible_duplicates"] for one in receipts) == 0


def test_messages_of_rocketmq(sqlite_site: Site, mosquitto: Mosquitto) -> None:
    """Through Spark, over all queues; topics made of keys."""
    site = sqlite_site
    with Client(ClientOptions(tuple(site.name_servers))) as client:
        for queue in client.topics.create(site.topic, 2):
            sender = client.sender(queue)
            bodies = [b"%d of %d" % (n, queue.queue_id) for n in range(60)]
            sender.submit(encode_batch(bodies, [b""] * 60), deadline=time.monotonic() + 5)
            sender.finish(deadline=time.monotonic() + 5)
    source = {"rocketmq": {"name_servers": "${stack:name_servers}", "topics": [site.topic], "start": "earliest"}}
    site.apply("out", {"source": source, "sink": place(mosquitto, "q/{topic}")})
    with listening(mosquitto, f"q/{site.topic}") as listener:
        site.waybill("run", "out")
        assert sorted(listener.payloads(120)) == sorted(site.messages())


def filler(broker: MqttBroker, topic: str, **more: Any) -> Filler:
    given = {"host": broker.host, "port": broker.port, "topic": topic, "uid": uuid4().hex[:12], **more}
    return Filler(systems.sink(Side("mqtt", given)))


def test_progress_is_kept_behind_each_group(mosquitto: Mosquitto) -> None:
    """Without a flush, as if the attempt had died: all but the last group is known to be there."""
    task = filler(mosquitto, "f/groups", progress_every=16)
    planned = task.plan()
    with task.sink.writer(attempt(), planned) as writer:
        assert writer.write(records([b"x"] * 100), limit()) == 100
    found = task.sink.scan(Scan(Attempt(UID, 1), (replace(planned, inherited=True),), 10))[planned.id]
    assert found.prefix == Prefix(96, 96, 16)


def go_on(writer: Writer) -> None:
    """Until it is told that it may not."""
    for number in range(2, 100):
        writer.write(records([b"%d" % number], number), limit())
        writer.flush(limit())


def test_who_comes_later_throws_out_who_was_there(mosquitto: Mosquitto) -> None:
    """Nothing that the older one sends after that arrives: what is known of it is final."""
    task = filler(mosquitto, "f/fenced")
    planned = task.plan()
    with listening(mosquitto, "f/fenced") as listener, task.sink.writer(attempt(), planned) as older:
        older.write(records([b"1"]), limit())
        older.flush(limit())
        with task.sink.writer(attempt(2), replace(planned, inherited=True)):
            with pytest.raises((Fenced, Unreachable)):
                go_on(older)
            assert listener.payloads(1) == [b"1"]


def kept_below(broker: MqttBroker, topic: str) -> list[str]:
    """The topics of retained messages."""
    with listening(broker, f"{topic}/#") as listener:
        return sorted(one.topic for one in listener.everything())


def test_a_deleted_connector_leaves_no_progress(bare_site: Site, mosquitto: Mosquitto) -> None:
    """Nor do its backfills. That of others stays."""
    append(bare_site, [b"%d" % n for n in range(20)])
    for name in ("out", "other"):
        sink = place(mosquitto, f"d/{name}", progress_topic="kept")
        bare_site.apply(name, {"source": {"file": {"path": "in.txt"}}, "sink": sink})
        bare_site.waybill("run", name, "--engine", "inline")
    words = ("--range", "in.txt:0-10", "--id", "again", "--engine", "inline")
    bare_site.waybill("backfill", "out", *words)
    uid, other = (bare_site.json("connectors", "show", name)["uid"] for name in ("out", "other"))
    assert len(kept_below(mosquitto, f"kept/{uid}")) == 2
    told = bare_site.json("connectors", "delete", "out", "--yes")
    assert told["notes"] == ["its progress is cleared at the broker: 2 retained messages"]
    assert [topic.split("/")[1] for topic in kept_below(mosquitto, "kept")] == [other]


def test_a_broker_that_is_away_keeps_its_connector_from_being_deleted(bare_site: Site, tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path / "broker")
    broker.start()
    append(bare_site, [b"a"])
    applied(bare_site, place(broker, "d/away", connect_timeout_s=1))
    run(bare_site)
    broker.kill()
    said = bare_site.waybill("connectors", "delete", "out", "--yes", code=3)
    assert "out is stopped, and not deleted" in said
    assert "--force" in said
    told = bare_site.json("connectors", "delete", "out", "--yes", "--force")
    assert "its progress was not cleared, and stays at the broker" in told["notes"][0]
    assert bare_site.json("connectors", "list")["connectors"] == []


@COSTLY
def test_a_backfill_that_is_under_way_keeps_its_connector_from_being_deleted(
    bare_site: Site, mosquitto: Mosquitto
) -> None:
    """It would have its progress kept behind that. Called off, it ends, and the connector goes."""
    bare_site.settings |= {"WAYBILL_QUANTUM_S": "1s", "WAYBILL_SEND_TIMEOUT_S": "2s"}
    lines = 2_000  # more than a busy machine has time for before the backfill is called off
    append(bare_site, [b"%04d" % n for n in range(lines)])
    with closing(MqttProxy(mosquitto.host, mosquitto.port)) as proxy, listening(mosquitto, "d/again") as listener:
        sink = {"host": proxy.host, "port": proxy.port, "topic": "d/again", "progress_topic": "again"}
        applied(bare_site, {"mqtt": sink})
        run(bare_site)
        proxy.seconds_a_packet = 0.06
        words = ("--range", f"in.txt:0-{5 * lines}", "--id", "slow", "--engine", "inline")
        again = bare_site.start("backfill", "out", *words)
        wait_for(lambda: len(listener.messages) > lines + 10, "messages of the backfill")
        said = bare_site.waybill("connectors", "delete", "out", "--yes", code=4)
        assert "backfill-slow is running; out is stopped, and not deleted" in said
        bare_site.waybill("backfills", "cancel", "out", "backfill-slow")
        ended(again)
        proxy.seconds_a_packet = 0.0
        bare_site.waybill("connectors", "delete", "out", "--yes")
        assert len(listener.messages) < 2 * lines
    assert kept_below(mosquitto, "again") == []


def test_a_connector_that_never_ran_is_deleted_wherever_its_broker_is(bare_site: Site) -> None:
    applied(bare_site, {"mqtt": {"host": "nowhere.invalid", "topic": "d/never"}})
    assert bare_site.json("connectors", "delete", "out", "--yes")["notes"] == []


@COSTLY
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_every_quality_of_service_and_both_protocols(
    bare_site: Site, mqtt_broker: MqttBroker, protocol: str, qos: int
) -> None:
    said = [b"%d" % n for n in range(130)]
    append(bare_site, said)
    topic = f"f/{protocol}/{qos}"
    applied(bare_site, place(mqtt_broker, topic, qos=qos, protocol=protocol, progress_every=50, in_flight=10))
    with listening(mqtt_broker, topic) as listener:
        run(bare_site)
        heard = listener.heard(130)
    assert [bytes(one.payload) for one in heard] == said
    assert {one.qos for one in heard} == {qos}


@COSTLY
def test_rules_name_topics_and_give_a_record_several_outputs(bare_site: Site, mosquitto: Mosquitto) -> None:
    """Groups end between records."""
    append(bare_site, [b'{"id": %d, "temp": %d}' % (n, n * 50) for n in range(40)])
    rules = [{"name": "all"}, {"name": "hot", "when": "$.temp > 1000", "to": "r/hot/{$.id}"}]
    applied(bare_site, place(mosquitto, "r/all", progress_every=3), rules=rules)
    with listening(mosquitto, "r/#") as listener:
        run(bare_site)
        topics = [one.topic for one in listener.heard(40 + 19)]
    assert topics[19:23] == ["r/all", "r/all", "r/all", "r/hot/21"]
    assert (topics.count("r/all"), len({*topics})) == (40, 1 + 19)
    [receipt] = bare_site.json("receipts", "out")["receipts"]
    assert (receipt["passed"], receipt["delivered"]) == (40, 59)


def test_prefixes_are_taken_off_and_put_on(bare_site: Site, mosquitto: Mosquitto) -> None:
    """By a rule for each filter, or by the template of the sink."""
    broker, name = {"host": mosquitto.host, "port": mosquitto.port}, f"p{uuid4().hex[:8]}"
    source = {"mqtt": {**broker, "filters": [f"{name}/plant/#", f"{name}/alarms/#"]}}
    rules = [
        {"name": "readings", "filter": f"{name}/plant/#", "to": "sites/north/{topic[3:]}"},
        {"name": "alarms", "filter": f"{name}/alarms/#", "to": "sites/alarms/{topic[3]}/{topic[4:]}"},
    ]
    bare_site.apply("out", {"source": source, "sink": place(mosquitto, "none"), "rules": rules})
    bare_site.apply("other", {"source": source, "sink": place(mosquitto, "other/{header:MQTT_TOPIC[2:]}")})
    for connector in ("out", "other"):
        bare_site.waybill("run", connector, "--engine", "inline")
    with (
        devices(mosquitto) as all_of_them,
        listening(mosquitto, "sites/#") as listener,
        listening(mosquitto, "other/#") as others,
    ):
        for topic in ("plant/kiln/temp", "alarms/north/kiln/7", "plant/x"):
            all_of_them.publish(f"{name}/{topic}", [b"1"])
        all_of_them.wait()
        for connector in ("out", "other"):
            bare_site.waybill("run", connector, "--engine", "inline")
        by_rule, by_template = (sorted(one.topic for one in heard.heard(3)) for heard in (listener, others))
    assert by_rule == ["sites/alarms/north/kiln/7", "sites/north/kiln/temp", "sites/north/x"]
    assert by_template == ["other/alarms/north/kiln/7", "other/plant/kiln/temp", "other/plant/x"]


@COSTLY
def test_empty_and_large_payloads(bare_site: Site, mqtt_broker: MqttBroker) -> None:
    said = [b"", b"x" * 200_000, b"", b"y"]
    append(bare_site, said)
    applied(bare_site, place(mqtt_broker, "f/sizes"))
    with listening(mqtt_broker, "f/sizes") as listener:
        run(bare_site)
        assert listener.payloads(4) == said


@COSTLY
def test_a_megabyte(bare_site: Site, mosquitto: Mosquitto) -> None:
    said = [b"x" * 1_000_000, b"y" * 1_000_000] * 12
    append(bare_site, said)
    applied(bare_site, place(mosquitto, "f/large"))
    with listening(mosquitto, "f/large") as listener:
        run(bare_site)
        assert listener.payloads(24) == said


@COSTLY
def test_from_mqtt_through_rocketmq_and_back(sqlite_site: Site, mqtt_broker: MqttBroker) -> None:
    """Topic, payload, QoS, retain flag and properties are what the device gave."""
    site, name = sqlite_site, f"r{uuid4().hex[:8]}"
    topic = {"name_servers": "${stack:name_servers}", "topic": site.topic, "queues": 1}
    broker = {"host": mqtt_broker.host, "port": mqtt_broker.port}
    site.apply("in", {"source": {"mqtt": {**broker, "filters": [f"{name}/#"]}}, "sink": {"rocketmq": topic}})
    site.waybill("run", "in", "--engine", "inline")
    given = _described()
    with devices(mqtt_broker) as all_of_them:
        all_of_them.publish(f"{name}/a/1", [b"\x00\xff", b""], properties=given)
        all_of_them.publish(f"{name}/b", [b"plain"], 1)
        all_of_them.wait()
    site.waybill("run", "in", "--engine", "inline")
    source = {"name_servers": "${stack:name_servers}", "topics": [site.topic], "start": "earliest"}
    sink = {**broker, "topic": "back/{header:MQTT_TOPIC}"}
    site.apply("out", {"source": {"rocketmq": source}, "sink": {"mqtt": sink}})
    with listening(mqtt_broker, f"back/{name}/#") as listener:
        site.waybill("run", "out", "--engine", "inline")
        first, empty, plain = listener.heard(3)
    assert [(one.topic, bytes(one.payload), one.qos) for one in (first, empty, plain)] == [
        (f"back/{name}/a/1", b"\x00\xff", 1),
        (f"back/{name}/a/1", b"", 1),
        (f"back/{name}/b", b"plain", 1),
    ]
    assert (first.properties.ContentType, first.properties.ResponseTopic) == ("text/x", "answers")
    assert first.properties.CorrelationData == b"\x00\x01"
    assert 3500 < first.properties.MessageExpiryInterval <= 3600
    assert sorted(first.properties.UserProperty) == [("unit", "C"), ("unit", "F"), ("x", "1")]


def test_what_a_broker_keeps_of_a_topic_is_kept_of_its_copy_and_removed_from_it(
    bare_site: Site, mqtt_broker: MqttBroker
) -> None:
    """Also what came when the subscription was there already (MQTT 5, 3.8.3.1: retain as published)."""
    name = f"k{uuid4().hex[:8]}"
    broker = {"host": mqtt_broker.host, "port": mqtt_broker.port}
    source = {"mqtt": {**broker, "filters": [f"{name}/#"]}}
    bare_site.apply("out", {"source": source, "sink": {"mqtt": {**broker, "topic": "kept/{header:MQTT_TOPIC}"}}})
    run(bare_site)
    for said, kept in ([b"first"], [b"first"]), ([b"second", b"third"], [b"third"]), ([b""], []):
        with devices(mqtt_broker) as all_of_them:
            all_of_them.publish(f"{name}/state", said, retain=True)
            all_of_them.publish(f"{name}/event", said)
            all_of_them.wait()
        run(bare_site)
        with listening(mqtt_broker, f"kept/{name}/#") as listener:
            assert [(one.topic, bytes(one.payload)) for one in listener.heard(len(kept))] == [
                (f"kept/{name}/state", payload) for payload in kept
            ]


def _described() -> Any:
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    given = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    given.ContentType, given.ResponseTopic, given.CorrelationData = "text/x", "answers", b"\x00\x01"
    given.MessageExpiryInterval = 3600
    given.UserProperty = [("unit", "C"), ("unit", "F"), ("x", "1")]
    return given


def test_a_deleted_connector_leaves_no_progress_of_its_dead_letters(bare_site: Site, mosquitto: Mosquitto) -> None:
    append(bare_site, [b"no json", b'{"n": 1}'])
    document = {
        "source": {"file": {"path": "in.txt"}},
        "sink": {"file": {"path": "out.txt"}},
        "parse": {"format": "json"},
        "errors": {"tolerance": "all", "sink": place(mosquitto, "d/rejects", progress_topic="rejects")},
    }
    bare_site.apply("out", document)
    run(bare_site)
    assert len(kept_below(mosquitto, "rejects")) == 1
    told = bare_site.json("connectors", "delete", "out", "--yes")
    assert told["notes"] == ["its progress is cleared at the broker: 1 retained messages"]
    assert kept_below(mosquitto, "rejects") == []
