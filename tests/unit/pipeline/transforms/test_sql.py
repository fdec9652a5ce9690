"""A `sql` step: what it makes of rows, record by record."""

from __future__ import annotations

import json
import os
import tomllib
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.errors import Fatal, VersionMismatch
from connect_core.pipeline.digest import pipeline_digest
from connect_core.pipeline.shaping import Pipeline
from connect_core.pipeline.transforms import sql_engine, sql_running, sql_words
from connect_core.pipeline.transforms.running import run
from connect_core.pipeline.transforms.steps import step_of
from connect_core.pipeline.transforms.too_slow import StatementTooSlow
from connect_core.pipeline.transforms.working import TypedRows
from connect_core.replication.worker.rejects import shape
from connect_core.rows.schema import arrow_type, shape_of
from connect_core.rows.types import Type, struct_of
from connect_core.sdk.testing.driving import records
from tests.unit.pipeline.transforms.stepping import Stepped, checked_run, stepped, typed_rows, values

FIELDS = {"id": "int64", "t": "text", "since": "timestamp(us)", "s": {"x": "int32", "Deep": "text"}, "l": ["int64"]}
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
ROWS: list[dict[str, Any]] = [
    {"id": 1, "t": "5", "since": NOON, "s": {"x": 1, "Deep": "a"}, "l": [1, 2]},
    {"id": 2, "t": "x", "since": None, "s": None, "l": []},
    {"id": None, "t": None, "since": None, "s": {"x": None, "Deep": None}, "l": None},
]
SPLIT = """
SELECT id, upper(t) AS big, CAST(t AS INTEGER) + id AS total, record.topic AS place, [x * id FOR x IN l] AS many,
       CASE WHEN id <> 2 THEN 10 // (id - 2) END AS part, CAST(t AS INTEGER) * 2 AS twice,
       id * 4 AS four, id * 4 + 1 AS five
FROM records WHERE id > 0 AND t <> 'left out' AND 6 // (id - 1) < 100
"""


def made(select: str, fields: Any = FIELDS, rows: Any = ROWS) -> Stepped:
    return stepped([{"sql": select}], fields, rows)


def column(expression: str) -> list[Any]:
    return [row["made"] for row in values(made(f"SELECT {expression} AS made FROM records"))]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("id * 2", [2, 4, None]),
        ("coalesce(t, 'none') || '!'", ["5!", "x!", "none!"]),
        ("CASE WHEN id = 1 THEN 'one' ELSE 'more' END", ["one", "more", "more"]),
        ("TRY_CAST(t AS INTEGER)", [5, None, None]),
        ("TRY(CAST(t AS INTEGER))", [5, None, None]),
        ("s.x", [1, None, None]),
        ("(s).deep", ["a", None, None]),
        ("records.s.DEEP", ["a", None, None]),
        ("l[1]", [1, None, None]),
        ("list_transform(l, lambda one: one + id)", [[2, 3], [], None]),
        ("list_filter(l, lambda one, place: place = 2)", [[2], [], None]),
        ("[one + 1 for one in l if one > 1]", [[3], [], None]),
        ("{'a': id, 'b': [t]}", [{"a": 1, "b": ["5"]}, {"a": 2, "b": ["x"]}, {"a": None, "b": [None]}]),
        ("id BETWEEN 2 AND 3 OR t LIKE '5%'", [True, True, None]),
        ("t IN ('x', 'y')", [False, True, None]),
        ("t IS DISTINCT FROM 'x'", [True, False, True]),
        ("date_trunc('day', since) + INTERVAL 1 HOUR", [datetime(2026, 1, 31, 1, tzinfo=UTC), None, None]),
        ("strftime(since, '%Y-%m-%d %H')", ["2026-01-31 12", None, None]),
        ("CAST(since AS VARCHAR)", ["2026-01-31 12:00:00+00", None, None]),
        ("since AT TIME ZONE 'Asia/Tokyo'", [datetime(2026, 1, 31, 21), None, None]),
        ("hour(since)", [12, None, None]),
        ("""'{"a": [7]}'->>'$.a[0]'""", ["7", "7", "7"]),
        ("TRY(json_extract_string(t, '$'))", ["5", None, None]),
        ("('{\"a\": ' || id || '}')->'$.a'->>'$'", ["1", "2", None]),
        ("CAST(concat('[', id, ']')->0 AS VARCHAR)", ["1", "2", None]),
        ("t NOT LIKE '5%' AND t GLOB '*'", [False, True, None]),
        ("record.topic", ["site/0", "site/1", "site/2"]),
        ('record."topic[2]"', ["0", "1", "2"]),
        ('record."header:none"', [None, None, None]),
        ("CAST(1.5 AS DECIMAL(10,2)) * 2", [Decimal("3.00")] * 3),
        ("lpad(t, 3, '0')", ["005", "00x", None]),
        ("list_sum(l)::BIGINT", [3, None, None]),
        ("md5(t)", ["e4da3b7fbbce2345d7772b0674a318d5", "9dd4e461268c8034f5c8564e155c67a6", None]),
    ],
)
def test_an_expression(expression: str, expected: list[Any]) -> None:
    assert column(expression) == expected


def test_a_star_leaves_out_replaces_and_renames_and_keeps_the_order() -> None:
    done = made(
        "SELECT * EXCLUDE (l, since) REPLACE (ID + 1 AS id) RENAME (t AS text), s.x FROM records one WHERE one.id = 1"
    )
    assert values(done) == [{"id": 2, "text": "5", "s": {"x": 1, "Deep": "a"}, "x": 1}]
    assert values(made("FROM records")) == ROWS


def test_what_is_only_named_keeps_its_type_and_each_digit() -> None:
    fields = {
        "e": "epoch(ns)",
        "at": "timestamp(s)",
        "big": "uint64",
        "f": "float64",
        "d": "decimal(38,19)",
        "o": {"t": "time(s)"},
    }
    shape = struct_of(fields)
    rows = pa.array(
        [{"e": 2**62 + 1, "at": -1, "big": 2**64 - 1, "f": float("nan"), "d": Decimal(10) ** -19, "o": {"t": 1}}],
        arrow_type(shape),
    )
    done = checked_run([{"sql": "SELECT *, o.t AS t, e AS again FROM records"}], shape, rows)
    assert [done.rows.struct.field(place).equals(rows.field(place)) for place in range(6)] == [True] * 3 + [False] + [
        True
    ] * 2
    assert str(done.rows.struct.field("f")[0]) == "nan"
    assert done.rows.struct.field("e").cast(pa.int64()).to_pylist() == [2**62 + 1]
    assert done.rows.struct.field("again").type == pa.timestamp("ns", "UTC")
    assert done.rows.struct.field("big").to_pylist() == [2**64 - 1]
    assert str(shape_of(pa.schema(list(done.rows.struct.type)))).endswith("t: time(s), again: epoch(ns)}")


@pytest.mark.parametrize(
    "kind",
    ["bool", "int8", "uint16", "uint64", "float32", "float64", "decimal(38,10)", "text", "bytes", "date", "time(ns)"]
    + [f"{word}({unit})" for word in ("timestamp", "datetime") for unit in ("us", "ns")],
)
def test_what_is_worked_out_has_all_of_its_digits(kind: str) -> None:
    shape = struct_of({"a": kind})
    numbers = pa.array([1, 0, None, 2**7 - 1], pa.int64())
    of = arrow_type(shape).field(0).type
    if pa.types.is_binary(of) or pa.types.is_string(of):
        given = numbers.cast(pa.string()).cast(of)
    elif pa.types.is_date(of):
        given = numbers.cast(pa.int32()).cast(of)
    else:
        given = numbers.cast(of)
    rows = pa.StructArray.from_arrays([given], fields=list(arrow_type(shape)))
    done = checked_run([{"sql": "SELECT coalesce(a, NULL) AS a FROM records"}], shape, rows)
    assert done.rows.struct.field("a").equals(given)


def test_a_record_that_fails_is_unfit_alone_and_says_no_value() -> None:
    done = made("SELECT id, CAST(t AS INTEGER) AS n FROM records")
    assert values(done) == [{"id": 1, "n": 5}, {"id": None, "n": None}]
    [(place, why)] = done.unfit
    assert place == 1
    assert why.startswith("sql: n has no value for this record")
    done = made("SELECT id FROM records WHERE CAST(t AS INTEGER) > 1")
    assert (values(done), [place for place, _ in done.unfit]) == ([{"id": 1}], [1])


def test_what_where_leaves_out_is_not_worked_out() -> None:
    done = made("SELECT CAST(t AS INTEGER) AS n FROM records WHERE t <> 'x'")
    assert (values(done), done.unfit) == ([{"n": 5}], [])


def test_a_branch_of_case_is_worked_out_where_it_is_chosen_and_both_sides_of_and_always() -> None:
    """Whatever else of the batch there is: a filter of DuckDB itself learns which side to ask first."""
    rows = [{"a": 0}, {"a": 2}, {"a": None}]
    done = made("SELECT CASE WHEN a <> 0 THEN 8 // a ELSE -1 END AS b FROM records", {"a": "int64"}, rows)
    assert (values(done), done.unfit) == ([{"b": 4 if row["a"] else -1} for row in rows], [])
    done = made("SELECT a FROM records WHERE a <> 0 AND 8 // a > 1", {"a": "int64"}, rows)
    assert (values(done), [place for place, _ in done.unfit]) == ([{"a": 2}], [0])


def test_an_expression_that_stands_in_several_columns_fails_in_its_record_alone() -> None:
    """Also where DuckDB works out once what they have in common."""
    done = made("SELECT CAST(t AS INTEGER) + 1 AS a, CAST(t AS INTEGER) * 2 AS b, CAST(t AS INTEGER) AS c FROM records")
    assert values(done) == [{"a": 6, "b": 10, "c": 5}, {"a": None, "b": None, "c": None}]
    assert [place for place, _ in done.unfit] == [1]


def test_numbers_do_not_wrap_around() -> None:
    rows = [{"a": 2**63 - 1, "b": 2}, {"a": 3, "b": 2}]
    done = made("SELECT a * b AS c FROM records", {"a": "int64", "b": "int64"}, rows)
    assert (values(done), [place for place, _ in done.unfit]) == ([{"c": 6}], [0])


def test_steps_behind_it_and_before_it() -> None:
    steps = [{"filter": "$.id > 0"}, {"sql": "SELECT id, t, 'n' AS site FROM records"}, {"cast": {"t": "int8"}}]
    done = stepped(steps, FIELDS, ROWS)
    assert values(done) == [{"id": 1, "t": 5, "site": "n"}]
    assert done.unfit == [(1, "cast of t: this text is no int8")]


ROW = st.fixed_dictionaries(
    {
        "id": st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3),
        "t": st.none() | st.sampled_from(["left out", "7", "-1", "x", "9999999999"]) | st.text(max_size=5),
        "since": st.none(),
        "s": st.none(),
        "l": st.none() | st.lists(st.integers(-3, 3) | st.just(2**62), max_size=3),
    }
)


@given(st.lists(ROW, max_size=12), st.data())
def test_where_a_batch_is_split_changes_nothing(rows: list[dict[str, Any]], data: st.DataObject) -> None:
    shape = struct_of(FIELDS)
    whole = typed_rows(pa.array(rows, arrow_type(shape)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    steps = [step_of({"sql": SPLIT})]
    at_once = run(steps, whole)
    parts = [
        (begin, run(steps, TypedRows(whole.struct.slice(begin, end - begin), whole.records.slice(begin, end - begin))))
        for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)
    ]
    assert [row for _, part in parts for row in part.rows.struct.to_pylist()] == at_once.rows.struct.to_pylist()
    assert [begin + place for begin, part in parts for place in part.places.tolist()] == at_once.places.tolist()
    assert [(begin + place, why) for begin, part in parts for place, why in part.unfit] == at_once.unfit


def test_rows_that_come_back_in_another_order_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def turned(statement: str, rows: pa.RecordBatch, limit_s: float) -> pa.Table:
        return sql_engine.answered(statement, rows, limit_s).take([1, 0, 2])

    monkeypatch.setattr(sql_running, "answered", turned)
    with pytest.raises(Fatal, match="other rows than it was given"):
        made("SELECT id + 1 AS id FROM records")


SLOW = """
SELECT CAST(list_sum(list_transform(l, lambda x: list_sum(list_transform(l, lambda y: length(md5(CAST(x * y AS TEXT)))))
)) AS DECIMAL(38,0)) AS total FROM records
"""


@pytest.mark.parametrize(
    ("lists", "limit", "words", "offset"),
    [
        ([300] * 60, "SHARED_LIMIT_S", r"more than 0.02 s of wall time for 60 records", None),
        ([3_000], "LIMIT_S", r"more than 0.02 s of wall time for one record", 0),
        ([0, 3_000, 0], "LIMIT_S", r"more than 0.02 s of wall time for one record", 1),
    ],
)
def test_a_statement_that_takes_too_long_rejects_nothing(
    lists: list[int], limit: str, words: str, offset: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time is no fault of a record: whoever has the range takes fewer of them."""
    monkeypatch.setattr(sql_engine, limit, 0.02)
    steps = [{"filter": "$.n > 0"}, {"sql": SLOW}]
    document = {"parse": {"format": "json", "fields": {"n": "int64", "l": ["int64"]}}, "transforms": steps}
    batch = records([json.dumps({"n": many, "l": list(range(many))}).encode() for many in lists])
    with pytest.raises(StatementTooSlow, match=words) as raised:
        shape(Pipeline(document), batch)
    assert raised.value.offset == offset


def pipeline(select: str) -> Pipeline:
    fields = {"id": "int64"}
    return Pipeline({"parse": {"format": "json", "fields": fields}, "transforms": [{"sql": select}]})


def test_a_batch_that_needs_too_much_memory_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    def small(statement: str, rows: pa.RecordBatch, limit_s: float) -> pa.Table:
        if len(rows) > 2:
            raise duckdb.OutOfMemoryException("not enough")
        return sql_engine.answered(statement, rows, limit_s)

    monkeypatch.setattr(sql_running, "answered", small)
    batch = records([b'{"id":%d}' % number for number in range(9)])
    shaped = shape(pipeline("SELECT id * 2 AS two FROM records"), batch)
    assert [row["value"] for row in shaped.kept.to_pylist()] == [b'{"two":%d}' % (2 * number) for number in range(9)]
    assert (shaped.rejected, shaped.filtered, shaped.rows) == ((), (), 9)


def test_a_database_that_has_failed_is_not_asked_again() -> None:
    """The batch is halved after an error: no record of it is taken to be at fault."""
    batch = records([b'{"id":%d}' % number for number in range(4)])
    shape(pipeline("SELECT id + 1 AS more FROM records"), batch)
    sql_engine._database(os.getpid()).close()
    assert len(shape(pipeline("SELECT id + 1 AS more FROM records"), batch).kept) == 4


def test_another_duckdb_is_another_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    from connect_core.pipeline import digest

    pipelines = [{"transforms": [{"sql": "FROM records"}]}, {"transforms": [{"drop": ["a"]}]}]
    before = [pipeline_digest(one) for one in pipelines]
    monkeypatch.setattr(digest, "DUCKDB", "0.0.0")
    after = [pipeline_digest(one) for one in pipelines]
    assert (before[0] != after[0], before[1] == after[1]) == (True, True)


def test_a_duckdb_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text())["project"]["dependencies"]
    assert f"duckdb=={sql_words.DUCKDB}" in wanted
    monkeypatch.setattr(duckdb, "__version__", "2.9.9")
    with pytest.raises(VersionMismatch, match=r"DuckDB 2\.9\.9 is installed.*pip install duckdb=="):
        sql_engine._database(-1)


def test_every_function_is_one_of_a_row_and_always_the_same() -> None:
    """Those of moments are constant within a query, as they ask for the time zone: it is always UTC."""

    def named(condition: str) -> set[str]:
        question = f"SELECT string_agg(function_name, ' ') FROM duckdb_functions() WHERE {condition} AND ? = ''"
        return set(sql_engine.asked(question, "").split(" "))

    known = named("function_type IN ('scalar', 'macro')")
    assert sql_words.FUNCTIONS - known == {"->"}  # the parser's name of json_extract
    assert sql_words.FUNCTIONS & named("stability = 'VOLATILE'") == set()
    assert sql_words.FUNCTIONS & named("function_type = 'aggregate'") == set()


def test_the_shape_of_rows_is_read_from_their_schema() -> None:
    shape = struct_of(
        {**FIELDS, "e": "epoch(ms)", "d": "decimal(3,1)", "o": {"l": [{"b": "bytes"}]}, "w": "datetime(ns)"}
    )
    assert shape_of(pa.schema(list(arrow_type(shape)))) == shape
    assert isinstance(shape, Type)
