"""Rows that a table refuses, thousands of them, with kills and with a ledger that comes back from a copy."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import accumulate
from typing import Any

import pytest

from tests.faults.kit.journeys import SHORT_LEASES
from tests.faults.kit.processes import ended
from tests.postgres_tables import Database
from tests.site import Site
from tests.table_connectors import run

pytestmark = pytest.mark.server

ROWS, EVERY = 3_000, 20
ATTEMPTS = 12
STOPPED = 5


COUNTS = ("read", "rejected", "delivered", "deduplicated", "emitted", "possible_duplicates")


@pytest.fixture
def database(postgres_url: str) -> Database:
    database = Database(postgres_url)
    database.run("CREATE TABLE t (id bigint PRIMARY KEY, even boolean NOT NULL)")
    return database


def apply(site: Site, database: Database, **more: Any) -> None:
    sink = database.sink("t", mode=more.pop("mode", "insert"))
    parse = {"format": "json", "fields": {"id": "int64", "even": "bool"}}
    document = {"source": {"file": {"path": "*.log"}}, "sink": sink, "parse": parse, "errors": {"tolerance": "all"}}
    site.settings.update(SHORT_LEASES)
    site.apply("a", document | more)


def write(site: Site, begin: int, end: int, every: int = EVERY) -> None:
    """One of so many rows has no value where the table wants one."""
    with (site.folder / "a.log").open("a") as file:
        for number in range(begin, end):
            file.write(json.dumps({"id": number, "even": None if number % every == 7 else True}) + "\n")


def copy(source: str, target: str) -> None:
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


def killed(site: Site, step: str) -> None:
    """Runs until one has come to this step."""
    taken = site.fault(step).with_name(f"{step}.taken")
    for _ in range(ATTEMPTS):
        with site.start("run", "a", "--engine", "inline") as process:
            ended(process)
        if taken.exists():
            return
    raise AssertionError(f"no run has come to {step}")


def done(site: Site) -> None:
    codes = []
    for _ in range(ATTEMPTS):
        with site.start("run", "a", "--engine", "inline") as process:
            codes.append(ended(process))
        if codes[-1] == 0:
            return
    raise AssertionError(f"not done: {codes}")


def lines(site: Site) -> list[int]:
    """Where each line of the file begins."""
    lengths = map(len, (site.folder / "a.log").read_bytes().splitlines(keepends=True))
    return [0, *accumulate(lengths)][:-1]


def check(site: Site, database: Database, rows: int, taken: Sequence[int] = (), every: int = EVERY) -> list[Any]:
    """Each row is in the table once or a dead letter once, and the receipts say so. Gives these."""
    refused = [number for number in range(rows) if number % every == 7 and number not in taken]
    assert [one for (one,) in database.run("SELECT id FROM t ORDER BY id")] == sorted({*range(rows)} - {*refused})
    letters = site.json("dead-letters", "list", "a", "--last", "5000")["dead_letters"]
    begins = lines(site)
    assert sorted(one["offset"] for one in letters) == [begins[number] for number in refused]
    receipts: list[Any] = site.json("receipts", "a", "--last", "5000")["receipts"]
    sums = {name: sum(one[name] for one in receipts) for name in COUNTS}
    assert sums["delivered"] + sums["deduplicated"] == sums["emitted"] == rows - len(refused)
    assert (sums["read"], sums["rejected"], sums["possible_duplicates"]) == (rows, len(refused), 0)
    return receipts


def test_hundreds_of_refused_rows_take_few_ranges(bare_site: Site, database: Database) -> None:
    write(bare_site, 0, ROWS)
    apply(bare_site, database)
    run(bare_site)
    receipts = check(bare_site, database, ROWS)
    assert sum(one["rejected"] for one in receipts) == ROWS // EVERY
    assert len(receipts) < ROWS // EVERY // 4, "they end with their quantum"


def test_each_run_keeps_as_many_dead_letters_as_it_tolerates(bare_site: Site, database: Database) -> None:
    write(bare_site, 0, 200)  # ten of them are refused
    apply(bare_site, database, errors={"tolerance": 4})
    for last in (86, 166):
        said = run(bare_site, code=STOPPED)
        assert "a run tolerates 4 of each partition" in " ".join(said.split())
        assert database.run("SELECT max(id) FROM t") == [(last,)]
    run(bare_site)
    check(bare_site, database, 200)


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_what_a_killed_run_was_refused_is_a_dead_letter_of_the_next_one(
    bare_site: Site, database: Database, mode: str
) -> None:
    """It wrote rows behind them, and left no receipt."""
    write(bare_site, 0, 2_000)
    apply(bare_site, database, mode=mode)
    for step in ("batch-written", "before-receipt"):
        killed(bare_site, step)
    assert database.run("SELECT count(*) > 0 FROM t WHERE id > 27") == [(True,)]
    done(bare_site)
    receipts = check(bare_site, database, 2_000)
    assert sum(one["deduplicated"] for one in receipts) > 0


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_what_the_table_takes_by_now_is_written_unless_a_newer_row_may_be_there(
    bare_site: Site, database: Database, mode: str
) -> None:
    write(bare_site, 0, 2_000)
    apply(bare_site, database, mode=mode)
    killed(bare_site, "before-receipt")
    [(reached,)] = database.run("SELECT max(id) FROM t")
    database.run("ALTER TABLE t ALTER even DROP NOT NULL")
    done(bare_site)
    if mode == "insert":
        check(bare_site, database, 2_000, taken=range(2_000))
    else:
        check(bare_site, database, 2_000, taken=range(reached, 2_000))
        letters = bare_site.json("dead-letters", "list", "a", "--last", "5000")["dead_letters"]
        assert {one["kind"] for one in letters} == {"RefusedBefore"}


def test_a_ledger_of_before_makes_the_dead_letters_again(bare_site: Site, database: Database) -> None:
    ledger = bare_site.database_url.removeprefix("sqlite:///")
    kept = f"{bare_site.folder}/kept.db"
    write(bare_site, 0, 300)
    apply(bare_site, database)
    run(bare_site)
    copy(ledger, kept)
    for end in (900, 1_500):
        write(bare_site, end - 600, end)
        run(bare_site)
    copy(kept, ledger)
    write(bare_site, 1_500, 1_800)
    run(bare_site)
    receipts = check(bare_site, database, 1_800)
    assert sum(one["deduplicated"] for one in receipts) == 1_140
