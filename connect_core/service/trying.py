"""What the newest records of a source, or one that is typed, would become. Reads only, writes nothing.

Each record is told with its topic, tags, key and value, and what `becomes` of it: nothing where it is filtered, or is
`rejected` for the reason given. Outputs have a `value` of their own where transforms make one. `steps` has the value
behind each transform that the record has come to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from connect_core.config import (
    ConnectorDocument,
    WrittenDocuments,
    load_document,
    read_paths,
    resolve_source,
    with_keys,
)
from connect_core.config.ruling import pipeline_of
from connect_core.errors import ConfigError
from connect_core.replication.driver.dry_run import outputs_of, step_by_step
from connect_core.sdk.batches import typed_batch
from connect_core.sdk.plugin import TypedRecord
from connect_core.sdk.values import Json
from connect_core.service.documents import documents_known
from connect_core.service.inferred_fields import checked_together
from connect_core.service.newest_records import newest as records_of
from connect_core.service.opened import Opened, surroundings
from connect_core.systems import SYSTEMS
from connect_core.work import Side

NEWEST, MOST = 20, 1_000
"""So many records are tried, unless another number is given; and at most."""
_BY_HAND = """type one: --topic site/1/temp --payload '{"value": 1}'"""


@dataclass(frozen=True)
class Tried:
    """A document, and where its records are."""

    document: ConnectorDocument
    source: Callable[[], Side]


@dataclass(frozen=True)
class TryRequest:
    """Which records: the newest `last`; or, with a payload or a topic, one that is typed."""

    last: int = NEWEST
    payload: str | None = None
    topic: str | None = None
    tags: str | None = None
    key: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


def applied(opened: Opened, name: str) -> Tried:
    """Of a connector. Raises ConfigError for one without rules and transforms."""
    tried = planned(opened, name)
    if not (tried.document.rules or tried.document.reshapes or tried.document.encode.writes_keys):
        raise ConfigError(f"{name} has no rules and no transforms", next_step=f"Add one: waybill rules add {name} RULE")
    return tried


def planned(opened: Opened, name: str) -> Tried:
    """Of a connector, whatever becomes of its records."""
    connector = opened.ledger.connector(name)
    document = load_document(connector.document, f"connector {name}")
    return Tried(document, lambda: opened.resolved(connector).source)


def written(path: Path) -> Tried:
    """Of a file that holds one document, applied or not; fields that it infers are those that `apply` would store.
    Raises ConfigError with all of its faults."""
    return given(read_paths([path]), str(path))


def given(documents: WrittenDocuments, where: str) -> Tried:
    """The same of what was read from there."""
    home, settings = surroundings()
    found = checked_together(documents, home, settings, {}, stored=documents_known(lambda _: None))
    if len(found) > 1:
        raise too_many([one.document.name for one in found], where)
    document = found[0].document
    return Tried(document, lambda: resolve_source(document, home, settings))


def too_many(names: Sequence[str], where: str) -> ConfigError:
    """What is said of a file that holds several documents."""
    return ConfigError(
        f"There are {len(names)} documents: {', '.join(names)}", where=where, next_step="Name a file of one"
    )


def became(tried: Tried, asked: TryRequest) -> list[Json]:
    """What becomes of them. Raises ConfigError as `newest` does."""
    if asked.payload is None and asked.topic is None:
        return newest(tried, asked.last)
    record = TypedRecord((asked.payload or "").encode(), asked.topic, asked.tags, asked.key, asked.headers)
    return typed(tried, record)


def newest(tried: Tried, last: int) -> list[Json]:
    """Of the newest `last` records. Raises ConfigError where a source cannot be looked at without taking records."""
    return _became(tried.document, *records_of(tried.source(), last, instead=_BY_HAND))


def typed(tried: Tried, record: TypedRecord) -> list[Json]:
    """Of a record typed by hand."""
    return _became(tried.document, typed_batch(SYSTEMS[tried.document.source.system].typed(record)))


def _became(document: ConnectorDocument, records: pa.RecordBatch, path: str | None = None) -> list[Json]:
    pipeline = with_keys(pipeline_of(document))
    told = {row["offset"]: _told(row) | {"becomes": list[Json](), "steps": list[Json]()} for row in records.to_pylist()}
    for step, offset, value in step_by_step(pipeline, records, path):
        told[offset]["steps"].append({"step": step, "value": value})
    outputs, rejected = outputs_of(pipeline, records, path)
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
