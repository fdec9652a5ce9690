"""No time in the ledger is the database's: its clock may step, and may not be that of any host."""

from __future__ import annotations

import re

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from connect_core.ledger import Ledger, Wanted
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.values import LIVE, Floor, Gap, Position, Reject
from tests.contract.ledger.samples import Q0, Q1, Worker, planned

CLOCKS = re.compile(
    r"\b(now|\w*_?timestamp|timeofday|julianday|strftime|unixepoch|datetime|localtime)\s*\(|current_(date|time|timestamp)|local"
)


@pytest.mark.parametrize(
    "statement", ["SELECT now()", "UPDATE a SET b = CURRENT_TIMESTAMP", "SELECT clock_timestamp ()"]
)
def test_a_statement_with_a_clock_is_known(statement: str) -> None:
    assert CLOCKS.search(statement.lower())


def test_no_statement_reads_the_clock_of_the_database(ledger: Ledger) -> None:
    said: list[str] = []
    event.listen(ledger._engine, "before_cursor_execute", lambda _c, _cu, statement, *_: said.append(statement))
    a_life(ledger)
    assert len(set(said)) > 40
    assert [statement for statement in said if CLOCKS.search(statement.lower())] == []


def test_no_column_takes_its_value_from_the_clock_of_the_database(ledger: Ledger) -> None:
    seen = sa.inspect(ledger._engine)
    columns = [column for table in seen.get_table_names() for column in seen.get_columns(table)]
    assert len(columns) > 100
    assert [column["name"] for column in columns if CLOCKS.search(str(column["default"]).lower())] == []


def a_life(ledger: Ledger) -> None:
    """Everything that a connector can live through, once."""
    worker = Worker.started(ledger, "orders")
    ledger.renew(worker.lease, boot_id="b", deadline_ns=1, ttl_s=1)
    reject = Reject(3, 0, "decode", "Bad", "m", b"")
    gap = Gap(0, 0, 1, "expired")
    worker.move(Q0, 0, 10, rejected=1, passed=9, emitted=9, delivered=9, rejects=(reject,), gaps=(gap,))
    [opened] = worker.plan(planned(Q1, 0, 10), floors=[Floor(Q1.id, "copy:0", 1)])
    ledger.record_found([worker.lease], {opened.id: ScanResult()})
    later = worker.taken_over()
    ledger.adopt([later.lease], later.run_id, [opened.id])
    told = {"who": "ann", "why": "because"}
    ledger.abandon([later.lease], opened.id, **told)
    ledger.set_offset([later.lease], later.uid, LIVE, Q1, Position(0, 5), **told)
    ledger.undo_offset([later.lease], later.uid, LIVE, Q1, who="ann")
    ledger.assign(later.uid, [Q0, Q1], 2)
    ledger.apply("orders", {"name": "orders", "more": 1}, who="ann")
    ledger.set_target_state(later.uid, "paused", who="ann")
    for reading in (ledger.receipts, ledger.offsets, ledger.offset_history, ledger.gaps, ledger.runs, ledger.audit):
        reading(later.uid)
    for letter in ledger.dead_letters(later.uid):
        ledger.discard_dead_letters(later.uid, Wanted(ids=(letter.id,)), who="ann", asked={})
    ledger.live_leases(later.uid)
    ledger.positions(later.uid, LIVE, [Q0, Q1])
    ledger.end_run(later.run_id, state="done", failure=None, summary={})
    ledger.release(later.lease)
    ledger.mark_restored(counter=ledger.identity().counter, who="ann")
    ledger.delete(later.uid, who="ann")
