"""What of a file becomes a record, as the document says it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LineRules:
    """What becomes a record: at most `max_bytes` of a line, without a carriage return before its line feed where
    `drop_returns`; of a file that is compressed or binary nothing, unless `binary`."""

    max_bytes: int
    drop_returns: bool = True
    binary: bool = False
