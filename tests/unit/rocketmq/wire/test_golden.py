"""What real servers sent (see `golden/record.py`), read as the client reads it."""

from __future__ import annotations

import pytest

from connect_core.rocketmq.compression import decompress
from connect_core.rocketmq.system_names import is_system_topic
from connect_core.rocketmq.wire import properties
from connect_core.rocketmq.wire.commands import (
    OffsetResponse,
    PullResponse,
    RequestCode,
    ResponseCode,
    SendRequest,
    SendResponse,
)
from connect_core.rocketmq.wire.fields import from_fields
from connect_core.rocketmq.wire.frame import Framer
from connect_core.rocketmq.wire.header import BINARY, Command, decode, encode
from connect_core.rocketmq.wire.route import decode_cluster, decode_names, decode_queue_table, decode_route
from connect_core.rocketmq.wire.stored_message import crc_matches, decode_messages, plain_body
from tests.unit.rocketmq.vectors import EXCHANGES, SERVERS

pytestmark = pytest.mark.parametrize("server", SERVERS)
COMPRESSED = b"compress me " * 20


def _decoded(frame: bytes) -> Command:
    (whole,) = Framer().feed(frame)
    return decode(whole)


def _reply(name: str, server: str) -> Command:
    return _decoded(EXCHANGES[f"{name}-{server}"].reply)


def test_requests_are_encoded_as_they_were_sent(server: str) -> None:
    for exchange in EXCHANGES.values():
        if exchange.name.endswith(server) and exchange.request[4] != BINARY:
            assert encode(_decoded(exchange.request)) == exchange.request


def test_every_reply_carries_the_opaque_of_its_request(server: str) -> None:
    exchanges = [exchange for name, exchange in EXCHANGES.items() if name.endswith(server)]
    assert len(exchanges) == 18
    for exchange in exchanges:
        request, reply = _decoded(exchange.request), _decoded(exchange.reply)
        assert reply.is_response
        assert reply.opaque == request.opaque


def test_servers_answer_in_their_own_encoding(server: str) -> None:
    expected = BINARY if server.endswith("binary") else 0
    assert EXCHANGES[f"max_offset-{server}"].reply[4] == expected


def test_mixed_pull(server: str) -> None:
    reply = _reply("pull_mixed", server)
    assert reply.code == ResponseCode.SUCCESS
    assert from_fields(PullResponse, reply.fields) == PullResponse(8, 0, 8, 0)
    messages = decode_messages(bytes(reply.body), decompress)
    assert [message.queue_offset for message in messages] == list(range(8))
    assert all(map(crc_matches, messages))
    plain = [plain_body(message, decompress) for message in messages]
    assert plain == [b"single body", b"first", b"", "dritte £".encode(), *[COMPRESSED] * 4]
    assert [message.flag for message in messages[:4]] == [5, 1, 2, 3]
    assert [message.sys_flag & 0x701 for message in messages[4:]] == [0x001, 0x101, 0x201, 0x301]
    assert {message.born_timestamp_ms for message in messages} == {1_700_000_000_000}
    assert {message.topic for message in messages} == {"golden"}


def test_properties_of_a_mixed_pull(server: str) -> None:
    messages = decode_messages(bytes(_reply("pull_mixed", server).body), decompress)
    single, first, _, third = (properties.decode(message.properties) for message in messages[:4])
    assert single["KEYS"] == "k1 k2"
    assert single["UNIQ_KEY"] == "7F000001000051AF0000000000000102"
    assert (first["TAGS"], third["ümlaut"]) == ("even", "wert")
    # Up to 5.3.3 the broker appends its own to every message of a batch.
    assert ("MSG_REGION" in first) == (server == "5.3.3")


def test_pull_inside_an_inner_batch(server: str) -> None:
    reply = _reply("pull_inner_batch", server)
    whole = decode_messages(bytes(reply.body), decompress)
    assert [message.queue_offset for message in whole] == [3, 4, 5]
    wanted = decode_messages(bytes(reply.body), decompress, 4)
    assert [message.body for message in wanted] == [b"", "dritte £".encode()]
    assert [message.flag for message in wanted] == [2, 3]


@pytest.mark.parametrize(
    ("name", "code", "remark"),
    [
        ("pull_caught_up", 19, "OFFSET_OVERFLOW_ONE"),
        ("pull_too_large", 21, "OFFSET_OVERFLOW_BADLY"),
        ("pull_too_small", 21, "OFFSET_TOO_SMALL"),
        ("pull_wrong_queue", 29, "queueId[9] is illegal"),
        ("pull_unknown_topic", 17, "topic[golden_missing] not exist"),
        ("send_unknown_topic", 17, "topic[golden_missing] not exist"),
        ("route_missing", 17, "No topic route info"),
    ],
)
def test_answers_that_are_not_success(server: str, name: str, code: int, remark: str) -> None:
    reply = _reply(name, server)
    assert reply.code == code
    assert reply.remark.startswith(remark)


def test_send_replies(server: str) -> None:
    single = from_fields(SendResponse, _reply("send_single", server).fields)
    batch = from_fields(SendResponse, _reply("send_batch", server).fields)
    assert (single.queue_id, single.first_offset) == (0, 0)
    assert batch.first_offset == 1
    assert len(batch.message_ids.split(",")) == 3


def test_offset_message_ids_are_those_of_the_send_replies(server: str) -> None:
    messages = decode_messages(bytes(_reply("pull_mixed", server).body), decompress)
    sent = from_fields(SendResponse, _reply("send_batch", server).fields).message_ids.split(",")
    assert [message.offset_message_id for message in messages[1:4]] == sent


def test_batch_request_holds_what_it_was_made_of(server: str) -> None:
    request = _decoded(EXCHANGES[f"send_batch-{server}"].request)
    assert request.code == RequestCode.SEND_BATCH_MESSAGE
    assert from_fields(SendRequest, request.fields).topic == "golden"


def test_documents(server: str) -> None:
    route = decode_route(_reply("route", server).body)
    (queues,) = route.queues
    assert (queues.broker, queues.readable, queues.writable) == ("broker-a", range(1), range(1))
    cluster = decode_cluster(_reply("cluster", server).body)
    assert cluster.brokers["broker-a"].master == route.brokers["broker-a"].master
    (stats,) = decode_queue_table(_reply("topic_stats", server).body, ("minOffset", "maxOffset"))
    assert stats.numbers == {"minOffset": 0, "maxOffset": 8}
    (progress,) = decode_queue_table(_reply("consume_stats", server).body, ("brokerOffset", "consumerOffset"))
    assert progress.numbers == {"brokerOffset": 8, "consumerOffset": 5}
    assert from_fields(OffsetResponse, _reply("max_offset", server).fields).offset == 8


def test_only_peoples_topics_are_listed(server: str) -> None:
    cluster = decode_cluster(_reply("cluster", server).body)
    names = decode_names(_reply("topic_list", server).body, "topicList")
    mine = {name for name in names if not is_system_topic(name, cluster)}
    assert {"golden", "golden_batch_queue"} <= mine
    assert all(name.startswith(("golden", "t-", "perf", "x", "y")) for name in mine)
