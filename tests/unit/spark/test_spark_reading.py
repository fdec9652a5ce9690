"""Pieces are read to their end, and whatever of them cannot be had is an error or a row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from connect_core.errors import DataError, OffsetGone
from connect_core.rocketmq import NoAnswer, Queue
from connect_core.rocketmq.testing import BROKER_NAME, Handler, ScriptedServer, reply, silence
from connect_core.rocketmq.testing_queues import MemoryQueues
from connect_core.rocketmq.wire.commands import OffsetResponse, RequestCode, ResponseCode
from connect_core.rocketmq.wire.fields import to_fields
from connect_core.spark.options import ReadOptions, checked
from connect_core.spark.ranges import ReadPiece
from connect_core.spark.reading import planned, read

QUEUE = Queue("orders", BROKER_NAME, 0)


class Broker:
    """One queue of a hundred messages whose bodies are their offsets."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.queues = MemoryQueues(cap=7)
        self.queues.attach(server)
        server.serve_route("orders", queues=1)
        self.queues.append("orders", 0, *(b"%d" % number for number in range(100)))

    def options(self, on_data_loss: str = "fail", **more: str) -> ReadOptions:
        given = {"name_servers": self.server.address, "columns": "offset,value", "on_data_loss": on_data_loss}
        return checked(ReadOptions, given | {"topics": "orders"} | more)

    def read(
        self, begin: int, end: int, on_data_loss: str = "fail", lost: str = "", **more: str
    ) -> list[dict[str, Any]]:
        batches = read(self.options(on_data_loss, **more), ReadPiece(QUEUE, begin, end, lost))
        return [row for batch in batches for row in batch.to_pylist()]

    def read_on(self, begin: int, end: int) -> tuple[list[int], list[tuple[int, int, str]]]:
        """The offsets of messages, and the gaps, where losses are accepted."""
        rows = self.read(begin, end, "skip")
        gaps = [tuple(row["gap"].values()) for row in rows if row["gap"]]
        return [int(row["value"]) for row in rows if not row["gap"]], gaps


@pytest.fixture
def broker() -> Iterator[Broker]:
    with ScriptedServer() as server:
        yield Broker(server)


def test_a_piece_is_read_to_its_end_and_no_further(broker: Broker) -> None:
    assert broker.read(3, 40) == [{"offset": number, "value": b"%d" % number} for number in range(3, 40)]
    assert broker.read(100, 100) == []


@pytest.mark.parametrize("answer", [silence, reply(ResponseCode.SYSTEM_BUSY)])
def test_a_broker_that_does_not_answer_in_time_has_lost_nothing(broker: Broker, answer: Handler) -> None:
    broker.server.on(RequestCode.PULL_MESSAGE, answer)
    with pytest.raises(NoAnswer, match=r"did not answer in 0\.2 s.*option busy_s"):
        broker.read(3, 40, "skip", busy_s="0.2")


def test_expired_messages_are_refused_or_told(broker: Broker) -> None:
    broker.queues.expire("orders", 0, 20)
    with pytest.raises(OffsetGone, match=rf"{QUEUE} from 10 to 20 \(the offset lies before the oldest message\)"):
        broker.read(10, 40)
    gap = (10, 20, "the offset lies before the oldest message")
    assert broker.read_on(10, 40) == (list(range(20, 40)), [gap])
    assert broker.read_on(5, 15) == ([], [(5, 15, gap[2])])


def test_holes_are_refused_or_told(broker: Broker) -> None:
    broker.queues.remove("orders", 0, 12, 13, 30)
    with pytest.raises(OffsetGone, match=r"from 12 to 14 \(no message has these offsets\)"):
        broker.read(10, 40)
    offsets, gaps = broker.read_on(10, 40)
    assert offsets == [number for number in range(10, 40) if number not in (12, 13, 30)]
    assert [gap[:2] for gap in gaps] == [(12, 14), (30, 31)]


def test_a_queue_that_ends_early_is_refused_or_told(broker: Broker) -> None:
    with pytest.raises(OffsetGone, match=r"from 100 to 120 \(the queue ends at 100\)"):
        broker.read(90, 120)
    assert broker.read_on(90, 120) == (list(range(90, 100)), [(100, 120, "the queue ends at 100")])


def test_a_queue_that_begins_anew_is_refused_or_told(broker: Broker) -> None:
    with pytest.raises(OffsetGone, match=r"from 110 to 120 \(The queue ends at 100, before the offset"):
        broker.read(110, 120)
    assert [gap[:2] for gap in broker.read_on(110, 120)[1]] == [(110, 120)]


def test_what_was_lost_before_is_told_without_asking(broker: Broker) -> None:
    (row,) = broker.read(0, 5, "skip", lost="deleted")
    assert row == {"offset": 0, "value": None, "gap": {"begin": 0, "end": 5, "cause": "deleted"}}
    assert broker.server.requests(RequestCode.PULL_MESSAGE) == []


def test_a_damaged_message_is_refused_or_told(broker: Broker) -> None:
    # No key can be decoded from bytes that are no text.
    broker.queues.append_with("orders", 0, b"KEYS\x01\xff\x02", b"100")
    assert broker.read(100, 101)[0]["value"] == b"100"
    with pytest.raises(DataError, match=rf"cannot be decoded: The properties are not UTF-8 \[{QUEUE}, offset 100\]"):
        broker.read(99, 101, columns="offset,key")
    rows = broker.read(99, 101, "skip", columns="offset,key")
    assert [(row["offset"], row["gap"] and row["gap"]["end"]) for row in rows] == [(99, None), (100, 101)]


def test_a_busy_broker_is_asked_again(broker: Broker) -> None:
    broker.server.on(
        RequestCode.PULL_MESSAGE,
        reply(ResponseCode.FLOW_CONTROL, remark="busy"),
        broker.queues.pull,
    )
    assert len(broker.read(0, 10)) == 10


def statistics(broker: Broker, begin: int, end: int) -> None:
    """What the broker says of its queue when Spark plans."""
    figures = {"minOffset": begin, "maxOffset": end, "lastUpdateTimestamp": 0}
    queue = {"topic": "orders", "brokerName": BROKER_NAME, "queueId": 0}
    table = f'{{"offsetTable":{{{json.dumps(queue)}:{json.dumps(figures)}}}}}'
    broker.server.on(RequestCode.GET_TOPIC_STATS_INFO, reply(body=table.encode()))


def test_bounds_below_the_oldest_message_are_refused_or_told_before_anything_is_read(broker: Broker) -> None:
    statistics(broker, 20, 100)
    bounds = json.dumps({str(QUEUE): [10, 30]})
    cause = "the oldest message there is has offset 20"
    with pytest.raises(OffsetGone, match=rf"{QUEUE} from 10 to 20 \({cause}\).*on_data_loss"):
        planned(broker.options(topics="", bounds=bounds))
    assert planned(broker.options("skip", topics="", bounds=bounds)) == [
        ReadPiece(QUEUE, 10, 20, cause),
        ReadPiece(QUEUE, 20, 30),
    ]
    assert planned(broker.options(range_records="40")) == [ReadPiece(QUEUE, 20, 60), ReadPiece(QUEUE, 60, 100)]


def test_a_time_of_which_older_messages_may_be_gone_is_refused_or_told(broker: Broker) -> None:
    statistics(broker, 20, 100)
    broker.queues.expire("orders", 0, 20)
    answer = to_fields(OffsetResponse(20))
    broker.server.on(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, reply(fields=answer))
    moment = {"from": "2020-01-01T00:00:00Z"}
    with pytest.raises(OffsetGone, match=rf"{QUEUE} from 0 to 20 \(deleted; messages of the time asked for may have"):
        planned(broker.options(**moment))
    doubt, there = planned(broker.options("skip", **moment))
    assert (doubt.begin, doubt.end, bool(doubt.lost)) == (0, 20, True)
    assert there == ReadPiece(QUEUE, 20, 100)
    statistics(broker, 0, 100)
    broker.queues.expire("orders", 0, 0)
    broker.server.on(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, reply(fields=to_fields(OffsetResponse(0))))
    assert planned(broker.options(**moment)) == [ReadPiece(QUEUE, 0, 100)]
