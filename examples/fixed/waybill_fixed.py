"""The format `fixed`: texts at fixed places of a line, as mainframes write them. `widths` says how many characters each
field has; blanks fill it up, and what does not fit is rejected.
"""

from __future__ import annotations

import pyarrow as pa
from pydantic import BaseModel, Field

from connect_core.sdk.row_formats import Payloads, RowFormat
from connect_core.sdk.row_functions import Changed


class Options(BaseModel, extra="forbid"):
    widths: dict[str, int] = Field(min_length=1, description="How many characters each field has, in their order.")


def _fields(options: Options, declared: pa.Schema | None) -> pa.Schema:
    if declared is not None:
        raise ValueError("widths says the fields of format fixed: leave out fields")
    return pa.schema([(name, pa.string()) for name in options.widths])


def _read(options: Options, fields: pa.Schema, payloads: pa.Array) -> Changed:
    rows = [_row(options, payload) for payload in payloads.to_pylist()]
    wrong = pa.array([row is None for row in rows], pa.bool_())
    return Changed(pa.RecordBatch.from_pylist([row or {} for row in rows], schema=fields), wrong)


def _row(options: Options, payload: bytes) -> dict[str, str] | None:
    """None for a line of another length, or that is no UTF-8."""
    try:
        line = payload.decode()
    except UnicodeDecodeError:
        return None
    if len(line) != sum(options.widths.values()):
        return None
    ends = [sum(list(options.widths.values())[:count]) for count in range(len(options.widths) + 1)]
    return {name: line[begin:end].rstrip(" ") for name, begin, end in zip(options.widths, ends, ends[1:], strict=False)}


def _takes(options: Options, rows: pa.Schema) -> None:
    for name in options.widths:
        if name not in rows.names or rows.field(name).type != pa.string():
            raise ValueError(f"needs a field {name} of type text")


def _write(options: Options, rows: pa.RecordBatch) -> Payloads:
    lines = [_line(options, row) for row in rows.to_pylist()]
    wrong = pa.array([line is None for line in lines], pa.bool_())
    return Payloads(pa.array([line or b"" for line in lines], pa.binary()), wrong)


def _line(options: Options, row: dict[str, str | None]) -> bytes | None:
    """None where a text is longer than its field, or ends in a blank, which would be gone when it is read."""
    texts = [row[name] or "" for name in options.widths]
    if any(len(text) > width or text.endswith(" ") for text, width in zip(texts, options.widths.values(), strict=True)):
        return None
    return "".join(text.ljust(width) for text, width in zip(texts, options.widths.values(), strict=True)).encode()


FIXED = RowFormat(
    "Fields at fixed places", Options, fields=_fields, read=_read, takes=_takes, write=_write, deterministic=True
)
