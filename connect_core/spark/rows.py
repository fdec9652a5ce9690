"""Columns of stored messages -> record batches of the data source: only what was asked for is decoded.

Types are those that Spark's JVM reads from Arrow: times in microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from connect_core.errors import ConfigError
from connect_core.rocketmq import Queue
from connect_core.sdk.records import decode_headers
from connect_core.sdk.values import Reject
from connect_core.spark.options import ReadOptions
from connect_core.spark.ranges import ReadPiece
from connect_core.systems.rocketmq.attributes import attribute_columns
from connect_core.systems.rocketmq.columns import Columns, Numbers
from connect_core.systems.rocketmq.decoding import born_at, plain_bodies, sound

GAP = "gap"
_TIME = pa.timestamp("us", tz="UTC")
_HEADERS = pa.map_(pa.string(), pa.string())
_GAP = pa.struct([("begin", pa.int64()), ("end", pa.int64()), ("cause", pa.string())])
_TYPES: dict[str, tuple[str, pa.DataType]] = {
    "topic": ("string", pa.string()),
    "queue": ("string", pa.string()),
    "offset": ("bigint", pa.int64()),
    "key": ("string", pa.string()),
    "tags": ("string", pa.string()),
    "value": ("binary", pa.binary()),
    "headers": ("map<string,string>", _HEADERS),
    "timestamp": ("timestamp", _TIME),
    "stored_at": ("timestamp", _TIME),
    GAP: ("struct<begin:bigint,end:bigint,cause:string>", _GAP),
}
"""Each column's type in Spark's words and in Arrow's."""
_ATTRIBUTES = ("key", "tags", "headers")


def names(options: ReadOptions) -> list[str]:
    """The columns of a DataFrame, in order."""
    return [*options.columns, *([GAP] if options.on_data_loss == "skip" else [])]


def ddl(options: ReadOptions) -> str:
    return ", ".join(f"`{name}` {_type(name, options)[0]}" for name in names(options))


def _type(name: str, options: ReadOptions) -> tuple[str, pa.DataType]:
    return _TYPES["value" if name == "headers" and options.headers == "binary" else name]


def check_schema(options: ReadOptions, given: Sequence[str]) -> None:
    """Raises ConfigError when somebody gave a schema of their own that has other columns."""
    if list(given) != names(options):
        raise ConfigError(
            f"The schema has the columns {', '.join(given)}, the data source makes {', '.join(names(options))}",
            next_step='Choose columns with option("columns", …) and leave out schema(…)',
        )


class Rows:
    """Makes the rows of one queue."""

    def __init__(self, queue: Queue, options: ReadOptions) -> None:
        self.schema = pa.schema([(name, _type(name, options)[1]) for name in names(options)])
        self._queue = queue

    def decoded(self, columns: Columns, topic: str) -> tuple[pa.RecordBatch, tuple[Reject, ...]]:
        """A row for each message in order, and the messages that are none. A body is compared with its checksum only
        when it is asked for."""
        return sound(columns, topic, self._rows)

    def gap(self, piece: ReadPiece) -> pa.RecordBatch:
        """The one row that tells of a loss."""
        told = {
            "topic": piece.queue.topic,
            "queue": str(piece.queue),
            "offset": piece.begin,
            GAP: {"begin": piece.begin, "end": piece.end, "cause": piece.lost},
        }
        return pa.RecordBatch.from_pylist([{name: told.get(name) for name in self.schema.names}], schema=self.schema)

    def _rows(self, columns: Columns) -> pa.RecordBatch:
        if not len(columns):
            return pa.RecordBatch.from_pylist([], schema=self.schema)
        made = {name: make(columns, self._queue) for name, make in _MADE.items() if name in self.schema.names}
        if {*_ATTRIBUTES, "timestamp"} & set(self.schema.names):
            given = attribute_columns(columns.properties)
            made |= {name: getattr(given, name) for name in _ATTRIBUTES}
            made["timestamp"] = born_at(columns, given).cast(_TIME)
        if "headers" in self.schema.names and self.schema.field("headers").type == _HEADERS:
            made["headers"] = _maps(made["headers"])
        return pa.RecordBatch.from_arrays([made[name] for name in self.schema.names], schema=self.schema)


def _maps(headers: pa.Array) -> pa.Array:
    """Raises UnicodeDecodeError."""
    if headers.null_count == len(headers):
        return pa.nulls(len(headers), _HEADERS)
    decoded = (decode_headers(one) if one is not None else None for one in headers.to_pylist())
    return pa.array([one and list(one.items()) for one in decoded], type=_HEADERS)


def _times(milliseconds: Numbers) -> pa.Array:
    return pa.array(milliseconds * 1000).cast(_TIME)


_MADE: dict[str, Callable[[Columns, Queue], pa.Array]] = {
    "topic": lambda columns, queue: pa.repeat(pa.scalar(queue.topic), len(columns)),
    "queue": lambda columns, queue: pa.repeat(pa.scalar(str(queue)), len(columns)),
    "offset": lambda columns, queue: pa.array(columns.offsets),
    "value": lambda columns, queue: plain_bodies(columns),
    "stored_at": lambda columns, queue: _times(columns.stored_ms),
    GAP: lambda columns, queue: pa.nulls(len(columns), _GAP),
}
"""How each column is made, but for those that come from the properties."""
