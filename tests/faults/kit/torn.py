"""What a broker's death in the middle of a write leaves of a batch: its log ends within a message.

A broker copies a batch into its log, which is memory of a file: what was copied when it died stays, and behind it the
file holds zeros. `tear` makes that of the last batch, at a chosen byte. When the broker comes back it keeps every
message in front of the first that does not add up; it compares the checksum of bodies, and none of properties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

from tests.faults.kit.checker import Account
from tests.servers import RocketMQ

DAMAGED = Account(repeated=1, duplicates=1)
"""One message is there without what makes it a record of ours, and is told (docs/delivery.md)."""
_SIZE_AND_MAGIC = Struct(">ii")
_MAGIC = 0xDAA320A7 - (1 << 32)
_BODY_LENGTH_AT = 84
"""With hosts of IPv4, as all are here."""


@dataclass(frozen=True)
class Logged:
    """One message: where it begins in its file, and where its parts do."""

    begin: int
    body: int
    topic: int
    properties: int
    end: int


def batch_at_the_end(broker: RocketMQ, topic: str, count: int) -> tuple[Path, list[Logged]]:
    """The last `count` messages of the topic, and the file that holds them. The broker is dead."""
    for path in sorted((broker.home / "rocketmq" / "store" / "commitlog").iterdir(), reverse=True):
        data = path.read_bytes()  # the next file is there before it is written
        mine = [one for one in _messages(data) if data[one.topic : one.properties - 2] == topic.encode()]
        if mine:
            return path, mine[-count:]
    raise AssertionError(f"the log has no message of {topic}")


def tear(path: Path, at: int) -> None:
    """Everything from that byte of the file on was never written."""
    with path.open("r+b") as file:
        file.seek(0, 2)
        size = file.tell()
        file.seek(at)
        file.write(bytes(size - at))


def _messages(data: bytes) -> Iterator[Logged]:
    at = 0
    while at + _BODY_LENGTH_AT + 4 < len(data):
        size, magic = _SIZE_AND_MAGIC.unpack_from(data, at)
        if magic != _MAGIC or size <= 0:
            return
        body = at + _BODY_LENGTH_AT + 4
        topic = body + int.from_bytes(data[body - 4 : body], "big") + 1
        yield Logged(at, body, topic, topic + data[topic - 1] + 2, at + size)
        at += size


PLACES: dict[str, Callable[[Logged], int]] = {
    "between two messages": lambda one: one.begin,
    "within a head": lambda one: one.begin + 30,
    "within a body": lambda one: one.body + 5,
    "before the properties": lambda one: one.properties,
    "within the message id": lambda one: one.properties + 20,
    "within the coordinates": lambda one: one.end - 9,
    "before the last byte": lambda one: one.end - 1,
}
"""Where a message can be torn, and the byte."""


def place_of(batch: list[Logged], at: int) -> str:
    """In which part of a message a byte is."""
    one = next(one for one in batch if one.begin <= at < one.end)
    if at == one.begin:
        return "between two messages"
    if at < one.body:
        return "within a head"
    return "before the properties" if at < one.properties else "within the properties"
