"""Rows of a snapshot with a condition, beside programs that write, and across kills: what has to come of them."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.side_by_side import side_by_side
from tests.site import Site
from tests.table_connectors import run

Run = Callable[..., list[Any]]
"""Statements, each a transaction; gives the rows of the last one."""
STILL, BUSY = range(1, 61), range(1001, 1031)
TABLE = "CREATE TABLE orders (id int PRIMARY KEY, kind varchar(9), note varchar(40))"
WHERE = "kind = 'x' AND note <> 'it''s %'"


def fill(database: Run) -> None:
    """Of the rows that nobody changes a third fulfils the condition; the others do now and then."""
    rows = ", ".join(f"({one}, '{'xyz'[one % 3]}', 'there')" for one in (*STILL, *BUSY))
    database(TABLE, f"INSERT INTO orders VALUES {rows}")


@contextmanager
def writing(database: Run, seeded: random.Random) -> Iterator[None]:
    def write(number: int, seed: float, stop: threading.Event) -> None:
        chosen = random.Random(seed)
        while not stop.is_set():
            database(_statement(chosen, number))
            stop.wait(0.01)

    with side_by_side(write, 2, seeded):
        yield


def _statement(chosen: random.Random, number: int) -> str:
    """Each writer has rows of its own."""
    row, kind = chosen.choice(BUSY[number::2]), chosen.choice("xyz")
    if chosen.random() < 0.2:
        return f"DELETE FROM orders WHERE id = {row}"
    if chosen.random() < 0.3:
        fresh = f"SELECT {row} AS id, '{kind}' AS kind, 'c' AS note"
        return f"INSERT INTO orders SELECT * FROM ({fresh}) n WHERE NOT EXISTS (SELECT 1 FROM orders WHERE id = {row})"
    return f"UPDATE orders SET kind = '{kind}', note = 'u{chosen.random()}' WHERE id = {row}"


def events(site: Site) -> list[Any]:
    path = site.folder / "out.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def told(site: Site) -> list[Any]:
    return [(one["op"], (one["after"] or one["before"])["id"]) for one in events(site)]


def check(site: Site, database: Run, steps: Sequence[str], seeded: random.Random) -> None:
    """A run is killed at each of these steps, while others write; then one comes to its end."""
    site.waybill("snapshot", "a", "--table", "orders", "--where", WHERE)
    with writing(database, seeded):
        for step in steps:
            site.fault(step, passes=seeded.randrange(3))
            with site.start("run", "a", "--engine", "inline") as process:
                process.communicate(timeout=90)
    run(site)
    come, rows = events(site), dict[int, Any]()
    read = Counter((one["after"] or {}).get("id") for one in come if one["op"] == "r")
    expected = [one for one in STILL if one % 3 == 0]
    assert {one: count for one, count in read.items() if one in STILL} == dict.fromkeys(expected, 1)
    assert max(read.values()) == 1
    assert all(one["after"]["kind"] == "x" for one in come if one["op"] == "r")
    for one in come:
        rows[(one["after"] or one["before"])["id"]] = one["after"]
    there = {row[0]: row for row in database("SELECT id, kind, note FROM orders")}
    for number, row in rows.items():
        assert (tuple(row.values()) if row else None) == there.get(number), number
    left = [number for number, row in there.items() if number not in rows and row[1] == "x"]
    assert not left, "one that fulfils the condition has come, as a row or by a change"
