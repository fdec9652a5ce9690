"""The body of a batch send, which is also the body of an inner batch: entries one after the other, there and back.

Encoding is the sink's hottest loop: lists of bodies and of already encoded property strings go in, one bytes object comes
out, with one struct pack a message and one join. Topic, queue, system flag and born time are not in an entry: they come
from the request's header and hold for all entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

MAX_ENTRIES = 1_000
MAX_BATCH_BYTES = 3 * 1024 * 1024


class Entry(NamedTuple):
    """One message of a batch: user flag, body, raw property string."""

    flag: int
    body: bytes
    properties: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """An encoded batch: `count` messages in `body`."""

    count: int
    body: bytes


def encode_batch(bodies: Sequence[bytes], properties: Sequence[bytes], flags: Sequence[int] | None = None) -> Batch:
    """One batch of all of them. At most 1,000 messages and 3 MiB: callers that have more use `encode_batches`."""
    raise NotImplementedError


def encode_batches(
    bodies: Sequence[bytes], properties: Sequence[bytes], flags: Sequence[int] | None = None
) -> Iterator[Batch]:
    """The same messages, in order, in as many batches as the limits ask for; encoded one at a time, lazily."""
    raise NotImplementedError


def decode_entries(data: bytes) -> list[Entry]:
    """The entries of a batch body. Raises `WireFormatError` with the position when it is not one."""
    raise NotImplementedError
