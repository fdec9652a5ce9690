"""Several sessions of one connector: filters that are distributed, and members of a shared subscription."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.mqtt_brokers import Mosquitto, MqttBroker
from tests.mqtt_devices import devices
from tests.site import Site
from tests.system.mqtt.test_mqtt_source import COSTLY, applied, lines, place, run, session_of

pytestmark = pytest.mark.server


def test_a_shared_subscription_needs_a_sink_that_tells_its_records(bare_site: Site, mosquitto: Mosquitto) -> None:
    for filters, words in (
        (["$share/g/d/#"], "need a sink that tells which records it holds"),
        (["$share/g/d/#", "d/1"], "would come twice"),
    ):
        with pytest.raises(AssertionError, match=words):
            bare_site.apply("in", {"source": place(mosquitto, filters=filters), "sink": {"file": {"path": "out.txt"}}})


def test_a_session_that_is_not_needed_any_more_is_told_once(bare_site: Site, mosquitto: Mosquitto) -> None:
    """Also by a task that has no other one."""
    for filters in (["d/left", "d/right"], ["d/left"]):
        source = place(mosquitto, filters=filters, sessions=2)
        bare_site.apply("in", {"source": source, "sink": {"file": {"path": "out.txt"}}, "tasks": 2})
        run(bare_site)
    run(bare_site)
    gaps = bare_site.json("gaps", "in")["gaps"]
    assert [(gap["partition"], gap["reason"]) for gap in gaps] == [("session-1", "left")]


@COSTLY
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
    ended_session = session_of(bare_site, mosquitto, 1)
    assert not ended_session.kept
    ended_session.give_up()


def test_members_share_what_comes(sqlite_site: Site, mosquitto: Mosquitto) -> None:
    """Each message goes to one of them, and the target has all of them once."""
    site = sqlite_site
    sink = {"rocketmq": {"name_servers": "${stack:name_servers}", "topic": site.topic, "queues": 1}}
    source = place(mosquitto, filters=["$share/all/many/#"], sessions=2)
    site.settings |= {"WAYBILL_QUANTUM_S": "3s", "WAYBILL_LINGER_S": "300ms"}
    site.apply("in", {"source": source, "sink": sink})
    run(site)
    said = [b"%d" % n for n in range(100)]
    with devices(mosquitto) as all_of_them:
        all_of_them.publish("many/1", said)
        all_of_them.wait()
    run(site)
    assert sorted(site.messages()) == sorted(said)
    offsets = {one["partition"]: one["offset"] for one in site.json("offsets", "show", "in")["offsets"]}
    assert {*offsets} == {"session-0", "session-1"}
    assert min(offsets.values()) > 10
    site.waybill("connectors", "delete", "in", "--yes")


@COSTLY
def test_a_member_whose_session_is_lost_is_a_gap(sqlite_site: Site, mqtt_broker: MqttBroker) -> None:
    """Only its worker connects as a member, so the run that finds it says that it is lost, and the next one which."""
    site, topic = sqlite_site, f"lost/{uuid4().hex}"
    sink = {"rocketmq": {"name_servers": "${stack:name_servers}", "topic": site.topic, "queues": 1}}
    site.settings |= {"WAYBILL_QUANTUM_S": "3s", "WAYBILL_LINGER_S": "300ms"}
    site.apply("in", {"source": place(mqtt_broker, filters=[f"$share/g/{topic}"], sessions=2), "sink": sink})
    said = site.waybill("check", str(site.folder / "in.yaml"), "--probe")
    assert "at least once: shared subscriptions" in said
    assert ("repeats by itself" in said) == (mqtt_broker.kind == "HiveMQ CE")
    run(site)
    session_of(site, mqtt_broker, 1).give_up()
    assert "The broker has lost the session" in run(site, code=1)
    for _ in range(2):
        assert "has lost the session" in run(site, code=5)
    run(site, "--accept-gaps")
    with devices(mqtt_broker) as all_of_them:
        all_of_them.publish(topic, [b"%d" % n for n in range(20)])
        all_of_them.wait()
    run(site)
    assert {*site.messages()} == {b"%d" % n for n in range(20)}
    [gap] = site.json("gaps", "in")["gaps"]
    assert (gap["partition"], gap["end"]) == ("session-1", None)
    site.waybill("connectors", "delete", "in", "--yes")
