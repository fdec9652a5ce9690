"""What a batch of changes does to keys, in which order."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from connect_core.sdk.batches import BEFORE, ROW
from connect_core.sdk.records import OPERATION_CREATE, OPERATION_DELETE, OPERATION_UPDATE
from connect_core.systems.tables.staging import staged

Change = tuple[int, Any, Any]
ROWS = pa.struct([("id", pa.int64()), ("place", pa.string()), ("name", pa.string())])


def changes(*given: Change) -> pa.RecordBatch:
    operations, before, now = zip(*given, strict=True)
    columns = [pa.array(operations, pa.int8()), pa.array(before, ROWS), pa.array(now, ROWS)]
    return pa.RecordBatch.from_arrays(columns, ["operation", BEFORE, ROW])


def row(number: int | None, name: str = "x", place: str | None = "a") -> dict[str, Any]:
    return {"id": number, "place": place, "name": name}


def in_order(records: pa.RecordBatch, key: tuple[str, ...] = ("id", "place")) -> list[tuple[int, bool]]:
    made = staged(records, key)
    assert len(set(made.numbers.to_pylist())) == len(made.numbers)
    steps = zip(made.numbers.to_pylist(), made.rows.to_pylist(), made.gone.to_pylist(), strict=True)
    return [(values["id"], gone) for _, values, gone in sorted(steps, key=lambda step: step[0])]


def test_the_old_key_goes_right_before_the_new_one_comes() -> None:
    records = changes(
        (OPERATION_CREATE, None, row(1)), (OPERATION_UPDATE, row(1), row(2)), (OPERATION_CREATE, None, row(1))
    )
    assert in_order(records) == [(1, False), (1, True), (2, False), (1, False)]


@pytest.mark.parametrize(
    "before", [None, row(1, "other"), row(None), row(5, place=None)], ids=["none", "same", "no id", "no place"]
)
def test_a_key_that_did_not_change_or_is_not_known_stays(before: Any) -> None:
    assert in_order(changes((OPERATION_UPDATE, before, row(1)))) == [(1, False)]


def test_a_part_of_the_key_is_enough() -> None:
    assert in_order(changes((OPERATION_UPDATE, row(1, place="b"), row(1)))) == [(1, True), (1, False)]


def test_a_delete_is_one_step() -> None:
    assert in_order(changes((OPERATION_DELETE, row(1), row(1)))) == [(1, True)]


def test_of_a_row_that_goes_only_the_key_is_as_it_was() -> None:
    made = staged(changes((OPERATION_UPDATE, row(1, "too long by now"), row(2))), ["id"])
    assert made.rows.to_pylist()[1] == row(1)


def test_rows_that_are_no_changes_have_no_former_ones() -> None:
    records = changes((OPERATION_UPDATE, row(1), row(2))).drop_columns([BEFORE])
    assert in_order(records, ("id",)) == [(2, False)]
