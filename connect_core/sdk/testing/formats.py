"""The suite for a format that a package brings. An author's test file inherits it:

class TestFixed(FormatContract):
    case = FormatCase(FIXED, {"widths": {"id": 4}}, rows=[{"id": "1"}], refused=[b"too long"])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from pydantic import ValidationError

from connect_core.sdk.row_formats import Payloads, RowFormat
from connect_core.sdk.row_functions import Changed


@dataclass(frozen=True)
class FormatCase:
    """`rows` are such as the format reads and writes, with whatever it may get wrong: empty texts, nulls, blanks, signs
    beyond ASCII, the smallest and the largest numbers. `refused` are payloads that are not of the format, `unwritable`
    rows that have no form in it. `declared`: the fields of a document, where the format needs them said."""

    format: RowFormat
    options: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    refused: Sequence[bytes] = ()
    unwritable: Sequence[Mapping[str, Any]] = ()
    declared: pa.Schema | None = None
    wrong_options: Mapping[str, Any] = field(default_factory=lambda: {"no option of any format": 1})

    @property
    def checked(self) -> Any:
        return self.format.options.model_validate(dict(self.options))

    @property
    def fields(self) -> pa.Schema:
        return self.format.fields(self.checked, self.declared)

    def read(self, payloads: Sequence[bytes]) -> tuple[list[dict[str, Any]], list[bool]]:
        """The rows, and which of them are rejected."""
        assert self.format.read is not None
        made = self.format.read(self.checked, self.fields, pa.array(payloads, pa.binary()))
        assert isinstance(made, Changed)
        assert made.rows.schema.equals(self.fields), "read gives other fields than `fields` says"
        assert len(made.rows) == len(payloads), "read gives as many rows as it was given payloads"
        return made.rows.to_pylist(), _flags(made.rejected, len(payloads))

    def written(self, rows: Sequence[Mapping[str, Any]]) -> tuple[list[bytes], list[bool]]:
        """The payloads, and which of them are rejected."""
        assert self.format.write is not None
        made = self.format.write(self.checked, pa.RecordBatch.from_pylist([*map(dict, rows)], schema=self.fields))
        assert isinstance(made, Payloads)
        assert made.values.type == pa.binary(), "write gives binary values"
        assert len(made.values) == len(rows), "write gives as many payloads as it was given rows"
        return made.values.to_pylist(), _flags(made.rejected, len(rows))


def _flags(rejected: pa.Array | None, count: int) -> list[bool]:
    assert rejected is None or len(rejected) == count, "rejected has a value for each row"
    return [False] * count if rejected is None else [bool(one) for one in rejected.to_pylist()]


class FormatContract:
    """What a format cannot do is skipped: a test of what is written, of one that only reads."""

    case: ClassVar[FormatCase]

    def _writes(self) -> FormatCase:
        if self.case.format.write is None:
            pytest.skip("it does not write")
        return self.case

    def _both(self) -> FormatCase:
        if self.case.format.read is None:
            pytest.skip("it does not read")
        return self._writes()

    def test_it_states_that_it_makes_the_same_each_time(self) -> None:
        assert self.case.format.deterministic

    def test_options_that_there_are_not_are_refused(self) -> None:
        with pytest.raises(ValidationError):
            self.case.format.options.model_validate(dict(self.case.wrong_options))

    def test_it_takes_the_rows_that_it_reads(self) -> None:
        self._writes().format.takes(self.case.checked, self.case.fields)

    def test_what_is_written_is_read_again(self) -> None:
        case = self._both()
        payloads, unwritten = case.written(case.rows)
        assert not any(unwritten), "each of `rows` has a form in the format"
        rows, unread = case.read(payloads)
        assert not any(unread)
        assert rows == pa.RecordBatch.from_pylist([*map(dict, case.rows)], schema=case.fields).to_pylist()

    def test_a_batch_may_be_cut_anywhere(self) -> None:
        case = self._both()
        payloads, _ = case.written(case.rows)
        assert [case.written([row])[0][0] for row in case.rows] == payloads
        rows, _ = case.read(payloads)
        assert [case.read([payload])[0][0] for payload in payloads] == rows

    def test_the_same_comes_of_the_same(self) -> None:
        case = self._both()
        payloads, _ = case.written(case.rows)
        assert case.written(case.rows)[0] == payloads
        assert case.read(payloads) == case.read(payloads)

    def test_a_payload_that_is_not_of_the_format_is_rejected_and_no_other(self) -> None:
        case = self._both()
        if not case.refused:
            pytest.skip("no payload is refused")
        good, _ = case.written(case.rows)
        mixed = [one for pair in zip(case.refused, good * len(case.refused), strict=False) for one in pair]
        rows, unread = case.read(mixed)
        assert unread == [True, False] * len(case.refused)
        assert rows[1::2] == case.read(mixed[1::2])[0]

    def test_a_row_without_a_form_is_rejected_and_no_other(self) -> None:
        case = self._writes()
        if not case.unwritable:
            pytest.skip("every row has a form")
        mixed = [
            one for pair in zip(case.unwritable, [*case.rows] * len(case.unwritable), strict=False) for one in pair
        ]
        payloads, unwritten = case.written(mixed)
        assert unwritten == [True, False] * len(case.unwritable)
        assert payloads[1::2] == case.written(mixed[1::2])[0]

    def test_nothing_is_made_of_nothing(self) -> None:
        case = self._both()
        assert case.read([]) == ([], [])
        assert case.written([]) == ([], [])

    def test_any_bytes_give_a_row_or_are_rejected(self) -> None:
        """An exception of a value is allowed: the record is rejected for which it comes."""
        if self.case.format.read is None:
            pytest.skip("it does not read")
        for payload in (b"", b"\x00", b"\xff\xfe", b" " * 4096, "\u00fcn\u00efc\u00f6d\u00e9".encode(), b"{}", b"\r\n"):
            with suppress(ValueError, TypeError, LookupError, ArithmeticError):
                self.case.read([payload])
