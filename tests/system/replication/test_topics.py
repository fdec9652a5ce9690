"""RocketMQ to RocketMQ by topic: patterns, names of targets, their queues, and where a first run begins."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from connect_core.rocketmq import Client, ClientOptions, Queue
from tests.faults.kit.processes import wait_for
from tests.faults.kit.topics import fill, records_of
from tests.servers import RocketMQ
from tests.site import Site

pytestmark = pytest.mark.server

NAME = "copies"


@pytest.fixture
def client(site: Site) -> Iterator[Client]:
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as opened:
        yield opened


def connector(
    site: Site, source: dict[str, Any], sink: dict[str, Any], tasks: int = 1, name: str = NAME, **more: object
) -> None:
    ends = {
        "source": {"rocketmq": {"connection": "stack", **source}},
        "sink": {"rocketmq": {"connection": "stack", **sink}},
    }
    (site.folder / "conf" / "connections").mkdir(parents=True, exist_ok=True)
    (site.folder / "conf" / "connections" / "stack.yaml").write_text(
        f"rocketmq: {{name_servers: {site.name_servers}}}\n"
    )
    site.apply(name, {**ends, "tasks": tasks, **more})


def stored(site: Site, topic: str, queues: int, count: int = 50, begin: int = 0) -> dict[str, list[bytes]]:
    """Messages that say where they were stored, by `broker/queueId`."""
    bodies = [
        [b"%s %d %d" % (topic.encode(), queue, n) for n in range(begin, begin + count)] for queue in range(queues)
    ]
    return by_place(fill(site.name_servers, topic, bodies))


def by_place(records: dict[str, list[bytes]]) -> dict[str, list[bytes]]:
    return {name.partition("/")[2]: bodies for name, bodies in records.items()}


def arrived(site: Site, topic: str) -> dict[str, list[bytes]]:
    return by_place(records_of(site.name_servers, topic))


def test_each_topic_that_a_pattern_means_goes_to_one_of_its_own(site: Site, client: Client) -> None:
    first, second, other = f"{site.topic}-a", f"{site.topic}-b", f"{site.topic}-test"
    written = {topic: stored(site, topic, queues) for topic, queues in ((first, 4), (second, 2), (other, 1))}
    connector(
        site,
        {"topics": [f"{site.topic}-*"], "exclude": ["*-test"]},
        {"topic": "copy-{topic}", "rename": {second: f"renamed-{site.topic}"}, "queues": 0, "order": "queue"},
        tasks=2,
    )
    site.waybill("run", NAME)
    assert arrived(site, f"copy-{first}") == written[first], "queue by queue, as many as the source has"
    assert arrived(site, f"renamed-{site.topic}") == written[second]
    assert len(client.topics.write_queues(f"copy-{first}")) == 4
    assert not client.topics.exists(f"copy-{other}")

    third = f"{site.topic}-c"
    later, more = stored(site, third, 3), stored(site, first, 4, begin=50)
    site.waybill("run", NAME)
    assert arrived(site, f"copy-{third}") == later, "a topic that came to match is read without a word"
    assert arrived(site, f"copy-{first}") == {place: written[first][place] + more[place] for place in more}


def test_fewer_queues_keep_the_order_of_each_queue(site: Site) -> None:
    source = f"{site.topic}-wide"
    written = stored(site, source, 5)
    connector(site, {"topics": [source]}, {"topic": f"{site.topic}-narrow", "queues": 2, "order": "queue"})
    site.waybill("run", NAME)
    found = arrived(site, f"{site.topic}-narrow")
    assert sorted(len(bodies) for bodies in found.values()) == [100, 150]
    for bodies in written.values():
        (where,) = [place for place, there in found.items() if bodies[0] in there]
        assert [body for body in found[where] if body in bodies] == bodies


@contextmanager
def one_run(site: Site) -> Iterator[None]:
    """A run whose window is open, however slow the machine is, until what is done in it is done. Where that fails, what
    the run has printed is shown."""
    with site.start("run", NAME, "--window", "10m") as run:
        try:
            yield
            assert run.poll() is None, "in the same run"
            site.waybill("connectors", "pause", NAME)
            out, err = run.communicate(timeout=60)
            assert run.returncode == 0, out + err
        except BaseException:
            ended = run.poll()
            run.kill()
            with suppress(ValueError):  # it was read to its end, and the error says what it printed
                print(f"The run's exit code: {ended}", *run.communicate(), sep="\n")
            raise


def test_a_topic_appears_in_a_window(site: Site) -> None:
    first, second = f"{site.topic}-1", f"{site.topic}-2"
    written = stored(site, first, 1)
    site.settings |= {"WAYBILL_QUANTUM_S": "1s", "WAYBILL_LINGER_S": "300ms"}
    connector(site, {"topics": [f"{site.topic}-*"]}, {"topic": "seen-{topic}", "queues": 1})
    with one_run(site):
        wait_for(lambda: arrived_or_none(site, f"seen-{first}") == written, "the first topic has been moved")
        later = stored(site, second, 1)
        wait_for(lambda: arrived_or_none(site, f"seen-{second}") == later, "the second one has been moved")


def test_connectors_applied_together_wait_for_each_others_topics(site: Site, client: Client) -> None:
    """A topic that is not there yet is waited for; one that was there and is gone is told as ever."""
    topic, words = f"{site.topic}-later", [b"one", b"two", b"three"]
    (site.folder / "words.log").write_bytes(b"".join(word + b"\n" for word in words))
    connector(site, {"topics": [topic]}, {"topic": f"copy-{topic}", "queues": 1}, name="second")
    site.apply(
        "first",
        {
            "source": {"file": {"path": "words.log"}},
            "sink": {"rocketmq": {"connection": "stack", "topic": topic, "queues": 1}},
        },
    )
    for attempts in (1, 2):
        told = site.waybill("run", "second", code=3)
        assert f"The topic is not there yet [{topic}]" in told
        (now,) = [one for one in site.json("status")["connectors"] if one["name"] == "second"]
        assert (now["state"], now["attempts"], now["exit_code"]) == ("failed", attempts, 3)
        assert now["why"] == f"Unreachable: The topic is not there yet [{topic}]"
        assert "let the connector that fills it run" in now["next_step"]
        assert [run["state"] for run in site.json("runs", "second")["runs"]] == ["failed"] * attempts
    site.waybill("run", "first")
    site.waybill("run", "second")
    assert [body for bodies in arrived(site, f"copy-{topic}").values() for body in bodies] == words
    assert [one["state"] for one in site.json("status")["connectors"]] == ["idle", "idle"]

    client.topics.delete(topic)
    assert "Create it again" in site.waybill("run", "second", code=6)
    (now,) = [one for one in site.json("connectors", "list")["connectors"] if one["name"] == "second"]
    assert (now["state"], now["why"][:12]) == ("blocked", "TopicMissing")


def test_a_topic_deleted_under_a_pattern_ends_and_may_come_again(site: Site, client: Client) -> None:
    """What was read to its end is gone without harm; what may not have been is told first. The others go on."""
    gone, stays = f"{site.topic}-gone", f"{site.topic}-stays"
    written = {topic: stored(site, topic, 2) for topic in (gone, stays)}
    connector(site, {"topics": [f"{site.topic}-*"]}, {"topic": "copy-{topic}", "queues": 2, "order": "queue"})
    site.waybill("run", NAME)
    client.topics.delete(gone)
    more = stored(site, stays, 2, begin=50)
    assert "is gone; it was read to" in both(site, "run", NAME)
    assert arrived(site, f"copy-{stays}") == {place: written[stays][place] + more[place] for place in more}
    assert gaps(site) == {(f"{gone}/{place}", 50, 50, "ended") for place in written[gone]}
    assert "is gone; it was read to" not in both(site, "run", NAME), "it is told once"

    again = stored(site, gone, 2, count=10, begin=1000)
    site.waybill("run", NAME)
    assert arrived(site, f"copy-{gone}") == {place: written[gone][place] + again[place] for place in again}

    (first, second) = sorted(f"{gone}/{place}" for place in again)
    for impossible in ("11", "1000000"):
        assert "Choose one from 0 to 10" in site.waybill("offsets", "set", NAME, first, impossible, code=2)
    site.waybill("offsets", "set", NAME, first, "4", "--yes")
    client.topics.delete(gone)
    assert f"deleted: from 4 to an unknown end) [connector {NAME}" in site.waybill("run", NAME, code=5)
    site.waybill("run", NAME, "--accept-gaps")
    assert gaps(site) >= {(first, 4, None, "deleted"), (second, 10, 10, "ended")}
    site.waybill("run", NAME)


def test_a_topic_deleted_in_a_window_ends_alone(site: Site, client: Client) -> None:
    gone, stays = f"{site.topic}-1", f"{site.topic}-2"
    written = {topic: stored(site, topic, 1) for topic in (gone, stays)}
    site.settings |= {"WAYBILL_QUANTUM_S": "1s", "WAYBILL_LINGER_S": "300ms"}
    connector(site, {"topics": [f"{site.topic}-*"]}, {"topic": "seen-{topic}", "queues": 1})
    with one_run(site):
        moved = partial(arrived_or_none, site)
        wait_for(lambda: all(moved(f"seen-{topic}") == written[topic] for topic in written), "both have been moved")
        client.topics.delete(gone)
        wait_for(lambda: len(gaps(site)) == 1, "its end is a gap")
        later = stored(site, stays, 1, begin=50)
        place = next(iter(later))
        expected = written[stays][place] + later[place]
        wait_for(lambda: arrived(site, f"seen-{stays}")[place] == expected, "the other one goes on")
    assert {(begin, end, why) for _, begin, end, why in gaps(site)} == {(50, 50, "ended")}


@pytest.mark.fault(costly=True)
def test_a_broker_that_comes_up_once_without_its_store_brings_nothing_twice(site: Site, rocketmq: RocketMQ) -> None:
    """It says that it has no such topic; afterwards it has the messages that it had."""
    topic = f"{site.topic}-in"
    written = stored(site, topic, 2)
    source = {"name_servers": site.name_servers, "topics": [f"{topic}*"]}
    site.apply(NAME, {"source": {"rocketmq": source}, "sink": {"file": {"path": "copy.txt"}}})
    site.waybill("run", NAME)
    with without_its_store(rocketmq):
        assert "is gone; it was read to" in both(site, "run", NAME)
    more = stored(site, topic, 2, begin=50)
    site.waybill("run", NAME)
    told = {(begin, end) for _, begin, end, why in gaps(site) if "there again" in why}
    assert told == {(0, 50)}
    lines = (site.folder / "copy.txt").read_bytes().splitlines()
    assert sorted(lines) == sorted(body for place in written for body in written[place] + more[place])


@contextmanager
def without_its_store(rocketmq: RocketMQ) -> Iterator[None]:
    """Its broker runs with an empty store inside."""
    (store,) = {path.parent for path in rocketmq.home.glob("**/commitlog")}
    rocketmq.kill()
    kept = store.rename(store.with_name("kept"))
    rocketmq.start()
    try:
        yield
    finally:
        rocketmq.kill()
        shutil.rmtree(store)
        kept.rename(store)
        rocketmq.start()


@pytest.mark.fault(costly=True)
def test_a_range_of_a_queue_that_a_topic_made_anew_has_no_more_is_a_gap(site: Site, client: Client) -> None:
    """The broker refuses each attempt to read it."""
    topic = f"{site.topic}-in"
    stored(site, topic, 2)
    site.apply(NAME, {**into_a_file(site, [f"{topic}*"]), "tasks": 1})
    site.fault("planned")
    site.waybill("run", NAME, code=-9)
    client.topics.delete(topic)
    later = stored(site, topic, 1, begin=500)
    assert "closed: from 0 to 50" in site.waybill("run", NAME, code=5)
    site.waybill("run", NAME, "--accept-gaps")
    site.waybill("run", NAME)
    lines = (site.folder / "copy.txt").read_bytes().splitlines()
    assert lines == [body for place in later for body in later[place]]
    assert {(begin, why) for _, begin, _, why in gaps(site)} == {(0, "closed"), (0, "recreated")}


def into_a_file(site: Site, topics: list[str]) -> dict[str, Any]:
    source = {"name_servers": site.name_servers, "topics": topics}
    return {"source": {"rocketmq": source}, "sink": {"file": {"path": "copy.txt"}}}


@pytest.mark.fault(costly=True)
def test_what_a_broker_has_left_that_lost_its_newest_messages_is_counted(site: Site, rocketmq: RocketMQ) -> None:
    """Its store is that of before: what was read of it is delivered again, and no receipt hides that."""
    topic = f"{site.topic}-in"
    written = stored(site, topic, 2)
    source = {"name_servers": site.name_servers, "topics": [topic]}
    site.apply(NAME, {"source": {"rocketmq": source}, "sink": {"file": {"path": "copy.txt"}}})
    site.waybill("run", NAME)
    with with_the_store_of_now(rocketmq):
        stored(site, topic, 2, begin=50)
        site.waybill("run", NAME)
    assert "rewound" in site.waybill("run", NAME, code=5)
    later = stored(site, topic, 2, begin=500)
    site.waybill("run", NAME, "--accept-gaps")
    receipts = site.json("receipts", NAME)["receipts"]
    assert sum(one["possible_duplicates"] for one in receipts) == 100, "those of before, and none that came later"
    lines = Counter((site.folder / "copy.txt").read_bytes().splitlines())
    assert [lines[body] for place in written for body in written[place]] == [2] * 100
    assert [lines[body] for place in later for body in later[place]] == [1] * 100


@contextmanager
def with_the_store_of_now(rocketmq: RocketMQ) -> Iterator[None]:
    """Its broker has the store of the begin of the block again at its end."""
    (store,) = {path.parent for path in rocketmq.home.glob("**/commitlog")}
    rocketmq.stop()
    kept = store.with_name("kept")
    shutil.copytree(store, kept)
    rocketmq.start()
    try:
        yield
    finally:
        rocketmq.kill()
        shutil.rmtree(store)
        kept.rename(store)
        rocketmq.start()


def test_a_topic_that_is_named_has_to_be_there(site: Site, client: Client) -> None:
    named = f"{site.topic}-named"
    stored(site, named, 1)
    connector(site, {"topics": [named, f"{site.topic}-*"]}, {"topic": f"copy-{site.topic}"})
    site.waybill("run", NAME)
    client.topics.delete(named)
    assert "take its name out of the source's topics" in site.waybill("run", NAME, code=6)


def both(site: Site, *words: str) -> str:
    """What a command that ends well prints, notices included."""
    out, err = (process := site.start(*words)).communicate(timeout=120)
    assert process.returncode == 0, out + err
    return out + err


def gaps(site: Site) -> set[tuple[str, int, int | None, str]]:
    return {(one["partition"], one["begin"], one["end"], one["reason"]) for one in site.json("gaps", NAME)["gaps"]}


def test_a_first_run_begins_where_the_document_says(site: Site, client: Client) -> None:
    source, group = f"{site.topic}-in", f"billing-{site.topic}"
    stored(site, source, 1, count=30)
    moment = datetime.now(UTC)
    time.sleep(0.01)
    stored(site, source, 1, count=20, begin=30)
    (queue,) = client.topics.read_queues(source)
    client.groups.create(group)
    client.groups.commit(group, queue, 45)
    begins = {"earliest": 0, moment.isoformat(): 30, f"group:{group}": 45, "latest": 50}
    for number, (start, begin) in enumerate(begins.items()):
        target = f"{site.topic}-out-{number}"
        connector(site, {"topics": [source], "start": start}, {"topic": target, "queues": 1})
        site.waybill("run", NAME)
        assert bodies_of(client, target) == [b"%s 0 %d" % (source.encode(), n) for n in range(begin, 50)], start
        site.waybill("connectors", "delete", NAME, "--yes")


def test_the_offset_of_a_group_in_a_former_topic_leaves_nothing_out(site: Site, client: Client) -> None:
    source, target, group = f"{site.topic}-in", f"{site.topic}-out", f"billing-{site.topic}"
    written = stored(site, source, 1, count=10)
    (queue,) = client.topics.read_queues(source)
    client.groups.create(group)
    client.groups.commit(group, queue, 45)
    connector(site, {"topics": [source], "start": f"group:{group}"}, {"topic": target, "queues": 1})
    site.waybill("run", NAME, code=5)
    assert {(begin, end, why) for _, begin, end, why in gaps(site)} == set(), "nothing is settled yet"
    site.waybill("run", NAME, "--accept-gaps")
    assert {(begin, end, why) for _, begin, end, why in gaps(site)} == {(45, None, "rewound")}
    assert arrived(site, target) == written


def test_a_queue_that_a_topic_gets_later_is_read_from_its_first_message(site: Site, client: Client) -> None:
    """Also where the document begins with what is newest: what was there before the first run is left out, not more."""
    source, target = f"{site.topic}-in", f"{site.topic}-out"
    stored(site, source, 2, count=10)
    connector(site, {"topics": [source], "start": "latest"}, {"topic": target, "queues": 1})
    site.waybill("run", NAME)
    stored(site, source, 2, count=10, begin=10)
    site.waybill("run", NAME)
    client.topics.create(source, 4)
    stored(site, source, 4, count=5, begin=20)
    lag = {one["partition"][-1]: one["lag"] for one in site.json("lag", NAME)["connectors"][0]["partitions"]}
    assert lag == {"0": 5, "1": 5, "2": 5, "3": 5}
    site.waybill("run", NAME)
    begins = {0: 10, 1: 10, 2: 20, 3: 20}
    wanted = [b"%s %d %d" % (source.encode(), queue, n) for queue, begin in begins.items() for n in range(begin, 25)]
    assert sorted(bodies_of(client, target)) == sorted(wanted)


def test_a_first_run_begins_at_the_offsets_that_the_document_names(site: Site, client: Client) -> None:
    source, target = f"{site.topic}-in", f"{site.topic}-out"
    stored(site, source, 3, count=40)
    first, second, third = client.topics.read_queues(source)
    place = f"{first.broker}/{{}}"

    def begins(offsets: dict[str, int], **more: str) -> None:
        start = {source: {place.format(queue): offset for queue, offset in offsets.items()}, **more}
        connector(site, {"topics": [source], "start": start}, {"topic": target, "queues": 3, "order": "queue"})

    begins({"7": 1})
    assert f"There is no queue {source}/{place.format(7)}" in site.waybill("run", NAME, code=2)
    begins({"0": 41})
    assert f"{first} ends at 40, before the 41" in site.waybill("plan", NAME, code=2)
    begins({"0": 12, "1": 40}, default="latest")
    planned = {one["partition"]: one["begin"] for one in site.json("plan", NAME)["partitions"]}
    assert planned == {str(first): 12, str(second): 40, str(third): 40}
    stored(site, source, 3, count=5, begin=40)
    site.waybill("run", NAME)
    wanted = {
        queue: [b"%s %d %d" % (source.encode(), queue, n) for n in range(begin, 45)]
        for queue, begin in ((0, 12), (1, 40), (2, 40))
    }
    assert arrived(site, target) == {place.format(queue): bodies for queue, bodies in wanted.items()}
    begins({"0": 0})
    site.waybill("run", NAME)
    assert arrived(site, target)[place.format(0)] == wanted[0], "a queue that was read goes on where it stands"


def test_a_target_that_cannot_be_a_topic_is_told_before_anything_is_read(site: Site) -> None:
    source = "long-" + site.topic.ljust(110, "x")
    stored(site, source, 1, count=1)
    connector(site, {"topics": [f"long-{site.topic}*"]}, {"topic": "copy-of-a-long-{topic}"})
    told = site.waybill("run", NAME, code=2)
    assert "would go to" in told
    assert "rename" in told


def test_two_topics_replicated_both_ways_have_every_message_once(site: Site, client: Client) -> None:
    """Each connector leaves out what the other has brought."""
    east, west = f"{site.topic}-east", f"{site.topic}-west"
    for topic in (east, west):
        stored(site, topic, 1, count=20)
    ways = {"eastward": (west, east), "westward": (east, west)}
    for name, (source, sink) in ways.items():
        connector(site, {"topics": [source], "copies": "leave_out"}, {"topic": sink}, name=name)
    for name in (*ways, *ways):
        site.waybill("run", name)
    both = sorted(b"%s 0 %d" % (topic.encode(), n) for topic in (east, west) for n in range(20))
    assert sorted(bodies_of(client, east)) == sorted(bodies_of(client, west)) == both
    receipts = site.json("receipts", "eastward")["receipts"]
    assert sum(one["filtered"] for one in receipts) == 20


def bodies_of(client: Client, topic: str) -> list[bytes]:
    if not client.topics.exists(topic):
        return []
    bodies: list[bytes] = []
    for queue, seen in client.offsets.bounds(topic).items():
        bodies += read(client, queue, seen.begin, seen.end)
    return bodies


def read(client: Client, queue: Queue, begin: int, end: int) -> list[bytes]:
    parts = client.read(queue, begin, end, deadline=time.monotonic() + 30)
    return [bytes(message.body) for part in parts for message in part.messages]


def arrived_or_none(site: Site, topic: str) -> dict[str, list[bytes]] | None:
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        return arrived(site, topic) if client.topics.exists(topic) else None
