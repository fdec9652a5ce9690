"""Content that systems are apt to change, by the name of what is special about it: what the suites feed.

A case that honestly cannot keep one of these names it in its attribute `unkept`.
"""

from __future__ import annotations

from collections.abc import Set

import pyarrow as pa

from connect_core.sdk.records import Record, header_pairs

VALUES: dict[str, bytes | None] = {
    "null": None,
    "empty": b"",
    "large": b"0123456789" * 10_000,
    "every byte": bytes(range(256)),
    "not text": b"\xff\xfe caf\xc3",
    "blanks": b" \t value \t ",
    "line feed": b"one\ntwo\n",
    "carriage return": b"one\r\ntwo\r\n",
    "NUL": b"\0before\0behind\0",
}
KEYS: dict[str, str | None] = {"no key": None, "empty key": "", "key": " Clé\t" + "k" * 300}
HEADERS: dict[str, tuple[tuple[str, str], ...]] = {
    "no headers": (),
    "headers": (("name", "one"), ("Name", ""), ("número", " dos ")),
    "repeated header": (("name", "one"), ("name", "two")),
}
NAMES: Set[str] = VALUES.keys() | KEYS.keys() | HEADERS.keys()


def check_names(unkept: Set[str]) -> None:
    """Whether a case declares what there is."""
    assert unkept <= NAMES, f"no such content: {sorted(unkept - NAMES)}"


def records_of(batch: pa.RecordBatch) -> list[Record]:
    """The rows of a batch, as a target would show them."""
    columns = (batch.column(name).to_pylist() for name in ("value", "key", "headers", "timestamp", "topic"))
    rows = zip(*columns, strict=True)
    return [Record(value, key, tuple(header_pairs(headers)), *rest) for value, key, headers, *rest in rows]
