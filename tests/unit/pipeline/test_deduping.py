"""Duplicates within a range: the first goes on, whatever the batches."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.pipeline.examples import SinglePipeline
from connect_core.pipeline.shaping import Pipeline
from connect_core.pipeline.transforms.steps import step_of
from connect_core.rows.types import struct_of
from connect_core.sdk.plugin import TypedRecord
from connect_core.sdk.testing.driving import records
from tests.unit.pipeline.transforms.stepping import stepped, values

PARSE = {"format": "json", "fields": {"a": "text", "b": "int64", "items": ["text"]}}


def pipeline(*steps: Any) -> Pipeline:
    return Pipeline({"parse": PARSE, "transforms": list(steps)})


def kept(made: Pipeline, *rows: dict[str, Any], begin: int = 0) -> list[int]:
    bodies = [json.dumps(row).encode() for row in rows]
    shaped = made.shape(records(bodies, offset=list(range(begin, begin + len(rows)))))
    offsets: list[int] = shaped.kept.column("offset").to_pylist()
    assert sorted([*set(offsets), *shaped.filtered]) == list(range(begin, begin + len(rows)))
    return offsets


def test_the_first_of_equal_ones_goes_on() -> None:
    rows = [{"a": "x", "b": 1}, {"a": "x", "b": 1}, {"a": "x"}, {"a": "x", "b": None}, {"b": 1}, {"a": "y", "b": 1}]
    assert kept(pipeline({"dedupe": ["a", "b"]}), *rows) == [0, 2, 4, 5]
    assert kept(pipeline({"dedupe": {"by": ["a"], "keep": "first"}}), *rows) == [0, 4, 5]


def test_keys_that_are_written_alike_are_told_apart() -> None:
    rows = [{"a": "1:x,1", "b": 1}, {"a": "1", "b": 11}, {"a": "11", "b": 1}, {"a": "-"}, {}]
    assert kept(pipeline({"dedupe": ["a", "b"]}), *rows) == [0, 1, 2, 3, 4]


def test_there_is_one_zero_among_duplicates_and_hashes() -> None:
    fields = {"f": "float64", "o": {"g": ["float32"]}}
    rows = [{"f": zero, "o": {"g": [zero]}} for zero in (0.0, -0.0)]
    assert stepped([{"dedupe": ["f", "o"]}], fields, rows).places.tolist() == [0]
    one, other = values(stepped([{"mask": {"f": "hash", "o": "hash"}}], fields, rows))
    assert one == other


def test_what_is_left_out_before_is_not_the_first() -> None:
    rows = [{"a": "x", "b": 0}, {"a": "x", "b": 1}, {"a": "x", "b": 2}]
    assert kept(pipeline({"filter": "$.b > 0"}, {"dedupe": ["a"]}), *rows) == [1]


def test_pieces_of_one_record_are_duplicates_of_each_other() -> None:
    made = pipeline({"explode": "items"}, {"dedupe": ["items"]})
    assert kept(made, {"items": ["x", "y", "x"]}, {"items": ["y", "z"]}) == [0, 0, 1]


def test_two_steps_remember_each_for_itself() -> None:
    rows = [{"a": "x", "b": 1}, {"a": "y", "b": 1}, {"a": "x", "b": 2}]
    assert kept(pipeline({"dedupe": ["b"]}, {"dedupe": ["a"]}), *rows) == [0]


KEYS = st.lists(st.sampled_from("abc"), max_size=12)


@given(KEYS, st.lists(st.integers(0, 12), max_size=4), st.integers(0, 12))
def test_batches_of_any_size_and_records_shaped_twice_make_the_same(
    keys: list[str], cuts: list[int], again: int
) -> None:
    rows = [{"a": one} for one in keys]
    expected = kept(pipeline({"dedupe": ["a"]}), *rows)
    made, found = pipeline({"dedupe": ["a"]}), []
    borders = sorted({0, len(rows), *(cut for cut in cuts if cut <= len(rows))})
    for begin, end in pairwise(borders):
        kept(made, *rows[begin : begin + again], begin=begin)  # more than is taken in the end, or less
        found += kept(made, *rows[begin:end], begin=begin)
    assert found == expected


@given(KEYS, st.integers(0, 12))
def test_what_a_longer_range_delivers_the_rest_of_it_delivers_too(keys: list[str], begin: int) -> None:
    """Where a range closes short, its rest is another range: what is in the target by then still passes there."""
    rows = [{"a": one} for one in keys]
    whole = kept(pipeline({"dedupe": ["a"]}), *rows)
    rest = kept(pipeline({"dedupe": ["a"]}), *rows[begin:], begin=begin) if begin < len(rows) else []
    assert {offset for offset in whole if offset >= begin} <= set(rest)


def test_examples_are_each_for_itself() -> None:
    made = SinglePipeline({"parse": PARSE, "transforms": [{"dedupe": ["a"]}]})
    for _ in range(2):
        assert len(made.made_of(TypedRecord(b'{"a":"x"}', "t", None, None)).outputs) == 1


@pytest.mark.parametrize(
    ("given_step", "words"),
    [
        ([], "needs a list"),
        (["c"], "no field c"),
        ({"keep": "first"}, "needs the fields that make a duplicate"),
        ({"by": ["a"], "keep": "last"}, "a range that is tried again may end elsewhere"),
        ({"by": ["a"], "keep": "any"}, "keep: 'any' is not first"),
    ],
)
def test_a_fault_says_what_is_wrong(given_step: Any, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        step_of({"dedupe": given_step}).after(struct_of(PARSE["fields"]))  # type: ignore[arg-type]
