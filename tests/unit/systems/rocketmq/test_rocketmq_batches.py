"""How rows are cut into batches, and which rows the target can never take."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from connect_core.rocketmq import Queue
from connect_core.sdk.testing.driving import records
from connect_core.sdk.values import Limit
from connect_core.systems.rocketmq.appending import uncovered
from connect_core.systems.rocketmq.options import RocketMQSinkOptions
from connect_core.systems.rocketmq.parcels import BATCH_BYTES, Parcel, batch_sizes, message_bytes
from connect_core.systems.rocketmq.routing import Router
from connect_core.systems.rocketmq.sink import RocketMQSink
from connect_core.systems.rocketmq.writing import SpreadWriter
from tests.unit.systems.rocketmq.test_rocketmq_routing import with_alarms


def invalid_rows(sink_options: dict[str, object], rows: object) -> list[tuple[int, str]]:
    options = RocketMQSinkOptions.model_validate({"name_servers": "a:1", "topic": "t", **sink_options})
    return [(row, kind) for row, kind, _ in RocketMQSink(options).invalid_rows(rows)]  # type: ignore[arg-type]


@given(st.lists(st.sampled_from([0, 200, 10_000, 700_000, 900_000]), max_size=40))
def test_batches_hold_all_rows_within_the_limits(sizes: list[int]) -> None:
    rows = records([b"x" * size for size in sizes])
    counts = list(batch_sizes(message_bytes(rows)))
    assert sum(counts) == len(sizes)
    begin = 0
    for count in counts:
        assert count > 0
        total = message_bytes(rows.slice(begin, count)).sum()
        assert count == 1 or total <= BATCH_BYTES
        begin += count


def test_batches_of_small_rows_are_cut_by_count() -> None:
    assert list(batch_sizes(message_bytes(records([b""] * 2500)))) == [1000, 1000, 500]


def test_messages_above_the_limit_are_unfit() -> None:
    rows = records([b"x" * 1025, b"x" * 1024, None])
    assert invalid_rows({"max_message_bytes": 1024}, rows) == [(0, "MessageTooLarge")]
    assert invalid_rows({}, rows) == []


def test_properties_above_the_limit_are_unfit() -> None:
    rows = records([b"", b"x" * 40_000, b""], headers=[b"a\x01" + b"x" * 32_000 + b"\x02", None, b"a\x01b\x02"])
    assert invalid_rows({}, rows) == [(0, "PropertiesTooLarge")]


def test_keys_with_separators_are_unfit() -> None:
    rows = records([b"", b"", b"", b""], key=["fine", "a\x01b", None, "a\x02"], tags=[None, "a\x02", "\x01", None])
    assert invalid_rows({}, rows) == [(1, "IllegalProperty"), (2, "IllegalProperty"), (3, "IllegalProperty")]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 100, 8_000, 31_000, 33_000]),
            st.sampled_from([None, "", "k", "k\x01", "\x02", "k" * 6_000]),
            st.sampled_from([None, "t", "\x01t"]),
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([1_024, 12_000, 4 << 20]),
    st.booleans(),
)
@example([(8_000, None, None)], 12_000, True)
def test_few_rows_are_judged_as_they_are_among_many(
    given: list[tuple[int, str | None, str | None]], most_bytes: int, share: bool
) -> None:
    keys, tags = [key for _, key, _ in given], [tag for _, _, tag in given]
    few = records([b"\xff" * size for size, _, _ in given], key=keys, tags=tags)
    if share:
        few = few.set_column(few.schema.get_field_index("headers"), "headers", few.column("value"))
    fit = [None] * 100
    many = pa.concat_batches([few, records([b""] * 100, key=fit, tags=fit, first_offset=100)])
    limit: dict[str, object] = {"max_message_bytes": most_bytes}
    assert invalid_rows(limit, few) == invalid_rows(limit, many)


def test_no_rows_are_fit() -> None:
    assert invalid_rows({}, records([])) == []


@given(st.integers(0, 20), st.integers(0, 20), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=4))
def test_what_no_span_covers(begin: int, end: int, ends: list[tuple[int, int]]) -> None:
    spans = [(low, high) for low, high in ends if low < high]
    covered = {place for span in spans for place in range(*span)}
    rest = uncovered(begin, end, spans)
    assert [place for span in rest for place in range(*span)] == [n for n in range(begin, end) if n not in covered]
    assert all(low < high for low, high in rest)


@dataclass
class Taken:
    """The way into a queue, without one: it takes what it is given."""

    rows: int = 0

    def send(self, parcel: Parcel, limit: Limit) -> None:
        self.rows += parcel.rows


@dataclass
class Rounds:
    """A limit that is over after so many looks at it."""

    left: int

    def quantum_left_s(self) -> float:
        self.left -= 1
        return float(self.left >= 0)

    def left_s(self) -> float:
        return 60.0


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("outputs", [1, 7, 10_000])
def test_a_round_holds_all_outputs_of_its_records(outputs: int, rounds: int) -> None:
    """A round has a few thousand rows, and would end in the midst of a record."""
    offsets = [n // outputs for n in range(40_000)]
    rows = records([b"x"] * len(offsets), offset=offsets, to=["alarms" if n % 3 else None for n in range(40_000)])
    into: dict[Queue, Taken] = defaultdict(Taken)
    wanted = with_alarms("partition")
    writer = SpreadWriter(Router(wanted), into.__getitem__, wanted.lineage("uid"), 3.0, 1 << 22)  # type: ignore[arg-type]
    taken = writer.write(rows, Rounds(rounds))  # type: ignore[arg-type]
    assert 0 < taken < len(rows)
    assert len(rows) == taken or offsets[taken - 1] != offsets[taken]
    assert sum(one.rows for one in into.values()) == taken
