"""Between the vocabulary's values and rows of the tables; pure. Used by the modules here that plan and settle."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

from connect_core.sdk.records import Partition
from connect_core.sdk.values import Floor, Gap, Json, Pins, Position, Range
from connect_core.work import COUNTS, Receipt

Row = dict[str, Any]

PLAIN_FIELDS = (
    *COUNTS,
    *("bytes_read", "bytes_written", "seconds", "digest_read", "digest_sent", "reconstructed", "covered"),
)
"""The fields of a receipt that are columns of the same name."""


def open_key(uid: str, stream: str, partition: Partition) -> str:
    return f"{uid}:{stream}:{partition.id}"


def target_id(target: str) -> str:
    return hashlib.blake2b(target.encode(), digest_size=8).hexdigest()


def storable(text: str) -> str:
    """Text that came out of a record, as every database takes it: NUL and lone surrogates are replaced."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def range_row(uid: str, wanted: Range) -> Row:
    """The columns of a plan that come from the plan itself."""
    return {
        "uid": uid,
        "stream": wanted.stream,
        "partition_id": wanted.partition.id,
        "partition_key": wanted.partition.key,
        "slot": wanted.slot,
        "incarnation": wanted.incarnation,
        "begin_offset": wanted.begin,
        "planned_end": wanted.end,
        "max_records": wanted.max_records,
        "max_bytes": wanted.max_bytes,
        "evidence": wanted.evidence,
        "pins": asdict(wanted.pins),
        "gaps": [asdict(gap) for gap in wanted.gaps],
        "open_key": open_key(uid, wanted.stream, wanted.partition),
    }


def range_of(row: Any) -> Range:
    return Range(
        stream=row.stream,
        partition=Partition(row.partition_key),
        slot=row.slot,
        incarnation=row.incarnation,
        begin=row.begin_offset,
        end=row.planned_end,
        max_records=row.max_records,
        max_bytes=row.max_bytes,
        evidence=row.evidence,
        pins=Pins(**row.pins),
        gaps=gaps_of(row.gaps),
    )


def gaps_of(stored: list[Json] | None) -> tuple[Gap, ...]:
    return tuple(Gap(**gap) for gap in stored or ())


def position_of(row: Any) -> Position:
    """Of a row of `offsets`."""
    return Position(row.incarnation, row.next_offset, row.evidence)


def position_row(uid: str, stream: str, partition: Partition, position: Position, moment: datetime) -> Row:
    return {
        "uid": uid,
        "stream": stream,
        "partition_id": partition.id,
        "partition_key": partition.key,
        "incarnation": position.incarnation,
        "next_offset": position.offset,
        "evidence": position.evidence,
        "changed_at": moment,
    }


def floor_of(row: Any) -> Floor:
    return Floor(row.partition_id, row.target, row.position, row.ahead, row.evidence)


def floor_row(uid: str, stream: str, floor: Floor, moment: datetime) -> Row:
    return {
        "uid": uid,
        "stream": stream,
        "target_id": target_id(floor.target),
        "changed_at": moment,
        **floor._asdict(),
    }


def receipt_row(receipt: Receipt) -> Row:
    """The columns of a receipt; floors and rejects have tables of their own."""
    return {
        **{name: getattr(receipt, name) for name in PLAIN_FIELDS},
        "end_offset": receipt.end,
        "delivered_where": receipt.where,
        "end_evidence": receipt.evidence,
        "end_gaps": [asdict(gap) for gap in receipt.gaps],
        "receipt_digest": receipt_digest(receipt),
    }


def receipt_of(row: Any) -> Receipt:
    """The receipt of a settled range, without its floors and rejects."""
    return Receipt(
        begin=row.begin_offset,
        end=row.end_offset,
        where=row.delivered_where,
        evidence=row.end_evidence,
        gaps=gaps_of(row.end_gaps),
        floors=(),
        **{name: getattr(row, name) for name in PLAIN_FIELDS},
    )


def receipt_digest(receipt: Receipt) -> str:
    """32 hex digits that tell one receipt from another, everything in it included."""
    digest = hashlib.blake2b(digest_size=16)
    plain = {field.name: getattr(receipt, field.name) for field in fields(receipt) if field.name not in _SEPARATE}
    digest.update(json.dumps(plain, sort_keys=True).encode())
    for gap in receipt.gaps:
        digest.update(json.dumps(asdict(gap), sort_keys=True).encode())
    for reject in receipt.rejects:
        named = (reject.offset, reject.ordinal, reject.stage, reject.kind, reject.message, reject.topic)
        digest.update(json.dumps([*named, reject.attributes, len(reject.original)]).encode())
        digest.update(reject.original)
    return digest.hexdigest()


_SEPARATE = ("gaps", "rejects")
