"""One connection of a session over paho: what the pinned version has to do, with real brokers."""

from __future__ import annotations

import time
from importlib.metadata import version
from uuid import uuid4

import pytest

from connect_core.errors import Refused, Unreachable
from connect_core.sdk.records import decode_headers
from connect_core.systems.mqtt.deduplication import Deduplication
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.packets import Packet, Properties
from connect_core.systems.mqtt.records import record_batch
from connect_core.systems.mqtt.session import Session, wait
from connect_core.systems.mqtt.session_state import Reception
from tests.mqtt_brokers import HiveMQ, Mosquitto, MqttBroker
from tests.mqtt_devices import devices
from tests.mqtt_line import MqttLine

pytestmark = pytest.mark.server

COUNT = 5


def options(broker: MqttBroker, **more: object) -> MqttSourceOptions:
    given = {"host": broker.host, "port": broker.port, "filters": ["#"], "uid": uuid4().hex[:12], **more}
    return MqttSourceOptions.model_validate({"connect_timeout_s": 5, **given})


def received(session: Session, count: int, limit_s: float = 60) -> list[Packet]:
    """Nothing of it is acknowledged."""
    until, packets = time.monotonic() + limit_s, list[Packet]()
    while len(packets) < count and time.monotonic() < until:
        wait([session], 0.1)
        packets += session.receive()
    return packets


def taken(session: Session, count: int) -> list[Packet]:
    """Each acknowledged at once: HiveMQ CE sends nothing new before all of what it sent last is acknowledged."""
    packets: list[Packet] = []
    while len(packets) < count and (came := received(session, 1)):
        session.acknowledge([one.packet_id for one in came])
        packets += came
    return packets


def answered(session: Session, pings: int) -> bool:
    until = time.monotonic() + 60
    while session.answers < pings and time.monotonic() < until:
        wait([session], 0.1)
        session.receive()
    return session.answers == pings


def test_the_version_whose_private_names_are_used() -> None:
    assert version("paho-mqtt") == "2.2.0"


def test_what_comes_beside_an_answer_is_kept_for_who_receives(mosquitto: Mosquitto) -> None:
    """As at the end of a quantum, which waits for answers alone: of QoS 0 nothing would come again."""
    topic = f"beside/{uuid4().hex}"
    session = Session(options(mosquitto), f"beside-{uuid4().hex}")
    session.subscribe([topic], 1)
    with devices(mosquitto) as all_of_them:
        all_of_them.publish(topic, [b"one"] * COUNT, 0)
        all_of_them.wait()
    session.acknowledge([])
    until = time.monotonic() + 60
    while not session.answers and time.monotonic() < until:
        assert session.listen(0.1)
    assert len(received(session, COUNT)) == COUNT
    session.close()


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_acknowledgements_go_in_one_burst_and_an_answered_ping_proves_them(
    mqtt_broker: MqttBroker, protocol: str
) -> None:
    """Behind the answer the connection breaks off: nothing of what was acknowledged comes again. The messages wait
    before anybody is there: HiveMQ CE sends together what it has then, and of what comes one after the other the first
    alone until that is acknowledged."""
    given, topic = options(mqtt_broker, protocol=protocol), f"burst/{uuid4().hex}"
    session = Session(given, given.client_id(0))
    assert not session.kept
    session.subscribe([topic], 1)
    session.close()
    with devices(mqtt_broker) as all_of_them:
        all_of_them.publish(topic, [b"same"] * COUNT)
        all_of_them.wait()
    session = Session(given, given.client_id(0))
    assert session.kept
    packets = received(session, COUNT)
    ids = [one.packet_id for one in packets]
    assert (len(ids), len({*ids})) == (COUNT, COUNT)
    assert session.acknowledge(ids[:3])
    assert answered(session, 1)
    broken_off(session)
    again = Session(given, given.client_id(0))
    assert again.kept
    left = received(again, COUNT - 3)
    assert [(one.packet_id, one.dup) for one in left] == [(packet_id, True) for packet_id in ids[3:]]
    assert received(again, 1, limit_s=0.5) == []
    again.give_up()
    assert not Session(given, given.client_id(0)).kept


def test_what_comes_again_and_was_never_written_is_no_repeat(mosquitto: Mosquitto) -> None:
    """The broker sets DUP on it. In the target it is there for the first time."""
    given = options(mosquitto, session_expiry_s=60)
    session = Session(given, "never-written")
    session.subscribe(["never/written"], 1)
    with devices(mosquitto) as all_of_them:
        all_of_them.publish("never/written", [b"x", b"y"])
        received(session, 2)
    broken_off(session)
    session = Session(given, "never-written")
    packets = received(session, 2)
    session.give_up()
    assert all(one.dup for one in packets)
    batch, _ = record_batch(Reception(0, Deduplication(counts_up=True), 100).take(packets))
    assert [decode_headers(one).get("MQTT_DUP") for one in batch.column("headers").to_pylist()] == [None, None]


def broken_off(session: Session) -> None:
    line = session._connection.client.socket()
    assert line is not None
    line.close()


def test_who_sends_what_cannot_be_read_is_told_with_what_is_wrong(mosquitto: Mosquitto) -> None:
    with MqttLine(mosquitto) as line:
        given = options(mosquitto, port=line.port)
        line.slipped_in = bytes([0x34, 6]) + b"\0\1t\0\7\0"  # a PUBLISH with QoS 2
        session = Session(given, given.client_id(0))
        assert received(session, 1, limit_s=5) == []
        lost = session.lost()
        assert isinstance(lost, Unreachable)
        assert "a message that cannot be read: It has QoS 2, which was not asked for" in str(lost)
        again = Session(given, given.client_id(0))
        assert again.lost() is None
        again.give_up()


def test_who_is_taken_over_knows_it(hivemq: HiveMQ) -> None:
    """Mosquitto 2.0.11 closes the connection without a word."""
    given = options(hivemq)
    first = Session(given, given.client_id(0))
    second = Session(given, given.client_id(0))
    received(first, 1, limit_s=1)
    assert (first.open, isinstance(first.lost(), Refused), second.open, second.kept) == (False, True, True, True)
    second.give_up()


@pytest.mark.fault(costly=True)
def test_who_leaves_a_group_with_messages_keeps_the_others_waiting_until_somebody_connects(hivemq: HiveMQ) -> None:
    """HiveMQ CE gives the messages of a shared subscription to one member until that has acknowledged what it got, and
    looks for another one only when somebody connects. Nothing is lost. So no member stays connected for long."""
    given, topic = options(hivemq), f"group/{uuid4().hex}"
    shared = [f"$share/{uuid4().hex}/{topic}"]
    members = [Session(given, given.client_id(number)) for number in range(2)]
    for member in members:
        member.subscribe(shared, 1)
    with devices(hivemq) as all_of_them:
        all_of_them.publish(topic, [b"first"])
        all_of_them.wait()
        held = [received(member, 1, limit_s=1) for member in members]
        leaving, staying = members if held[0] else members[::-1]
        [first] = [packet for packets in held for packet in packets]
        all_of_them.publish(topic, [b"more"] * COUNT)
        all_of_them.wait()
    leaving.unsubscribe(shared)
    leaving.acknowledge([first.packet_id])
    assert received(staying, 1, limit_s=2) == []
    staying.close()
    again = Session(given, given.client_id(members.index(staying)))
    assert len(taken(again, COUNT)) == COUNT
    for member in (leaving, again):
        member.give_up()


def test_what_mqtt_5_says_beside_a_message(mqtt_broker: MqttBroker) -> None:
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties as PahoProperties

    given = options(mqtt_broker)
    session = Session(given, given.client_id(0))
    session.subscribe(["beside"], 1)
    said = PahoProperties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    said.ContentType, said.ResponseTopic, said.CorrelationData = "\ufefftext/plain", "answers", b"\x00\x01"
    said.PayloadFormatIndicator = 1
    said.UserProperty = [("color", "red"), ("color", "blue"), ("\ufeff", "a mark that paho does not read")]
    with devices(mqtt_broker) as all_of_them:
        all_of_them.publish("beside", [b"x"], properties=said)
        all_of_them.wait()
    [packet] = received(session, 1)
    users = (("color", "red"), ("color", "blue"), ("\ufeff", "a mark that paho does not read"))
    assert packet.properties == Properties("\ufefftext/plain", "answers", b"\x00\x01", 1, None, users)
    session.give_up()


def test_large_messages_are_received_a_few_at_a_time(mosquitto: Mosquitto) -> None:
    given = options(mosquitto)
    session = Session(given, given.client_id(0))
    session.subscribe(["large"], 1)
    with devices(mosquitto) as all_of_them:
        all_of_them.publish("large", [b"x" * 1_000_000] * 40)
        all_of_them.wait()
    sizes = list[int]()
    while sum(sizes) < 40 and (came := received(session, 1)):
        session.acknowledge([one.packet_id for one in came])
        sizes.append(len(came))
    assert (sum(sizes), max(sizes) <= 17) == (40, True)
    session.give_up()


# paho leaves the socket of a handshake that fails to the garbage collector.
