"""Which queue a record goes to: the same for the same key, whoever asks, and for ever."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.rocketmq import Queue
from connect_core.sdk.records import Partition, encode_headers
from connect_core.sdk.testing.driving import range_of, records
from connect_core.sdk.values import Bounds, Floor, Range
from connect_core.systems.rocketmq.routing import (
    Router,
    has_rules,
    home_queue,
    kept_homes,
    pinned,
    pins_of,
    places_of,
    queues_for,
    queues_of,
    with_homes,
    with_rules,
)

QUEUES = [Queue("out", f"broker-{name}", number) for name in "ab" for number in range(2)]


def by(order: str, queues: list[Queue] = QUEUES, slot: int = 0, key: str = "in/b/0") -> Range:
    wanted = range_of(Partition(key), Bounds(0, 0, 0, 100), pins=pins_of("out", queues, order))
    return replace(wanted, slot=slot)


def routed(order: str, rows: pa.RecordBatch, slot: int = 0) -> dict[Queue, list[int]]:
    return {queue: rows.tolist() for queue, rows in Router(by(order, slot=slot)).routed(rows)}


def places(keys: list[bytes | None], queues: int, home: int = 0) -> list[int]:
    return places_of(pa.array(keys, pa.binary()), queues, home).tolist()


def test_where_keys_go_never_changes() -> None:
    """What was delivered under these numbers is looked for, and goes on, under these numbers."""
    keys = [b"", b"a", b"order-1", b"order-2", "größe".encode(), b"\xff\x00"]
    assert places(keys, 4) == [0, 3, 3, 1, 1, 1]
    assert places(keys, 7) == [0, 4, 6, 6, 3, 0]


def test_another_process_with_other_hashes_of_strings_routes_alike() -> None:
    told = "import sys, pyarrow as pa; from connect_core.systems.rocketmq.routing import places_of; "
    told += "print(places_of(pa.array([b'key-%d' % n for n in range(50)]), 5, 0).tolist())"
    other = {**os.environ, "PYTHONHASHSEED": "7"}
    answer = subprocess.run([sys.executable, "-c", told], env=other, capture_output=True, text=True, check=True).stdout
    assert answer.strip() == str(places([b"key-%d" % n for n in range(50)], 5))


@pytest.mark.parametrize("form", ["%d", "order-%06d", "%d-eu", "user:%d:cart", "0000%x"])
@pytest.mark.parametrize("queues", [2, 3, 4, 8, 12])
def test_keys_that_are_counted_up_are_spread(form: str, queues: int) -> None:
    filled = Counter(places([(form % n).encode() for n in range(4_000)], queues))
    assert len(filled) == queues
    assert max(filled.values()) < 1.5 * 4_000 / queues


@given(st.lists(st.one_of(st.none(), st.sampled_from(["a", "b", "", "long key"]), st.text(max_size=5)), max_size=60))
def test_every_record_goes_to_one_queue_in_order_and_equal_keys_to_the_same(keys: list[str | None]) -> None:
    found = routed("key", records([b"x"] * len(keys), key=list(keys)), slot=2)
    assert sorted(row for rows in found.values() for row in rows) == list(range(len(keys)))
    assert all(rows == sorted(rows) and rows for rows in found.values())
    queue_of_row = {row: queue for queue, rows in found.items() for row in rows}
    by_key: dict[str, set[Queue]] = {}
    for row, key in enumerate(keys):
        by_key.setdefault(key or "", set()).add(queue_of_row[row])
    assert all(len(queues) == 1 for queues in by_key.values())
    assert by_key.get("", {QUEUES[2]}) == {QUEUES[2]}, "without a key: the queue of the partition"


def test_a_batch_routes_as_each_of_its_records_alone() -> None:
    rows = records([b"x"] * 40, key=[f"k{n % 9}" for n in range(40)])
    alone = {row: next(iter(routed("key", rows.slice(row, 1)))) for row in range(40)}
    assert alone == {row: queue for queue, mine in routed("key", rows).items() for row in mine}


def test_the_sharding_key_is_the_last_property_of_that_name() -> None:
    headers = [
        encode_headers([("__SHARDINGKEY", "a")]),
        encode_headers([("color", "red"), ("__SHARDINGKEY", "b"), ("x", "y")]),
        encode_headers([("__SHARDINGKEY", "b"), ("__SHARDINGKEY", "a")]),
        encode_headers([("my__SHARDINGKEY", "b"), ("note", "__SHARDINGKEY\x01b")]),
        b"__SHARDINGKEY\x01\xff\xfe",  # neither UTF-8, nor ended
        None,
        encode_headers([("__SHARDINGKEY", "")]),
    ]
    rows = records([b"x"] * len(headers), headers=list(headers), key=["k"] * len(headers))
    keys: list[bytes | None] = [b"a", b"b", b"a", None, b"\xff\xfe", None, None]
    found = {row: queue for queue, mine in routed("sharding_key", rows, slot=1).items() for row in mine}
    assert [found[row] for row in range(len(keys))] == [QUEUES[place] for place in places(keys, 4, home=1)]


def test_records_without_any_headers_stay_with_their_partition() -> None:
    assert routed("sharding_key", records([b"a", b"b"]), slot=3) == {QUEUES[3]: [0, 1]}


def test_a_range_reaches_every_queue_that_it_pinned_and_one_without_keys_a_single_one() -> None:
    assert queues_of(by("key")) == queues_of(by("sharding_key", slot=7)) == QUEUES
    assert queues_of(by("key", QUEUES[:1])) == QUEUES[:1]
    assert queues_of(by("partition", slot=5)) == [QUEUES[1]]
    assert queues_of(by("queue", key="in/broker-b/3")) == [QUEUES[3]]


def test_ranges_by_partition_pin_what_they_always_did() -> None:
    assert pins_of("out", QUEUES[:1], "partition") == {"topic": "out", "queues": [["broker-a", 0]]}
    assert pins_of("out", QUEUES[:1], "queue") == {"topic": "out", "queues": [["broker-a", 0]], "order": "queue"}


def test_a_range_goes_on_where_it_was_pinned_when_the_topic_has_grown() -> None:
    wanted = by("key", QUEUES[:2])
    rows = records([b"x"] * 30, key=[f"k{n}" for n in range(30)])
    assert {queue for queue, _ in Router(wanted).routed(rows)} == set(QUEUES[:2])
    assert home_queue(wanted.partition, 3, wanted.pins.target) == QUEUES[1]


ALARMS = [Queue("alarms", "broker-a", 0), Queue("alarms", "broker-b", 0), Queue("alarms", "broker-b", 1)]


def with_alarms(order: str, slot: int = 0) -> Range:
    wanted = by(order, slot=slot)
    pins = with_rules(wanted.pins.target, {"alarms": pins_of("alarms", ALARMS, order)})
    return replace(wanted, pins=replace(wanted.pins, target=pins))


def test_a_range_with_rules_has_queues_in_all_of_their_topics() -> None:
    assert queues_of(with_alarms("partition", slot=5)) == [QUEUES[1], ALARMS[2]]
    assert queues_of(with_alarms("key")) == [*QUEUES, *ALARMS]
    assert pinned(with_alarms("partition").pins.target) == [*QUEUES, *ALARMS]
    assert has_rules(with_alarms("key").pins.target)
    assert not has_rules(by("key").pins.target)


@pytest.mark.parametrize("order", ["partition", "key"])
@given(
    rows=st.lists(
        st.tuples(st.sampled_from([None, "out", "alarms"]), st.sampled_from(["a", "b", "c", None])), min_size=1
    )
)
def test_each_output_goes_to_the_topic_of_its_rule_in_order(
    order: str, rows: list[tuple[str | None, str | None]]
) -> None:
    """In each topic to the queue that it would have there if there were no other; a topic of the sink may be named."""
    batch = records([b""] * len(rows), to=[to for to, _ in rows], key=[key for _, key in rows])
    found = {queue: places.tolist() for queue, places in Router(with_alarms(order)).routed(batch)}
    expected: dict[Queue, list[int]] = {}
    for topic, queues in (("out", QUEUES), ("alarms", ALARMS)):
        mine = [row for row, (to, _) in enumerate(rows) if (to or "out") == topic]
        wanted = by(order)
        alone = replace(wanted, pins=replace(wanted.pins, target=pins_of(topic, queues, order)))
        theirs = records([b""] * len(mine), key=[rows[row][1] for row in mine])
        expected |= {queue: [mine[place] for place in places] for queue, places in Router(alone).routed(theirs)}
    assert found == {queue: places for queue, places in expected.items() if places}


def test_what_named_a_topic_of_the_sink_stands_in_order_with_what_named_none() -> None:
    batch = records([b""] * 4, to=["out", None, "alarms", "out"])
    assert [(queue, rows.tolist()) for queue, rows in Router(with_alarms("partition")).routed(batch)] == [
        (QUEUES[0], [0, 1, 3]),
        (ALARMS[0], [2]),
    ]


def floor_in(queue: Queue, partition: str = "p", **evidence: str) -> Floor:
    return Floor(partition, str(queue), 5, evidence=evidence)


@pytest.mark.parametrize("order", ["partition", "queue"])
def test_a_partition_that_was_written_goes_on_in_its_queue_however_many_there_are(order: str) -> None:
    """Slot 4 had queue 0 of four. Now there are six."""
    more = [Queue("out", "broker-a", number) for number in range(6)]
    source, pins = Partition("in/broker-a/4"), pins_of("out", more, order)
    homes = kept_homes([floor_in(more[0], source.id)], {"out": pins})
    assert home_queue(source, 4, pins | with_homes(homes[source.id])) == more[0]
    assert home_queue(source, 4, pins) == more[4], "a new one is dealt out among all"


def test_of_several_queues_the_one_that_was_written_last_is_kept() -> None:
    pins = pins_of("out", QUEUES, "partition")
    known = [floor_in(QUEUES[1], id="7F01"), floor_in(QUEUES[3], id="7F03"), floor_in(QUEUES[2])]
    assert kept_homes(known, {"out": pins}) == {"p": {"out": QUEUES[3]}}
    assert kept_homes([known[2], floor_in(QUEUES[0])], {"out": pins}) == {}, "nobody knows which"


def test_floors_of_other_topics_and_of_keys_are_no_choice() -> None:
    elsewhere = floor_in(Queue("former", "broker-a", 0))
    assert kept_homes([elsewhere], {"out": pins_of("out", QUEUES, "partition")}) == {}
    assert kept_homes([floor_in(QUEUES[1])], {"out": pins_of("out", QUEUES, "key")}) == {}


def test_each_topic_that_rules_name_has_its_own_choice() -> None:
    alarms = [Queue("alarms", "broker-a", number) for number in range(3)]
    targets = {"out": pins_of("out", QUEUES, "partition"), "alarms": pins_of("alarms", alarms, "partition")}
    homes = kept_homes([floor_in(QUEUES[2]), floor_in(alarms[0])], targets)
    pins = with_rules(targets["out"], {"alarms": targets["alarms"]}) | with_homes(homes["p"])
    assert queues_for(Partition("x"), 1, pins) == [QUEUES[2], alarms[0]]
