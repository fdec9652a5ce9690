"""Partitions that were put aside: kept with why and since when, by whoever holds the lease."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from connect_core.errors import Fenced
from connect_core.ledger import Ledger, PartitionState
from tests.contract.ledger.samples import LIVE, Q0, Q1, Worker

GONE = PartitionState("quarantined", "records are gone. Find out what became of them", "OffsetGone", 5)


def put(worker: Worker, **states: PartitionState) -> None:
    partitions = {"q0": Q0, "q1": Q1}
    worker.ledger.set_partition_states(
        [worker.lease], worker.uid, LIVE, {partitions[name]: state for name, state in states.items()}
    )


def test_a_state_is_kept_with_why_and_since_when(worker: Worker, ledger: Ledger) -> None:
    assert ledger.partition_states(worker.uid) == {}
    before = datetime.now(UTC)
    put(worker, q1=GONE)
    [(partition, kept)] = ledger.partition_states(worker.uid).items()
    assert partition == Q1
    assert (kept.state, kept.reason, kept.kind, kept.exit_code) == ("quarantined", GONE.reason, "OffsetGone", 5)
    assert kept.since is not None
    assert before <= kept.since == kept.changed_at


def test_since_stays_while_the_state_does(worker: Worker, ledger: Ledger) -> None:
    put(worker, q0=GONE)
    first = ledger.partition_states(worker.uid)[Q0]
    put(worker, q0=PartitionState("quarantined", "another reason", "TooManyRejects", 5))
    again = ledger.partition_states(worker.uid)[Q0]
    assert (again.since, again.reason, again.kind) == (first.since, "another reason", "TooManyRejects")
    assert again.changed_at is not None
    assert first.changed_at is not None
    assert again.changed_at > first.changed_at
    put(worker, q0=PartitionState("active"))
    healed = ledger.partition_states(worker.uid)[Q0]
    assert (healed.state, healed.reason, healed.exit_code) == ("active", "", None)
    assert healed.since == healed.changed_at != first.since


def test_states_are_of_one_stream_and_in_order(worker: Worker, ledger: Ledger) -> None:
    put(worker, q1=PartitionState("retired", "not named"), q0=PartitionState("ended", "deleted"))
    assert [*ledger.partition_states(worker.uid)] == [Q0, Q1]
    assert ledger.partition_states(worker.uid, "backfill-1") == {}


def test_who_has_lost_the_lease_changes_no_state(worker: Worker, ledger: Ledger) -> None:
    worker.taken_over()
    with pytest.raises(Fenced):
        put(worker, q0=GONE)
    assert ledger.partition_states(worker.uid) == {}
