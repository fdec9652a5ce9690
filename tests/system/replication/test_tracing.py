"""`waybill trace` follows one record: by its place in the source, in the target, its key, or what it says."""

from __future__ import annotations

import time
from typing import Any

import pytest

from connect_core.rocketmq import Client, ClientOptions, encode_batch
from connect_core.rocketmq.wire import properties
from tests.faults.kit.processes import wait_for
from tests.faults.kit.topics import fill
from tests.site import Site

pytestmark = pytest.mark.server

WRONG = 2
RULES = [
    {"name": "all", "keys": "{$.id}"},
    {"name": "odd", "when": "$.odd", "to": "TOPIC-odd"},
]


def traced(site: Site, *words: str) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = site.json("trace", "a", *words)["records"]
    return records


def lines_into_topics(site: Site, count: int, *rules: dict[str, str]) -> list[str]:
    """The places of the lines."""
    lines = [f'{{"id":"k{number}","odd":{str(number % 2 == 1).lower()}}}\n' for number in range(count)]
    (site.folder / "a.log").write_text("".join(lines))
    named = [{**one, **({"to": f"{site.topic}-odd"} if "to" in one else {})} for one in rules]
    sink = {"rocketmq": {"name_servers": site.name_servers, "topic": site.topic, "queues": 2}}
    site.apply("a", {"source": {"file": {"path": "*.log"}}, "sink": sink, "rules": named})
    site.waybill("run", "a", "--engine", "inline")
    return [f"{site.folder / 'a.log'}:{sum(map(len, lines[:number]))}" for number in range(count)]


def test_a_line_is_found_in_both_of_its_topics_by_each_of_its_names(inline_site: Site) -> None:
    line = lines_into_topics(inline_site, 400, *RULES)[301]
    [record] = traced(inline_site, "--source", line)
    [settled] = record["ranges"]
    assert settled["state"] == "delivered"
    with Client(ClientOptions(name_servers=tuple(inline_site.name_servers))) as client:
        wait_for(lambda: client.with_key(inline_site.topic, "k301"), "the index of the broker")
        (found, *_) = client.with_key(inline_site.topic, "k301")
        assert client.with_key(inline_site.topic, "k30x") == []
    assert f"{found[0]}:{found[1].queue_offset}" in settled["places"]
    assert {place.split("/")[0] for place in settled["places"]} == {inline_site.topic, f"{inline_site.topic}-odd"}
    for words in (("--key", "k301"), *(("--target", place) for place in settled["places"])):
        assert traced(inline_site, *words) == [record], words
    shown = inline_site.waybill("trace", "a", "--key", "k301")
    assert line in shown
    assert f"at {settled['places'][0]}" in shown


def test_a_record_that_is_in_no_target_says_why(inline_site: Site) -> None:
    even, odd, *_ = lines_into_topics(inline_site, 10, RULES[1])
    [record] = traced(inline_site, "--source", even)
    assert record["ranges"][0]["state"] == "not there"
    assert "5 filtered" in record["ranges"][0]["what"]
    [record] = traced(inline_site, "--source", odd)
    assert record["ranges"][0]["state"] == "delivered"
    [record] = traced(inline_site, "--source", f"{even.rpartition(':')[0]}:1000000")
    assert record["ranges"] == []
    assert "not read yet" in record["what"]


def test_a_record_that_was_delivered_and_is_there_no_more(inline_site: Site) -> None:
    line, *_ = lines_into_topics(inline_site, 10, *RULES)
    [record] = traced(inline_site, "--source", f"{line[:-1]}1")
    assert record["ranges"][0]["state"] == "no record"
    with Client(ClientOptions(name_servers=tuple(inline_site.name_servers))) as client:
        client.topics.delete(inline_site.topic)
    [record] = traced(inline_site, "--source", line)
    assert record["ranges"][0]["state"] == "missing"


def test_a_dead_letter_is_named(inline_site: Site) -> None:
    (inline_site.folder / "a.log").write_text('{"id":"k"}\n' + "x" * 5_000 + "\n")
    sink = {
        "rocketmq": {"name_servers": inline_site.name_servers, "topic": inline_site.topic, "max_message_bytes": 2048}
    }
    inline_site.apply("a", {"source": {"file": {"path": "*.log"}}, "sink": sink, "errors": {"tolerance": "all"}})
    inline_site.waybill("run", "a", "--engine", "inline")
    [record] = traced(inline_site, "--source", f"{inline_site.folder / 'a.log'}:11")
    [settled] = record["ranges"]
    assert settled["state"] == "rejected"
    assert len(settled["dead_letters"]) == 1


def test_places_that_name_no_record(inline_site: Site) -> None:
    lines_into_topics(inline_site, 10, *RULES)
    others = f"{inline_site.topic}-of-others"
    fill(inline_site.name_servers, others, [[b"x"]])
    for words in (
        (),
        ("--source", "nowhere:0"),
        ("--source", "nowhere"),
        ("--target", "nowhere"),
        ("--target", f"{inline_site.topic}/broker-a/0:999999"),
        ("--target", f"{others}/broker-a/0:0"),
        ("--key", "no-such-key"),
        ("--key", "k1", "--source", "a:0"),
    ):
        inline_site.waybill("trace", "a", *words, code=WRONG)


def test_what_another_program_wrote_under_the_name_of_a_record_is_told(inline_site: Site) -> None:
    line, *_ = lines_into_topics(inline_site, 1, *RULES)
    [place] = traced(inline_site, "--source", line)[0]["ranges"][0]["places"]
    with Client(ClientOptions(name_servers=tuple(inline_site.name_servers))) as client:
        (queue,) = [one for one in client.topics.write_queues(inline_site.topic) if place.startswith(f"{one}:")]
        at = int(place.rpartition(":")[2])
        (message,) = client.pull(queue, at, max_messages=1).messages
        sender = client.sender(queue)
        sender.submit(encode_batch([b"forged"], [message.properties]), deadline=time.monotonic() + 5)
        sender.finish(deadline=time.monotonic() + 5)
    inline_site.messages()
    [forged] = traced(inline_site, "--target", f"{queue}:{at + 1}")
    assert "no receipt says that place: another program wrote it" in forged["what"]
    assert forged["ranges"][0]["places"] == [place]
    assert traced(inline_site, "--target", place)[0]["what"] == ""


def test_a_line_of_a_file_is_within_the_bytes_of_its_range(inline_site: Site) -> None:
    (inline_site.folder / "a.log").write_text("one\ntwo\n")
    inline_site.apply("a", {"source": {"file": {"path": "*.log"}}, "sink": {"file": {"path": "out.txt"}}})
    inline_site.waybill("run", "a", "--engine", "inline")
    [record] = traced(inline_site, "--source", f"{inline_site.folder / 'a.log'}:4")
    assert record["ranges"][0]["state"] == "settled"
    assert "out.txt" in record["ranges"][0]["places"][0]
    assert "--source" in inline_site.waybill("trace", "a", "--key", "two", code=WRONG)


def test_copies_have_places_of_their_own(inline_site: Site) -> None:
    """A backfill has sent the line again; and a range of which an attempt died has been found, not sent again."""
    line, *_ = lines_into_topics(inline_site, 10, *RULES)
    path, _, offset = line.rpartition(":")
    inline_site.waybill("backfill", "a", "--range", f"{path}:{offset}-1000", "--engine", "inline")
    [record] = traced(inline_site, "--source", line)
    assert [one["stream"] == "live" for one in record["ranges"]] == [True, False]
    assert [one["state"] for one in record["ranges"]] == ["delivered"] * 2
    places = [place for one in record["ranges"] for place in one["places"]]
    assert len({*places}) == 2
    [alone] = traced(inline_site, "--target", places[1])
    assert alone["ranges"] == record["ranges"][1:]


def test_what_never_got_into_the_target_is_found_in_the_source(inline_site: Site) -> None:
    """By its key there, and by what it says: it is filtered, and the target knows nothing of it."""
    site, origin = inline_site, f"{inline_site.topic}-in"
    orders = [("paid", "k1 n1", b'{"id":1}'), ("open", "k2 n2", b'{"id":2}'), ("paid", "k3", b"no JSON")]
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        client.topics.create(origin, 1)
        [queue] = client.topics.write_queues(origin)
        sender, deadline = client.sender(queue), time.monotonic() + 60
        for tags, keys, body in orders:
            texts = properties.encode({"TAGS": tags, "KEYS": keys, "UNIQ_KEY": f"{keys[:2].upper()}-{site.topic}"})
            sender.submit(encode_batch([body], [texts]), deadline=deadline)
        sender.finish(deadline=deadline)
        wait_for(lambda: client.with_key(origin, "k2"), "the index of the broker")
    source = {"rocketmq": {"name_servers": site.name_servers, "topics": [origin]}}
    sink = {"rocketmq": {"name_servers": [*site.name_servers], "topic": site.topic, "queues": 1}}
    site.apply("a", {"source": source, "sink": sink, "filter": {"tags": ["paid"]}})
    [before] = traced(site, "--source-key", "k2")
    assert "not read yet" in before["what"]
    site.waybill("run", "a", "--engine", "inline")
    assert "--source-key" in site.waybill("trace", "a", "--key", "k2", code=WRONG)
    [record] = traced(site, "--source-key", "k2")
    assert (record["partition"], record["offset"]) == (str(queue), 1)
    assert record["ranges"][0]["state"] == "not there"
    for words in (
        ("--source-key", "n2"),
        ("--source-key", f"K2-{site.topic}"),
        ("--when", "$.id = 2", "--from", "1h"),
        ("--when", "$.id = 2", "--range", f"{queue}:-"),
        ("--when", "TAGS = 'open'", "--range", f"{queue}:1-2"),
    ):
        assert traced(site, *words) == [record], words
    [delivered] = traced(site, "--when", "payload:text = 'no JSON'", "--from", "1h")
    assert delivered["ranges"][0]["state"] == "delivered"
    told = site.json("trace", "a", "--when", "$.id = 2", "--from", "1h", "--to", "30m")
    assert (told["records"], told["searched"]["read"]) == ([], 0)
    site.waybill("trace", "a", "--source-key", "k9", code=WRONG)


def test_a_record_of_a_topic_that_was_created_anew_is_not_taken_for_the_one_before(inline_site: Site) -> None:
    site, origin = inline_site, f"{inline_site.topic}-in"
    fill(site.name_servers, origin, [[b'{"id":1}']])
    source = {"rocketmq": {"name_servers": site.name_servers, "topics": [origin]}}
    sink = {"rocketmq": {"name_servers": [*site.name_servers], "topic": site.topic, "queues": 1}}
    site.apply("a", {"source": source, "sink": sink})
    site.waybill("run", "a", "--engine", "inline")
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        client.topics.delete(origin)
    fill(site.name_servers, origin, [[b'{"id":2}', b'{"id":3}']])
    told = site.json("trace", "a", "--when", "$.id >= 1", "--range", f"{origin}/broker-a/0:0-")
    assert [one["offset"] for one in told["records"]] == [0, 1]
    assert [one["ranges"] for one in told["records"]] == [[], []]
    assert all("not read yet: the source was replaced" in one["what"] for one in told["records"])
