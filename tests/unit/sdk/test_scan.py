"""Found: a set of coordinates that survives the ledger, slice after slice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.errors import Failure, Unreachable
from connect_core.sdk.scan import Hit, Piece, Prefix, ScanResult, parted

rows = st.lists(
    st.tuples(st.integers(0, 2**40), st.integers(0, 3), st.sampled_from(["b/0", "b/1", "a/0"]), st.integers(0, 2**40)),
    max_size=50,
)


@given(rows, rows)
def test_slices_add_up_and_survive_the_ledger(first: list, second: list) -> None:  # type: ignore[type-arg]
    found = ScanResult().merged(first, {"a/0": 3}, False)
    found = ScanResult.decode(found.encode()).merged(second, {"b/0": 7}, True)
    again = ScanResult.decode(found.encode())
    assert again.complete
    assert again.scanned == {"a/0": 3, "b/0": 7}
    assert np.array_equal(again.hits, found.hits)
    seen = [(int(o), int(n), again.targets[t], int(p)) for o, n, t, p in again.hits]
    assert sorted(seen) == sorted(first + second)


@given(rows, rows)
def test_present_tells_outputs_apart(hits: list, asked: list) -> None:  # type: ignore[type-arg]
    there = {(offset, ordinal) for offset, ordinal, _, _ in hits}
    wanted = [*{row[:2] for row in asked}, *list(there)[::2]]
    offsets, ordinals = np.array(wanted, dtype=np.int64).reshape(-1, 2).T
    present = ScanResult().merged(hits, {}, True).present(offsets, ordinals)
    assert present.tolist() == [one in there for one in wanted]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), max_size=30))
def test_a_record_is_whole_when_all_of_its_outputs_are_there(there: list[tuple[int, int]]) -> None:
    """Copies count once. Here offset n has n % 3 + 1 outputs, and its trace is n + 1."""
    hits = [Hit(n, i % (n % 3 + 1), "q", p, n + 1, n % 3 + 1) for p, (n, i) in enumerate(there)]
    found = ScanResult.decode(ScanResult().merged(hits, {}, True).encode())
    seen = {(hit.offset, hit.ordinal) for hit in hits}
    whole = [n for n in range(10) if all((n, i) in seen for i in range(n % 3 + 1))]
    assert found.whole().tolist() == whole
    assert found.traced() == [(n, n + 1) for n in whole]
    assert found.in_parts() == len([one for one in seen if one[0] not in whole])
    assert found.records_below(5) == len({n for n, _ in seen if n < 5})


@given(rows, st.integers(0, 2**40))
def test_lowest_position_from_an_end(hits: list, end: int) -> None:  # type: ignore[type-arg]
    expected: dict[str, int] = {}
    for offset, _, target, position in hits:
        if offset >= end:
            expected[target] = min(position, expected.get(target, position))
    assert ScanResult().merged(hits, {}, True).lowest_from(end) == expected


def test_present_looks_at_first_ordinals_only() -> None:
    found = ScanResult().merged([(10, 0, "q", 1), (20, 1, "q", 2)], {}, True)
    assert found.present(np.array([10, 20, 30])).tolist() == [True, False, False]


def test_what_is_present_is_a_set_and_not_everything_up_to_the_highest() -> None:
    found = ScanResult().merged([(10, 0, "q", 1), (12, 0, "q", 2)], {}, True)
    assert found.present(np.array([9, 10, 11, 12, 13])).tolist() == [False, True, False, True, False]


@given(rows, st.integers(0, 2**40), st.integers(0, 2**40))
def test_what_stands_there_of_a_range(hits: list, begin: int, end: int) -> None:  # type: ignore[type-arg]
    found = ScanResult().merged(hits, {}, True)
    assert found.count_below(end) == len({(offset, ordinal) for offset, ordinal, _, _ in hits if offset < end})
    within = [offset + 1 for offset, _, _, _ in hits if begin <= offset < end]
    assert found.behind_highest(begin, end) == max(within, default=begin)


def test_bytes_without_coordinates_survive_the_ledger() -> None:
    found = ScanResult.decode(ScanResult(unplaced=7).encode())
    assert found.merged([], {}, True).unplaced == 7


def test_copies_beyond_one_are_counted_below_the_end_only() -> None:
    found = ScanResult().merged(
        [(1, 0, "q", 5), (1, 0, "q", 9), (2, 0, "q", 6), (8, 0, "q", 7), (8, 0, "q", 8)], {}, True
    )
    assert found.duplicates(8) == 1
    assert found.duplicates(9) == 2


def test_late_copies_of_each_slice_are_surplus_and_survive_the_ledger() -> None:
    found = ScanResult.decode(ScanResult().merged([], {}, False, late=2).encode()).merged(
        [(8, 0, "q", 7)], {}, True, late=1
    )
    assert found.duplicates(9) == 3


def test_what_may_be_there_twice_adds_up_over_slices() -> None:
    found = ScanResult.decode(ScanResult().merged([], {}, False, possible_duplicates=3).encode())
    assert ScanResult.decode(found.merged([], {}, True, possible_duplicates=4).encode()).possible_duplicates == 7


def test_nothing_found_is_small() -> None:
    assert len(ScanResult().encode()) < 100


def spread_over(*targets: str, rows: list[tuple[int, int, str, int]]) -> ScanResult:
    return ScanResult(spread=targets).merged(rows, {}, True)


def test_in_one_target_nothing_before_the_highest_is_doubtful() -> None:
    assert ScanResult().merged([(3, 0, "q", 0), (9, 0, "q", 1)], {}, True).doubtful_from(0, 10) == 10


def test_of_several_targets_the_one_that_got_least_far_decides() -> None:
    rows = [(0, 0, "a", 0), (2, 0, "a", 1), (7, 0, "a", 2), (4, 0, "b", 0)]
    assert spread_over("a", "b", rows=rows).doubtful_from(0, 8) == 5, "1 and 3 were filtered, 5 may be lost in b"
    assert spread_over("a", "b", "c", rows=rows).doubtful_from(0, 8) == 1, "in c nothing is there"
    assert spread_over("a", "b", rows=rows).doubtful_from(0, 4) == 4, "what stands behind the end tells as much"


def test_without_a_hole_nothing_is_doubtful_however_it_is_shared_out() -> None:
    rows = [(n, 0, "a" if n < 9 else "b", n) for n in range(5, 12)]
    assert spread_over("a", "b", "c", rows=rows).doubtful_from(5, 12) == 12
    assert spread_over("a", "b", rows=[]).doubtful_from(5, 12) == 5


def test_a_record_that_is_not_whole_is_doubtful_where_its_next_output_may_go() -> None:
    both = [Hit(5, 0, "a", 0, 0, 2), Hit(5, 1, "a", 1, 0, 2)]
    assert ScanResult(spread=("a",)).merged(both, {}, True).doubtful_from(5, 6) == 6
    assert ScanResult(spread=("a",)).merged(both[:1], {}, True).doubtful_from(5, 6) == 5
    behind = [*both[:1], Hit(9, 0, "a", 2)]
    assert ScanResult(spread=("a",)).merged(behind, {}, True).doubtful_from(5, 10) == 10, (
        "what goes to a was written there"
    )


def test_the_targets_of_a_spread_range_are_kept() -> None:
    found = spread_over("a", "b", rows=[(5, 0, "b", 3)])
    assert ScanResult.decode(found.encode()).spread == ("a", "b")


def test_traces_stay_with_their_records() -> None:
    first = ScanResult().merged([Hit(8, 0, "q", 1, 80), Hit(2, 0, "q", 0)], {}, False)
    found = ScanResult.decode(first.encode()).merged([Hit(5, 0, "p", 3, 50), Hit(8, 0, "p", 2, 80)], {}, True)
    assert found.traced() == [(5, 50), (8, 80)]
    assert ScanResult.decode(found.encode()).traced() == found.traced()


def test_without_traces_the_stored_form_is_what_it_was_before_there_were_any() -> None:
    stored = ScanResult().merged([(3, 0, "q", 5)], {"q": 6}, True).encode()
    assert b"traced" not in stored
    found = ScanResult.decode(stored)
    assert (found.hits.tolist(), found.traces.tolist(), found.traced()) == ([[3, 0, 0, 5]], [0], [])


def test_a_prefix_is_there_as_a_whole_and_survives_the_ledger() -> None:
    found = ScanResult.decode(ScanResult({"b": 9}, True, prefix=Prefix(40, 7, 3)).encode())
    assert found.prefix == Prefix(40, 7, 3)
    with_holes = Prefix(40, 7, 3, ((1, 2),), ((4, 6), (8, 9)))
    assert ScanResult.decode(ScanResult(prefix=with_holes).encode()).prefix == with_holes
    assert with_holes.covers(np.array([0, 1, 3, 4, 5, 6, 8, 40])).tolist() == [
        True,
        False,
        True,
        *[False] * 2,
        True,
        *[False] * 2,
    ]
    assert found.present(np.array([10, 39, 40, 41])).tolist() == [True, True, False, False]
    assert (found.there(), found.count_below(40), found.duplicates(40)) == (7, 7, 0)
    assert (found.behind_highest(10, 100), found.behind_highest(10, 30), found.behind_highest(50, 90)) == (40, 30, 50)


def test_without_a_prefix_the_stored_form_is_what_it_was() -> None:
    assert b"prefix" not in ScanResult().encode()


@given(rows, st.integers(0, 2**40), st.integers(0, 2**40), st.integers(0, 2**40))
def test_what_was_seen_further_on_is_what_would_be_found_there(
    hits: list,
    first: int,
    second: int,
    third: int,  # type: ignore[type-arg]
) -> None:
    """For the ranges [0, a), [a, b) and [b, c): each has what one that was looked for by itself would have."""
    a, b, c = sorted((first, second, third))
    found: ScanResult | None = seen_by(hits, a)
    for begin, end in ((a, b), (b, c)):
        assert found is not None
        found = found.onward(begin, end)
        alone = seen_by([row for row in hits if row[0] >= begin], end)
        assert found is not None
        assert found.there() == alone.there()
        assert found.lowest_from(end) == alone.lowest_from(end)
        within = [sorted(map(tuple, one.hits[one.hits[:, 0] < end][:, [0, 1, 3]])) for one in (found, alone)]
        assert within[0] == within[1]


def seen_by(hits: list, end: int) -> ScanResult:  # type: ignore[type-arg]
    """As a sink tells it: of what is behind the range the lowest of each target, and the rest packed."""
    seen, pieces = {}, []
    for target in {row[2] for row in hits}:
        mine = sorted(((o, n, p, 0, 1) for o, n, t, p in hits if t == target), key=lambda row: row[2])
        kept, behind = parted(np.array(mine, dtype=np.int64), end)
        seen[target] = kept
        pieces += [Piece.of(target, behind)] if len(behind) else []
    return ScanResult().joined(seen, {}, True, further=pieces)


def test_what_the_ledger_does_not_keep_is_looked_for_again() -> None:
    found = seen_by([(n, 0, "q", n) for n in range(9)], 3)
    assert found.onward(3, 6) is not None
    again = ScanResult.decode(found.encode())
    assert (again.there(), again.onward(3, 6)) == (found.there(), None)


def test_more_than_can_be_kept_is_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connect_core.sdk.scan.MAX_FURTHER_BYTES", 10)
    found = seen_by([(n, 0, "q", n) for n in range(900)], 3)
    assert (found.onward(3, 6), found.there(), found.further.pieces) == (None, 900, ())


@pytest.mark.parametrize(
    ("found", "nothing"),
    [
        (ScanResult(complete=True), True),
        (ScanResult(), False),
        (ScanResult(complete=True, unknown=True), False),
        (ScanResult(complete=True, unplaced=1), False),
        (ScanResult(complete=True, late=1), False),
        (ScanResult(complete=True, possible_duplicates=1), False),
        (ScanResult(complete=True, failure=Failure.of(Unreachable("it is away"))), False),
        (ScanResult(complete=True, prefix=Prefix(through=7)), True),
        (ScanResult(complete=True, prefix=Prefix(7, records=1)), False),
        (ScanResult(complete=True, prefix=Prefix(7, unsure=1)), False),
        (ScanResult(complete=True, prefix=Prefix(7, without=((3, 4),))), False),
        (ScanResult(complete=True, prefix=Prefix(7, refused=((3, 4),))), False),
        (ScanResult().merged([(3, 0, "t", 9)], {"t": 10}, True), False),
    ],
)
def test_that_nothing_of_a_range_is_there_is_said_only_where_that_is_certain(found: ScanResult, nothing: bool) -> None:
    assert found.has_nothing == nothing
