"""The fields of records in a document: as `parse` makes them, and behind each of its transforms. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from connect_core.config.document import ConnectorDocument
from connect_core.config.endpoints import End
from connect_core.config.references import is_reference
from connect_core.config.written import Place
from connect_core.pipeline.formats.key_format import check_key_rows
from connect_core.pipeline.formats.known import written_format
from connect_core.pipeline.transforms.steps import step_of
from connect_core.rows.inferring import inferred
from connect_core.rows.types import Type, as_written
from connect_core.sdk.values import Json

_HOW = "say what they are: parse: {format: json, fields: {id: int64}}, or a format that names them, such as csv"


def suggested_fields(payloads: Iterable[bytes]) -> Json | None:
    """The `fields` of these payloads, with `remarks`; None where none is a JSON object that has any."""
    found = inferred(payloads)
    if found.rows is None:
        return None
    told: Json = {"fields": as_written(found.rows), "remarks": found.remarks}
    return told | {"records": found.read, "unread": found.unread}


def unfit_transforms(document: ConnectorDocument, sink: End) -> Iterator[tuple[Place, str]]:
    """Place and words of the first step that cannot be done with the fields that it would find, and of a sink that does
    not find any."""
    rows, takes_rows = document.parse.rows(), sink.configured().plugin.takes_rows
    if rows is None:
        if (document.reshapes or document.encode.writes_keys or takes_rows) and not document.parse.infers:
            places: Place = (
                ("sink", sink.system) if takes_rows else ("transforms" if document.transforms else "encode",)
            )
            yield places, f"needs records whose fields are known; {_HOW}"
        return
    if takes_rows and (document.encode.format != "none" or document.encode.writes_keys):
        yield ("encode",), f"{sink.system} takes fields and no payloads: leave encode out"
        return
    for number, step in enumerate(document.transforms):
        try:
            rows = step_of(step).after(rows)
        except ValueError as error:
            yield ("transforms", number), f"{next(iter(step))}: {error}"
            return
    encode = document.encode.model_dump()
    try:
        check_key_rows(encode, rows)
    except ValueError as error:
        yield ("encode", "key_fields"), str(error)
    if document.encode.format == "none":
        return
    try:
        written_format(encode).check_rows(encode, rows)
        _subject(document, rows)
    except ValueError as error:
        yield ("encode",), str(error)


def last_rows(document: ConnectorDocument) -> Type | None:
    """The fields that rules may name: those behind the last transform. None where payloads say it; of a document whose
    transforms are sound."""
    rows = document.parse.rows()
    for step in document.transforms:
        rows = rows and step_of(step).after(rows)
    return rows


class WantedNumber(NamedTuple):
    """Of a schema: under which subject, and what a registry calls its kind."""

    subject: str
    schema: object
    kind: str


def registered_schema(document: ConnectorDocument) -> WantedNumber | None:
    """Of a document whose schema has no number yet and whose registry will give it one. The document is sound."""
    rows = last_rows(document)
    if document.encode.registry is None or document.encode.schema_id is not None or rows is None:
        return None
    encode = document.encode.model_dump()
    form = written_format(encode)
    return WantedNumber(_subject(document, rows), form.written_schema(encode, rows), form.schema_kind)


def _subject(document: ConnectorDocument, rows: Type) -> str:
    """Empty where no registry is asked. Raises ValueError."""
    registry = document.encode.registry
    if registry is None or registry.subject:
        return registry.subject if registry else ""
    encode = document.encode.model_dump()
    name = written_format(encode).record_name(encode, rows)
    if registry.strategy == "record":
        return name
    topic = document.sink.options.get("topic")
    if not isinstance(topic, str) or is_reference(topic) or any(rule.to for rule in document.rules):
        raise ValueError("registry: records do not all go to one topic that the document names: say subject")
    return f"{topic}-value" if registry.strategy == "topic" else f"{topic}-{name}"
