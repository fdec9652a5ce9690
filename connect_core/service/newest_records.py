"""The newest records of a source, looked at without taking them from it."""

from __future__ import annotations

import pyarrow as pa

from connect_core.config import revealed
from connect_core.errors import ConfigError
from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.systems import SYSTEMS, checked
from connect_core.work import Side


def newest(source: Side, last: int, *, instead: str) -> tuple[pa.RecordBatch, str | None]:
    """With the path of their file, where they have one. The rows of several queues get offsets that tell them apart;
    those of a file have theirs. Raises ConfigError, with what to do `instead`, for a source that cannot be looked at.
    """
    plugin = SYSTEMS[source.system]
    if plugin.peek_source is None or plugin.source_options is None:
        raise ConfigError(f"Records of {source.system} cannot be shown without taking them from it", next_step=instead)
    table = plugin.peek_source(checked(plugin.source_options, revealed(source), "source"), last)
    path = table.column("path")[0].as_py() if "path" in table.column_names and len(table) else None
    columns = [
        pa.array(range(len(table)), pa.int64())
        if name == "offset" and path is None
        else table.column(name).combine_chunks()
        for name in RECORD_SCHEMA.names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA), path
