"""What breaks while records are published to an MQTT broker: workers and drivers that are killed, lines that are cut at
any packet, brokers that are restarted. Nothing is lost, and no more is repeated than the receipts tell of.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pytest

from connect_core.errors import Fenced, Unreachable
from connect_core.replication.driver.ledger_restore import seen_files
from connect_core.rocketmq import Client, ClientOptions, encode_batch
from connect_core.sdk.values import LIVE
from connect_core.systems.mqtt.publisher import Publisher
from connect_core.systems.mqtt.sink_options import MqttSinkOptions
from tests.faults.kit import processes
from tests.faults.kit.fixtures import MakeSite
from tests.faults.kit.journeys import TRY_AGAIN
from tests.faults.kit.mqtt_proxy import PUBACK, PUBCOMP, PUBLISH, PUBREC, PUBREL, MqttProxy, Strike
from tests.faults.kit.outlet import COUNT, GROUP, MORE, NAME, Outlet
from tests.faults.kit.processes import ended, stopped_at, wait_for
from tests.faults.rows import FaultRow
from tests.mqtt_brokers import MqttBroker
from tests.mqtt_devices import Listener, devices, listening
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True)]

KINDS = ["mosquitto", "hivemq"]
POINTS = {
    "planned": "the driver, before anything is sent",
    "lane-started": "the worker, before anything is sent",
    "batch-written": "the worker, behind a batch",
    "before-receipt": "the worker, all sent, before its receipt",
    "executed": "the driver, after the receipt, before settle",
    "settled": "the driver, after settle",
}


@pytest.fixture
def topic() -> str:
    return f"faults/{uuid4().hex[:8]}"


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> MqttBroker:
    found: MqttBroker = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def listener(broker: MqttBroker, topic: str) -> Iterator[Listener]:
    with listening(broker, topic) as made:
        yield made


@pytest.fixture
def proxy(broker: MqttBroker) -> Iterator[MqttProxy]:
    made = MqttProxy(broker.host, broker.port)
    yield made
    made.close()


def begun(row: FaultRow, site: Site, broker: MqttBroker, what: str) -> Site:
    row.describe(what, where=f"file → MQTT ({broker.kind})", database="SQLite")
    return site


@pytest.mark.parametrize("broker", KINDS, indirect=True)
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_a_step(
    broker: MqttBroker, point: str, site_on: MakeSite, listener: Listener, topic: str, row: FaultRow
) -> None:
    site = begun(row, site_on("SQLite"), broker, f"SIGKILL of {POINTS[point]}")
    outlet = Outlet(site, broker, listener, topic)
    site.fault(point, "kill")
    code = ended(outlet.start())
    row.strikes()
    outlet.deaths += 1
    assert code in (-signal.SIGKILL, *TRY_AGAIN), "the fault has struck"
    outlet.write(MORE)
    outlet.run()
    row.moves_again()
    outlet.run()
    outlet.check(row)


@pytest.mark.parametrize("broker", KINDS, indirect=True)
@pytest.mark.parametrize("action", ["kill before", "kill behind"])
@pytest.mark.parametrize("at", ["first of a group", "within a group", "progress"])
def test_a_kill_at_a_publish(
    broker: MqttBroker,
    at: str,
    action: Any,
    site_on: MakeSite,
    proxy: MqttProxy,
    listener: Listener,
    topic: str,
    row: FaultRow,
    seeded: random.Random,
) -> None:
    """Twice, so that attempts that die one after the other add up. The first PUBLISH of all is the progress that is
    kept before anything is planned; an attempt that takes over begins with one too."""
    site = begun(row, site_on("SQLite"), broker, f"SIGKILL of the worker, {action.split()[1]} a publish ({at}), twice")
    outlet = Outlet(site, proxy, listener, topic)
    within = GROUP + seeded.randrange(2, GROUP)
    passes = {"first of a group": GROUP + 1, "within a group": within, "progress": 2 * GROUP + 1}
    outlet.struck(row, proxy.set(Strike(PUBLISH, action, 1 + passes[at])))
    outlet.struck(row, proxy.set(Strike(PUBLISH, action, passes[at])))
    outlet.run()
    row.moves_again()
    outlet.run()
    outlet.check(row)


@pytest.mark.parametrize("broker", KINDS, indirect=True)
@pytest.mark.parametrize(
    ("packet", "qos"),
    [(PUBLISH, 1), (PUBACK, 1), (PUBLISH, 2), (PUBREC, 2), (PUBREL, 2), (PUBCOMP, 2)],
    ids=["PUBLISH-1", "PUBACK", "PUBLISH-2", "PUBREC", "PUBREL", "PUBCOMP"],
)
@pytest.mark.parametrize("action", ["cut before", "cut within", "cut behind"])
def test_a_line_that_is_cut_at_a_packet(
    broker: MqttBroker,
    packet: int,
    qos: int,
    action: Any,
    site_on: MakeSite,
    proxy: MqttProxy,
    listener: Listener,
    topic: str,
    row: FaultRow,
    seeded: random.Random,
) -> None:
    name = {PUBLISH: "PUBLISH", PUBACK: "PUBACK", PUBREC: "PUBREC", PUBREL: "PUBREL", PUBCOMP: "PUBCOMP"}[packet]
    words = action.replace("cut ", "")
    site = begun(row, site_on("SQLite"), broker, f"the line is cut {words} a {name} of QoS {qos}")
    outlet = Outlet(site, proxy, listener, topic, qos=qos)
    outlet.struck(row, proxy.set(Strike(packet, action, seeded.randrange(GROUP, 3 * GROUP))))
    outlet.run()
    row.moves_again()
    outlet.run()
    outlet.check(row)


@pytest.mark.parametrize("broker", KINDS, indirect=True)
@pytest.mark.parametrize("sign", ["SIGTERM", "SIGKILL"])
def test_a_broker_that_is_restarted(
    broker: MqttBroker, sign: str, site_on: MakeSite, listener: Listener, topic: str, row: FaultRow
) -> None:
    """It saves every change, so it has what it has acknowledged."""
    site = begun(row, site_on("SQLite"), broker, f"{sign} to the broker while it is published to")
    outlet = Outlet(site, broker, listener, topic)
    outlet.run()
    outlet.write(COUNT)
    site.fault("batch-written", "stop")
    driver = outlet.start()
    there = stopped_at(site, "batch-written", driver)
    assert there is not None, ended(driver)
    row.strikes()
    outlet.deaths += 1
    (broker.kill if sign == "SIGKILL" else broker.stop)()
    back = threading.Thread(target=broker.start)
    back.start()
    processes.go_on(there)
    ended(driver)
    back.join()
    outlet.run()
    row.moves_again()
    outlet.run()
    outlet.check(row)


@pytest.mark.parametrize("broker", ["mosquitto"], indirect=True)
def test_a_slow_broker_makes_progress_in_each_quantum(
    broker: MqttBroker, site_on: MakeSite, proxy: MqttProxy, listener: Listener, topic: str, row: FaultRow
) -> None:
    site = begun(row, site_on("SQLite"), broker, "a broker that takes 100 messages a second")
    outlet = Outlet(site, proxy, listener, topic)
    row.strikes()
    proxy.seconds_a_packet = 0.01
    outlet.run()
    row.moves_again()
    proxy.seconds_a_packet = 0.0
    outlet.check(row)
    assert row.repeated == 0
    assert len(outlet.receipts()) > 1


@pytest.mark.parametrize("broker", KINDS, indirect=True)
def test_a_stranger_who_takes_the_client_id(
    broker: MqttBroker, site_on: MakeSite, proxy: MqttProxy, listener: Listener, topic: str, row: FaultRow
) -> None:
    """The run ends; the next one takes the id back from the stranger, who stays."""
    site = begun(row, site_on("SQLite"), broker, "a stranger connects with the client id of a partition")
    outlet = Outlet(site, proxy, listener, topic)
    outlet.run()
    outlet.write(COUNT)
    uid = outlet.uid()
    with listening(broker, f"waybill/{uid}/#") as kept:
        [partition_id] = {one.topic.split("/")[2] for one in kept.heard(1)}
    options = MqttSinkOptions(host=broker.host, port=broker.port, topic=topic, uid=uid)
    proxy.seconds_a_packet = 0.005
    driver = outlet.start()
    wait_for(lambda: len(listener.messages) > COUNT + 2 * GROUP, "messages of the sink")
    row.strikes()
    with closing(Publisher(options, options.sink_client_id(LIVE, partition_id))):
        outlet.deaths += 1
        assert ended(driver) in (Fenced.exit_code, Unreachable.exit_code)
        proxy.seconds_a_packet = 0.0
        outlet.run()
        row.moves_again()
    outlet.run()
    outlet.check(row)


@pytest.mark.parametrize("broker", KINDS, indirect=True)
def test_empty_messages_among_others_on_a_line_that_is_cut(
    broker: MqttBroker,
    site_on: MakeSite,
    proxy: MqttProxy,
    listener: Listener,
    topic: str,
    row: FaultRow,
    seeded: random.Random,
) -> None:
    """An empty one stands behind each with a number: so it is known which of them have come."""
    site = begun(row, site_on("SQLite"), broker, "the line is cut behind a PUBLISH, half of them empty")
    outlet = Outlet(site, proxy, listener, topic)
    outlet.run()
    outlet.write(COUNT, b"\n")
    outlet.struck(row, proxy.set(Strike(PUBLISH, "cut behind", seeded.randrange(GROUP, 3 * GROUP))))
    outlet.run()
    row.moves_again()
    outlet.run()
    heard = listener.payloads(3 * COUNT, quiet_s=1.0)[COUNT:]
    followed = {int(one) for one, next_one in pairwise(heard) if one and not next_one}
    told = sum(one["possible_duplicates"] for one in outlet.receipts())
    row.lost, row.repeated = COUNT - len(followed), len(heard) - 2 * COUNT
    row.reordered = row.duplicates = 0
    row.condition = f"reported: {told} possible duplicates" if row.repeated else ""
    assert row.lost == 0
    assert row.repeated <= told <= GROUP


@pytest.mark.parametrize("broker", ["mosquitto"], indirect=True)
def test_a_megabyte_that_is_cut_in_the_middle(
    broker: MqttBroker, site_on: MakeSite, proxy: MqttProxy, listener: Listener, topic: str, row: FaultRow
) -> None:
    site = begun(row, site_on("SQLite"), broker, "the line is cut in the middle of a message of 1 MB")
    outlet = Outlet(site, proxy, listener, topic)
    outlet.run()
    outlet.write(20, b" " + b"x" * 1_000_000)
    outlet.struck(row, proxy.set(Strike(PUBLISH, "cut within", 12)))
    outlet.run()
    row.moves_again()
    outlet.check(row)


@pytest.mark.parametrize("broker", ["mosquitto"], indirect=True)
def test_progress_that_the_broker_has_lost(
    broker: MqttBroker, site_on: MakeSite, proxy: MqttProxy, listener: Listener, topic: str, row: FaultRow
) -> None:
    """More than a group is repeated, all of it told."""
    site = begun(row, site_on("SQLite"), broker, "the retained progress is cleared while a range is open")
    outlet = Outlet(site, proxy, listener, topic)
    outlet.struck(row, proxy.set(Strike(PUBLISH, "kill behind", 3 * GROUP + 20)))
    _clear(broker, f"waybill/{outlet.uid()}/#")
    outlet.run()
    row.moves_again()
    outlet.deaths += COUNT // GROUP
    outlet.check(row)
    assert (row.repeated or 0) > 3 * GROUP


def _clear(broker: MqttBroker, topic_filter: str) -> None:
    with listening(broker, topic_filter) as kept, devices(broker) as all_of_them:
        for one in kept.heard(1):
            all_of_them.publish(one.topic, [b""], retain=True)
        all_of_them.wait()


@pytest.mark.parametrize("broker", ["mosquitto"], indirect=True)
def test_a_restored_ledger_goes_on_behind_what_the_broker_has(
    broker: MqttBroker, site_on: MakeSite, listener: Listener, topic: str, row: FaultRow
) -> None:
    site = begun(row, site_on("SQLite"), broker, "the ledger is restored from a backup, and this was not noticed")
    outlet = Outlet(site, broker, listener, topic)
    outlet.run()
    stored = site.home / "ledger.db"
    backup = stored.read_bytes()
    outlet.write(MORE)
    outlet.run()
    row.strikes()
    for left in site.home.glob("ledger.db*"):
        left.unlink()
    stored.write_bytes(backup)
    for seen in seen_files(site.home):
        seen.unlink()
    outlet.write(MORE)
    assert "more than the ledger knows" in site.waybill("run", NAME, "--engine", "inline", code=5)
    site.waybill("db", "restored")
    outlet.run()
    outlet.run()
    row.moves_again()
    outlet.check(row)
    assert row.repeated == 0


@pytest.mark.parametrize("broker", ["mosquitto"], indirect=True)
def test_from_rocketmq_through_spark(
    broker: MqttBroker,
    sqlite_site: Site,
    proxy: MqttProxy,
    topic: str,
    row: FaultRow,
) -> None:
    site = begun(row, sqlite_site, broker, "SIGKILL of the worker behind a publish")
    row.where = f"RocketMQ → MQTT ({broker.kind})"
    bodies = [b"%d" % n for n in range(COUNT)]
    with Client(ClientOptions(tuple(site.name_servers))) as client:
        [queue] = client.topics.create(site.topic, 1)
        sender = client.sender(queue)
        sender.submit(encode_batch(bodies, [b""] * COUNT), deadline=time.monotonic() + 5)
        sender.finish(deadline=time.monotonic() + 5)
    source = {"name_servers": "${stack:name_servers}", "topics": [site.topic], "start": "earliest"}
    target = {"host": proxy.host, "port": proxy.port, "topic": topic, "progress_every": GROUP}
    site.apply(NAME, {"source": {"rocketmq": source}, "sink": {"mqtt": target}})
    with listening(broker, topic) as listener:
        strike = proxy.set(Strike(PUBLISH, "kill behind", 2 * GROUP + 30))
        driver = site.start("run", NAME)
        assert strike.struck.wait(60), ended(driver)
        row.strikes()
        ended(driver)
        while (code := ended(site.start("run", NAME))) in TRY_AGAIN:
            pass
        assert code == 0
        row.moves_again()
        times = Counter(listener.payloads(COUNT, quiet_s=1.0))
    told = sum(one["possible_duplicates"] for one in site.json("receipts", NAME)["receipts"])
    row.lost, row.repeated, row.reordered = COUNT - len(times), sum(times.values()) - len(times), 0
    row.condition = f"reported: {told} possible duplicates"
    assert row.lost == 0
    assert 0 < row.repeated <= told <= GROUP


@pytest.mark.parametrize("broker", ["mosquitto"], indirect=True)
def test_from_mqtt_to_mqtt(
    broker: MqttBroker, site_on: MakeSite, proxy: MqttProxy, listener: Listener, topic: str, row: FaultRow
) -> None:
    """Nothing is acknowledged before it is settled: all that was sent comes again, and is told."""
    site = begun(row, site_on("SQLite"), broker, "SIGKILL of the worker behind a publish")
    row.where = f"MQTT → MQTT ({broker.kind})"
    incoming = {"host": broker.host, "port": broker.port, "filters": [f"{topic}/in"]}
    outgoing = {"host": proxy.host, "port": proxy.port, "topic": topic, "progress_every": GROUP}
    site.settings |= {"WAYBILL_QUANTUM_S": "3s", "WAYBILL_LINGER_S": "400ms"}
    site.apply(NAME, {"source": {"mqtt": incoming}, "sink": {"mqtt": outgoing}})
    site.waybill("run", NAME, "--engine", "inline")
    with devices(broker) as all_of_them:
        all_of_them.publish(f"{topic}/in", [b"%d" % n for n in range(COUNT)])
        all_of_them.wait()
    strike = proxy.set(Strike(PUBLISH, "kill behind", 2 * GROUP + 30))
    driver = site.start("run", NAME, "--engine", "inline")
    assert strike.struck.wait(60), ended(driver)
    row.strikes()
    ended(driver)
    for _ in range(2):
        site.waybill("run", NAME, "--engine", "inline")
    row.moves_again()
    times = Counter(listener.payloads(COUNT, quiet_s=1.0))
    told = sum(one["possible_duplicates"] for one in site.json("receipts", NAME)["receipts"])
    row.lost, row.repeated, row.reordered = COUNT - len(times), sum(times.values()) - len(times), 0
    row.condition = f"reported: {told} possible duplicates"
    assert row.lost == 0
    assert 2 * GROUP < row.repeated <= told
