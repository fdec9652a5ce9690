"""Who is killed in the demo: the process that holds a lease while a range is open, and nobody else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from connect_core.demo.killing import driver, kill, wait_for
from connect_core.ledger import Ledger, task_lease_id, upgrade
from tests.contract.ledger.samples import Q0, planned


def test_the_driver_is_who_holds_a_lease_while_a_range_is_open(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    upgrade(url)
    with Ledger.open(url) as ledger:
        uid = ledger.apply("orders", {}, who="tests").connector.uid
        ledger.assign(uid, [Q0], 1)
        assert driver(ledger, "orders") is None
        lease = ledger.take(task_lease_id(uid, "live", 1, 0), None, "host:4711:ab", uid=uid, version=1)
        ledger.renew(lease, boot_id="here", deadline_ns=1, ttl_s=1)
        assert driver(ledger, "orders") is None
        run = ledger.begin_run(uid, "live", task=0, engine="spark")
        ledger.plan([lease], run, uid, 0, [planned(Q0, 0, 10)], [])
        assert driver(ledger, "orders") == 4711
        ledger.release(lease)
        assert driver(ledger, "orders") is None


def test_killing_what_has_ended_is_told() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert kill(process.pid)
        assert process.wait() == -9
        assert not kill(process.pid)


def test_waiting_ends_with_what_is_waited_for_or_in_time() -> None:
    answers = iter([0, 0, 7])
    assert wait_for(lambda: next(answers)) == 7
    assert wait_for(lambda: 0, limit_s=0) is None
