"""A table of PostgreSQL as a source, while processes are killed and others write to it: the target is compared with the
table, number by number."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.faults.kit.emptying import CHANGES, ROWS, STEPS, Emptying
from tests.faults.kit.journeys import SHORT_LEASES
from tests.faults.rows import FaultRow
from tests.postgres_tables import Database
from tests.site import Site
from tests.table_writers import TABLE, writing

pytestmark = [pytest.mark.server, pytest.mark.fault]


@pytest.fixture(params=["file", "table"])
def emptying(bare_site: Site, postgres_url: str, request: pytest.FixtureRequest) -> Emptying:
    bare_site.settings.update(SHORT_LEASES)
    filled = "INSERT INTO orders (writer) SELECT 0 FROM generate_series(1, {count})"
    made = Emptying(bare_site, Database(postgres_url), request.param, filled)
    made.apply(TABLE, "bigserial")
    return made


@pytest.mark.parametrize("step", STEPS)
def test_a_process_killed_at_a_step(emptying: Emptying, row: FaultRow, seeded: random.Random, step: str) -> None:
    row.describe(f"SIGKILL at {step}", where=f"PostgreSQL → {emptying.into}", database="SQLite")
    emptying.feed(ROWS)
    emptying.site.fault(step, passes=seeded.randrange(2))
    emptying.attempt()
    row.strikes()
    emptying.feed(500)
    emptying.run_until_done()
    row.moves_again()
    emptying.check(row)


def test_kills_beside_busy_writers(emptying: Emptying, row: FaultRow, seeded: random.Random) -> None:
    row.describe("SIGKILL at random steps, writers busy", where=f"PostgreSQL → {emptying.into}", database="SQLite")
    with writing(emptying.database, seeded):
        row.strikes()
        for number in range(5):
            emptying.site.fault(seeded.choice(STEPS), passes=seeded.randrange(2))
            emptying.attempt(*(("--window", "4s") if number % 2 else ()))
    emptying.run_until_done()
    row.moves_again()
    emptying.check(row)


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("step", ["batch-written", "before-receipt", "lane-started"])
def test_rows_that_change_between_two_attempts_stop_nothing(
    emptying: Emptying, row: FaultRow, step: str, what: str
) -> None:
    """What is in a table counts, also when it is gone in the source. A file loses what no receipt covers, and gets what
    is there now."""
    row.describe(f"SIGKILL at {step}, then rows {what}", where=f"PostgreSQL → {emptying.into}", database="SQLite")
    emptying.feed(ROWS)
    emptying.site.fault(step)
    assert emptying.attempt() != 0
    kept = Counter(emptying.arrived()) if emptying.into == "table" else Counter[int]()
    emptying.database.run(CHANGES[what])
    emptying.feed(10)
    emptying.run_until_done()
    left = Counter(number for (number,) in emptying.database.run("SELECT id FROM orders"))
    assert Counter(emptying.arrived()) == left | kept
