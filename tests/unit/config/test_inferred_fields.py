"""`fields: infer` in a document, and the fields that were found in its place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from connect_core.config import load_document
from connect_core.config.inferred_fields import stored_fields, with_fields
from connect_core.config.ruling import pipeline_of

ENDS = {
    "version": 1,
    "name": "x",
    "source": {"file": {"path": "/logs/a"}},
    "sink": {"file": {"path": "/out/a"}},
}
FOUND = {"fields": {"id": "int64"}, "inferred": {"at": "2026-11-28T18:00:00+00:00", "records": 3}}


@pytest.mark.parametrize(
    ("parse", "words"),
    [
        ("{format: json, fields: infre}", "parse.fields: line 5: 'infre' is neither a mapping of fields to types nor"),
        ("{format: json, fields: 5}", "parse.fields: line 5: 5 is neither a mapping of fields to types nor infer"),
        ("{format: json-schema, fields: infer}", "parse: line 5: fields: infer goes with format json"),
        ("{format: csv, columns: [a], fields: infer}", "parse: line 5: fields goes with format json"),
        (
            "{format: json, inferred: {at: 2026-11-28, records: 1}}",
            "parse: line 5: inferred says where fields are from",
        ),
    ],
)
def test_what_cannot_be_inferred_is_one_fault(faults: Callable[..., list[str]], parse: str, words: str) -> None:
    ends = "version: 1\nname: x\nsource: {file: {path: a}}\nsink: {file: {path: b}}\n"
    [fault] = faults(f"{ends}parse: {parse}\n")
    assert fault.startswith(words)


def test_what_names_fields_is_judged_when_they_are_known(faults: Callable[..., list[str]]) -> None:
    ends = "version: 1\nname: x\nsource: {file: {path: a}}\nsink: {file: {path: b}}\n"
    infers = f"{ends}parse: {{format: json, fields: infer, unknown: drop}}\nencode: {{format: json}}\n"
    assert faults(f"{infers}transforms: [{{drop: [any]}}]\n") == []


def test_only_what_was_found_under_its_name_takes_the_place_of_infer() -> None:
    document = ENDS | {"parse": {"format": "json", "fields": "infer", "unknown": "drop"}}
    assert with_fields(document, {"y": FOUND}) == document
    assert with_fields(document, {"x": FOUND})["parse"] == {"format": "json", "unknown": "drop", **FOUND}
    declared = ENDS | {"parse": {"format": "json", "fields": {"a": "text"}}}
    assert with_fields(declared, {"x": FOUND}) == declared
    assert stored_fields(declared) is None
    assert stored_fields(with_fields(document, {"x": FOUND})) == FOUND


def test_open_ranges_are_pinned_to_the_fields_and_not_to_where_they_are_from() -> None:
    pipelines = [
        pipeline_of(load_document(ENDS | {"parse": {"format": "json", **parse}}))
        for parse in (FOUND, {"fields": FOUND["fields"]})
    ]
    assert pipelines[0] == pipelines[1]
