"""Random histories against a plain model, on both databases: the same ones for the same seed (`machine.py`)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from connect_core.ledger import Ledger
from tests.contract.ledger.machine import histories_of
from tests.faults.rows import FaultRow

pytestmark = [pytest.mark.fault, pytest.mark.timeout(1800)]

FEW, MANY = 12, 300
"""Histories in `make test` and in `make faults`; each has up to 30 steps. Add Phase.shrink below to make a failing one
as short as it can be: that takes minutes."""


def test_any_history_on_sqlite_is_what_the_model_remembers(
    sqlite_ledger: str, row: FaultRow, pytestconfig: pytest.Config
) -> None:
    _check(sqlite_ledger, "SQLite", row, pytestconfig)


@pytest.mark.server
def test_any_history_on_postgresql_is_what_the_model_remembers(
    postgresql_ledger: str, row: FaultRow, pytestconfig: pytest.Config
) -> None:
    _check(postgresql_ledger, "PostgreSQL", row, pytestconfig)


def _check(url: str, database: str, row: FaultRow, config: pytest.Config) -> None:
    histories = MANY if config.getoption("--faults") == "all" else FEW
    row.describe(
        f"{histories} random histories of plan, settle, crash, retry and alter against a plain model",
        where="ledger alone",
        database=database,
    )
    with Ledger.open(url) as ledger:
        machine = seed(config.getoption("--seed"))(histories_of(ledger))
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=histories,
                stateful_step_count=30,
                deadline=None,
                database=None,
                phases=(Phase.generate,),
                suppress_health_check=list(HealthCheck),
            ),
        )
