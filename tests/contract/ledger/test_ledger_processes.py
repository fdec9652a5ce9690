"""Many runs, two processes, one SQLite file: everyone gets a turn."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from connect_core.ledger import Ledger
from connect_core.sdk.values import LIVE
from tests.contract.ledger.samples import Q0, Q1, Worker

CONNECTORS, ROUNDS = 10, 3


def work(url: str, first: int) -> None:
    """Runs connectors `first`..`first + 9` side by side; raises what any of them meets."""
    with Ledger.open(url) as ledger, ThreadPoolExecutor(CONNECTORS) as pool:
        list(pool.map(lambda number: _rounds(ledger, f"c{number}"), range(first, first + CONNECTORS)))


def _rounds(ledger: Ledger, name: str) -> None:
    worker = Worker.started(ledger, name)
    for number in range(ROUNDS):
        for partition in (Q0, Q1):
            worker.move(partition, 10 * number, 10 * number + 10)
        ledger.renew(worker.lease, boot_id="b", deadline_ns=number, ttl_s=1)


def test_twenty_connectors_in_two_processes_share_one_file(sqlite_ledger: str) -> None:
    program = f"from {__name__} import work; work({sqlite_ledger!r}, {CONNECTORS})"
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True) as other:
        work(sqlite_ledger, 0)
        _, said = other.communicate(timeout=60)
    assert (other.returncode, said) == (0, "")
    with Ledger.open(sqlite_ledger) as ledger:
        connectors = ledger.connectors()
        assert len(connectors) == 2 * CONNECTORS
        for connector in connectors:
            ends = [offset.position.offset for offset in ledger.offsets(connector.uid, LIVE)]
            assert ends == [10 * ROUNDS, 10 * ROUNDS]
