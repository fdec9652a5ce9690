"""Another target of the same name is noticed and not written, unless a person says that it has the rows."""

from __future__ import annotations

import json

import pytest

from connect_core.errors import ContractBroken, TargetChanged
from connect_core.sdk.kits.identity import TargetIdentity
from connect_core.sdk.kits.marker import Marker
from connect_core.sdk.sink import Scan
from connect_core.sdk.testing.driving import attempt, limit, records
from connect_core.sdk.testing.memory import Database, MemoryTable
from connect_core.sdk.testing.sinks import SettledState, SimpleCase, numbers

OTHER_ROWS = TargetIdentity("rows 2", "markers 1", accepting="say so")
OTHER_MARKERS = TargetIdentity("rows 1", "markers 2")
BOTH = TargetIdentity("rows 2", "markers 2")
ACCEPTED = OTHER_ROWS._replace(accepted=True)


class Case(SimpleCase):
    in_memory = True

    def __init__(self) -> None:
        self.database = Database()

    def sink(self) -> MemoryTable:
        return MemoryTable(self.database)

    def content(self, behind: int = 0) -> list[bytes | None]:
        return self.database.values()[behind:]

    def marker(self) -> Marker:
        [text] = self.database.markers.values()
        return Marker.decode(text, "")


@pytest.fixture
def case() -> Case:
    return Case()


def test_a_target_in_the_place_of_the_former_one_is_not_written(case: Case) -> None:
    ledger = SettledState(case)
    ledger.attempt(5, settle_at=5)
    stored = dict(case.database.markers)
    case.database.identity = OTHER_ROWS
    with pytest.raises(TargetChanged, match="rows went to rows 1, and it is rows 2 now") as told:
        ledger.attempt(9, settle_at=9)
    assert "memory, partition source, stream live" in str(told.value)
    assert "say so" in str(told.value)
    assert (case.content(), case.database.markers) == (numbers(5), stored)


def test_a_look_into_it_finds_nothing_and_takes_nothing_over(case: Case) -> None:
    ledger = SettledState(case)
    ledger.attempt(5, settle_at=None)
    stored = dict(case.database.markers)
    case.database.identity = OTHER_ROWS
    assert ledger.open is not None
    [found] = case.sink().scan(Scan(attempt(2, ledger.uid), (ledger.open,), 10.0)).values()
    assert found.failure is not None
    assert found.failure.family == TargetChanged.__name__
    assert case.database.markers == stored


@pytest.mark.parametrize("now", [OTHER_MARKERS, BOTH, ACCEPTED])
def test_what_was_restored_together_or_is_accepted_is_written_on(case: Case, now: TargetIdentity) -> None:
    ledger = SettledState(case)
    ledger.attempt(5, settle_at=5)
    ledger.attempt(9, settle_at=None)
    case.database.identity = now
    ledger.attempt(9, settle_at=9)
    assert case.content() == numbers(9)
    assert (case.marker().rows_in, case.marker().stands_in) == (now.rows, now.markers)
    case.database.identity = now._replace(rows="rows 3", accepted=False)
    with pytest.raises(TargetChanged):
        ledger.attempt(12, settle_at=12)


def test_a_target_that_is_replaced_under_an_open_writer_gets_no_more_rows(case: Case) -> None:
    ledger = SettledState(case)
    ledger.attempt(5, settle_at=5)
    ledger.epoch += 1
    item = ledger.planned(case.sink(), 9)
    with case.sink().writer(attempt(ledger.epoch, ledger.uid), item) as writer:
        assert writer.write(records([b"5"], 5), limit()) == 1
        case.database.identity = OTHER_ROWS
        with pytest.raises(TargetChanged):
            writer.write(records([b"6"], 6), limit())
    assert case.content() == numbers(6)


def test_a_marker_that_does_not_say_where_its_rows_went_is_taken_as_it_is(case: Case) -> None:
    ledger = SettledState(case)
    ledger.attempt(5, settle_at=5)
    [(name, text)] = case.database.markers.items()
    former = json.loads(text) | {"version": 1}
    for added in ("refused", "refused_since", "rows_in", "stands_in"):
        del former[added]
    case.database.markers[name] = json.dumps(former)
    case.database.identity = BOTH
    ledger.attempt(9, settle_at=9)
    assert (case.marker().rows_in, case.content()) == ("rows 2", numbers(9))


def test_an_identity_that_is_none_is_told(case: Case) -> None:
    case.database.identity = None  # type: ignore[assignment]
    with pytest.raises(ContractBroken, match="must be a TargetIdentity, and is None"):
        SettledState(case).attempt(5, settle_at=5)


FIRST = TargetIdentity("rows 1", "markers 1", beside={"other": TargetIdentity("rows 7", "markers 1")})
REPLACED = FIRST._replace(beside={"other": TargetIdentity("rows 8", "markers 1", accepting="say so")})
RESTORED = TargetIdentity("rows 3", "markers 2", beside={"other": TargetIdentity("rows 8", "markers 2")})


def test_a_target_beside_the_first_one_is_noticed_like_that(case: Case) -> None:
    ledger = SettledState(case)
    case.database.identity = FIRST
    ledger.attempt(5, settle_at=5)
    case.database.identity = REPLACED
    with pytest.raises(TargetChanged, match="rows went to rows 7, and it is rows 8 now") as told:
        ledger.attempt(9, settle_at=9)
    assert "other, partition source" in str(told.value)
    assert case.marker().beside == {"other": "rows 7"}
    case.database.identity = RESTORED
    ledger.attempt(9, settle_at=9)
    assert case.marker().beside == {"other": "rows 8"}


def test_targets_come_and_go_beside_the_first_one(case: Case) -> None:
    """A marker of one target says what it said before there were others."""
    ledger = SettledState(case)
    ledger.attempt(5, settle_at=5)
    [alone] = case.database.markers.values()
    assert "beside" not in json.loads(alone)
    case.database.identity = FIRST
    ledger.attempt(9, settle_at=9)
    assert case.marker().beside == {"other": "rows 7"}
    case.database.identity = FIRST._replace(beside={})
    ledger.attempt(12, settle_at=12)
    [text] = case.database.markers.values()
    assert json.loads(text).keys() == json.loads(alone).keys()


@pytest.mark.parametrize("beside", [[1], 3, "ab"])
def test_a_marker_that_nobody_has_written_so_is_none(case: Case, beside: object) -> None:
    ledger = SettledState(case)
    ledger.attempt(5, settle_at=5)
    [(name, text)] = case.database.markers.items()
    case.database.markers[name] = json.dumps(json.loads(text) | {"beside": beside})
    with pytest.raises(TargetChanged, match="not the marker of a connector"):
        case.marker()
