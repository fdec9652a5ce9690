"""The MQTT source with real brokers: the example of its page, sessions, what stops a run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from connect_core.rocketmq.wire.properties import decode
from tests.faults.kit.processes import ended
from tests.mqtt_brokers import Mosquitto, MqttBroker
from tests.mqtt_devices import devices
from tests.site import Site

pytestmark = [pytest.mark.server, pytest.mark.fault(costly=True)]

PAGE = Path(__file__).parents[3] / "docs" / "mqtt-source.md"


def test_the_example_of_the_page(bare_site: Site, mosquitto: Mosquitto) -> None:
    text = re.sub(r"\b1883\b", str(mosquitto.port), PAGE.read_text())
    [document] = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    [script] = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    (bare_site.folder / "devices-in.yaml").write_text(document)
    environment = bare_site.environment()
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=bare_site.folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
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


@pytest.mark.parametrize(("protocol", "qos"), [("5", 0), ("5", 1), ("3.1.1", 2)])
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
    applied(bare_site, place(mosquitto, filters=["d/window", "d/zero"]))
    run(bare_site)
    staying = bare_site.start("run", "in", "--engine", "inline", "--window", "4s")
    with devices(mosquitto) as all_of_them:
        while staying.poll() is None:
            all_of_them.publish("d/window", [b"one"])
            all_of_them.publish("d/zero", [b"zero"], 0)
            all_of_them.wait()
            time.sleep(0.2)
        published = all_of_them.published // 2
    assert ended(staying) == 0
    for _ in range(2):
        run(bare_site)
    there = lines(bare_site)
    assert there.count(b"one") == published
    assert 1 <= there.count(b"zero") <= published


def test_retained_messages_come_once(bare_site: Site, mosquitto: Mosquitto) -> None:
    with devices(mosquitto) as all_of_them:
        all_of_them.publish("d/retained", [b"kept"], retain=True)
        all_of_them.wait()
    applied(bare_site, place(mosquitto, filters=["d/retained"]))
    for _ in range(3):
        run(bare_site)
    assert lines(bare_site) == [b"kept"]


def test_empty_and_large_payloads(bare_site: Site, mosquitto: Mosquitto) -> None:
    applied(bare_site, place(mosquitto, filters=["d/sizes"]))
    run(bare_site)
    said = [b"", b"x" * 1_000_000, b""]
    with devices(mosquitto) as all_of_them:
        all_of_them.publish("d/sizes", said)
        all_of_them.wait()
    run(bare_site)
    assert lines(bare_site) == said


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


def test_filters_are_shared_out_and_a_session_that_is_not_needed_is_emptied(
    bare_site: Site, mosquitto: Mosquitto
) -> None:
    applied(bare_site, place(mosquitto, filters=["d/left", "d/right"], sessions=2))
    run(bare_site)
    with devices(mosquitto) as all_of_them:
        all_of_them.publish("d/left", [b"left"])
        all_of_them.publish("d/right", [b"right"])
        all_of_them.wait()
    applied(bare_site, place(mosquitto, filters=["d/left"], sessions=2))
    run(bare_site)
    with devices(mosquitto) as all_of_them:
        all_of_them.publish("d/right", [b"nobody wants it"])
        all_of_them.publish("d/left", [b"left again"])
        all_of_them.wait()
    run(bare_site)
    run(bare_site)
    assert sorted(lines(bare_site)) == [b"left", b"left again", b"right"]


def test_a_message_in_rocketmq(sqlite_site: Site, mqtt_broker: MqttBroker) -> None:
    """Through Spark, from both kinds of broker."""
    site = sqlite_site
    sink = {"rocketmq": {"name_servers": "${stack:name_servers}", "topic": site.topic, "queues": 1}}
    site.apply("in", {"source": place(mqtt_broker, filters=["rooms/#"]), "sink": sink})
    site.waybill("run", "in")
    said = [b"%d" % n for n in range(120)]
    with devices(mqtt_broker) as all_of_them:
        all_of_them.publish("rooms/1", said)
        all_of_them.wait()
    site.waybill("run", "in")
    assert site.messages() == said
    shown = site.json("peek", site.topic, "--last", "1")["messages"][0]
    told = shown.get("headers") or shown.get("properties") or decode(b"")
    assert (told["MQTT_TOPIC"], told["MQTT_QOS"]) == ("rooms/1", "1")


def test_backfill_is_refused(bare_site: Site, mosquitto: Mosquitto) -> None:
    applied(bare_site, place(mosquitto, filters=["d/none"]))
    run(bare_site)
    for words in (("--from", "1h"), ("--range", "session-0:0-")):
        assert "no backfill and no replay" in bare_site.waybill("backfill", "in", *words, code=2)


def test_a_schedule_that_looks_for_changes_is_refused(bare_site: Site, mosquitto: Mosquitto) -> None:
    document = {"source": place(mosquitto), "sink": {"file": {"path": "out.txt"}}, "schedule": {"on_change": True}}
    with pytest.raises(AssertionError, match="nobody can see whether an MQTT broker has something"):
        bare_site.apply("in", document)
