"""Where a batch ends because of a record that its document can be evolved for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from connect_core.pipeline.evolving import MOST_RECORDS, TOO_MANY
from connect_core.pipeline.shaping import Pipeline, Shaped
from connect_core.rows.types import as_written
from connect_core.rows.widening import MOST_EVOLVED
from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.work import Evolving, RefusedField

PARSE = {"format": "json", "fields": {"id": "int32", "day": "date"}, "unknown": "evolve"}


def batch(*payloads: str, tags: Mapping[int, str] | None = None) -> pa.RecordBatch:
    rows = [
        {"offset": 100 + 2 * n, "value": one.encode(), "tags": (tags or {}).get(n, "a"), "operation": 0}
        for n, one in enumerate(payloads)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=RECORD_SCHEMA)


def shaped(
    *payloads: str,
    evolved: Mapping[str, Any] | None = None,
    refused: tuple[RefusedField, ...] = (),
    evolves: bool = True,
    tags: Mapping[int, str] | None = None,
    **document: Any,
) -> Shaped:
    evolving = Evolving(dict(evolved or {}), refused) if evolves else None
    pipeline = Pipeline({"transforms": [], "parse": PARSE, **document}, evolving=evolving)
    return pipeline.shape(batch(*payloads, tags=tags))


def needs(made: Shaped) -> Any:
    return made.needs and as_written(made.needs)


def test_what_is_before_the_record_is_shaped_and_nothing_behind_it() -> None:
    made = shaped('{"id":1}', "no", '{"id":2}', '{"late":true}', '{"id":3}', "no")
    assert made.kept.column("offset").to_pylist() == [100, 104]
    assert [one.offset for one in made.rejected] == [102]
    assert (made.rows, made.filtered, needs(made)) == (3, (), {"late": "bool"})


def test_a_batch_that_begins_with_such_a_record_has_no_rows() -> None:
    made = shaped('{"late":true}', '{"id":3}')
    assert (len(made.kept), made.rows, made.rejected, made.filtered) == (0, 0, (), ())


def test_what_others_of_the_batch_need_is_had_together() -> None:
    made = shaped('{"a":1}', '{"id":5000000000}', '{"a":"text"}', '{"b":{"c":1}}')
    assert needs(made) == {"a": "int64", "id": "int64", "b": {"c": "int64"}}
    many = shaped(*(f'{{"a{n % 2}":1,"b":{10**n if n < 38 else 1}}}' for n in range(MOST_RECORDS + 9)))
    assert needs(many) == {"a0": "int64", "b": "decimal(38,0)", "a1": "int64"}


def test_records_that_a_filter_leaves_out_are_not_looked_at() -> None:
    made = shaped('{"id":1}', '{"x":1}', '{"id":2}', '{"y":1}', tags={1: "b"}, filter={"tags": ["a"]})
    assert (made.rows, needs(made)) == (3, {"y": "int64"})
    assert made.filtered == (102,)


def test_rules_and_steps_go_as_far_as_the_record() -> None:
    rules = [{"name": "all", "keys": "{$.id}"}]
    made = shaped('{"id":1}', '{"id":2,"x":1}', transforms=[{"filter": "$.id > 1"}], rules=rules, encode={})
    assert (len(made.kept), made.rows, made.filtered, needs(made)) == (0, 1, (100,), {"x": "int64"})


def test_a_record_that_fits_with_no_fields_ends_nothing() -> None:
    """It has a new member, and beside that what the reader does not take."""
    made = shaped('{"id":1,"new":1,"day":"never"}', '{"id":2}')
    assert (made.rows, needs(made)) == (2, None)
    assert [one.message for one in made.rejected] == ["Not of format json: day: not a date, as 2026-01-02"]


def test_without_evolving_it_is_rejected() -> None:
    made = shaped('{"id":1,"late":true}', '{"id":2}', evolves=False)
    assert (made.rows, needs(made)) == (2, None)
    assert [one.message for one in made.rejected] == ["Not of format json: a field that is not declared"]


def test_what_is_refused_rejects_its_record_and_others_go_on() -> None:
    made = shaped('{"id":1,"late":true}', '{"id":2,"x":1}', refused=(RefusedField("late", "bool", "no such column"),))
    assert [one.message for one in made.rejected] == [
        "Not of format json: a field that is not declared: no such column. Make room, write the field in the document, "
        "apply it, and replay the dead letter"
    ]
    assert (made.rows, needs(made)) == (1, {"x": "int64"})


def test_a_type_that_is_refused_takes_wider_ones_with_it_and_no_others() -> None:
    refused = (RefusedField("id", "decimal(21,0)", "a bigint"),)
    made = shaped(f'{{"id":{10**24}}}', '{"id":5000000000}', f'{{"id":{10**22}}}', refused=refused)
    assert [one.message for one in made.rejected] == [
        "Not of format json: id: not a whole number that int32 holds: a bigint. Make room, write the field in the "
        "document, apply it, and replay the dead letter"
    ]
    assert (made.rows, needs(made)) == (1, {"id": "int64"})


@pytest.mark.parametrize("room", [0, 1, 2])
def test_at_most_so_many_fields_come_by_runs(room: int) -> None:
    there = {f"f{n}": "text" for n in range(MOST_EVOLVED - room)}
    made = shaped('{"a":1,"b":2}', '{"id":1}', evolved=there)
    assert needs(made) == ({"a": "int64", "b": "int64"} if room == 2 else None)
    assert [one.message.endswith(TOO_MANY) for one in made.rejected] == ([] if room == 2 else [True])
    assert needs(shaped('{"f0":1.5}', evolved=there)) == {"f0": "float64"}, "it is one of them already"
