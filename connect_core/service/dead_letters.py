"""The records that were rejected, as they were read."""

from __future__ import annotations

from connect_core.errors import ConfigError
from connect_core.ledger import DeadLetter
from connect_core.sdk.values import Json
from connect_core.service.opened import Opened


def listed(opened: Opened, name: str, *, last: int = 20) -> list[Json]:
    """The newest `last` of a connector, the newest first; without their payloads."""
    connector = opened.ledger.connector(name)
    return [_told(letter) for letter in opened.ledger.dead_letters(connector.uid, limit=last)]


def shown(opened: Opened, name: str, number: int) -> Json:
    """One with its `original`: the first 64 KiB of its bytes."""
    connector = opened.ledger.connector(name)
    letter = opened.ledger.dead_letter(number)
    if letter.uid != connector.uid:
        raise ConfigError(
            f"Dead letter {number} is not one of {name}", next_step=f"See `waybill dead-letters list {name}`"
        )
    return {**_told(letter), "original": letter.original}


def _told(letter: DeadLetter) -> Json:
    return {
        "id": letter.id,
        "stream": letter.stream,
        "partition": letter.partition.key,
        "incarnation": letter.incarnation,
        "offset": letter.offset,
        "ordinal": letter.ordinal,
        "stage": letter.stage,
        "kind": letter.kind,
        "message": letter.message,
        "topic": letter.topic,
        "run": letter.run_id,
        "stored_at": letter.stored_at,
    }
