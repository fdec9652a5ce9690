"""The MQTT source with real brokers: the example of its page, sessions, what stops a run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from connect_core.rocketmq.wire.properties import decode
from connect_core.sdk.testing.content import VALUES
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.probing import broker_facts
from connect_core.systems.mqtt.session import Session
from tests.faults.kit.processes import ended, wait_for
from tests.mqtt_brokers import FOR_THROUGHPUT, HiveMQ, Mosquitto, MqttBroker
from tests.mqtt_devices import devices
from tests.mqtt_line import MqttLine
from tests.pages import example_done
from tests.site import Site

pytestmark = pytest.mark.server
WINDOW = MqttSourceOptions.model_fields["receive_maximum"].default
COSTLY = pytest.mark.fault(costly=True)


def test_the_example_of_the_page(bare_site: Site, mosquitto: Mosquitto) -> None:
    example_done("mqtt-source.md", bare_site, "devices-in.yaml", mosquitto.port)
    assert (bare_site.folder / "states.txt").read_bytes() == b"on\n"


def place(broker: MqttBroker, **more: Any) -> dict[str, Any]:
    return {"mqtt": {"host": broker.host, "port": broker.port, "filters": ["d/#"], **more}}


def applied(site: Site, source: dict[str, Any], name: str = "in") -> None:
    site.settings |= {"WAYBILL_QUANTUM_S": "3s", "WAYBILL_LINGER_S": "300ms"}
    site.apply(name, {"source": source, "sink": {"file": {"path": "out.txt"}}})


def run(site: Site, *words: str, code: int = 0) -> str:
    return site.waybill("run", "in", "--engine", "inline", *words, code=code)


def lines(site: Site) -> list[bytes]:
    out = site.folder / "out.txt"
    return out.read_bytes().splitlines() if out.exists() else []


@pytest.mark.parametrize(
    ("protocol", "qos"),
    [("5", 1), pytest.param("5", 0, marks=COSTLY), pytest.param("3.1.1", 2, marks=COSTLY)],
)
def test_what_came_while_nobody_was_connected_arrives_in_order(
    bare_site: Site, mosquitto: Mosquitto, protocol: str, qos: int
) -> None:
    """Of QoS 0 a broker keeps nothing; Mosquitto can be told to."""
    applied(bare_site, place(mosquitto, filters=[f"d/{protocol}/{qos}"], protocol=protocol))
    run(bare_site)
    said = [b"%d" % n for n in range(50)]
    with devices(mosquitto) as all_of_them:
        all_of_them.publish(f"d/{protocol}/{qos}", said, qos)
        all_of_them.wait()
    run(bare_site)
    run(bare_site)
    assert lines(bare_site) == ([] if qos == 0 else said)


def test_a_window_writes_what_comes(bare_site: Site, mosquitto: Mosquitto) -> None:
    """Of QoS 0, too, where quanta end while messages come: the session stays connected from one to the next."""
    applied(bare_site, place(mosquitto, filters=["d/window", "d/zero"]))
    bare_site.settings["WAYBILL_QUANTUM_S"] = "500ms"
    run(bare_site)
    staying = bare_site.start("run", "in", "--engine", "inline", "--window", "120s")
    wait_for(lambda: "running" in bare_site.waybill("runs", "in"), "a run at work")
    assert [one["lag"] for one in bare_site.json("plan", "in")["partitions"]] == [0], "it does not disturb the run"
    with devices(mosquitto) as all_of_them:
        all_of_them.publish("d/window", [b"one"])
        wait_for(lambda: b"one" in lines(bare_site), "a session that is connected")
        for _ in range(300):
            all_of_them.publish("d/window", [b"one"])
            all_of_them.publish("d/zero", [b"zero"], 0)
            time.sleep(0.01)
        all_of_them.wait()
        wait_for(lambda: len(lines(bare_site)) >= 301 + 300, "all of them")
    bare_site.waybill("connectors", "pause", "in")
    assert ended(staying) == 0
    bare_site.waybill("connectors", "resume", "in")
    for _ in range(2):
        run(bare_site)
    there = lines(bare_site)
    assert (there.count(b"one"), there.count(b"zero")) == (301, 300)


@COSTLY
def test_retained_messages_come_once(bare_site: Site, mosquitto: Mosquitto) -> None:
    with devices(mosquitto) as all_of_them:
        all_of_them.publish("d/retained", [b"kept"], retain=True)
        all_of_them.wait()
    applied(bare_site, place(mosquitto, filters=["d/retained"]))
    for _ in range(3):
        run(bare_site)
    assert lines(bare_site) == [b"kept"]


@COSTLY
def test_empty_and_large_payloads(bare_site: Site, mosquitto: Mosquitto) -> None:
    applied(bare_site, place(mosquitto, filters=["d/sizes"]))
    run(bare_site)
    said = [b"", b"x" * 1_000_000, b""]
    with devices(mosquitto) as all_of_them:
        all_of_them.publish("d/sizes", said)
        all_of_them.wait()
    run(bare_site)
    assert lines(bare_site) == said


@COSTLY
def test_a_session_that_the_broker_lost_is_a_gap(bare_site: Site, tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path / "broker", settings={"persistence": "false"})
    broker.start()
    try:
        applied(bare_site, place(broker))
        run(bare_site)
        with devices(broker) as all_of_them:
            all_of_them.publish("d/1", [b"a"])
            all_of_them.wait()
        run(bare_site)
        broker.restart()
        assert "has lost the session" in run(bare_site, code=5)
        assert "has lost the session" in run(bare_site, code=5)
        run(bare_site, "--accept-gaps")
        with devices(broker) as all_of_them:
            all_of_them.publish("d/1", [b"b"])
            all_of_them.wait()
        run(bare_site)
        assert lines(bare_site) == [b"a", b"b"]
        assert len(bare_site.json("gaps", "in")["gaps"]) == 1
    finally:
        broker.kill()


def session_of(site: Site, broker: MqttBroker, number: int, name: str = "in", *, witness: bool = False) -> Session:
    """The connector's own, or the one beside it, taken over."""
    uid = site.json("connectors", "show", name)["uid"]
    place = {"host": broker.host, "port": broker.port, "filters": ["#"], "uid": uid}
    options = MqttSourceOptions.model_validate(place)
    return Session(options, options.witness_id(number) if witness else options.client_id(number))


def test_a_run_that_dies_when_it_has_made_a_lost_session_anew_hides_nothing(bare_site: Site, tmp_path: Path) -> None:
    """The broker has answered its CONNECT, and it never hears of it: what it leaves behind looks like what was lost."""
    broker = Mosquitto(tmp_path / "broker", settings={"persistence": "false"})
    broker.start()
    try:
        with MqttLine(broker) as line:
            applied(bare_site, place(broker, port=line.port))
            run(bare_site)
            broker.restart()
            line.holding.set()
            dying = bare_site.start("run", "in", "--engine", "inline")
            assert line.held.wait(30)
            dying.kill()
            ended(dying)
            line.holding.clear()
            left = session_of(bare_site, broker, 0, witness=True)
            assert left.kept
            left.close()
            assert "has lost the session" in run(bare_site, code=1)
            for _ in range(2):
                assert "has lost the session" in run(bare_site, code=5)
            run(bare_site, "--accept-gaps")
            with devices(broker) as all_of_them:
                all_of_them.publish("d/1", [b"b"])
                all_of_them.wait()
            run(bare_site)
            assert lines(bare_site) == [b"b"]
            [gap] = bare_site.json("gaps", "in")["gaps"]
            assert gap["end"] is None
    finally:
        broker.kill()


@COSTLY
def test_messages_that_the_broker_has_dropped_are_told(bare_site: Site, tmp_path: Path) -> None:
    """Perhaps of somebody else: nothing stops."""
    limits = {"max_queued_messages": "10", "max_inflight_messages": "5"}
    broker = Mosquitto(tmp_path / "broker", settings=limits)
    broker.start()
    try:
        applied(bare_site, place(broker))
        dropped(broker, 0)
        run(bare_site)
        with devices(broker) as all_of_them:
            all_of_them.publish("d/1", [b"x"] * 100)
            all_of_them.wait()
        many = dropped(broker, 1)
        said = run(bare_site)
        for _ in range(5):
            run(bare_site)
        assert len(lines(bare_site)) == 100 - many
        [gap] = bare_site.json("gaps", "in")["gaps"]
        assert f"has dropped {many} messages of some client, perhaps of this session" in gap["reason"]
        assert "gaps: 1" in said
        assert "perhaps of this session" in bare_site.waybill("gaps", "in")
    finally:
        broker.kill()


def dropped(broker: Mosquitto, least: int) -> int:
    """What it says, once it says so much."""
    options = MqttSourceOptions(host=broker.host, port=broker.port, filters=("#",), uid="asks")
    seen = list[int | None]()

    def said() -> bool:
        seen.append(broker_facts(options).dropped)
        return seen[-1] is not None and seen[-1] >= least

    wait_for(said, f"{least} dropped messages")
    return seen[-1] or 0


def test_a_deleted_connector_leaves_no_session(bare_site: Site, mosquitto: Mosquitto) -> None:
    applied(bare_site, place(mosquitto, filters=["d/left", "d/right"], sessions=2))
    run(bare_site)
    uid = bare_site.json("connectors", "show", "in")["uid"]
    with devices(mosquitto) as all_of_them:
        all_of_them.publish("d/right", [b"x"] * 3)
        all_of_them.wait()
    told = bare_site.json("connectors", "delete", "in", "--yes")
    assert told["notes"] == [
        "session-0 is ended; it held nothing that was not moved",
        "session-1 is ended; 3 messages that it held, or more, were not moved",
    ]
    options = MqttSourceOptions(host=mosquitto.host, port=mosquitto.port, filters=("#",), uid=uid)
    for client_id in (*map(options.client_id, range(2)), *map(options.witness_id, range(2))):
        session = Session(options, client_id)
        assert not session.kept
        session.give_up()


def test_a_broker_that_is_not_there_keeps_a_connector_from_being_deleted(bare_site: Site, tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path / "broker")
    broker.start()
    applied(bare_site, place(broker, connect_timeout_s=1))
    run(bare_site)
    broker.kill()
    said = bare_site.waybill("connectors", "delete", "in", "--yes", code=3)
    assert "in is stopped, and not deleted" in said
    assert "--force" in said
    assert bare_site.json("connectors", "show", "in")["state"] == "stopped"
    assert "was not removed" in bare_site.waybill("connectors", "delete", "in", "--yes", "--force")
    assert bare_site.json("connectors", "list")["connectors"] == []


def test_what_a_broker_says_before_a_connector_runs(bare_site: Site, tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path / "broker")
    broker.start()
    document = bare_site.folder / "probed.yaml"
    told = {"version": 1, "name": "probed", "source": place(broker), "sink": {"file": {"path": "out.txt"}}}
    document.write_text(yaml.safe_dump(told))
    said = bare_site.waybill("check", str(document), "--probe")
    for words in (
        "MQTT 5",
        "assigns increasing packet ids (mosquitto version 2",
        "grants d/#",
        "has dropped 0 messages",
    ):
        assert words in said
    broker.kill()
    told["source"]["mqtt"]["connect_timeout_s"] = 0.5  # type: ignore[index]
    document.write_text(yaml.safe_dump(told))
    process = bare_site.start("check", str(document), "--probe")
    out, _ = process.communicate()
    assert (process.returncode, "cannot be reached" in out) == (3, True)


def test_a_session_that_ends_before_the_next_run_is_refused(bare_site: Site, mosquitto: Mosquitto) -> None:
    document = {"source": place(mosquitto, session_expiry_s=3600), "sink": {"file": {"path": "out.txt"}}}
    with pytest.raises(AssertionError, match="drops a session after session_expiry_s"):
        bare_site.apply("in", {**document, "schedule": {"every": "2h"}})
    bare_site.apply("in", {**document, "schedule": {"every": "50m"}})


@COSTLY
def test_a_message_in_rocketmq(sqlite_site: Site, mqtt_broker: MqttBroker) -> None:
    """Through Spark, from both kinds of broker: plain payloads, and those that systems are apt to change."""
    site = sqlite_site
    sink = {"rocketmq": {"name_servers": "${stack:name_servers}", "topic": site.topic, "queues": 1}}
    site.apply("in", {"source": place(mqtt_broker, filters=["rooms/#"]), "sink": sink})
    site.waybill("run", "in")
    said = [*(b"%d" % n for n in range(120)), *(value for value in VALUES.values() if value is not None)]
    with devices(mqtt_broker) as all_of_them:
        all_of_them.publish("rooms/1", said)
        all_of_them.wait()
    site.waybill("run", "in")
    assert site.messages() == said
    shown = site.json("peek", site.topic, "--last", "1")["messages"][0]
    told = shown.get("headers") or shown.get("properties") or decode(b"")
    assert (told["MQTT_TOPIC"], told["MQTT_QOS"]) == ("rooms/1", "1")


def test_a_backlog_of_several_windows_is_emptied(sqlite_site: Site, tmp_path: Path) -> None:
    """Each run moves something, however much waits. Mosquitto calls all of it sent again once it was connected to."""
    site = sqlite_site
    broker = Mosquitto(tmp_path / "mosquitto", settings=FOR_THROUGHPUT)
    broker.start()
    try:
        site.settings |= {"WAYBILL_QUANTUM_S": "1s", "WAYBILL_LINGER_S": "300ms"}
        sink = {"rocketmq": {"name_servers": "${stack:name_servers}", "topic": site.topic, "queues": 1}}
        site.apply("in", {"source": place(broker, filters=["many/#"]), "sink": sink})
        run(site)
        said = [b"%d" % n for n in range(5 * WINDOW)]
        with devices(broker) as all_of_them:
            all_of_them.publish("many/1", said)
            all_of_them.wait()
        there = 0
        while there < len(said):
            before, _ = there, run(site)
            there = len(site.messages())
            assert there > before
        assert site.messages() == said
        site.waybill("connectors", "delete", "in", "--yes")
    finally:
        broker.kill()


@COSTLY
def test_a_session_that_is_taken_over_is_seen_in_the_runs(bare_site: Site, hivemq: HiveMQ) -> None:
    """Between two quanta nobody is there to be thrown out, so the stranger comes again."""
    applied(bare_site, place(hivemq, filters=["d/over"]))
    run(bare_site)
    staying = bare_site.start("run", "in", "--engine", "inline", "--window", "30s")
    while staying.poll() is None:
        session_of(bare_site, hivemq, 0).close()
    assert ended(staying) == 6
    assert "Another client has connected" in bare_site.waybill("runs", "in", "--json")
    assert "Another client has connected" in bare_site.waybill("status")


def test_backfill_is_refused(bare_site: Site, mosquitto: Mosquitto) -> None:
    applied(bare_site, place(mosquitto, filters=["d/none"]))
    run(bare_site)
    for words in (("--from", "1h"), ("--range", "session-0:0-")):
        assert "cannot be backfilled or replayed" in bare_site.waybill("backfill", "in", *words, code=2)


def test_a_schedule_that_looks_for_changes_is_refused(bare_site: Site, mosquitto: Mosquitto) -> None:
    document = {"source": place(mosquitto), "sink": {"file": {"path": "out.txt"}}, "schedule": {"on_change": True}}
    with pytest.raises(AssertionError, match="an MQTT broker does not show whether it has new messages"):
        bare_site.apply("in", document)
