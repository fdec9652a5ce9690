"""What a table promises as a source (docs/guarantees.md)."""

from __future__ import annotations

from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.values import Json
from connect_core.systems.database_urls import file_of
from connect_core.systems.tables.guarantee import (
    WHOLE_TABLE,
    changed_rows,
    changed_rows_of_query,
    rows_of_query,
)

_READ = "A row is not deleted before it is read."
_OF_A_FILE = Guarantee(
    "exactly once",
    (
        "The number of each row is drawn by the statement that inserts it; else no row is inserted after one with a"
        " higher number is committed.",
        "Nobody changes the number of a row, puts another table or another file in its place, or, without"
        " AUTOINCREMENT, deletes the newest row: that is noticed only by a run that looks before new rows have its"
        " number.",
        "The file is on a local file system of the driver's host.",
        _READ,
    ),
    "the table",
)


_OF_TIMES = (
    "That time is taken by the statement that writes the row (CURRENT_TIMESTAMP), or at most delay_s before its"
    " transaction has the file as the one writer.",
    "The file is on a local file system of the driver's host, and the programs that write it run there.",
    "Nobody puts another table or another file, with older times, in the place of this one.",
)
_KEEPS = "The disk keeps what it was told to."
_CHANGED_ROWS = changed_rows(*_OF_TIMES, clock="the driver's host", keeps=_KEEPS)
_CHANGES_OF_QUERY = changed_rows_of_query(_CHANGED_ROWS)
_QUERY = rows_of_query(
    "Each number is drawn by the statement that inserts its row. Nobody changes it, deletes the newest row without"
    " AUTOINCREMENT, or puts another table or another file in its place: that is not noticed.",
    "The file is on a local file system of the driver's host.",
    keeps=_KEEPS,
)


def source_guarantee(options: Json) -> Guarantee:
    if options.get("bulk"):
        return WHOLE_TABLE
    if options.get("query"):
        return _CHANGES_OF_QUERY if options.get("timestamp") else _QUERY
    if options.get("timestamp"):
        return _CHANGED_ROWS
    if file_of(str(options.get("url"))):
        return _OF_A_FILE
    return Guarantee(
        "exactly once",
        (
            "The number of each row is drawn from one sequence, in ascending order, by a transaction that ends within"
            f" settle_s ({options.get('settle_s')} s): a row that comes later is not read.",
            "Nobody changes the number of a row, sets the sequence back, or puts another table in its place.",
            "The database keeps what it has committed, and shows it at once. Waybill has tests with SQLite alone.",
            _READ,
        ),
        "the table",
    )
