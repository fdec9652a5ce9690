"""Templates of rules name topics of a real broker, which nobody knows before a record names them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from connect_core.rocketmq import Client, ClientOptions
from tests.faults.kit.processes import wait_for
from tests.faults.kit.topics import fill, records_of
from tests.mqtt_brokers import MqttBroker
from tests.mqtt_devices import devices
from tests.site import Site

pytestmark = pytest.mark.server

NAME = "dynamic"


@pytest.fixture
def client(sqlite_site: Site) -> Iterator[Client]:
    with Client(ClientOptions(name_servers=tuple(sqlite_site.name_servers))) as opened:
        yield opened


@pytest.fixture
def prefix(sqlite_site: Site) -> str:
    """What all topics of a test begin with."""
    return f"{sqlite_site.topic}-"


def from_file(site: Site, sink: dict[str, Any], to: str, **more: object) -> None:
    ends = {
        "source": {"file": {"path": str(site.folder / "*.log")}},
        "sink": {"rocketmq": {"name_servers": site.name_servers, "topic": site.topic, "queues": 2, **sink}},
    }
    site.apply(NAME, {**ends, "rules": [{"name": "each", "to": to, "when": "$.n >= 0"}], **more})


def line(device: str, number: int) -> bytes:
    return b'{"device": "%s", "n": %d}' % (device.encode(), number)


def log(site: Site, lines: list[bytes], name: str = "one.log") -> None:
    with (site.folder / name).open("ab") as file:
        file.write(b"".join(one + b"\n" for one in lines))


def arrived(site: Site, prefix: str) -> dict[str, list[bytes]]:
    """By topic, without the prefix; in order in each queue."""
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        topics = [name for name in client.topics.names() if name.startswith(prefix)]
    found = {
        topic[len(prefix) :]: [body for bodies in records_of(site.name_servers, topic).values() for body in bodies]
        for topic in topics
    }
    return {topic: bodies for topic, bodies in found.items() if bodies}


def by_device(lines: list[bytes]) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for one in lines:
        found.setdefault(one.split(b'"')[3].decode(), []).append(one)
    return found


def receipts(site: Site) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = site.json("receipts", NAME, "--last", "1000")["receipts"]
    return found


def test_a_dozen_topics_are_created_on_the_fly(sqlite_site: Site, prefix: str) -> None:
    """Through Spark. All that a batch names are planned together, so few ranges are."""
    site = sqlite_site
    lines = [line(f"d{n % 12}", n) for n in range(3_000)]
    log(site, lines)
    from_file(site, {"dynamic_topics": "create"}, f"{prefix}{{$.device}}")
    site.waybill("run", NAME)
    assert arrived(site, prefix) == by_device(lines)
    told = receipts(site)
    assert len(told) <= 2
    assert sum(one["delivered"] for one in told) == len(lines)
    assert {name.split("/")[0] for one in told for name in one["where"]} == {f"{prefix}d{n}" for n in range(12)}
    site.waybill("run", NAME)
    assert len(receipts(site)) == len(told), "nothing is left to do"
    log(site, [line("d3", 3_000)])
    site.waybill("run", NAME)
    assert arrived(site, prefix)["d3"][-1] == line("d3", 3_000)


def test_other_rules_and_records_without_one_go_on_beside(sqlite_site: Site, prefix: str) -> None:
    site = sqlite_site
    ends = {
        "source": {"file": {"path": str(site.folder / "*.log")}},
        "sink": {
            "rocketmq": {
                "name_servers": site.name_servers,
                "topic": f"{prefix}all",
                "queues": 1,
                "order": "key",
                "dynamic_topics": "create",
            }
        },
    }
    rules = [
        {"name": "all", "keys": "{$.device}"},
        {"name": "high", "when": "$.n >= 50", "to": f"{prefix}high"},
        {"name": "each", "when": "$.n < 80", "to": f"{prefix}of-{{$.device}}", "keys": "{$.n}"},
    ]
    lines = [line(f"d{n % 4}", n) for n in range(100)]
    log(site, lines)
    site.apply(NAME, {**ends, "rules": rules})
    site.waybill("run", NAME, "--engine", "inline")
    there = arrived(site, prefix)
    assert Counter(there["all"]) == Counter(lines)
    assert there["high"] == lines[50:]
    for device, wanted in by_device(lines[:80]).items():
        assert sorted(there[f"of-{device}"]) == sorted(wanted)
    assert sum(one["emitted"] for one in receipts(site)) == 100 + 50 + 80


def test_records_whose_topic_cannot_be_are_rejected(sqlite_site: Site, prefix: str) -> None:
    """Characters, length, names that RocketMQ has for itself, and none at all: dead letters, and the others go on."""
    site = sqlite_site
    odd = ["TBW102", "rmq_sys_x", "%RETRY%x", "a b", "x" * 128, "", "a/b"]
    lines = [line(name, n) for n, name in enumerate(["TOPIC-" + prefix + "ok", *odd, "TOPIC-" + prefix + "ok"])]
    log(site, lines)
    from_file(site, {"dynamic_topics": "create"}, "{$.device}", errors={"tolerance": "all"})
    site.waybill("run", NAME, "--engine", "inline")
    assert arrived(site, f"TOPIC-{prefix}") == {"ok": [lines[0], lines[-1]]}
    dead = site.json("dead-letters", "list", NAME)["dead_letters"]
    assert {(one["kind"], one["stage"]) for one in dead} == {("IllegalTopic", "encode")}
    assert len(dead) == len(odd)
    (told,) = [one for one in receipts(site) if one["read"]]
    assert (told["read"], told["rejected"], told["passed"]) == (len(lines), len(odd), 2)


def test_existing_topics_only_and_one_that_appears_later(sqlite_site: Site, prefix: str, client: Client) -> None:
    site = sqlite_site
    client.topics.create(f"{prefix}a", 1)
    log(site, [line("a", 0), line("b", 1), line("a", 2)])
    from_file(site, {"dynamic_topics": "existing"}, f"{prefix}{{$.device}}")
    said = site.waybill("run", NAME, "--engine", "inline", code=5)
    assert f"{prefix}b, which does not exist" in said
    assert arrived(site, prefix) == {"a": [line("a", 0)]}
    assert not client.topics.exists(f"{prefix}b")
    client.topics.create(f"{prefix}b", 1)
    site.waybill("run", NAME, "--engine", "inline")
    assert arrived(site, prefix) == {"a": [line("a", 0), line("a", 2)], "b": [line("b", 1)]}


def test_no_more_topics_than_the_options_allow(sqlite_site: Site, prefix: str) -> None:
    site = sqlite_site
    log(site, [line(f"d{n % 5}", n) for n in range(50)])
    from_file(site, {"dynamic_topics": "create", "max_topics": 3}, f"{prefix}{{$.device}}", errors={"tolerance": "all"})
    site.waybill("run", NAME, "--engine", "inline")
    assert arrived(site, prefix).keys() == {"d0", "d1", "d2"}
    dead = site.json("dead-letters", "list", NAME, "--last", "100")["dead_letters"]
    assert Counter(one["kind"] for one in dead) == {"TooManyTopics": 20}
    log(site, [line("d2", 50), line("d9", 51)])
    site.waybill("run", NAME, "--engine", "inline")
    assert arrived(site, prefix)["d2"][-1] == line("d2", 50), "those of before stay"
    assert arrived(site, prefix).keys() == {"d0", "d1", "d2"}


def test_a_template_is_refused_where_the_sink_does_not_allow_it(sqlite_site: Site, prefix: str) -> None:
    site = sqlite_site
    with pytest.raises(AssertionError, match="a template needs dynamic_topics: existing, or create, in the sink"):
        from_file(site, {}, f"{prefix}{{$.device}}")
    ends = {
        "source": {"rocketmq": {"name_servers": list(site.name_servers), "topics": [f"{prefix}x-*"]}},
        "sink": {"rocketmq": {"name_servers": site.name_servers, "topic": "t", "dynamic_topics": "create"}},
    }
    with pytest.raises(AssertionError, match="may name what is a topic that the source reads"):
        site.apply(NAME, {**ends, "rules": [{"name": "each", "to": f"{prefix}{{$.a}}"}]})


def test_a_topic_that_was_deleted_stops_nothing_until_a_record_names_it(
    sqlite_site: Site, prefix: str, client: Client
) -> None:
    site = sqlite_site
    log(site, [line("a", 0), line("b", 1)])
    from_file(site, {"dynamic_topics": "create"}, f"{prefix}{{$.device}}")
    site.waybill("run", NAME, "--engine", "inline")
    client.topics.delete(f"{prefix}a")
    wait_for(lambda: not client.topics.exists(f"{prefix}a"), "the topic to be gone")
    log(site, [line("b", 2)])
    site.waybill("run", NAME, "--engine", "inline")
    assert arrived(site, prefix)["b"] == [line("b", 1), line("b", 2)]
    log(site, [line("a", 3), line("b", 4)])
    said = site.waybill("run", NAME, "--engine", "inline", code=5)
    assert "created again or its broker lost messages" in said
    from_file(site, {"dynamic_topics": "create", "on_replaced": "continue"}, f"{prefix}{{$.device}}")
    site.waybill("run", NAME, "--engine", "inline")
    assert arrived(site, prefix) == {"a": [line("a", 3)], "b": [line("b", 1), line("b", 2), line("b", 4)]}


def test_queues_of_two_tasks_go_to_the_same_topics(sqlite_site: Site, prefix: str) -> None:
    site = sqlite_site
    lines = [[line(f"d{(n + q) % 12}", 1_000 * q + n) for n in range(500)] for q in range(4)]
    fill(site.name_servers, site.topic, lines)
    ends = {
        "source": {"rocketmq": {"name_servers": list(site.name_servers), "topics": [site.topic]}},
        "sink": {
            "rocketmq": {"name_servers": site.name_servers, "topic": "unused", "queues": 4, "dynamic_topics": "create"}
        },
    }
    site.apply(NAME, {**ends, "rules": [{"name": "each", "to": f"{prefix}to-{{$.device}}"}], "tasks": 2})
    site.waybill("run", NAME, "--engine", "inline")
    assert {one["task"] for one in receipts(site)} == {0, 1}
    wanted = by_device([one for some in lines for one in some])
    there = arrived(site, f"{prefix}to-")
    assert {device: Counter(bodies) for device, bodies in there.items()} == {
        device: Counter(bodies) for device, bodies in wanted.items()
    }


@pytest.mark.fault(costly=True)
def test_devices_that_appear_in_a_window(sqlite_site: Site, prefix: str, mosquitto: MqttBroker) -> None:
    site = sqlite_site
    site.apply(
        NAME,
        {
            "source": {
                "mqtt": {"host": mosquitto.host, "port": mosquitto.port, "filters": ["devices/+/telemetry"]},
            },
            "sink": {
                "rocketmq": {
                    "name_servers": site.name_servers,
                    "topic": site.topic,
                    "queues": 1,
                    "dynamic_topics": "create",
                }
            },
            "rules": [
                {"name": "each", "filter": "devices/+/telemetry", "to": f"{prefix}telemetry-{{topic[2]}}"},
            ],
        },
    )
    site.waybill("run", NAME, "--engine", "inline")
    run = site.start("run", NAME, "--engine", "inline", "--window", "20s")
    sent: dict[str, list[bytes]] = {}
    with devices(mosquitto) as all_of_them:
        for number in range(8):
            for device in range(number + 1):
                body = b"%d of %d" % (number, device)
                sent.setdefault(f"d{device}", []).append(body)
                all_of_them.publish(f"devices/d{device}/telemetry", [body])
            all_of_them.wait()
            time.sleep(0.5)
    out, err = run.communicate(timeout=240)
    assert run.returncode == 0, out + err
    assert arrived(site, f"{prefix}telemetry-") == sent
    told = receipts(site)
    assert sum(one["delivered"] for one in told) == sum(len(some) for some in sent.values())
    assert not sum(one["duplicates"] + one["possible_duplicates"] for one in told)


@pytest.mark.fault(costly=True)
def test_what_appears_in_a_window_goes_on_in_topics_that_are_there_by_then(
    sqlite_site: Site, prefix: str, client: Client
) -> None:
    """Its records are dead letters until then."""
    site = sqlite_site
    client.topics.create(f"{prefix}a", 1)
    log(site, [line("a", 0)])
    from_file(site, {"dynamic_topics": "existing"}, f"{prefix}{{$.device}}", errors={"tolerance": "all"})
    run = site.start("run", NAME, "--engine", "inline", "--window", "40s")
    arrives(site, prefix, lambda there: there.get("a") == [line("a", 0)])
    log(site, [line("b", 1), line("a", 2)])
    arrives(site, prefix, lambda there: there["a"][-1] == line("a", 2))
    client.topics.create(f"{prefix}b", 1)
    number = 3
    while "b" not in arrived(site, prefix):
        assert number < 60, "the topic was not looked for again"
        log(site, [line("b", number)])
        number += 1
        time.sleep(1)
    out, err = run.communicate(timeout=240)
    assert run.returncode == 0, out + err
    dead = site.json("dead-letters", "list", NAME, "--last", "100")["dead_letters"]
    assert {one["kind"] for one in dead} == {"TopicRefused"}
    assert len(dead) + len(arrived(site, prefix)["b"]) == number - 2
    assert len(dead) < number - 2


def arrives(site: Site, prefix: str, is_so: Callable[[dict[str, list[bytes]]], bool]) -> None:
    wait_for(lambda: is_so(arrived(site, prefix)), "the records to arrive")


@pytest.mark.fault
@pytest.mark.parametrize("to", ["a", "b", "ab"])
def test_a_restored_ledger_has_forgotten_which_topics_there_are(sqlite_site: Site, prefix: str, to: str) -> None:
    """What was delivered since the backup is found, in topics that it knows and in those that are younger, also where
    the ones that it knows have been settled in before."""
    site = sqlite_site
    log(site, [line("a", n) for n in range(10)])
    from_file(site, {"dynamic_topics": "create"}, f"{prefix}{{$.device}}")
    site.waybill("run", NAME, "--engine", "inline")
    kept = {path: path.read_bytes() for path in site.home.glob("ledger.db*")}
    log(site, [line(to[(n - 10) * len(to) // 10], n) for n in range(10, 20)])
    site.waybill("run", NAME, "--engine", "inline")
    before = arrived(site, prefix)
    for path in site.home.glob("ledger.db*"):
        path.unlink()
    for path, data in kept.items():
        path.write_bytes(data)
    site.waybill("db", "restored", "--why", "a drill")
    log(site, [line("c", 20)])
    site.waybill("run", NAME, "--engine", "inline")
    assert arrived(site, prefix) == before | {"c": [line("c", 20)]}
    assert sum(one["deduplicated"] for one in receipts(site)) == 10
