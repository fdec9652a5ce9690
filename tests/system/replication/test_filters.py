"""A condition lets the same messages pass as at a broker that filters by it itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connect_core.pipeline.shaping import Pipeline
from connect_core.rocketmq import Client, ClientOptions, Queue
from connect_core.rocketmq.compression import decompress
from connect_core.rocketmq.network import Network
from connect_core.rocketmq.wire import properties
from connect_core.rocketmq.wire.commands import PullRequest, PullResponse, RequestCode, ResponseCode
from connect_core.rocketmq.wire.fields import from_fields, to_fields
from connect_core.rocketmq.wire.header import Command
from connect_core.rocketmq.wire.stored_message import decode_messages
from connect_core.systems.rocketmq.columns import columns_of_messages
from connect_core.systems.rocketmq.decoding import record_batch
from tests.faults.kit.topics import fill
from tests.servers import RocketMQ
from tests.site import Site
from tests.system.replication.test_topics import NAME, connector

pytestmark = pytest.mark.server

VALUES = (
    *(None, "120", "100", "-5", "9.5", "1e3", " 7 ", "2147483648", "x", "eu", "us", "True", "false", "it's", "NaN"),
    *("0", "-0.0", "+7", "1e400", "5f"),
)
CONDITIONS = [
    *("a > 100", "a >= 100 AND b <> 'eu'", "a BETWEEN -5 AND 120", "a NOT BETWEEN 1 AND 100", "100 < a", "a = 120"),
    *("a > 9.4", "a = 9.5", "9.5 = a", "a < 1e3", "a = 2147483648", "a > -6", "a = -5", "a > 99L", "+100 <= a"),
    *("b IN ('eu', 'us')", "b NOT IN ('eu')", "b IS NULL", "b IS NOT NULL", "a = b", "a <> b", "a > b", "b <= a"),
    *("a = TRUE", "TRUE = a", "a = FALSE", "(b = 'eu') = TRUE", "(b = 'eu') = a", "a = (b = 'eu')", "1 = 1.0"),
    *("NOT a = 120", "NOT (a = 120)", "a", "NOT a", "a OR b = 'eu'", "TRUE", "NULL", "FALSE OR TRUE AND b = 'us'"),
    *("a > 100 OR b = 'eu'", "b = 'eu' OR a > 100", "a > 100 AND b = 'eu'", "b = 'eu' AND a > 100", "a > 1 IS NULL"),
    *("b = 'it''s'", "'eu' = b", "TAGS = 'paid'", "TAGS IN ('paid', 'x') AND a IS NOT NULL", "KEYS = 'k1'"),
    *("b CONTAINS 'u'", "b NOT CONTAINS 'u'", "b STARTSWITH 'e'", "b NOT ENDSWITH 's'", "b CONTAINS ''"),
    *("a BETWEEN b AND 200", "a = 1 = TRUE", "-a = 5", "'1' = 1", "missing = other", "a IS NULL AND b IS NULL"),
]


@pytest.fixture
def filtering(rocketmq: RocketMQ) -> Iterator[Network]:
    """The broker filters by properties, which it does not do by itself."""
    options = ClientOptions(name_servers=tuple(rocketmq.name_servers))
    with Client(options) as client:
        client.brokers.change_settings(rocketmq.broker_name, {"enablePropertyFilter": "true"})
        network = Network(options)
        try:
            yield network
        finally:
            network.close()
            client.brokers.change_settings(rocketmq.broker_name, {"enablePropertyFilter": "false"})


def passed(network: Network, queue: Queue, end: int, sql: str) -> list[int]:
    """The offsets of the messages that the broker lets pass."""
    found: list[int] = []
    offset = 0
    while offset < end:
        request = PullRequest("WAYBILL", queue.topic, queue.queue_id, offset, 32, subscription=sql)
        fields = {**to_fields(request), "expressionType": "SQL92"}
        reply = network.ask_broker(queue.broker, Command(RequestCode.PULL_MESSAGE, fields=fields))
        assert reply.code in (0, ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY), (sql, reply.remark)
        if reply.code == 0:
            found += [message.queue_offset for message in decode_messages(bytes(reply.body), decompress, offset)]
        offset = from_fields(PullResponse, reply.fields).next_offset
    return found


def test_a_condition_lets_pass_what_a_broker_does(site: Site, filtering: Network) -> None:
    texts = [
        properties.encode([(n, v) for n, v in (("a", a), ("b", b), ("TAGS", tags), ("KEYS", "k1")) if v is not None])
        for a in VALUES
        for b in (None, "eu", "us", "it's", "120", "50.0")
        for tags in (None, "paid")
    ]
    bodies = [b"%d" % n for n in range(len(texts))]
    fill(site.name_servers, site.topic, [bodies], [texts])
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        (queue,) = client.topics.read_queues(site.topic)
        parts = client.read(queue, 0, len(texts), deadline=1e12)
        messages = [message for part in parts for message in part.messages]
    records, _ = record_batch(columns_of_messages(messages), site.topic)
    judged = {sql: passed(filtering, queue, len(texts), sql) for sql in CONDITIONS}
    ours = {
        sql: Pipeline({"transforms": [], "filter": {"sql": sql}}).shape(records).kept.column("offset").to_pylist()
        for sql in CONDITIONS
    }
    assert {sql: (ours[sql], told) for sql, told in judged.items() if ours[sql] != told} == {}
    assert sum(0 < len(told) < len(texts) for told in judged.values()) > len(CONDITIONS) / 2, "most tell records apart"


def test_what_a_condition_leaves_out_is_counted_as_filtered(site: Site) -> None:
    texts = [properties.encode([("amount", str(n)), ("region", "eu" if n % 3 else "us")]) for n in range(200)]
    fill(site.name_servers, site.topic, [[b"%d" % n for n in range(200)]], [texts])
    connector(
        site, {"topics": [site.topic]}, {"topic": f"out-{site.topic}"}, filter={"sql": "amount > 100 AND region = 'eu'"}
    )
    site.waybill("run", NAME)
    wanted = [b"%d" % n for n in range(101, 200) if n % 3]
    with Client(ClientOptions(name_servers=tuple(site.name_servers))) as client:
        seen = client.offsets.bounds(f"out-{site.topic}")
        found = [
            bytes(message.body)
            for queue, bounds in seen.items()
            for part in client.read(queue, bounds.begin, bounds.end, deadline=1e12)
            for message in part.messages
        ]
    assert found == wanted
    (receipt,) = site.json("receipts", NAME)["receipts"]
    assert (receipt["read"], receipt["filtered"], receipt["delivered"]) == (200, 200 - len(wanted), len(wanted))
