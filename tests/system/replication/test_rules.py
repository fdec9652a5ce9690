"""Rules between topics of a real broker: outputs with their tags and keys, found again, and changed under way."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pytest

from connect_core.rocketmq import Client, ClientOptions
from connect_core.rocketmq.wire import properties
from connect_core.sdk.records import Coordinates
from tests.faults.kit.topics import fill
from tests.mqtt_brokers import MqttBroker
from tests.mqtt_devices import listening
from tests.site import Site
from tests.system.replication.test_topics import NAME, connector

pytestmark = pytest.mark.server

COUNT = 300


def stored(site: Site, begin: int = 0, end: int = COUNT) -> None:
    bodies = [b'{"n": %d, "id": "r%d"}' % (n, n) for n in range(begin, end)]
    texts = [
        properties.encode({"MQTT_TOPIC": f"site/{n % 3}/temp", "TAGS": "raw", "color": "red" if n % 2 else "blue"})
        for n in range(begin, end)
    ]
    fill(site.name_servers, site.topic, [bodies], [texts])


def arrived(site: Site, topic: str) -> list[dict[str, str]]:
    """The properties of the messages of a topic, in order, with `n` and coordinates."""
    found = []
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        for queue, bounds in client.offsets.bounds(topic).items():
            for part in client.read(queue, bounds.begin, bounds.end, deadline=time.monotonic() + 60):
                found += [
                    {**properties.decode(one.properties), "body": bytes(one.body).decode()} for one in part.messages
                ]
    return found


def receipts(site: Site) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = site.json("receipts", NAME)["receipts"]
    return sorted(found, key=lambda one: one["begin"])


def test_each_record_becomes_what_its_rules_say(site: Site) -> None:
    stored(site)
    out, hot = f"out-{site.topic}", f"hot-{site.topic}"
    rules = [
        {"name": "second", "filter": "site/1/#", "tags": "{topic[2]}-{header:color}", "keys": "{$.id}"},
        {"name": "hot", "when": "$.n >= 250 AND color = 'red'", "to": hot, "keys": "{topic}"},
        {"name": "again", "filter": "site/1/+", "when": "$.n < 30", "tags": "again"},
        {"name": "off", "enabled": False},
    ]
    connector(site, {"topics": [site.topic]}, {"topic": out, "queues": 1}, rules=rules)
    site.waybill("run", NAME)
    expected = []
    for n in range(1, COUNT, 3):
        expected.append((f"{n % 3}-{'red' if n % 2 else 'blue'}", f"r{n}", n))
        if n < 30:
            expected.append(("again", None, n))
    there = arrived(site, out)
    assert [(one["TAGS"], one.get("KEYS"), number(one)) for one in there] == expected
    warm = [n for n in range(250, COUNT) if n % 2]
    assert [(one["TAGS"], one["KEYS"], number(one)) for one in arrived(site, hot)] == [
        ("raw", f"site/{n % 3}/temp", n) for n in warm
    ]
    (receipt,) = receipts(site)
    passed = len({*range(1, COUNT, 3), *warm})
    assert (receipt["read"], receipt["filtered"], receipt["passed"]) == (COUNT, COUNT - passed, passed)
    assert receipt["emitted"] == receipt["delivered"] == len(expected) + len(warm)
    assert {name.split("/")[0] for name in receipt["where"]} == {out, hot}
    marks = [one["WAYBILL"].split(":") for one in there if number(one) == 4]
    assert [Coordinates.parse(":".join(one)).ordinal for one in marks] == [0, 1]
    assert [one[-1] for one in marks] == ["2", "2"], "each output says how many there are"


def number(one: dict[str, str]) -> int:
    return int(one["body"].split()[1].rstrip(","))


@pytest.mark.parametrize("step", ["batch-written", "before-receipt", "executed"])
def test_a_rule_that_changes_after_a_kill_counts_from_the_next_range_on(site: Site, step: str) -> None:
    """Nothing is lost or there twice: the open range is finished under the rules that it was begun with."""
    stored(site)
    out, more = f"out-{site.topic}", f"more-{site.topic}"
    ends = ({"topics": [site.topic]}, {"topic": out, "queues": 1})
    both = [{"name": "one", "tags": "one"}, {"name": "two", "when": "$.n < 100", "to": more}]
    connector(site, *ends, rules=both, limits={"range_records": 200})
    site.fault(step, "kill")
    killed = site.start("run", NAME)
    killed.communicate(timeout=120)
    assert killed.returncode != 0
    connector(site, *ends, rules=[{"name": "one", "tags": "new"}], limits={"range_records": 200})
    site.waybill("run", NAME)
    old = [("one", n) for n in range(200)]
    assert [(one["TAGS"], number(one)) for one in arrived(site, out)] == [
        *old,
        *(("new", n) for n in range(200, COUNT)),
    ]
    assert [number(one) for one in arrived(site, more)] == list(range(100))
    told = receipts(site)
    assert [(one["revision"], one["begin"], one["end"], one["emitted"]) for one in told] == [
        (1, 0, 200, 300),
        (2, 200, COUNT, 100),
    ]
    assert sum(one["duplicates"] + one["possible_duplicates"] for one in told) == 0


@pytest.mark.parametrize("step", ["", "before-receipt"])
def test_where_rules_name_all_topics_the_sink_s_own_is_left_alone(site: Site, step: str) -> None:
    """It is neither asked for nor made; what a worker has delivered that died is found in the others."""
    stored(site)
    out, low, high = f"out-{site.topic}", f"low-{site.topic}", f"high-{site.topic}"
    rules = [{"name": "low", "when": "$.n < 100", "to": low}, {"name": "high", "when": "$.n >= 50", "to": high}]
    connector(site, {"topics": [site.topic]}, {"topic": out, "queues": 1}, rules=rules)
    if step:
        site.fault(step, "kill")
        killed = site.start("run", NAME)
        killed.communicate(timeout=120)
        assert killed.returncode != 0
    site.waybill("run", NAME)
    assert [number(one) for one in arrived(site, low)] == list(range(100))
    assert [number(one) for one in arrived(site, high)] == list(range(50, COUNT))
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        assert not client.topics.exists(out)
    (receipt,) = receipts(site)
    assert (receipt["delivered"], receipt["deduplicated"]) == ((0, 350) if step else (350, 0))
    connector(site, {"topics": [site.topic]}, {"topic": out, "queues": 1}, rules=[*rules, {"name": "all"}])
    stored(site, COUNT, COUNT + 10)
    site.waybill("run", NAME)
    assert [number(one) for one in arrived(site, out)] == list(range(COUNT, COUNT + 10))


def test_each_output_is_published_to_the_topic_of_its_rule(bare_site: Site, mosquitto: MqttBroker) -> None:
    """It may be a template. What names none goes where the sink says; what makes no topic is rejected."""
    lines = [b'{"id": "k%d", "temp": %d}' % (n, n) for n in range(4)] + [b'{"id": "a+b", "temp": 9}', b"no json"]
    (bare_site.folder / "plant.log").write_bytes(b"".join(line + b"\n" for line in lines))
    root = f"plant-{uuid.uuid4().hex[:8]}"
    bare_site.apply(
        NAME,
        {
            "source": {"file": {"path": "plant.log"}},
            "sink": {"mqtt": {"host": mosquitto.host, "port": mosquitto.port, "topic": f"{root}/all"}},
            "rules": [
                {"name": "all", "when": "$.temp < 9"},
                {"name": "hot", "when": "$.temp > 1", "to": f"{root}/hot/{{$.id}}"},
            ],
            "errors": {"tolerance": 1},
        },
    )
    with listening(mosquitto, f"{root}/#") as listener:
        bare_site.waybill("run", NAME, "--engine", "inline")
        heard = [(one.topic.removeprefix(f"{root}/"), bytes(one.payload)) for one in listener.heard(6)]
    assert heard == [
        ("all", lines[0]),
        ("all", lines[1]),
        *(pair for n in (2, 3) for pair in (("all", lines[n]), (f"hot/k{n}", lines[n]))),
    ]
    (receipt,) = receipts(bare_site)
    assert (receipt["read"], receipt["filtered"], receipt["rejected"], receipt["passed"]) == (6, 1, 1, 4)
    assert receipt["emitted"] == receipt["delivered"] == 6
