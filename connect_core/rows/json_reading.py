"""JSON texts -> rows, column by column. Pure.

Arrow reads a whole batch at once; a batch that it refuses is halved until the records are found that do not fit. What
fits does not depend on what else is in the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from numpy.typing import NDArray

from connect_core.rows.json_columns import TypedColumns, wire_type
from connect_core.rows.json_faults import MISFIT, Faults
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import Type

PART = 64 << 20
"""Bytes that are read at once, but for a record that is longer."""
FEW = 64
"""Records of which each is examined, once one of them does not fit."""

_SPACE = " \t\r\n"
_FAR_POINT = (
    r"[:,\[\s\"][-+]?(0*\.0[0-9]{38}|[0-9]*\.?[0-9]*[eE]-[0-9]{2})"  # by noughts, or by an exponent
    r"|\\u00(2[bdeBDE]|3[0-9]|[46]5)"  # or it may have one, in a text with letters that nobody escapes
)
"""A number that is much smaller than its digits. Arrow refuses those that are larger, and those with more digits than a
decimal holds."""
_REFUSED = (pa.ArrowInvalid, pa.ArrowCapacityError, UnicodeDecodeError)


class Read(NamedTuple):
    rows: pa.StructArray
    """Of the values that fit, in order; no row is missing."""
    unfit: list[tuple[int, str]]
    """The row of a value and why it does not fit, ascending."""
    operations: pa.Array | None = None
    """Of changes: what happened to each row (`sdk.records`), int8. Of one that was deleted `rows` has it as it was."""
    before: pa.StructArray | None = None
    """Of changes: the row as it was before, null where that is not known."""
    needs: Mapping[int, Type] = {}
    """Of values that do not fit: what the declared fields lack of those with which each would (`widening.beyond`)."""


class _Part(NamedTuple):
    """Values that Arrow has read, and which these are."""

    table: pa.Table
    rows: NDArray[np.int64]


class JsonReader:
    """`unknown`: whether a record with a field that is not declared does not fit (reject and evolve), or loses that
    field.

    A field that is lost is read as JSON all the same, but for NaN and Infinity, which Arrow's reader passes over.
    """

    def __init__(self, rows: Type, *, unknown: Literal["reject", "drop", "evolve"] = "reject") -> None:
        self._type = rows
        self._empty = pa.array([], arrow_type(rows))
        self._faults = Faults(rows, unknown)
        self._has_decimals = _has_decimals(rows)
        self._options = pj.ParseOptions(
            explicit_schema=pa.schema(list(wire_type(rows))),
            unexpected_field_behavior="ignore" if unknown == "drop" else "error",
        )

    def read(self, values: pa.Array) -> Read:
        """`values` are binary. Each is a row or has a reason."""
        texts, places, unfit = _objects(values)
        if self._has_decimals and len(texts):
            texts, places = self._without_far_points(texts, places, unfit)
        parts = list(self._parts(texts, places, unfit))
        if not parts:
            return Read(self._empty, sorted(unfit.items()))
        found = np.concatenate([part.rows for part in parts])
        table = pa.concat_tables([part.table for part in parts]).combine_chunks()
        columns = TypedColumns(len(found))
        rows = columns.struct(table, self._type)
        if columns.unfit:
            unfit |= {int(found[row]): reason for row, reason in columns.unfit.items()}
            fit = np.ones(len(found), dtype=bool)
            fit[list(columns.unfit)] = False
            rows = rows.filter(pa.array(fit))
        return Read(rows, sorted(unfit.items()))

    def _without_far_points(
        self, texts: pa.Array, places: NDArray[np.int64], unfit: dict[int, str]
    ) -> tuple[pa.Array, NDArray[np.int64]]:
        """Arrow's reader moves the point of a decimal by a table of 39 powers, and does not look where that ends: of
        `1e-43` it makes 0 without a word, of `1e-9999999` the end of its process. Texts with a number of that form are
        examined before it sees them."""
        rows = _with_far_points(texts)
        if not len(rows):
            return texts, places
        stays = np.ones(len(texts), dtype=bool)
        stays[rows] = False
        stays[rows[self._seeming(texts.take(pa.array(rows)), places[rows], unfit)]] = True
        return texts.filter(pa.array(stays)), places[stays]

    def _parts(
        self, texts: pa.Array, places: NDArray[np.int64], unfit: dict[int, str], *, examined: bool = False
    ) -> Iterator[_Part]:
        """What Arrow refuses goes to `unfit`. `examined`: these are few, and seem to fit."""
        if not len(texts):
            return
        if len(texts) == 1 or texts.nbytes <= PART:
            if (table := self._table(texts)) is not None:
                yield _Part(table, places)
                return
            if examined and len(texts) == 1:
                unfit[int(places[0])] = MISFIT
                return
            if not examined and len(texts) <= FEW:
                seeming = self._seeming(texts, places, unfit)
                yield from self._parts(texts.take(pa.array(seeming)), places[seeming], unfit, examined=True)
                return
        middle = len(texts) // 2
        yield from self._parts(texts.slice(0, middle), places[:middle], unfit, examined=examined)
        yield from self._parts(texts.slice(middle), places[middle:], unfit, examined=examined)

    def _seeming(self, texts: pa.Array, places: NDArray[np.int64], unfit: dict[int, str]) -> NDArray[np.int64]:
        """Which of the texts seem to fit, one examined after the other."""
        seeming = []
        for row, text in enumerate(texts.to_pylist()):
            if reason := self._faults.of(text):
                unfit[int(places[row])] = reason
            else:
                seeming.append(row)
        return np.array(seeming, np.int64)

    def _table(self, texts: pa.Array) -> pa.Table | None:
        """None where one of them does not fit.

        As many rows as texts are one of each. A text begins with `{`, and the one before it ended with `}`: only
        outside of all objects may the one follow the other, and no string of JSON continues in the next line.
        """
        lines = pc.binary_join_element_wise(texts, "", "\n").buffers()[2]
        one_block = pj.ReadOptions(use_threads=False, block_size=min(len(lines) + 1, (1 << 31) - 1))
        try:
            table = pj.read_json(pa.BufferReader(lines), read_options=one_block, parse_options=self._options)
        except _REFUSED:
            return None
        return table if table.num_rows == len(texts) else None


def _with_far_points(texts: pa.Array) -> NDArray[np.int64]:
    """The rows in which the point of a number is far away: `_FAR_POINT`, looked for where one of its signs is."""
    ends = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    letters = np.frombuffer(texts.buffers()[2], np.uint8)[ends[0] : ends[-1]]
    # None of these is the first or the last letter: a text begins and ends with a brace, or a blank.
    minus, point, escape = (np.flatnonzero(letters == sign) for sign in b"-.\\")
    exponent = minus[(letters[minus - 1] | 0x20) == ord("e")]
    small = point[letters[point + 1] == ord("0")]
    escaped = escape[letters[escape + 1] == ord("u")]
    rows = np.unique(np.searchsorted(ends, np.concatenate([exponent, small, escaped]) + ends[0], side="right") - 1)
    far = pc.match_substring_regex(texts.take(pa.array(rows)), _FAR_POINT)
    found: NDArray[np.int64] = rows[far.to_numpy(zero_copy_only=False)]
    return found


def _has_decimals(one: Type) -> bool:
    inner = [of for _, of in one.fields] + ([one.item] if one.item else [])
    return one.kind == "decimal" or any(map(_has_decimals, inner))


def _objects(values: pa.Array) -> tuple[pa.Array, NDArray[np.int64], dict[int, str]]:
    """The values that are texts and begin and end as an object does, their rows, and why the others are none."""
    unfit: dict[int, str] = {}
    places = np.arange(len(values))
    if values.null_count:
        unfit |= dict.fromkeys(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False)).tolist(), "no value")
        places, values = places[values.is_valid().to_numpy(zero_copy_only=False)], values.drop_null()
    try:
        texts = values.cast(pa.string())
    except pa.ArrowInvalid:
        utf8 = np.array([_is_utf8(value) for value in values.to_pylist()])
        unfit |= dict.fromkeys(places[~utf8].tolist(), "not UTF-8")
        places, texts = places[utf8], values.filter(pa.array(utf8)).cast(pa.string())
    if not len(texts):
        return texts, places, unfit
    whole = _braced(texts)
    if not pc.all(whole).as_py():
        whole = _braced(pc.ascii_trim(texts, _SPACE))
        one = whole.to_numpy(zero_copy_only=False)
        others = places[~one].tolist()
        unfit |= dict(zip(others, map(_no_object, texts.filter(pc.invert(whole)).to_pylist()), strict=True))
        places, texts = places[one], texts.filter(whole)
    return texts, places, unfit


def _braced(texts: pa.Array) -> pa.Array:
    return pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}"))


def _no_object(text: str) -> str:
    if not text.strip(_SPACE):
        return "empty"
    return "a byte order mark before it" if text[0] == "\ufeff" else "not one JSON object"


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
