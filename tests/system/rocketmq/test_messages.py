from __future__ import annotations

import time
import zlib

import lz4.frame
import pytest
import zstandard

from connect_core.errors import OffsetGone
from connect_core.rocketmq import Client, PullStatus, Queue, StoredMessage, TopicConfig, encode_batch, encode_batches
from connect_core.rocketmq.compression import decompress
from connect_core.rocketmq.network import command
from connect_core.rocketmq.wire import properties
from connect_core.rocketmq.wire.batch_entries import MAX_PROPERTIES_BYTES
from connect_core.rocketmq.wire.commands import RequestCode, SendRequest
from connect_core.rocketmq.wire.header import Command
from connect_core.rocketmq.wire.stored_message import crc_matches, plain_body
from tests.servers import RocketMQ
from tests.system.rocketmq.conftest import soon

pytestmark = pytest.mark.server


def _write(client: Client, queue: Queue, bodies: list[bytes], texts: list[bytes] | None = None) -> list[int]:
    """First offsets of the batches; returns when all of it is visible."""
    sender = client.sender(queue)
    batches = encode_batches(bodies, texts or [b""] * len(bodies))
    places = [sender.submit(batch, deadline=soon()) for batch in batches]
    places.append(sender.finish(deadline=soon()))
    client.barrier(queue.broker, deadline=soon())
    return [place.first_offset for place in places if place is not None]


def _read(client: Client, queue: Queue, begin: int, end: int) -> list[StoredMessage]:
    slices = list(client.read(queue, begin, end, deadline=soon()))
    assert not any(part.missing for part in slices)
    return [message for part in slices for message in part.messages]


def test_what_is_written_is_read(client: Client, queues: list[Queue]) -> None:
    bodies = [b"plain", b"", "ümlaut £".encode(), bytes(range(256)) * 100]
    texts = [properties.encode({"KEYS": f"k{number}", "größe": "süß"}) for number in range(4)]
    begun_ms = int(time.time() * 1000)
    assert _write(client, queues[0], bodies, texts) == [0]
    messages = _read(client, queues[0], 0, 4)
    assert [message.body for message in messages] == bodies
    assert [properties.decode(message.properties)["KEYS"] for message in messages] == ["k0", "k1", "k2", "k3"]
    assert properties.decode(messages[0].properties)["größe"] == "süß"
    assert all(map(crc_matches, messages))
    assert all(begun_ms - 1000 <= message.store_timestamp_ms <= time.time() * 1000 + 1000 for message in messages)
    assert _read(client, queues[1], 0, 10) == []


def test_many_messages_in_order_and_by_part(client: Client, queues: list[Queue]) -> None:
    bodies = [b"%d" % number for number in range(4321)]
    assert _write(client, queues[1], bodies) == [0, 1000, 2000, 3000, 4000]
    assert [message.body for message in _read(client, queues[1], 0, 4321)] == bodies
    assert [message.body for message in _read(client, queues[1], 999, 2001)] == bodies[999:2001]


def test_acknowledged_offsets_are_visible_behind_a_barrier(client: Client, queues: list[Queue]) -> None:
    sender = client.sender(queues[0])
    for turn in range(1, 31):
        sender.submit(encode_batch([b"x"] * 100, [b""] * 100), deadline=soon())
        acknowledged = sender.finish(deadline=soon())
        client.barrier(queues[0].broker, deadline=soon())
        assert acknowledged is not None
        assert client.offsets.end(queues[0]) == acknowledged.next_offset == turn * 100


def test_bounds_and_offsets_of_moments(client: Client, queues: list[Queue]) -> None:
    _write(client, queues[0], [b"a", b"b"])
    time.sleep(0.02)
    between_ms = int(time.time() * 1000)
    time.sleep(0.02)
    _write(client, queues[0], [b"c"])
    bounds = client.offsets.bounds(queues[0].topic)
    assert [(bounds[queue].begin, bounds[queue].end) for queue in queues] == [(0, 3), (0, 0)]
    assert bounds[queues[0]].last_update_ms >= between_ms
    assert (client.offsets.begin(queues[0]), client.offsets.end(queues[0])) == (0, 3)
    moments = [client.offsets.at_or_after(queues[0], moment) for moment in (0, between_ms, between_ms + 60_000)]
    assert moments == [0, 2, 3]


def test_compressed_bodies_keep_their_form(client: Client, queues: list[Queue]) -> None:
    plain = b"compress me " * 50
    packed = {0x001: zlib.compress, 0x101: lz4.frame.compress, 0x201: zstandard.ZstdCompressor().compress}
    sender = client.sender(queues[0])
    for flag, compress in packed.items():
        sender.submit(encode_batch([compress(plain)], [b""]), deadline=soon(), sys_flag=flag)
    sender.finish(deadline=soon())
    client.barrier(queues[0].broker, deadline=soon())
    messages = _read(client, queues[0], 0, 3)
    assert [message.sys_flag & 0x701 for message in messages] == list(packed)
    assert [plain_body(message, decompress) for message in messages] == [plain] * 3


def test_the_longest_properties_do_no_harm(client: Client, queues: list[Queue]) -> None:
    longest = b"a\x01" + b"x" * (MAX_PROPERTIES_BYTES - 3) + b"\x02"
    _write(client, queues[0], [b"1", b"2"], [longest, b""])
    _write(client, queues[0], [b"3"])
    messages = _read(client, queues[0], 0, 3)
    assert [message.body for message in messages] == [b"1", b"2", b"3"]
    assert properties.value_of(messages[0].properties, "a") == "x" * (MAX_PROPERTIES_BYTES - 3)


def test_offsets_outside_the_queue(client: Client, queues: list[Queue]) -> None:
    _write(client, queues[0], [b"a", b"b"])
    assert client.pull(queues[0], 2).status is PullStatus.CAUGHT_UP
    assert client.pull(queues[1], 0).status is PullStatus.CAUGHT_UP
    too_small = client.pull(queues[0], -1)
    assert (too_small.status, too_small.next_offset) == (PullStatus.TOO_SMALL, 0)
    assert client.pull(queues[0], 50).status is PullStatus.TOO_LARGE
    assert client.pull(queues[1], 50).status is PullStatus.TOO_LARGE
    with pytest.raises(OffsetGone):
        list(client.read(queues[0], 50, 60, deadline=soon()))


def test_a_topic_made_anew_is_noticed_by_its_end(client: Client, queues: list[Queue]) -> None:
    _write(client, queues[0], [b"old"] * 5)
    client.topics.delete(queues[0].topic)
    client.topics.create(queues[0].topic, 2)
    _write(client, queues[0], [b"new"])
    with pytest.raises(OffsetGone):
        list(client.read(queues[0], 5, 9, deadline=soon()))


def test_the_log_keeps_what_was_in_a_deleted_topic(client: Client, queues: list[Queue]) -> None:
    sender = client.sender(queues[0])
    sender.submit(encode_batch([b"one", b"two"], [b"", b""]), deadline=soon())
    stored = sender.finish(deadline=soon())
    assert stored is not None
    client.topics.delete(queues[0].topic)
    kept = client.with_id(queues[0].broker, stored.last_id)
    assert kept is not None
    assert (kept.topic, kept.queue_offset, kept.body) == (queues[0].topic, 1, b"two")
    inside, behind = f"{kept.physical_offset + 1:016X}", f"{kept.physical_offset + (1 << 40):016X}"
    assert client.with_id(queues[0].broker, stored.last_id[:-16] + inside) is None
    assert client.with_id(queues[0].broker, stored.last_id[:-16] + behind) is None


def test_inner_batches_are_read_message_by_message(client: Client, broker: RocketMQ, queues: list[Queue]) -> None:
    topic = queues[0].topic + "-batch"
    client.topics.put(TopicConfig(topic, 1, 1, attributes=(("queue.type", "BatchCQ"),)), broker.broker_name)
    queue = Queue(topic, broker.broker_name, 0)
    for bodies in ([b"0", b"1", b"2"], [b"3", b"4", b"5"]):
        batch = encode_batch(bodies, [b"k\x01v\x02"] * 3)
        request = SendRequest("test", topic, 0, 1, properties="UNIQ_KEY\x01ONE\x02")
        sent = command(RequestCode.SEND_BATCH_MESSAGE, request, batch.body)
        assert _code(client, broker, sent) == 0
    client.barrier(broker.broker_name, deadline=soon())
    messages = _read(client, queue, 1, 5)
    client.topics.delete(topic)
    assert [(message.queue_offset, message.body) for message in messages] == [
        (offset, b"%d" % offset) for offset in range(1, 5)
    ]


def _code(client: Client, broker: RocketMQ, sent: Command) -> int:
    """Of the answer. A broker that is busy has stored nothing, and is asked again."""
    while True:
        answer = client._network.start_sending(broker.broker_name, sent, soon()).result()
        if "TIMEOUT_CLEAN_QUEUE" not in (answer.remark or ""):
            return answer.code
        time.sleep(0.1)


def test_following_sees_messages_soon(client: Client, queues: list[Queue]) -> None:
    reader = client.follow(queues[0], 0, deadline=soon(), idle_timeout_s=0.2)
    slices = iter(reader)
    assert next(slices).messages == []
    sender = client.sender(queues[0])
    sender.submit(encode_batch([b"now"], [b""]), deadline=soon())
    sender.finish(deadline=soon())
    sent = time.monotonic()
    assert [message.body for message in next(slices).messages] == [b"now"]
    assert time.monotonic() - sent < 1.0
    slices.close()  # type: ignore[attr-defined]


def test_groups_as_lag_tools_see_them(client: Client, queues: list[Queue], group: str) -> None:
    _write(client, queues[0], [b"x"] * 7)
    assert client.groups.exists(group)
    assert group in client.groups.names()
    assert client.groups.committed(group, queues[0]) is None
    assert client.groups.commit(group, queues[0], 3)
    assert client.groups.committed(group, queues[0]) == 3
    progress = client.groups.progress(group, queues[0].topic)[queues[0]]
    assert (progress.end, progress.committed, progress.lag) == (7, 3, 4)
    assert not client.groups.online(group, queues[0].broker)
