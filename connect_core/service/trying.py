"""What the newest records of a source, or one that is typed, would become. Reads only, writes nothing.

Each record is told with its topic, tags, key and value, and what `becomes` of it: nothing where it is filtered, or is
`rejected` for the reason given. Outputs have a `value` of their own where transforms make one.
"""

from __future__ import annotations

import pyarrow as pa

from connect_core.config import ConnectorDocument, load_document, revealed
from connect_core.config.ruling import pipeline_of
from connect_core.errors import ConfigError
from connect_core.ledger import Connector
from connect_core.replication.driver.dry_run import outputs_of
from connect_core.sdk.batches import RECORD_SCHEMA, typed_batch
from connect_core.sdk.plugin import TypedRecord
from connect_core.sdk.values import Json
from connect_core.service.opened import Opened
from connect_core.systems import SYSTEMS, checked
from connect_core.work import Side

_BY_HAND = """type one: --topic site/1/temp --payload '{"value": 1}'"""


def newest(opened: Opened, name: str, last: int) -> list[Json]:
    """Of the newest `last` records. Raises ConfigError where a source cannot be looked at without taking records, and
    for a connector without rules and transforms, as the next one."""
    connector = opened.ledger.connector(name)
    document, source = _document(connector), opened.resolved(connector).source
    _require_steps(document)
    records, path = _newest(source, last)
    return _became(document, records, path)


def typed(opened: Opened, name: str, record: TypedRecord) -> list[Json]:
    """Of a record typed by hand."""
    document = _document(opened.ledger.connector(name))
    _require_steps(document)
    return _became(document, typed_batch(SYSTEMS[document.source.system].typed(record)))


def _document(connector: Connector) -> ConnectorDocument:
    return load_document(connector.document, f"connector {connector.name}")


def _require_steps(document: ConnectorDocument) -> None:
    if not (document.rules or document.reshapes):
        raise ConfigError(
            f"{document.name} has no rules and no transforms",
            next_step=f"Add one: waybill rules add {document.name} RULE",
        )


def _newest(source: Side, last: int) -> tuple[pa.RecordBatch, str | None]:
    """With the path of their file, where they have one. The rows of several queues get offsets that tell them apart;
    those of a file have theirs."""
    plugin = SYSTEMS[source.system]
    if plugin.peek_source is None or plugin.source_options is None:
        raise ConfigError(f"Records of {source.system} cannot be shown without taking them from it", next_step=_BY_HAND)
    table = plugin.peek_source(checked(plugin.source_options, revealed(source), "source"), last)
    path = table.column("path")[0].as_py() if "path" in table.column_names and len(table) else None
    columns = [
        pa.array(range(len(table)), pa.int64())
        if name == "offset" and path is None
        else table.column(name).combine_chunks()
        for name in RECORD_SCHEMA.names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA), path


def _became(document: ConnectorDocument, records: pa.RecordBatch, path: str | None = None) -> list[Json]:
    told = {row["offset"]: _told(row) | {"becomes": list[Json]()} for row in records.to_pylist()}
    outputs, rejected = outputs_of(pipeline_of(document), records, path)
    for one in rejected:
        told[one.offset]["rejected"] = one.message
    for rule, row in outputs:
        becomes = {"rule": rule} | {name: row[name] for name in ("to", "tags", "key")}
        if row["value"] != told[row["offset"]]["value"]:
            becomes["value"] = row["value"]
        told[row["offset"]]["becomes"].append(becomes)
    return list(told.values())


def _told(row: Json) -> Json:
    return {name: row[name] for name in ("topic", "tags", "key")} | {"value": row["value"] or b""}
