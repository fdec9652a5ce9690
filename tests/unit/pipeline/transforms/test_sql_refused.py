"""What a `sql` step refuses: all but one row of each record, made of that record alone; and what it cannot reach."""

from __future__ import annotations

import re
import subprocess
import sys

import duckdb
import pytest

from connect_core.pipeline.transforms import sql_engine
from connect_core.pipeline.transforms.steps import step_of
from connect_core.rows.types import struct_of

ROWS = struct_of({"id": "int64", "t": "text", "big": "uint64", "l": ["int64"], "Name": "text", "NAME": "text"})
WITH_ENDLESS = "WITH RECURSIVE e(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM e) SELECT n FROM e"


@pytest.mark.parametrize(
    ("select", "words"),
    [
        ("SELECT sum(id) AS a FROM records", "sum is not allowed: it works over several records"),
        ("SELECT count(*) AS a FROM records", "count_star is not allowed: it works over several records"),
        ("SELECT first(id) AS a FROM records", "first is not allowed: it works over several records"),
        ("SELECT row_number() OVER () AS a FROM records", "a window (OVER) is not allowed"),
        ("SELECT id FROM records QUALIFY row_number() OVER () = 1", "QUALIFY is not allowed"),
        ("SELECT id FROM records GROUP BY id", "GROUP BY is not allowed"),
        ("SELECT id FROM records GROUP BY ALL", "GROUP BY is not allowed"),
        ("SELECT id FROM records HAVING id > 1", "HAVING is not allowed"),
        ("SELECT DISTINCT id FROM records", "DISTINCT, ORDER BY or LIMIT is not allowed"),
        ("SELECT id FROM records ORDER BY id", "DISTINCT, ORDER BY or LIMIT is not allowed"),
        ("SELECT id FROM records LIMIT 1", "DISTINCT, ORDER BY or LIMIT is not allowed"),
        ("SELECT id FROM records OFFSET 1", "DISTINCT, ORDER BY or LIMIT is not allowed"),
        ("SELECT id FROM records USING SAMPLE 10", "SAMPLE is not allowed"),
        ("SELECT id FROM records TABLESAMPLE 10%", "FROM names something else than records"),
        ("SELECT id FROM records AT (VERSION => 1)", "FROM names something else than records"),
        ("SELECT x FROM records AS r(x)", "FROM names something else than records"),
        ("SELECT id FROM records UNION ALL FROM records", "UNION, EXCEPT and INTERSECT are not allowed"),
        ("SELECT a.id FROM records a, records b", "FROM names a join"),
        ("SELECT a.id FROM records a POSITIONAL JOIN records b", "FROM names a join"),
        ("SELECT id FROM (SELECT id FROM records)", "FROM names a subquery"),
        ("SELECT (SELECT max(id) FROM records) AS a FROM records", "a subquery is not allowed"),
        ("SELECT id FROM records WHERE id IN (SELECT 1)", "a subquery is not allowed"),
        ("SELECT id FROM records WHERE EXISTS (SELECT 1)", "a subquery is not allowed"),
        ("SELECT id FROM records WHERE id = ANY (l)", "a subquery is not allowed"),
        ("WITH q AS (SELECT 1) SELECT id FROM records", "WITH is not allowed"),
        (WITH_ENDLESS, "WITH is not allowed"),
        ("VALUES (1)", "FROM names VALUES"),
        ("SELECT 1 AS a", "FROM names nothing"),
        ("DESCRIBE records", "FROM names DESCRIBE or SHOW"),
        ("SELECT id FROM other", "FROM names something else than records"),
        ("SELECT id FROM main.records", "FROM names something else than records"),
        ("SELECT id FROM information_schema.tables", "FROM names something else than records"),
        ("SELECT unnest(l) AS a FROM records", "unnest is not allowed: it makes several rows"),
        ("SELECT a FROM range(1000000000000) t(a)", "FROM names a table function"),
        ("SELECT len(range(1000000000000)) AS a FROM records", "range is not among the functions"),
        ("SELECT len(generate_series(1, 1000000000)) AS a FROM records", "generate_series is not among the functions"),
        ("SELECT repeat('x', 10000000000) AS a FROM records", "repeat is not among the functions"),
        ("SELECT lpad('x', 1000000000, 'x') AS a FROM records", "lpad takes a number up to 10000"),
        ("SELECT rpad('x', id, 'x') AS a FROM records", "rpad takes a number up to 10000"),
        ("SELECT format('{:>1000000000}', t) AS a FROM records", "format is not among the functions"),
        ("SELECT nextval('s') AS a FROM records", "nextval is not allowed: it does not give the same each time"),
        ("SELECT age(TIMESTAMP '2026-01-01') AS a FROM records", "age is not among the functions"),
        ("SELECT current_timestamp AS a FROM records", "current_timestamp is not allowed"),
        ("SELECT current_date AS a FROM records", "current_date is not allowed"),
        ("SELECT id FROM records WHERE current_user = 'x'", "current_user is not allowed"),
        ("SELECT list_distinct(l) AS a FROM records", "list_distinct is not among the functions"),
        ("SELECT pow(id, 0.5) AS a FROM records", "pow is not among the functions"),
        ("SELECT hash(id) AS a FROM records", "hash is not among the functions"),
        ("SELECT getenv('HOME') AS a FROM records", "getenv is not among the functions"),
        ("SELECT getvariable('x') AS a FROM records", "getvariable is not allowed"),
        ("SELECT current_setting('threads') AS a FROM records", "current_setting is not allowed"),
        ("SELECT pg_sleep(9) AS a FROM records", "pg_sleep is not allowed"),
        ("SELECT sleep_ms(9) AS a FROM records", "sleep_ms is not allowed"),
        ("SELECT write_log('x') AS a FROM records", "write_log is not allowed"),
        ("SELECT system.main.upper(t) AS a FROM records", "system.main.upper is not allowed"),
        ("SELECT * FROM read_csv('/etc/passwd')", "FROM names a table function"),
        ("SELECT * FROM read_text('/etc/passwd')", "FROM names a table function"),
        ("SELECT * FROM glob('/*')", "FROM names a table function"),
        ("SELECT * FROM '/etc/passwd'", "FROM names something else than records"),
        ("SELECT * FROM 'https://example.org/a.parquet'", "FROM names something else than records"),
        ("SELECT read_text('/etc/passwd') AS a FROM records", "read_text is not allowed"),
        ("COPY records TO '/tmp/x.csv'", "is no SELECT"),
        ("COPY (SELECT 1) TO '/tmp/x.csv'", "is no SELECT"),
        ("ATTACH '/tmp/x.db'", "is no SELECT"),
        ("INSTALL httpfs", "is no SELECT"),
        ("LOAD httpfs", "is no SELECT"),
        ("PRAGMA threads = 4", "is no SELECT"),
        ("SET threads = 4", "is no SELECT"),
        ("CREATE TABLE a (b INTEGER)", "is no SELECT"),
        ("EXPLAIN ANALYZE SELECT id FROM records", "is no SELECT"),
        ("FROM records; FROM records", "has 2 statements"),
        ("SELECT id FROM records; DROP TABLE x", "is no SELECT"),
        ("", "needs a statement"),
        (7, "needs a statement"),
        ("SELECT id\nFROM records WHERE\n", "cannot be read at line"),
        ("SELECT\n  id id id FROM records", "cannot be read at line 2, character 9"),
        ("SELECT 1 AS a, -- " + "x" * 20_000 + "\n id FROM records", "has 20035 characters"),
        ("SELECT " + "(" * 3_000 + "1" + ")" * 3_000 + " AS a FROM records", "cannot be read"),
        (
            "SELECT " + "upper(" * 800 + "t" + ")" * 800 + " AS a FROM records",
            "expressions are too deep in each other",
        ),
        (
            "SELECT " + "CASE WHEN id THEN 1 ELSE " * 600 + "1" + " END" * 600 + " AS a FROM records",
            "too deep in each other",
        ),
        ("SELECT NULL::" + "struct(a " * 500 + "int" + ")" * 500 + " AS a FROM records", "too deep in each other"),
        ("SELECT '\ud800' AS a FROM records", "something is no text"),
        ("SELECT $1 AS a FROM records", "a parameter is not allowed"),
        ("SELECT #1 AS a FROM records", "a column by its number is not allowed"),
        ("SELECT t COLLATE de AS a FROM records", "COLLATE is not allowed"),
        ("SELECT COLUMNS('i.*') FROM records", "COLUMNS is not allowed"),
        ("SELECT upper(COLUMNS(*)) FROM records", "* or COLUMNS inside an expression is not allowed"),
        ("SELECT CAST(t AS ENUM('a')) AS a FROM records", "ENUM is not among the types"),
        ("SELECT CAST(t AS main.thing) AS a FROM records", "thing is not among the types"),
        ("SELECT list_transform(l, lambda waybill_0: id) AS a FROM records", "waybill_0 cannot be a name in a lambda"),
        ("SELECT id FROM records AS record", "the records cannot be called record"),
        ('SELECT record."$.id" AS a FROM records', "record.$.id: fields of the payload are columns"),
        ("SELECT record.site AS a FROM records", "'site' names nothing"),
        ("SELECT id + 1 FROM records", "each expression needs a name"),
        ("SELECT id, id FROM records", "two fields have the name id"),
        ("SELECT idd FROM records", "no field idd; did you mean id?"),
        ("SELECT t.x FROM records", "no field t.x"),
        ("SELECT name FROM records", 'name may be Name or NAME: write the one that is meant, in "…"'),
        ("SELECT * EXCLUDE (nothing) FROM records", "no field nothing"),
        ("SELECT other.* FROM records", "other.* names nothing"),
        ("SELECT waybill_0 AS a, id + 1 AS b FROM records", "no field waybill_0"),
        ("SELECT id FROM records WHERE id + 1", "WHERE needs a condition"),
        (
            "SELECT big + id AS a FROM records",
            "a would be HUGEINT, which no field is: write CAST(… AS DECIMAL(38,0)) AS a",
        ),
        ("SELECT INTERVAL 1 DAY AS a FROM records", "a would be INTERVAL, which no field is: write CAST(… AS VARCHAR)"),
        ("SELECT to_json(l) AS a FROM records", "a would be JSON, which no field is"),
        ("SELECT NULL AS a FROM records", "which no field is"),
        ("SELECT upper(l, id) AS a FROM records", "No function matches the given name and argument types 'upper("),
        ("SELECT t + l AS a FROM records", "No function matches the given name and argument types '+("),
    ],
)
def test_a_statement_is_refused(select: object, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        step_of({"sql": select}).after(ROWS)


@pytest.mark.parametrize("function", ["now", "random", "uuid"])
def test_clocks_and_chance_are_refused(function: str) -> None:
    with pytest.raises(ValueError, match=f"{function} is not allowed: it does not give the same each time"):
        step_of({"sql": f"SELECT {function}() AS a FROM records"})


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM '/etc/passwd'",
        "COPY (SELECT 1) TO '/tmp/of-waybill'",
        "ATTACH '/tmp/of-waybill.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 4",
        "SET TimeZone = 'Asia/Tokyo'",
        "SET enable_external_access = true",
        "RESET memory_limit",
        "SELECT * FROM secrets",
        "SELECT * FROM read_csv('https://example.org/a.csv')",
        "SELECT getenv('HOME')",
    ],
)
def test_what_no_statement_can_ask_the_engine_cannot_do_either(statement: str) -> None:
    secrets = [1]  # a variable that a scan by its name would find
    with sql_engine._connection() as connection, pytest.raises(duckdb.Error):
        connection.sql(statement).fetchall()
    assert secrets


def test_moments_are_in_utc_wherever_it_runs() -> None:
    script = (
        "from connect_core.pipeline.transforms.sql_engine import asked;"
        "print(asked('''SELECT '2026-01-01 00:00'::TIMESTAMPTZ::VARCHAR || ?''', ''))"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={"TZ": "Asia/Tokyo"}
    )
    assert told.stdout.strip() == "2026-01-01 00:00:00+00"


def test_a_process_that_is_forked_behind_a_statement_works_and_ends() -> None:
    """Spark's and Airflow's workers are."""
    script = (
        "import os, sys; from connect_core.pipeline.transforms.sql_engine import asked;"
        "before = asked('SELECT ?::VARCHAR', 'a'); child = os.fork();"
        "print(before + asked('SELECT ?::VARCHAR', 'b'), flush=True);"
        "sys.exit(os.waitpid(child, 0)[1] if child else 0)"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.split() == ["ab", "ab"]


def test_duckdb_is_loaded_with_the_first_statement_alone() -> None:
    script = (
        "import sys; from connect_core.pipeline.transforms.steps import step_of; step_of({'drop': ['a']});"
        "from connect_core.pipeline.transforms import running; before = 'duckdb' in sys.modules;"
        "step_of({'sql': 'FROM records'}); print(before, 'duckdb' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["False", "True"]
