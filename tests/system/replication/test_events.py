"""CloudEvents between topics of a real broker, and from a real MQTT broker: properties and payloads, as a client that
knows nothing of events has them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from connect_core.rocketmq.wire import properties
from tests.faults.kit.topics import fill
from tests.mqtt_brokers import Mosquitto
from tests.mqtt_devices import devices, listening
from tests.site import Site
from tests.system.replication.test_rules import arrived

pytestmark = pytest.mark.server

DATA = {"order": "int64", "price": "decimal(9,2)"}
ORDERS = [b'{"order":9007199254740993,"price":12.50}', b'{"order":7,"price":0.05}']
PARSE = {"format": "cloudevents", "fields": {"data": DATA, "seq": "int32"}}
TYPE = "com.example.order"
OURS = ("TRACE_ON", "MSG_REGION", "CLUSTER", "WAIT", "UNIQ_KEY", "WAYBILL", "INNER_NUM", "BORN_TIMESTAMP", "body")
"""Properties of RocketMQ and of Waybill."""


def whole(number: int, order: bytes) -> bytes:
    event = {"specversion": "1.0", "id": f"e-{number}", "source": "/shop/%C3%A9", "type": TYPE}
    return json.dumps({**event, "seq": number})[:-1].encode() + b', "data": ' + order + b"}"


def without_data(number: int) -> bytes:
    event = json.loads(whole(number, b"1"))
    del event["data"]
    return json.dumps(event).encode()


def copying(site: Site, name: str, topics: tuple[str, str], encode: dict[str, Any], **more: Any) -> None:
    """One topic -> another."""
    site.apply(
        name,
        {
            "source": {"rocketmq": {"name_servers": site.name_servers, "topics": [topics[0]]}},
            "sink": {"rocketmq": {"name_servers": [*site.name_servers], "topic": topics[1], "queues": 1}},
            "parse": PARSE,
            "encode": {"format": "cloudevents", **encode},
            "errors": {"tolerance": "all"},
            **more,
        },
    )
    site.waybill("run", name, "--engine", "inline")


def shown(site: Site, topic: str) -> list[tuple[bytes, dict[str, str]]]:
    """Payloads, and the properties that are neither RocketMQ's nor ours."""
    return [
        (one["body"].encode(), {name: value for name, value in one.items() if name not in OURS})
        for one in arrived(site, topic)
    ]


def test_whole_events_become_data_with_properties_and_whole_again(sqlite_site: Site) -> None:
    site = sqlite_site
    origin, binary, back = (f"{site.topic}-{word}" for word in ("in", "binary", "back"))
    bodies = [*(whole(number, order) for number, order in enumerate(ORDERS)), without_data(2)]
    said = [properties.encode({"KEYS": f"k{n}", "region": "eu"}) for n in range(4)]
    fill(site.name_servers, origin, [[*bodies, b'{"specversion":"0.3"}']], [said])
    copying(site, "to-binary", (origin, binary), {"mode": "binary"})
    attributes = {"CE_specversion": "1.0", "CE_source": "/shop/%C3%A9", "CE_type": TYPE}
    assert shown(site, binary) == [
        (
            order,
            {"KEYS": f"k{n}", "region": "eu", "CE_id": f"e-{n}", "CE_seq": f"{n}", **attributes}
            | ({"CE_contenttype": "application/json"} if order else {}),
        )
        for n, order in enumerate([*ORDERS, b""])
    ]
    [letter] = site.json("dead-letters", "list", "to-binary")["dead_letters"]
    assert (letter["offset"], letter["stage"], letter["message"]) == (
        3,
        "parse",
        "Not of format cloudevents: specversion: not 1.0",
    )
    copying(site, "to-whole", (binary, back), {"mode": "structured"}, filter={"when": "$.seq > 0"})
    [(body, kept), (last, _)] = shown(site, back)
    assert kept == {"KEYS": "k1", "region": "eu", "CE_contenttype": "application/cloudevents+json"}
    assert json.loads(body) == json.loads(bodies[1]) | {"datacontenttype": "application/json"}
    assert body.endswith(b'"data":{"order":7,"price":0.05}}')
    assert json.loads(last) == json.loads(bodies[2])


def user_properties(number: int) -> Any:
    made = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    made.UserProperty = [
        *(("specversion", "1.0"), ("id", f"e-{number}"), ("source", "/shop"), ("type", TYPE), ("seq", f"{number}")),
        *(("unit", "a"), *([("unit", "b")] if number else [])),
    ]
    made.ContentType = "application/json"
    return made


def test_user_properties_of_mqtt_become_properties_of_rocketmq_and_come_back(
    sqlite_site: Site, mosquitto: Mosquitto
) -> None:
    """Also those of a publish that has one of them twice."""
    site, mqtt = sqlite_site, {"host": mosquitto.host, "port": mosquitto.port}
    topic = f"events/{site.topic}"
    site.apply(
        "in",
        {
            "source": {"mqtt": {**mqtt, "filters": [topic]}},
            "sink": {"rocketmq": {"name_servers": site.name_servers, "topic": site.topic, "queues": 1}},
            "parse": PARSE,
            "transforms": [{"set": {"subject": "{topic[1]}"}}],
            "encode": {"format": "cloudevents", "mode": "binary"},
        },
    )
    site.waybill("run", "in", "--engine", "inline")
    with devices(mosquitto) as all_of_them:
        for number, order in enumerate(ORDERS):
            all_of_them.publish(topic, [order], properties=user_properties(number))
        all_of_them.publish(topic, [whole(2, ORDERS[0])])
        all_of_them.wait()
    site.waybill("run", "in", "--engine", "inline")
    found = shown(site, site.topic)
    assert [body for body, _ in found] == [*ORDERS, ORDERS[0]]
    for number, (_, said) in enumerate(found):
        events = {name: value for name, value in said.items() if name.startswith("CE_")}
        assert (events["CE_id"], events["CE_seq"], events["CE_subject"]) == (f"e-{number}", f"{number}", "events")
        assert not {"MQTT_USER_id", "MQTT_CONTENT_TYPE"} & said.keys()
    assert found[0][1]["MQTT_USER_unit"] == "a"
    assert json.loads(found[1][1]["MQTT_USER_PROPERTIES"]) == [["unit", "a"], ["unit", "b"]]
    with listening(mosquitto, f"back/{site.topic}") as listener:
        site.apply(
            "out",
            {
                "source": {"rocketmq": {"name_servers": site.name_servers, "topics": [site.topic]}},
                "sink": {"mqtt": {**mqtt, "topic": f"back/{site.topic}"}},
                "parse": PARSE,
                "encode": {"format": "cloudevents", "mode": "binary"},
            },
        )
        site.waybill("run", "out", "--engine", "inline")
        messages = listener.heard(3)
    assert [one.payload for one in messages] == [*ORDERS, ORDERS[0]]
    for number, one in enumerate(messages):
        pairs = one.properties.UserProperty  # type: ignore[union-attr]
        named = dict(pairs)
        assert (named["id"], named["specversion"], named["seq"], named["type"]) == (
            f"e-{number}",
            "1.0",
            f"{number}",
            TYPE,
        )
        assert one.properties.ContentType == "application/json"  # type: ignore[union-attr]
        assert len(pairs) == len({name for name, _ in pairs}) + (number == 1), "none twice but unit"
