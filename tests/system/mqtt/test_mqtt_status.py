"""Who listens to the status topic of a connector sees whether it is at work, also of one that was killed."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from connect_core.sdk.plugin import RunOfTask
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.status import present
from tests.faults.kit.processes import wait_for
from tests.mqtt_brokers import MqttBroker
from tests.site import Site

pytestmark = pytest.mark.server


@contextmanager
def heard(broker: MqttBroker, topic: str) -> Iterator[list[dict[str, Any]]]:
    """What is said at a topic, the retained message first."""
    said: list[dict[str, Any]] = []

    def on_message(client: Client, data: Any, message: MQTTMessage) -> None:
        said.append(json.loads(message.payload) | {"retained": message.retain})

    client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
    client.on_message = on_message
    client.on_connect = lambda *_: client.subscribe(topic, 1)
    client.connect(broker.host, broker.port)
    client.loop_start()
    try:
        yield said
    finally:
        client.disconnect()
        client.loop_stop()


def options(broker: MqttBroker, topic: str, **more: Any) -> MqttSourceOptions:
    given = {"host": broker.host, "port": broker.port, "filters": ["d/#"], "uid": topic.partition("/")[0]}
    return MqttSourceOptions(**{**given, "status_topic": topic, **more})


def run_of_task(said: list[str]) -> RunOfTask:
    return RunOfTask("source", "plant", 0, "run-1", said.append)


@pytest.mark.parametrize("why", ["ended", "failed"])
@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_it_says_online_and_at_the_end_why_it_ends(mosquitto: MqttBroker, why: str, protocol: str) -> None:
    topic = f"s{time.monotonic_ns()}/{{connector}}/{{task}}/status"
    told: list[str] = []
    with heard(mosquitto, topic.replace("{connector}/{task}", "plant/0")) as said:
        with present(given := options(mosquitto, topic, protocol=protocol), given.uid, run_of_task(told)) as leave:
            wait_for(lambda: said, "a first word")
            leave(why)
        wait_for(lambda: len(said) > 1, "a last word")
    assert [(one["state"], one.get("reason")) for one in said] == [("online", None), ("offline", why)]
    assert all((one["connector"], one["task"], one["run"]) == ("plant", 0, "run-1") for one in said)
    assert not told
    with heard(mosquitto, topic.replace("{connector}/{task}", "plant/0")) as later:
        wait_for(lambda: later, "what is retained")
    assert (later[0]["state"], later[0]["retained"]) == ("offline", True)


def test_a_broker_that_is_away_holds_nothing_up_and_is_told_of_once(mosquitto: MqttBroker) -> None:
    told: list[str] = []
    away = options(mosquitto, "s/{task}", port=1)
    began = time.monotonic()
    with present(away, away.uid, run_of_task(told)) as leave:
        assert time.monotonic() - began < 1.0
        wait_for(lambda: told, "a warning")
        time.sleep(2.5)
        leave("ended")
    assert time.monotonic() - began < 15.0
    assert len(told) == 1
    assert "the run continues" in told[0]


def test_the_broker_says_it_of_a_run_that_is_killed(bare_site: Site, mosquitto: MqttBroker) -> None:
    """And a run that ends, or that a person pauses, says it itself."""
    topic = f"{bare_site.topic}/{{connector}}/{{task}}/status"
    bare_site.apply(
        "in",
        {
            "source": {
                "mqtt": {
                    "host": mosquitto.host,
                    "port": mosquitto.port,
                    "filters": [f"{bare_site.topic}/d/#"],
                    "status_topic": topic,
                }
            },
            "sink": {"file": {"path": str(bare_site.folder / "out.log")}},
        },
    )
    with heard(mosquitto, f"{bare_site.topic}/in/0/status") as said:
        run = bare_site.start("run", "in", "--engine", "inline", "--window", "5m")
        wait_for(lambda: said, "the run to say that it is at work")
        os.kill(run.pid, signal.SIGKILL)
        wait_for(lambda: len(said) > 1, "the will")
        run.communicate()
        bare_site.waybill("run", "in", "--engine", "inline")
        wait_for(lambda: len(said) > 3, "the next run")
        staying = bare_site.start("run", "in", "--engine", "inline", "--window", "5m")
        wait_for(lambda: len(said) > 4, "the run that stays")
        bare_site.waybill("connectors", "pause", "in")
        out, err = staying.communicate(timeout=120)
        wait_for(lambda: len(said) > 5, "its end")
    assert [(one["state"], one.get("reason")) for one in said] == [
        ("online", None),
        ("offline", "lost"),
        ("online", None),
        ("offline", "ended"),
        ("online", None),
        ("offline", "paused"),
    ], out + err
    assert len({one["run"] for one in said}) == 3


def test_a_connector_without_the_option_has_no_thread(mosquitto: MqttBroker) -> None:
    from connect_core.systems.mqtt.plugin import PLUGIN

    assert PLUGIN.presence is not None
    assert PLUGIN.presence(options(mosquitto, ""), run_of_task([])) is None
    assert not [one for one in threading.enumerate() if one.name.startswith("status ")]


@pytest.mark.parametrize("topic", ["x/status", "a/+/{task}", "$SYS/{task}", "{task}/{uid}", "d/{task}"])
def test_a_topic_that_cannot_be_one(mosquitto: MqttBroker, topic: str) -> None:
    with pytest.raises(ValueError, match="status_topic"):
        options(mosquitto, topic)
