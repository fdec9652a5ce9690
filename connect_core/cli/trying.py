"""rules try: what the newest records of a source, or one that is typed, would become. Reads only, writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from connect_core.cli import completing, output, session
from connect_core.cli.output import JsonFlag
from connect_core.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from connect_core.config import ConnectorDocument
    from connect_core.sdk.plugin import TypedRecord
    from connect_core.work import Side

_LAST = 20
_BY_HAND = """type one: --topic site/1/temp --payload '{"value": 1}'"""


def register(app: typer.Typer) -> None:
    app.command("try")(try_)


def try_(
    name: Annotated[
        str, typer.Argument(help="Name of the connector.", metavar="NAME", autocompletion=completing.connectors)
    ],
    last: Annotated[int, typer.Option("--last", min=1, max=1000, help="How many, the newest.")] = _LAST,
    payload: Annotated[str | None, typer.Option("--payload", help="A record typed by hand, instead.")] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="Its topic.")] = None,
    tags: Annotated[str | None, typer.Option("--tags", help="Its tags.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="Its key.")] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", help="One of its headers. Repeat it.", metavar="NAME=VALUE")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what each of the last 20 records of the source would become. Nothing is written or acknowledged."""
    from connect_core.config import load_document
    from connect_core.sdk.plugin import TypedRecord

    with session.reading() as opened:
        connector = opened.ledger.connector(name)
        document = load_document(connector.document, f"connector {name}")
        if payload is None and topic is None:
            side = opened.resolved(connector).source
    if not document.rules:
        raise ConfigError(f"{name} has no rules", next_step=f"Add one: waybill rules add {name} RULE")
    typed = TypedRecord((payload or "").encode(), topic, tags, key)
    records = _newest(side, last) if payload is None and topic is None else _typed(typed, header or [], document)
    told = _became(document, records)
    output.emit(as_json, {"connector": name, "records": told}, lambda: _show(told))


# ------------------------------------------------------------------------------------------------------ where they are


def _newest(side: Side, last: int) -> pa.RecordBatch:
    from connect_core.config import revealed
    from connect_core.systems import SYSTEMS, checked

    plugin = SYSTEMS[side.system]
    if plugin.peek_source is None or plugin.source_options is None:
        raise ConfigError(f"the records of {side.system} cannot be looked at without taking them", next_step=_BY_HAND)
    return _one_batch(plugin.peek_source(checked(plugin.source_options, revealed(side)), last))


def _typed(record: TypedRecord, headers: list[str], document: ConnectorDocument) -> pa.RecordBatch:
    import pyarrow as pa

    from connect_core.sdk.records import OPERATION_NONE, RECORD_SCHEMA, encode_headers
    from connect_core.systems import SYSTEMS

    if wrong := [one for one in headers if "=" not in one]:
        raise ConfigError(f"--header {wrong[0]!r} is not NAME=VALUE")
    pairs = tuple((name, value) for name, _, value in (one.partition("=") for one in headers))
    made = SYSTEMS[document.source.system].typed(record._replace(headers=pairs))
    row = made._asdict() | {"headers": encode_headers(made.headers), "offset": 0, "operation": OPERATION_NONE}
    return pa.RecordBatch.from_pylist([row], schema=RECORD_SCHEMA)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    """With offsets that tell the rows of several queues apart."""
    import pyarrow as pa

    from connect_core.sdk.records import RECORD_SCHEMA

    columns = [
        pa.array(range(len(table)), pa.int64()) if name == "offset" else table.column(name).combine_chunks()
        for name in RECORD_SCHEMA.names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA)


# ----------------------------------------------------------------------------------------------------- what they become


def _became(document: ConnectorDocument, records: pa.RecordBatch) -> list[dict[str, Any]]:
    """Of each record what it is, and what comes of it: nothing where it is filtered."""
    from connect_core.config.resolving import pipeline_of
    from connect_core.replication.driver.dry_run import outputs_of

    told = [_told(row) | {"becomes": list[dict[str, Any]]()} for row in records.to_pylist()]
    for rule, row in outputs_of(pipeline_of(document), records):
        becomes = {name: row[name] for name in ("to", "tags", "key")}
        told[row["offset"]]["becomes"].append({"rule": rule, **becomes})
    return told


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: row[name] for name in ("topic", "tags", "key")}
    return known | {"value": output.shown_bytes(row["value"] or b"")}


def _show(records: list[dict[str, Any]]) -> None:
    for one in records:
        output.line(f"{one['topic'] or ''} {one['value']}".strip())
        for became in one["becomes"]:
            said = [f"{name} {became[name]}" for name in ("to", "tags", "key") if became[name]]
            output.line(f"  -> {became['rule']}" + (f": {', '.join(said)}" if said else ""))
        if not one["becomes"]:
            output.line("  filtered")
    if not records:
        output.line("nothing is there")
