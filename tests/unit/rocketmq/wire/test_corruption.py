"""Whatever bytes come, the codecs give a value or raise `WireFormatError`, and hold no more memory than the limit."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from connect_core.errors import WireFormatError
from connect_core.rocketmq.compression import decompress
from connect_core.rocketmq.wire import java_properties, properties
from connect_core.rocketmq.wire.batch_entries import decode_entries
from connect_core.rocketmq.wire.commands import PullResponse, SendResponse
from connect_core.rocketmq.wire.fields import from_fields
from connect_core.rocketmq.wire.frame import Framer
from connect_core.rocketmq.wire.header import Command, decode
from connect_core.rocketmq.wire.route import decode_cluster, decode_names, decode_queue_table, decode_route
from connect_core.rocketmq.wire.stored_message import crc_matches, decode_messages, host_text, plain_body
from tests.unit.rocketmq.vectors import EXCHANGES

ROUNDS = 10_000
TRACED_ROUNDS = 500
MAX_FRAME_BYTES = 1 << 20
MEMORY_LIMIT_BYTES = 32 << 20


def _attempt(read: object, *arguments: object) -> bool:
    """Whether it gave a value; any error but `WireFormatError` fails the test."""
    try:
        read(*arguments)  # type: ignore[operator]
    except WireFormatError:
        return False
    return True


def _read_messages(body: bytes) -> None:
    for message in decode_messages(body, decompress):
        crc_matches(message)
        host_text(message.born_host)
        _attempt(plain_body, message, decompress)
        _attempt(properties.decode, message.properties)


def _read_whole(data: bytes) -> None:
    """Everything that the client may do with the answer."""
    for command in map(decode, Framer(MAX_FRAME_BYTES).feed(data)):
        for kind in (PullResponse, SendResponse):
            _attempt(from_fields, kind, command.fields)
        body = bytes(command.body)
        for read in (_read_messages, decode_entries, decode_route, decode_cluster, java_properties.decode):
            _attempt(read, body)
        _attempt(decode_names, body, "topicList")
        _attempt(decode_queue_table, body, ("minOffset",))


def _corrupted(data: bytes, chance: random.Random) -> bytes:
    broken = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.randrange(len(broken))
        what = chance.randrange(4)
        if what == 0:
            broken[at] = chance.randrange(256)
        elif what == 1:
            broken[at] ^= 1 << chance.randrange(8)
        elif what == 2:
            del broken[at : at + chance.randrange(1, 9)]
            broken = broken or bytearray(b"\0")
        else:
            broken[at:at] = chance.randbytes(chance.randrange(1, 9))
    return bytes(broken)


def _with_length(frame: bytes) -> bytes:
    """The frame with its length set right, so that the corruption gets past the framer."""
    return (len(frame) - 4).to_bytes(4, "big") + frame[4:] if len(frame) >= 8 else frame


def _outcomes(rounds: int) -> dict[bool, int]:
    """How many corrupted answers could be read, and how many could not."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    frames = [exchange.reply for exchange in EXCHANGES.values()]
    outcomes = {True: 0, False: 0}
    for number in range(rounds):
        broken = _corrupted(chance.choice(frames), chance)
        outcomes[_attempt(_read_whole, _with_length(broken) if number % 2 else broken)] += 1
    return outcomes


def test_random_corruption() -> None:
    assert min(_outcomes(ROUNDS).values()) > ROUNDS // 100


def test_memory_stays_bounded() -> None:
    tracemalloc.start()
    try:
        _outcomes(TRACED_ROUNDS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MEMORY_LIMIT_BYTES


def test_a_length_near_the_limit_reserves_no_more_than_the_limit() -> None:
    tracemalloc.start()
    try:
        framer = Framer(MAX_FRAME_BYTES)
        framer.feed(MAX_FRAME_BYTES.to_bytes(4, "big"))
        with pytest.raises(WireFormatError):
            Framer(MAX_FRAME_BYTES).feed((MAX_FRAME_BYTES + 1).to_bytes(4, "big"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MAX_FRAME_BYTES + 100_000


def test_the_uncorrupted_frames_are_values() -> None:
    for exchange in EXCHANGES.values():
        (frame,) = Framer().feed(exchange.reply)
        assert isinstance(decode(frame), Command)
