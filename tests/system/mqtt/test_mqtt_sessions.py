"""Several sessions of one task, with real brokers: one that fails stops no other (delivery rule 26)."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from connect_core.errors import ConfigError, Refused, Unreachable
from connect_core.systems.mqtt.session import Session
from tests.faults.kit.processes import ended, wait_for
from tests.faults.kit.writers import beside
from tests.mqtt_brokers import Mosquitto, MqttBroker
from tests.mqtt_devices import devices
from tests.site import Site
from tests.system.mqtt.test_mqtt_source import session_of

pytestmark = pytest.mark.server

AWAY, REFUSED = 3, 6
TOO_DEEP = "a/" * 250 + "a"
"""More levels than Mosquitto takes: it ends the connection of who subscribes to that."""


def applied(site: Site, broker: MqttBroker, *filters: str) -> None:
    site.settings |= {"WAYBILL_QUANTUM_S": "3s", "WAYBILL_LINGER_S": "300ms"}
    source = {"host": broker.host, "port": broker.port, "filters": list(filters), "sessions": len(filters)}
    site.apply("in", {"source": {"mqtt": source}, "sink": {"file": {"path": "out.txt"}}})


def run(site: Site, *words: str, code: int = 0) -> str:
    return site.waybill("run", "in", "--engine", "inline", *words, code=code)


def lines(site: Site) -> list[bytes]:
    out = site.folder / "out.txt"
    return out.read_bytes().splitlines() if out.exists() else []


def publish(broker: MqttBroker, **said: list[bytes]) -> None:
    with devices(broker) as all_of_them:
        for topic, payloads in said.items():
            all_of_them.publish(f"d/{topic}", payloads)
        all_of_them.wait()


def aside(site: Site, *words: str) -> dict[str, str]:
    told: dict[str, Any] = site.json(*words)
    parts = told["aside"] if "aside" in told else told["partitions"]
    return {one["partition"]: one["reason"] for one in parts if one["state"] != "active"}


@pytest.fixture
def own_mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    broker = Mosquitto(tmp_path / "broker")
    broker.start()
    yield broker
    broker.kill()


@contextmanager
def stranger(site: Site, broker: MqttBroker) -> Iterator[None]:
    """Connects with the first session's client id, again and again, and takes nothing. It comes again too when the
    connector has taken the session back before it was connected."""
    first = session_of(site, broker, 0)
    options, client_id = first._options, first._client_id
    first.close()

    def connect() -> None:
        with suppress(Refused, Unreachable):
            Session(options, client_id).close()

    with beside(connect, 0.2):
        yield


def test_a_session_that_is_taken_over_stops_no_other(bare_site: Site, mqtt_broker: MqttBroker) -> None:
    """In a window, by somebody who comes again and again; what he was given comes again, since he keeps none of it."""
    applied(bare_site, mqtt_broker, "d/left", "d/right")
    run(bare_site)
    staying = bare_site.start("run", "in", "--engine", "inline", "--window", "5m")
    turn = 0
    try:
        with stranger(bare_site, mqtt_broker):
            while "session-0" not in aside(bare_site, "connectors", "show", "in"):
                assert staying.poll() is None, "it was over before anybody was put aside"
                publish(mqtt_broker, right=[b"right %d" % turn])
                turn += 1
        publish(mqtt_broker, left=[b"left"], right=[b"behind"])
        wait_for(lambda: b"behind" in lines(bare_site), "what came to the other session, in the same window")
        bare_site.waybill("connectors", "pause", "in")
        assert ended(staying) in (AWAY, REFUSED)
        bare_site.waybill("connectors", "resume", "in")
    finally:
        staying.kill()
    run(bare_site)
    run(bare_site)
    assert sorted(lines(bare_site)) == sorted([b"behind", b"left", *(b"right %d" % n for n in range(turn))])
    assert aside(bare_site, "connectors", "show", "in") == {}


def test_a_session_whose_filter_the_broker_does_not_take_stops_no_other(bare_site: Site, mosquitto: Mosquitto) -> None:
    applied(bare_site, mosquitto, TOO_DEEP, "d/right")
    for word in (b"one", b"two"):
        assert "session-0" in run(bare_site, code=AWAY)
        publish(mosquitto, right=[word])
    run(bare_site, "--window", "3s", code=AWAY)
    assert lines(bare_site) == [b"one", b"two"]
    assert list(aside(bare_site, "connectors", "show", "in")) == ["session-0"]


def test_a_session_that_is_not_let_in_stops_no_other(bare_site: Site, own_mosquitto: Mosquitto) -> None:
    """The broker lets in only who has the other one's client id."""
    applied(bare_site, own_mosquitto, "d/left", "d/right")
    run(bare_site)
    publish(own_mosquitto, left=[b"left"], right=[b"right"])
    uid = bare_site.json("connectors", "show", "in")["uid"]
    prefixed(own_mosquitto, {"clientid_prefixes": f"waybill-{uid}-1"})
    assert "session-0" in run(bare_site, code=REFUSED)
    assert lines(bare_site) == [b"right"]
    for words in (("connectors", "show", "in"), ("plan", "in")):
        reasons = aside(bare_site, *words)
        assert list(reasons) == ["session-0"]
        assert "refuses the connection" in reasons["session-0"]
    [lag] = bare_site.json("lag", "in")["connectors"]
    assert [one["partition"] for one in lag["aside"]] == ["session-0"]
    prefixed(own_mosquitto, {})
    run(bare_site)
    assert sorted(lines(bare_site)) == [b"left", b"right"]
    assert aside(bare_site, "connectors", "show", "in") == {}


def prefixed(broker: Mosquitto, settings: dict[str, str]) -> None:
    """Started again with these settings beside its own; its sessions are kept. Our own look at it has another name, so
    they are made known to it when it runs."""
    usual = dict(broker.settings)
    broker.settings = {**usual, **settings}
    broker._launch()
    broker.settings = usual
    assert broker.process is not None
    os.kill(broker.process.pid, signal.SIGHUP)
    time.sleep(1)


def test_sessions_stay_connected_whichever_of_them_is_ahead(sqlite_site: Site, mosquitto: Mosquitto) -> None:
    """Each stays with its worker from one quantum to the next: of QoS 0 nothing is lost in between."""
    site = sqlite_site
    site.settings |= {"WAYBILL_QUANTUM_S": "500ms", "WAYBILL_LINGER_S": "300ms", "WAYBILL_LANES": "2"}
    source = {"host": mosquitto.host, "port": mosquitto.port, "filters": ["d/left", "d/right"], "sessions": 2, "qos": 0}
    sink = {"rocketmq": {"name_servers": "${stack:name_servers}", "topic": site.topic, "queues": 1}}
    site.apply("in", {"source": {"mqtt": source}, "sink": sink})
    run(site)
    staying = site.start("run", "in", "--engine", "inline", "--window", "120s")
    said = [b"%d" % number for number in range(600)]
    try:
        with devices(mosquitto) as all_of_them:

            def arrives() -> bool:
                for side in ("left", "right"):
                    all_of_them.publish(f"d/{side}", [side.encode()], 0)
                return {b"left", b"right"} <= set(site.messages())

            wait_for(arrives, "sessions that are connected")
            for number, one in enumerate(said):
                ahead, behind = ("d/left", "d/right") if number // 200 != 1 else ("d/right", "d/left")
                all_of_them.publish(ahead, [one], 0)
                all_of_them.publish(behind, [b"beside"] if number % 4 == 0 else [], 0)
                time.sleep(0.01)
            wait_for(lambda: said[-1] in site.messages(), "the last one")
        site.waybill("connectors", "pause", "in")
        assert ended(staying) == 0
    finally:
        staying.kill()
    there = site.messages()
    assert set(said) <= set(there)
    assert there.count(b"beside") == 150


def test_filters_of_which_one_has_all_topics_bring_a_message_once(bare_site: Site, mosquitto: Mosquitto) -> None:
    """Mosquitto sends one copy for each subscription (MQTT 5, 3.3.4)."""
    source = {"host": mosquitto.host, "port": mosquitto.port, "filters": ["d/right", "d/#", "d/+"]}
    bare_site.apply("in", {"source": {"mqtt": source}, "sink": {"file": {"path": "out.txt"}}})
    run(bare_site)
    publish(mosquitto, right=[b"one", b"two"], left=[b"three"])
    run(bare_site)
    assert lines(bare_site) == [b"one", b"two", b"three"]


def test_what_a_broker_queues_of_qos_0_is_not_thrown_away(bare_site: Site, tmp_path: Path) -> None:
    """Whoever else connects to the session would take it out of the queue."""
    broker = Mosquitto(tmp_path / "broker", settings={"queue_qos0_messages": "true"})
    broker.start()
    try:
        applied(bare_site, broker, "d/#")
        run(bare_site)
        said = [b"%d" % n for n in range(50)]
        with devices(broker) as all_of_them:
            all_of_them.publish("d/zero", said, 0)
            all_of_them.wait()
        time.sleep(0.5)
        run(bare_site)
        assert lines(bare_site) == said
    finally:
        broker.kill()


@pytest.mark.fault(costly=True)
def test_a_window_longer_than_a_session_is_kept_loses_none(bare_site: Site, mosquitto: Mosquitto) -> None:
    source = {"host": mosquitto.host, "port": mosquitto.port, "filters": ["d/#"], "session_expiry_s": 60}
    bare_site.settings |= {"WAYBILL_QUANTUM_S": "3s", "WAYBILL_LINGER_S": "300ms"}
    bare_site.apply("in", {"source": {"mqtt": source}, "sink": {"file": {"path": "out.txt"}}})
    run(bare_site, "--window", "100s")
    publish(mosquitto, right=[b"one"])
    run(bare_site)
    assert lines(bare_site) == [b"one"]


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_a_broker_that_grants_a_lower_qos_is_refused_before_anything_is_moved(
    bare_site: Site, tmp_path: Path, protocol: str
) -> None:
    """What comes with QoS 0 while no run is connected is lost. In 3.1.1 only the answer to SUBSCRIBE says it."""
    broker = Mosquitto(tmp_path / "broker", listeners="max_qos 0")
    broker.start()
    try:
        source = {"host": broker.host, "port": broker.port, "filters": ["d/#"], "protocol": protocol}
        document = {"source": {"mqtt": source}, "sink": {"file": {"path": "out.txt"}}}
        bare_site.apply("in", document)
        said = run(bare_site, code=ConfigError.exit_code)
        assert "QoS 0" in said
        assert "qos is 1" in said
        assert lines(bare_site) == []
        document["source"]["mqtt"]["qos"] = 0
        bare_site.apply("in", document)
        run(bare_site)
    finally:
        broker.kill()


def test_a_broker_that_goes_away_is_told_once_and_for_all(bare_site: Site, own_mosquitto: Mosquitto) -> None:
    applied(bare_site, own_mosquitto, "d/left", "d/right")
    run(bare_site)
    own_mosquitto.kill()
    assert "partitions were put aside" not in run(bare_site, code=AWAY)
    own_mosquitto.start()
    publish(own_mosquitto, left=[b"left"], right=[b"right"])
    run(bare_site)
    assert sorted(lines(bare_site)) == [b"left", b"right"]
