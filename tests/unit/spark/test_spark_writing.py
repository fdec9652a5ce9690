"""A task's rows are stored in order, counted by queue, and told: scripted server, real bytes."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from connect_core.errors import DataError
from connect_core.rocketmq import SendUnknown, TopicMissing
from connect_core.rocketmq.testing import ScriptedServer, cut, reply
from connect_core.rocketmq.testing_queues import MemoryQueues
from connect_core.rocketmq.wire.batch_entries import decode_entries
from connect_core.rocketmq.wire.commands import RequestCode, ResponseCode
from connect_core.spark.messages import mapped
from connect_core.spark.options import WriteOptions, checked
from connect_core.spark.writing import prepare, summary, write

TYPES = {"value": "binary", "key": "string", "topic": "string"}


class Broker:
    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.queues = MemoryQueues()
        self.queues.attach(server)
        server.serve_route("orders", queues=3)

    def options(self, **more: str) -> WriteOptions:
        return checked(WriteOptions, {"name_servers": self.server.address, "topic": "orders"} | more)

    def write(self, *batches: dict[str, list[object]], partition: int = 0, **more: str) -> dict[str, int]:
        options = self.options(**more)
        columns = mapped([(name, TYPES[name]) for name in batches[0]], options)
        made = [pa.record_batch(batch) for batch in batches]
        return dict(write(options, columns, made, "job", partition))

    def stored(self) -> list[list[bytes]]:
        return [self.queues.bodies("orders", number) for number in range(3)]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with ScriptedServer() as server:
        yield Broker(server)


def test_a_task_writes_to_one_queue_in_order(broker: Broker) -> None:
    values = [b"%d" % number for number in range(2_500)]
    assert broker.write({"value": values[:10]}, {"value": values[10:]}, partition=4) == {"orders/broker-a/1": 2_500}
    assert broker.stored() == [[], values, []]
    sent = broker.server.requests(RequestCode.SEND_BATCH_MESSAGE)
    entries = [entry for request in sent for entry in decode_entries(bytes(request.body))]
    assert len({entry.properties for entry in entries}) == 2_500


def test_rows_with_keys_are_shared_out_in_order(broker: Broker) -> None:
    keys = [f"k{number % 5}" for number in range(1_000)]
    values = [f"{key}-{number}".encode() for number, key in enumerate(keys)]
    written = broker.write({"value": values, "key": keys}, routing="key")
    stored = broker.stored()
    assert sum(written.values()) == 1_000
    assert sorted(written.values()) == sorted(map(len, filter(None, stored)))
    for key in set(keys):
        (own,) = [found for bodies in stored if (found := [b for b in bodies if b.startswith(f"{key}-".encode())])]
        assert own == [value for value in values if value.startswith(f"{key}-".encode())]


def test_nothing_is_nothing(broker: Broker) -> None:
    options = broker.options()
    assert write(options, mapped([("value", "binary")], options), [], "job", 0) == {}
    assert broker.write({"value": [None, b""]}) == {"orders/broker-a/0": 2}
    assert broker.stored()[0] == [b"", b""]


def test_a_row_that_does_not_fit_is_refused_with_its_place(broker: Broker) -> None:
    with pytest.raises(
        DataError, match=r"body takes 3000 bytes, allowed are 2048 .*\[partition 2 of the DataFrame, row 3"
    ):
        broker.write({"value": [b"a", b"b"]}, {"value": [b"c", b"x" * 3_000]}, partition=2, max_message_bytes="2KiB")


def test_a_row_without_a_topic_and_one_with_an_inner_topic_are_refused(broker: Broker) -> None:
    for topics, told in (([None, "orders"], "names no topic"), (["TBW102"] * 2, "may not be written")):
        options = checked(WriteOptions, {"name_servers": broker.server.address})
        columns = mapped([("value", "binary"), ("topic", "string")], options)
        batch = pa.record_batch({"value": pa.array([b"a", b"b"]), "topic": pa.array(topics, pa.string())})
        with pytest.raises(DataError, match=told):
            write(options, columns, [batch], "job", 0)
    assert broker.stored() == [[], [], []]


def test_a_broker_that_does_not_answer_fails_the_task(broker: Broker) -> None:
    broker.server.on(RequestCode.SEND_BATCH_MESSAGE, cut)
    with pytest.raises(SendUnknown):
        broker.write({"value": [b"a"]})


def test_a_busy_broker_is_asked_again(broker: Broker) -> None:
    busy = reply(ResponseCode.FLOW_CONTROL, remark="busy")
    broker.server.on(RequestCode.SEND_BATCH_MESSAGE, busy, broker.queues.send)
    assert broker.write({"value": [b"a"]}) == {"orders/broker-a/0": 1}


def test_a_topic_that_is_not_there_is_told_before_anything_is_written(broker: Broker) -> None:
    prepare(broker.options())
    with pytest.raises(TopicMissing, match=r'option\("create", true\)'):
        prepare(broker.options(topic="missing"))


def test_counts_are_told_by_queue() -> None:
    assert summary([{"t/b/1": 2}, {"t/b/0": 1_000, "t/b/1": 1}]) == "1,003 messages (t/b/0: 1,000, t/b/1: 3)"
    assert summary([]) == "0 messages"
