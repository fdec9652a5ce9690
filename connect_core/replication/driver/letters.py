"""What the lanes read that move dead letters: the ledger has it, and workers do not know the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connect_core.config import encrypted_with, named_keys
from connect_core.ledger import SentLetter
from connect_core.replication.driver.context import RunContext
from connect_core.replication.driver.error_headers import PARTIAL, headers_of
from connect_core.sdk.values import ERRORS_SINK, OpenRange, Range
from connect_core.work import Letter, LetterKey, Letters

LETTERS_OF_A_RANGE = 1_000
BYTES_OF_A_LANE = 16 * 1024 * 1024
"""What a lane brings to its worker, in so many letters of each range at most. What does not fit is for the next one."""


def letters_of(context: RunContext, items: Sequence[OpenRange]) -> Mapping[str, Letters]:
    """By id of the partition. Ranges for which nothing is left get nothing, and go on with the next lane."""
    read = _to_send if context.stream == ERRORS_SINK else _to_replay
    found: dict[str, Letters] = {}
    left = BYTES_OF_A_LANE
    for wanted in (item.range for item in items):
        if left <= 0:
            break
        most = min(wanted.max_records, LETTERS_OF_A_RANGE)
        letters = read(context, wanted, most, min(wanted.max_bytes, left))
        found[wanted.partition.id] = letters
        left -= sum(len(one.value) for one in letters.rows)
    return found


def _to_replay(context: RunContext, wanted: Range, max_records: int, max_bytes: int) -> Letters:
    uid, ledger = context.connector.uid, context.ledger
    return ledger.letters_of(uid, wanted.stream, wanted.partition, wanted.begin, wanted.end, max_records, max_bytes)


def _to_send(context: RunContext, wanted: Range, max_records: int, max_bytes: int) -> Letters:
    uid, ledger = context.connector.uid, context.ledger
    sent, upto = ledger.letters_to_send(uid, wanted.partition, wanted.begin, wanted.end, max_records, max_bytes)
    return Letters(tuple(_on_its_way(context, one) for one in sent), upto)


def _on_its_way(context: RunContext, sent: SentLetter) -> Letter:
    """With the headers that it gets there."""
    kept = sent.letter
    added = [(PARTIAL, "true")] if kept.attributes is None else []
    if context.resolved.errors_headers:
        added += headers_of(context.connector.name, sent)
    return Letter(sent.number, kept.original, kept.topic, kept.attributes, kept.place, tuple(added))


def keys_of(context: RunContext, letters: Mapping[str, Letters] | None) -> tuple[LetterKey, ...]:
    """Those that some of these letters may be encrypted with; the newest first."""
    rows = (row for some in (letters or {}).values() for row in some.rows)
    if not any(encrypted_with(row.value, row.attributes) for row in rows):
        return ()
    revisions = context.ledger.revisions(context.connector.uid)
    return named_keys(one.document for one in reversed(revisions))
