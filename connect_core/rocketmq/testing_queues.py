"""Queues in memory behind a `ScriptedServer`, for tests: batches that are sent can be pulled, with a broker's caps.

    queues = MemoryQueues(cap=32)
    queues.attach(server)
    queues.append("orders", 0, b"one", b"two")

Answers pulls, sends, and the begin and end of a queue as a real broker does; a suspended pull at the end waits
until a message comes or its time is up.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict

from connect_core.rocketmq.testing import Link, ScriptedServer, reply
from connect_core.rocketmq.wire.batch_entries import BatchEntry, decode_entries
from connect_core.rocketmq.wire.commands import (
    PULL_SUSPENDS,
    OffsetResponse,
    PullRequest,
    PullResponse,
    QueueRequest,
    RequestCode,
    ResponseCode,
    SendRequest,
    SendResponse,
)
from connect_core.rocketmq.wire.fields import from_fields, to_fields
from connect_core.rocketmq.wire.header import Command
from connect_core.rocketmq.wire.stored_message import MAGIC_V1, StoredMessage, encode_message

STORE_TIMESTAMP_MS = 1_700_000_000_000
_LOOK_S = 0.02
_HOST = b"\x7f\0\0\1\0\0\x2a\x9f"
_Key = tuple[str, int]


class MemoryQueues:
    """At most `cap` messages go into one answer."""

    def __init__(self, *, cap: int = 32) -> None:
        self._cap = cap
        self._changed = threading.Condition()
        self._messages: defaultdict[_Key, list[StoredMessage]] = defaultdict(list)
        self._begins: defaultdict[_Key, int] = defaultdict(int)
        self._ends: defaultdict[_Key, int] = defaultdict(int)

    def attach(self, server: ScriptedServer) -> None:
        """Answers for this server's queues from now on."""
        server.on(RequestCode.PULL_MESSAGE, self.pull)
        server.on(RequestCode.SEND_BATCH_MESSAGE, self.send)
        server.on(RequestCode.SEND_MESSAGE_V2, self.send)
        server.on(RequestCode.GET_MIN_OFFSET, self.begin)
        server.on(RequestCode.GET_MAX_OFFSET, self.end)

    def append(self, topic: str, queue_id: int, *bodies: bytes) -> None:
        """Messages without properties."""
        self.append_with(topic, queue_id, b"", *bodies)

    def append_with(self, topic: str, queue_id: int, properties: bytes, *bodies: bytes) -> None:
        """Messages that all have these properties."""
        self._store((topic, queue_id), [BatchEntry(0, body, properties) for body in bodies], 0)

    def expire(self, topic: str, queue_id: int, begin: int) -> None:
        """Everything below that offset is gone, as after retention."""
        with self._changed:
            self._begins[topic, queue_id] = begin

    def remove(self, topic: str, queue_id: int, *offsets: int) -> None:
        """Makes holes."""
        with self._changed:
            messages = self._messages[topic, queue_id]
            messages[:] = [message for message in messages if message.queue_offset not in offsets]

    def bodies(self, topic: str, queue_id: int) -> list[bytes]:
        return [message.body for message in self.messages(topic, queue_id)]

    def messages(self, topic: str, queue_id: int) -> list[StoredMessage]:
        with self._changed:
            return list(self._messages[topic, queue_id])

    def send(self, request: Command, link: Link) -> None:
        """Stores a batch, or one message, and acknowledges it."""
        wanted = from_fields(SendRequest, request.fields)
        single = BatchEntry(wanted.flag, bytes(request.body), wanted.properties.encode())
        entries = decode_entries(bytes(request.body)) if wanted.batch else [single]
        first = self._store((wanted.topic, wanted.queue_id), entries, wanted.system_flag)
        reply(fields=to_fields(SendResponse(wanted.queue_id, first, "0")))(request, link)

    def pull(self, request: Command, link: Link) -> None:
        """A suspended pull does not keep other requests of its connection waiting."""
        wanted = from_fields(PullRequest, request.fields)
        if wanted.system_flag & PULL_SUSPENDS:
            threading.Thread(target=self._suspend, args=(wanted, request, link), daemon=True).start()
        else:
            self._answer_pull(wanted, request, link)

    def _suspend(self, wanted: PullRequest, request: Command, link: Link) -> None:
        key = wanted.topic, wanted.queue_id
        deadline = time.monotonic() + wanted.suspend_ms / 1000
        with self._changed:
            while link.open and self._ends[key] == wanted.offset and time.monotonic() < deadline:
                self._changed.wait(_LOOK_S)
        self._answer_pull(wanted, request, link)

    def _answer_pull(self, wanted: PullRequest, request: Command, link: Link) -> None:
        key = wanted.topic, wanted.queue_id
        with self._changed:
            code, remark, next_offset = self._status(key, wanted.offset)
            found = self._found(key, wanted) if code == ResponseCode.SUCCESS else []
            if found:
                next_offset = found[-1].queue_offset + 1
            header = PullResponse(next_offset, self._begins[key], self._ends[key], 0)
        body = b"".join(map(encode_message, found))
        reply(code, fields=to_fields(header), body=body, remark=remark)(request, link)

    def begin(self, request: Command, link: Link) -> None:
        self._answer_offset(request, link, self._begins)

    def end(self, request: Command, link: Link) -> None:
        self._answer_offset(request, link, self._ends)

    def _answer_offset(self, request: Command, link: Link, offsets: dict[_Key, int]) -> None:
        wanted = from_fields(QueueRequest, request.fields)
        reply(fields=to_fields(OffsetResponse(offsets[wanted.topic, wanted.queue_id])))(request, link)

    def _status(self, key: _Key, offset: int) -> tuple[ResponseCode, str, int]:
        begin, end = self._begins[key], self._ends[key]
        if offset < begin:
            return ResponseCode.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL", begin
        if offset > end:
            return ResponseCode.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY", end
        if offset == end:
            return ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE", end
        return ResponseCode.SUCCESS, "FOUND", end

    def _found(self, key: _Key, wanted: PullRequest) -> list[StoredMessage]:
        stored = [message for message in self._messages[key] if message.queue_offset >= wanted.offset]
        return stored[: min(self._cap, wanted.max_messages)]

    def _store(self, key: _Key, entries: list[BatchEntry], sys_flag: int) -> int:
        with self._changed:
            first = self._ends[key]
            for offset, entry in enumerate(entries, first):
                self._messages[key].append(_stored(key, offset, entry, sys_flag))
            self._ends[key] += len(entries)
            self._changed.notify_all()
            return first


def _stored(key: _Key, offset: int, entry: BatchEntry, sys_flag: int) -> StoredMessage:
    topic, queue_id = key
    return StoredMessage(
        total_size=0,
        magic=MAGIC_V1,
        body_crc=0,
        queue_id=queue_id,
        flag=entry.flag,
        queue_offset=offset,
        physical_offset=offset,
        sys_flag=sys_flag,
        born_timestamp_ms=STORE_TIMESTAMP_MS,
        born_host=_HOST,
        store_timestamp_ms=STORE_TIMESTAMP_MS,
        store_host=_HOST,
        reconsume_times=0,
        prepared_transaction_offset=0,
        body_length=0,
        topic=topic,
        body=entry.body,
        properties=entry.properties,
    )
