"""What the lanes read that move dead letters: the ledger has it, and workers do not know the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connect_core.ledger import SentLetter
from connect_core.replication.driver.context import RunContext
from connect_core.replication.driver.error_headers import PARTIAL, headers_of
from connect_core.sdk.values import ERRORS_SINK, Json, OpenRange, Range
from connect_core.work import Letter, Letters

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
    rows = (Letter(one.number, one.letter.original, one.letter.topic, _attributes(context, one)) for one in sent)
    return Letters(tuple(rows), upto)


def _attributes(context: RunContext, sent: SentLetter) -> Json:
    """With the headers that it gets on its way, behind its own."""
    kept = sent.letter.attributes
    added = [[PARTIAL, "true"]] if kept is None else []
    if context.resolved.errors_headers:
        added += headers_of(context.connector.name, sent)
    names = {name for name, _ in added}
    own = [pair for pair in (kept or {}).get("headers", []) if pair[0] not in names]
    return {**(kept or {}), **({"headers": [*own, *added]} if added else {})}
