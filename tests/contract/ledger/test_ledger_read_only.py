"""A PostgreSQL server that takes no writes: a standby, or one whose disk is full."""

from __future__ import annotations

import pytest

from connect_core.errors import Unreachable
from connect_core.ledger import Ledger
from tests.contract.ledger.conftest import administer
from tests.contract.ledger.samples import Q0, Worker, planned

pytestmark = pytest.mark.server


def test_it_may_take_writes_again_and_another_server_is_found_then(postgresql_ledger: str) -> None:
    name = postgresql_ledger.partition("?")[0].rpartition("/")[2]
    administer(postgresql_ledger, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with Ledger.open(postgresql_ledger) as ledger:
        try:
            with pytest.raises(Unreachable, match="accepts no writes"):
                Worker.started(ledger, "orders")
        finally:
            writes_again = postgresql_ledger + "&options=-c%20default_transaction_read_only%3Doff"
            administer(writes_again, f"ALTER DATABASE {name} RESET default_transaction_read_only")
        worker = Worker.started(ledger, "orders")
        worker.plan(planned(Q0))
