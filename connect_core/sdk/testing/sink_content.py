"""What a sink keeps of the records that it is given: awkward content, thousands of rows, large numbers.

A sink that is made with a kit has this in the suite of its kit; any other one inherits `ContentContract`, beside
`SinkContract`.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Protocol

import pyarrow as pa
import pytest

from connect_core.errors import WaybillError
from connect_core.sdk.records import Record, encode_headers
from connect_core.sdk.sink import Refusable
from connect_core.sdk.testing.content import HEADERS, KEYS, VALUES, check_names
from connect_core.sdk.testing.differences import difference
from connect_core.sdk.testing.driving import attempt, limit, records
from connect_core.sdk.testing.sinks import SettledState, SinkCase, SinkSuite, numbers

MANY = 2_500
"""More than what an author's code is apt to do at once."""


class ContentCase(SinkCase, Protocol):
    """What `SimpleCase` has."""

    refused: bytes | None
    unkept: Set[str]
    in_memory: bool

    def records(self) -> Sequence[Record]: ...

    def break_(self) -> None: ...


def deliver(ledger: SettledState, rows: pa.RecordBatch) -> list[int]:
    """Writes all of them, range by range, as far as the target takes them; the offsets of those that it refuses."""
    refused = [int(rows.column("offset")[row].as_py()) for row, _, _ in ledger.system.sink().invalid_rows(rows)]
    left = rows.filter(pa.array([offset not in refused for offset in rows.column("offset").to_pylist()]))
    while len(left):
        ledger.epoch += 1
        item = ledger.planned(ledger.system.sink(), len(rows))
        with ledger.system.sink().writer(attempt(ledger.epoch, ledger.uid), item) as writer:
            if isinstance(writer, Refusable):
                writer.on_refused = lambda row, kind, message: refused.append(row.column("offset")[0].as_py())
            taken = writer.write(left, limit())
            delivered = writer.flush(limit())
        for name, position in delivered.behind.items():
            ledger.floors[name] = ledger.floors[name]._replace(position=position)
        left = left.slice(taken)
        ledger.settled = left.column("offset")[0].as_py() - ledger.first if len(left) else len(rows)
        ledger.open = None
    return refused


class ContentContract(SinkSuite):
    """`target` is a fixture of yours: a fresh `ContentCase`, such as a `SimpleCase`."""

    def kept(self, values: Sequence[bytes | None]) -> list[bytes | None]:
        """What stands in the target when these were written, as `there` shows it."""
        return list(values)

    def test_thousands_of_rows_are_written_and_found_at_once(self, target: ContentCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(MANY, settle_at=None)
        ledger.attempt(MANY, settle_at=MANY)
        assert not difference(self.there(target), numbers(MANY))

    @pytest.mark.parametrize("name", VALUES)
    def test_a_value_is_kept_as_it_came(self, target: ContentCase, name: str) -> None:
        check_names(target.unkept)
        values = [b"1", VALUES[name], b"3"]
        ledger = SettledState(target)
        refused = deliver(ledger, ledger.rows_of(values))
        if name in target.unkept:
            assert {b"1", b"3"} <= {*self.there(target)}
        else:
            assert (self.there(target), refused) == (self.kept(values), [])

    @pytest.mark.parametrize("name", [*KEYS, *HEADERS])
    def test_keys_and_headers_are_kept_where_the_case_shows_them(self, target: ContentCase, name: str) -> None:
        key, headers = KEYS.get(name, "key"), HEADERS.get(name, ())
        rows = records(
            [b"1"],
            key=[key],
            headers=[encode_headers(headers) or None],
            tags=["tag"],
            topic=["topic"],
            timestamp=[1_700_000_000_123],
        )
        refused = deliver(SettledState(target), rows)
        if name not in target.unkept and not (refused and key is None):
            assert [(one.value, one.key, one.headers) for one in target.records()] == [(b"1", key, headers)]

    def test_long_names_and_large_numbers_are_kept(self, target: ContentCase) -> None:
        ledger = SettledState(target, incarnation=12, origin="0123456789abcdef", first=10**12)
        ledger.attempt(10, settle_at=None)
        ledger.attempt(10, settle_at=6)
        ledger.attempt(20, settle_at=None)
        ledger.attempt(20, settle_at=20)
        assert self.there(target) == numbers(20)

    def test_a_target_that_does_not_answer_is_an_error(self, target: ContentCase) -> None:
        ledger = SettledState(target)
        ledger.attempt(5, settle_at=None)
        target.break_()
        with pytest.raises(WaybillError):
            ledger.attempt(5, settle_at=5)
