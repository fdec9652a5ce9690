"""What a record says in the errors sink of where it was read and why it was rejected: headers. Pure.

The names are those of Kafka Connect and RocketMQ Connect. What they have and we do not (a stack trace, the class of a
converter) is left out. No value holds a payload: messages of rejections do not.
"""

from __future__ import annotations

from connect_core.ledger import SentLetter

PREFIX = "__connect.errors."
PARTIAL = "waybill.partial"
"""Set where only a part of the record is kept: of its payload, or nothing beside it."""
MAX_CHARACTERS = 1000


def headers_of(connector: str, sent: SentLetter) -> list[tuple[str, str]]:
    """Names with their values."""
    letter = sent.letter
    told = {
        "topic": letter.topic or "",
        "partition": letter.partition.key,
        "offset": str(letter.offset),
        "connector.name": connector,
        "task.id": str(sent.task),
        "stage": letter.stage,
        "exception.class.name": letter.kind,
        "exception.message": letter.message,
    }
    return [(f"{PREFIX}{name}", _printable(value)) for name, value in told.items() if value]


def _printable(text: str) -> str:
    """Headers are written with control characters between them."""
    return "".join(each if each.isprintable() else " " for each in text[:MAX_CHARACTERS])
