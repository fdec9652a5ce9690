"""What a run asks at each step takes as long however much was settled before: each statement goes by an index that has
only what it is about. Looked at in the plans of the database, so that no clock decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from connect_core.ledger.tables import RANGES, RUNS
from connect_core.sdk.values import LIVE
from connect_core.work import Outcome
from tests.contract.ledger.samples import Q0, Q1, Worker, planned, receipt


@contextmanager
def statements(worker: Worker) -> Iterator[list[tuple[str, Any]]]:
    """What is executed meanwhile, with its parameters."""
    seen: list[tuple[str, Any]] = []

    def note(_connection: object, _cursor: object, text: str, parameters: Any, _context: object, many: bool) -> None:
        seen.append((text, parameters[0] if many and isinstance(parameters, list) else parameters))

    engine = worker.ledger._engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", note)


def plans(worker: Worker, seen: list[tuple[str, Any]], word: str) -> list[str]:
    """How the database would go about those of the statements that hold a word."""
    engine = worker.ledger._engine
    found = []
    with engine.connect() as connection:
        explain = "EXPLAIN QUERY PLAN " if engine.dialect.name == "sqlite" else "EXPLAIN "
        for text, parameters in seen:
            if word in text:
                rows = connection.exec_driver_sql(explain + text, parameters).all()
                found.append("\n".join(str(row[-1]) for row in rows))
    assert found, f"no statement holds {word}"
    return found


def fill(worker: Worker) -> None:
    """A history: a database that has nothing to go through goes about it in any way."""
    worker.move(Q0, 0, 100)
    with worker.ledger._engine.begin() as connection:
        for table in (RUNS, RANGES):
            (row,) = connection.execute(sa.select(table)).all()
            values = {name: value for name, value in row._asdict().items() if table is RUNS or name != "id"}
            connection.execute(table.insert(), [values | others(table, n) for n in range(3000)])
        connection.execute(sa.text("ANALYZE"))


def others(table: sa.Table, number: int) -> dict[str, Any]:
    """Mostly of other tasks and partitions."""
    if table is RUNS:
        return {"id": f"0{number:012}", "state": "done", "task": number % 50}
    return {"partition_id": f"{number % 500:016}", "state": "settled" if number % 300 else "abandoned"}


STEPS: dict[str, tuple[Callable[[Worker], object], str, str]] = {
    "open ranges": (lambda w: w.ledger.open_ranges(w.uid, LIVE), "FROM ranges", "ix_ranges_open"),
    "rests": (lambda w: w.ledger.rests(w.uid, LIVE), "FROM ranges", "ix_ranges_newest"),
    "the end of a run": (lambda w: end(w), "state = 'running'", "ix_runs_running"),
    "what was given up": (lambda w: w.ledger.given_up(w.uid, LIVE, Q0.id, 0, 100), "FROM ranges", "ix_ranges_given_up"),
    "the run before": (lambda w: end(w), "ORDER BY runs.uid DESC", "ix_runs_of_task"),
}


def end(worker: Worker) -> None:
    worker.ledger.end_run(worker.run_id, state="done", failure=None, summary={"ranges": 0})


@pytest.mark.parametrize("step", STEPS)
def test_no_step_of_a_run_reads_what_was_settled_before(worker: Worker, step: str) -> None:
    take, word, index = STEPS[step]
    fill(worker)
    with statements(worker) as seen:
        take(worker)
    for plan in plans(worker, seen, word):
        assert index in plan, plan
        assert "SCAN ranges" not in plan, plan
        assert "SCAN runs" not in plan, plan


def test_what_is_asked_does_not_grow_with_the_partitions(worker: Worker) -> None:
    """A plan and a settle of two ranges execute as many statements as those of one, but for the rows of the ranges."""
    counts: list[int] = []
    for partitions in ((Q0,), (Q0, Q1)):
        begin = 100 * len(counts)
        with statements(worker) as seen:
            opened = worker.plan(*(planned(one, begin if one == Q0 else 0, begin + 100) for one in partitions))
            outcomes = [Outcome(one.id, receipt(one.range.begin, one.range.end)) for one in opened]
            worker.settle(*outcomes)
        counts.append(sum(not text.startswith("INSERT INTO ranges") for text, _ in seen))
    assert counts[0] == counts[1]
