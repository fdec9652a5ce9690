"""Which outputs of a batch go to which table, with which fields."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from connect_core.sdk.batches import BEFORE, ROW
from connect_core.systems.tables.routing import Routing, TableShape

ROWS = pa.struct([("id", pa.int64()), ("price", pa.int64()), ("email", pa.string())])


def whole_name(table: str) -> str:
    return table if "." in table else f"public.{table}"


def routing(*customers: str, key: tuple[str, ...] = ()) -> Routing:
    shapes = {"public.orders": TableShape(["id", "price"], ["id"])}
    return Routing(shapes | ({"public.customers": TableShape(customers, key)} if customers else {}), whole_name)


def outputs(*given: tuple[str | None, Any]) -> pa.RecordBatch:
    to, rows = zip(*given, strict=True)
    columns = [pa.array(to, pa.string()), pa.array(rows, ROWS), pa.array([None, *rows[1:]], ROWS)]
    return pa.RecordBatch.from_arrays(columns, ["to", ROW, BEFORE])


def row(number: int | None, email: str | None = "a@b") -> dict[str, Any]:
    return {"id": number, "price": 2, "email": email}


def test_each_table_gets_its_outputs_with_its_fields_in_their_order() -> None:
    records = outputs(("customers", row(1)), (None, row(2)), ("public.customers", row(3)), ("orders", row(4)))
    parts = routing("email", "id").parts(records)
    assert [(part.table, part.rows.tolist()) for part in parts] == [
        ("public.customers", [0, 2]),
        ("public.orders", [1, 3]),
    ]
    assert parts[0].records.column(ROW).to_pylist() == [{"email": "a@b", "id": 1}, {"email": "a@b", "id": 3}]
    assert parts[0].records.column(BEFORE).to_pylist() == [None, {"email": "a@b", "id": 3}]
    assert parts[1].records.column(ROW).to_pylist() == [{"id": 2, "price": 2}, {"id": 4, "price": 2}]
    assert [part.records.column("to").null_count for part in parts] == [0, 1]


def test_parts_of_a_batch_that_is_a_part_itself() -> None:
    records = outputs((None, row(1)), ("customers", row(2)), (None, row(3)), ("customers", row(4))).slice(1, 2)
    first, second = routing("email").parts(records)
    assert (first.table, first.records.column(ROW).to_pylist()) == ("public.customers", [{"email": "a@b"}])
    assert (second.table, second.records.column(ROW).to_pylist()) == ("public.orders", [{"id": 3, "price": 2}])


def test_a_batch_of_one_table_with_all_fields_stays_as_it_is() -> None:
    records = outputs((None, row(1)), (None, row(2)))
    alone = Routing({"public.orders": TableShape(ROWS.names, ())}, whole_name)
    [part] = alone.parts(records)
    assert part.records is records
    assert alone.parts(records.slice(0, 0)) == []


def test_rows_without_the_key_of_their_table_are_told_by_their_places() -> None:
    records = outputs(("customers", row(None, None)), (None, row(None)), (None, row(3)), ("customers", row(None)))
    found = routing("email", key=("email",)).invalid_rows(records)
    assert [(number, words.split(",")[0]) for number, _, words in found] == [(0, "Field email"), (1, "Field id")]
