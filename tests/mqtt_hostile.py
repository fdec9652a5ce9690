"""PUBLISH packets that no well-behaved broker sends, from a seed, and what docs/mqtt-source.md says becomes of each.

Written by hand after MQTT 5, sections 2 and 3.3: nothing here reads or writes with the code that is tested.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from enum import Enum
from itertools import cycle
from typing import NamedTuple

OWN_IDS = 30_000
"""Packet ids up to this belong to the packets that are numbered so; a mutated one has none of them but its own."""
_PUBLISH = 0x30
_FEFF, _ZERO = "\ufeff".encode(), b"\0"


class Fate(Enum):
    RECORD = "a record"
    LETTER = "a dead letter"
    BREAK = "the end of the connection"


class Expected(NamedTuple):
    """`large` says that RocketMQ does not take what stands beside the payload: a dead letter, too."""

    fate: Fate
    qos: int = 0
    packet_id: int = 0
    payload: bytes = b""
    large: bool = False


class Said(NamedTuple):
    """One packet as it goes over the line. Of one that is `cut` only so many bytes go the first time."""

    frame: bytes
    what: str
    expected: Expected
    cut: int = 0


def expected(frame: bytes, *, five: bool) -> Expected:
    """By the page. `frame` is a PUBLISH whose end is known."""
    begin = 1
    while frame[begin] & 0x80:
        begin += 1
    begin += 1
    if begin > 5:
        return Expected(Fate.BREAK)
    body, qos = frame[begin:], frame[0] >> 1 & 3
    if qos > 1 or len(body) < 2:
        return Expected(Fate.BREAK)
    topic_end = 2 + (body[0] << 8 | body[1])
    topic, at = body[2:topic_end], topic_end + 2 * qos
    if not topic or len(body) < at:
        return Expected(Fate.BREAK)
    packet_id = body[topic_end] << 8 | body[topic_end + 1] if qos else 0
    good = _is_utf8(topic)
    if five:
        length = _number(body, at)
        if length is None or len(body) < length[1] + length[0]:
            return Expected(Fate.BREAK)
        at = length[1] + length[0]
        good = good and _are_properties(body[length[1] : at])
    fate = Fate.RECORD if good else Fate.LETTER
    return Expected(fate, qos, packet_id, body[at:], large=at > 6_000)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _number(data: bytes, at: int) -> tuple[int, int] | None:
    value = 0
    for place, byte in enumerate(data[at : at + 4]):
        value += (byte & 0x7F) * 128**place
        if byte < 0x80:
            return value, at + place + 1
    return None


_FIXED = {0x01: 1, 0x02: 4, 0x23: 2}
_TEXTS = {0x03: 1, 0x08: 1, 0x26: 2}


def _are_properties(data: bytes) -> bool:
    at = 0
    while at < len(data):
        kind, at = data[at], at + 1
        if kind in _FIXED:
            at += _FIXED[kind]
        elif kind == 0x0B:
            number = _number(data, at)
            if number is None:
                return False
            at = number[1]
        elif kind in _TEXTS or kind == 0x09:
            for _ in range(_TEXTS.get(kind, 1)):
                end = at + 2 + int.from_bytes(data[at : at + 2], "big")
                if len(data) < end or len(data) < at + 2 or (kind in _TEXTS and not _is_utf8(data[at + 2 : end])):
                    return False
                at = end
        else:
            return False
    return at == len(data)


def length_of(value: int, least: int = 1) -> bytes:
    """A variable byte integer, in `least` bytes when it needs fewer (which MQTT does not allow)."""
    out = bytearray()
    while value or len(out) < least:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out[-1] &= 0x7F
    return bytes(out)


def framed(first: int, body: bytes, least: int = 1) -> bytes:
    return bytes([first]) + length_of(len(body), least) + body


def text(data: bytes) -> bytes:
    return len(data).to_bytes(2, "big") + data


class Parts(NamedTuple):
    topic: bytes
    packet_id: int
    properties: bytes
    payload: bytes
    qos: int = 1

    def body(self, *, five: bool) -> bytes:
        numbered = self.packet_id.to_bytes(2, "big") if self.qos else b""
        return text(self.topic) + numbered + self.rest(five=five)

    def rest(self, *, five: bool) -> bytes:
        return (length_of(len(self.properties)) + self.properties if five else b"") + self.payload


Mutation = Callable[[random.Random, Parts, bool], bytes]


def _frame(parts: Parts, five: bool) -> bytes:
    return framed(_PUBLISH | parts.qos << 1, parts.body(five=five))


def _flipped(rng: random.Random, parts: Parts, five: bool) -> bytes:
    body = bytearray(parts.body(five=five))
    for _ in range(rng.randint(1, 8)):
        body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
    return framed(_PUBLISH | 2, bytes(body))


def _flags(rng: random.Random, parts: Parts, five: bool) -> bytes:
    """DUP, retain and every QoS, 3 too."""
    return framed(_PUBLISH | rng.randrange(16), parts.body(five=five))


def _truncated(rng: random.Random, parts: Parts, five: bool) -> bytes:
    body = parts.body(five=five)
    return framed(_PUBLISH | 2, body[: rng.randrange(len(body))])


def _random(rng: random.Random, parts: Parts, five: bool) -> bytes:
    return framed(_PUBLISH | rng.choice((0, 2)), text(parts.topic) + rng.randbytes(rng.randrange(60)))


def _topic_length(rng: random.Random, parts: Parts, five: bool) -> bytes:
    body = parts.body(five=five)
    return framed(_PUBLISH | 2, rng.choice((0, 1, len(parts.topic) + 3, 0xFFFF)).to_bytes(2, "big") + body[2:])


def _properties_length(rng: random.Random, parts: Parts, five: bool) -> bytes:
    claimed = length_of(max(len(parts.properties) + rng.choice((-3, -1, 1, 5, 100_000)), 0))
    if rng.random() < 0.1:
        claimed = b"\xff\xff\xff\xff\x01"
    head = text(parts.topic) + parts.packet_id.to_bytes(2, "big")
    return framed(_PUBLISH | 2, head + claimed + parts.properties + parts.payload)


def _not_utf8(rng: random.Random, parts: Parts, five: bool) -> bytes:
    bad = rng.choice((b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82"))
    return _frame(_with_text(rng, parts, bad, five), five)


def _strange_text(rng: random.Random, parts: Parts, five: bool) -> bytes:
    odd = rng.choice((_FEFF, _ZERO, b"\x01", b"\x02", "\uffff".encode(), "\U0010ffff".encode(), b"+", b"#", b"\n", b""))
    return _frame(_with_text(rng, parts, odd, five), five)


def _with_text(rng: random.Random, parts: Parts, odd: bytes, five: bool) -> Parts:
    places = [
        lambda: parts._replace(topic=parts.topic + b"/" + odd),
        lambda: parts._replace(topic=odd + parts.topic),
        lambda: parts._replace(payload=odd + parts.payload),
        lambda: parts._replace(properties=b"\x03" + text(odd)),
        lambda: parts._replace(properties=b"\x08" + text(odd + b"r")),
        lambda: parts._replace(properties=b"\x26" + text(odd) + text(b"v")),
        lambda: parts._replace(properties=b"\x26" + text(b"n") + text(odd)),
    ]
    return rng.choice(places if five else places[:3])()


def _odd_properties(rng: random.Random, parts: Parts, five: bool) -> bytes:
    """Unknown, repeated, of the wrong length, an alias, and those of other packets."""
    odd = rng.choice(
        (
            b"\x7f\x00",
            b"\x00",
            b"\x11\x00\x00\x00\x05",  # session expiry
            b"\x01\x00\x01\x01",
            b"\x01\x07",  # there is no such payload format
            b"\x02\x00\x00\x00\x05" * 2,
            b"\x02\x00\x00",
            b"\x03" + text(b"a") + b"\x03" + text(b"b"),
            b"\x09\xff\xffshort",
            b"\x09" + text(rng.randbytes(40)),
            b"\x0b\x00",
            b"\x0b\x80\x80\x80\x80\x01",
            b"\x23\x00\x00",
            b"\x23\x00\x07",
            b"\x26" + text(b"alone"),
            b"\x26" + text(b"n") + text(b"1") + b"\x26" + text(b"n") + text(b"2"),
            b"\x26" + text(b"PROPERTIES") + text(b"1"),
            b"\x26" + text(b"UNIQ_KEY") + text(b"\x01KEYS\x01"),
        )
    )
    return _frame(parts._replace(properties=odd if rng.random() < 0.5 else odd + parts.properties), five)


def _alias_alone(rng: random.Random, parts: Parts, five: bool) -> bytes:
    return _frame(parts._replace(topic=b"", properties=b"\x23\x00\x07"), five)


def _nested(rng: random.Random, parts: Parts, five: bool) -> bytes:
    """With rules that look for a place in it."""
    deep = rng.choice((100, 254, 255, 256, 1023, 1024, 1025, 20_000))
    opened, closed = rng.choice(((b'{"meta":', b"}"), (b"[", b"]")))
    inner = opened * deep + b"1" + (closed * deep if rng.random() < 0.8 else b"")
    return _frame(parts._replace(payload=b'{"n": %d, "meta": %s}' % (parts.packet_id, inner)), five)


def _odd_json(rng: random.Random, parts: Parts, five: bool) -> bytes:
    odd = (b"1e400", b"-0", b"9" * 400, b'"\\ud800"', b"NaN", b'{"a":1,"a":2}', b"\xef\xbb\xbf1", b'"' + b"\\u0000" * 9)
    return _frame(parts._replace(payload=b'{"n": %d, "meta": %s}' % (parts.packet_id, rng.choice(odd))), five)


def _no_minimal_length(rng: random.Random, parts: Parts, five: bool) -> bytes:
    """The length of the packet in more bytes than it needs; five are too many."""
    return framed(_PUBLISH | 2, parts.body(five=five), least=rng.randint(3, 5))


def _empty(rng: random.Random, parts: Parts, five: bool) -> bytes:
    return _frame(parts._replace(payload=b""), five)


def _numbered_zero(rng: random.Random, parts: Parts, five: bool) -> bytes:
    return _frame(parts._replace(packet_id=0), five)


def _many_properties(rng: random.Random, parts: Parts, five: bool) -> bytes:
    some = b"".join(b"\x26" + text(b"name-%d" % n) + text(b"x") for n in range(16_000))
    return _frame(parts._replace(properties=some), five)


def _long_topic(rng: random.Random, parts: Parts, five: bool) -> bytes:
    return _frame(parts._replace(topic=(parts.topic + b"/" + b"x/" * 33_000)[:65_535]), five)


def _megabyte(rng: random.Random, parts: Parts, five: bool) -> bytes:
    return _frame(parts._replace(payload=parts.payload + b"m" * 1_000_000), five)


_EITHER: dict[str, Mutation] = {
    "flipped bits": _flipped,
    "other flags": _flags,
    "truncated": _truncated,
    "random bytes": _random,
    "a wrong length of the topic": _topic_length,
    "not UTF-8": _not_utf8,
    "strange characters": _strange_text,
    "deeply nested JSON": _nested,
    "odd JSON": _odd_json,
    "a length in more bytes": _no_minimal_length,
    "an empty payload": _empty,
    "packet id 0": _numbered_zero,
}
_OF_FIVE: dict[str, Mutation] = {
    "odd properties": _odd_properties,
    "a wrong length of the properties": _properties_length,
    "an alias without a topic": _alias_alone,
}
_RARE: dict[str, Mutation] = {"a topic of 65,535 bytes": _long_topic, "1 MB": _megabyte}
_RARE_OF_FIVE: dict[str, Mutation] = {"16,000 user properties": _many_properties}
_RARE_EVERY = 1_000
"""So many packets are there for each of the rare ones."""


class Hostility:
    """A script of packets, numbered in their order. At most `breaks` of them end their connection."""

    def __init__(self, rng: random.Random, *, five: bool, breaks: int) -> None:
        self._rng, self._five, self._breaks = rng, five, breaks
        self._mutations = cycle((_EITHER | (_OF_FIVE if five else {})).items())
        self._rare = [*(_RARE | (_RARE_OF_FIVE if five else {})).items()]
        self._number = 0

    def script(self, hostile: int, valid: int) -> list[Said]:
        """In any order, the rare ones among the `hostile`. Of the valid ones with QoS 1 one in fifty is cut in its
        middle the first time."""
        places = [True] * hostile + [False] * valid
        self._rng.shuffle(places)
        said: list[Said] = []
        for is_hostile in places:
            self._number += 1
            said.append(self._hostile() if is_hostile else self._valid())
        return said

    def _parts(self, qos: int = 1) -> Parts:
        number = self._number
        properties = b"".join(
            one
            for one in (
                b"\x01\x01",
                b"\x02" + (3_600).to_bytes(4, "big"),
                b"\x03" + text(b"application/json"),
                b"\x08" + text(b"answers/%d" % number),
                b"\x09" + text(self._rng.randbytes(8)),
                b"\x26" + text(b"site") + text(b"north"),
            )
            if self._rng.random() < 0.3
        )
        payload = b'{"n": %d, "pad": "%s"}' % (number, b"x" * self._rng.randrange(80))
        return Parts(b"hostile/%d" % self._rng.randrange(20), number, properties, payload, qos)

    def _valid(self) -> Said:
        frame = _frame(self._parts(qos=self._rng.random() < 0.8), self._five)
        said = Said(frame, "valid", expected(frame, five=self._five))
        cut = said.expected.qos and self._rng.random() < 0.02
        return said._replace(cut=self._rng.randrange(1, len(frame))) if cut else said

    def _hostile(self) -> Said:
        if self._number % _RARE_EVERY < len(self._rare):
            what, mutation = self._rare[self._number % _RARE_EVERY]
        else:
            what, mutation = next(self._mutations)
        for _ in range(200):
            frame = mutation(self._rng, self._parts(), self._five)
            fate = expected(frame, five=self._five)
            if self._suits(fate):
                return Said(frame, what, fate)
        frame = _frame(self._parts(), self._five)  # this kind always breaks the connection, and enough have
        return Said(frame, "valid", expected(frame, five=self._five))

    def _suits(self, fate: Expected) -> bool:
        """Whether it can be told from the others, and is not one break too many."""
        if fate.fate is Fate.BREAK:
            self._breaks -= 1
            return self._breaks >= 0
        return not fate.qos or fate.packet_id in (0, self._number) or fate.packet_id > OWN_IDS
