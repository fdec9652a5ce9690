"""The fields that payloads have for a document, where they come from, and what happens to a record that does not fit.
Pure.

`contract` has the names that the field uses. `freeze`: nothing but these fields goes on. `discard_field`: fields that
are not among them are left out. `evolve`: runs add them. A value of another type rejects its record under any, but for
a number that has a wider type under `evolve`.
"""

from __future__ import annotations

from collections.abc import Iterator

from connect_core.config.document import ConnectorDocument
from connect_core.config.document_errors import ALL
from connect_core.config.evolved_fields import told
from connect_core.config.inferred_fields import described
from connect_core.rows.types import as_written
from connect_core.rows.widening import MOST_EVOLVED
from connect_core.sdk.values import Json

_CONTRACTS = {"reject": "freeze", "drop": "discard_field", "evolve": "evolve"}


def schema_contract(document: ConnectorDocument) -> Json | None:
    """`fields`, their `origin` (and in words `from`), the `contract`, and in words what `misfits` become;
    None where payloads are not compared with fields."""
    rows = document.parse.rows()
    if rows is None:
        return None
    origin, words = _origin(document)
    return {
        "fields": as_written(rows),
        "origin": origin,
        "from": words,
        "contract": _CONTRACTS[document.parse.unknown],
        "misfits": list(_misfits(document)),
    }


def _origin(document: ConnectorDocument) -> tuple[str, str]:
    """In a word and in words."""
    parse = document.parse
    by_runs = f"; runs have added or widened {told(parse.evolved)}" if parse.evolved else ""
    if parse.inferred:
        return "inferred", f"{described(parse.inferred.model_dump())}{by_runs}"
    by = "; each record is read with its own schema, from the registry" if parse.registry else ""
    if parse.fields is not None:
        return "declared", f"declared in the document{by}{by_runs}"
    if parse.avro_schema is not None:
        return "schema", f"those of parse.avro_schema{by}"
    return "format", f"named by format {parse.format}"


def _misfits(document: ConnectorDocument) -> Iterator[str]:
    rejected = f"is rejected: {_of_rejected(document)}"
    if document.parse.fields is None and document.parse.avro_schema is None:
        yield f"a record that is not of format {document.parse.format} {rejected}"
        return
    if document.parse.unknown == "drop":
        yield "a field that is not listed is left out (parse.unknown: drop)"
        yield f"a record with a value of another type {rejected}"
    elif document.parse.evolves:
        yield "a run adds a field that is not listed, or widens the type of a number, in a revision of the document"
        yield f"so come at most {MOST_EVOLVED} fields until the document is applied with them"
        yield f"a record that needs more, or with a value of another type, {rejected}"
    else:
        yield f"a record with another field, or with a value of another type, {rejected}"
    yield "a field that a record lacks is null"


def _of_rejected(document: ConnectorDocument) -> str:
    errors = document.errors
    if not errors.tolerance:
        return "it stops its partition (errors.tolerance: none)"
    kept = "it becomes a dead letter, and goes to errors.sink" if errors.sink else "it becomes a dead letter"
    most = f"; more than {errors.tolerance:,} in a run stop its partition"
    return kept if errors.tolerance == ALL else kept + most
