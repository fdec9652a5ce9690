"""Coordinates, headers, partitions and errors: what they look like to others."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.errors import ConfigError, Failure, Fault, OffsetGone, Retriable, WireFormatError
from connect_core.sdk.batches import value_lengths, without_nulls
from connect_core.sdk.records import Coordinates, Lineage, Partition, decode_headers, encode_headers


def test_coordinates_text() -> None:
    here = Coordinates(Lineage("3f2a9c01b7de", "live", "9a8b7c6d5e4f3a2b", 1), 12345, 0)
    assert here.text() == "3f2a9c01b7de:live:9a8b7c6d5e4f3a2b:1:12345:0"
    assert Coordinates.parse(here.text()) == here
    assert here.text().startswith(here.lineage.prefix())


def test_coordinates_of_a_later_version_may_say_more() -> None:
    assert Coordinates.parse("u:live:p:0:5:0:more") == Coordinates(Lineage("u", "live", "p", 0), 5, 0)


@given(st.text(max_size=60))
def test_whatever_a_stranger_writes_is_coordinates_or_a_wire_error(text: str) -> None:
    try:
        Coordinates.parse(text)
    except WireFormatError:
        return


@given(
    st.dictionaries(
        st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1),
        st.text(st.characters(exclude_characters="\x02", exclude_categories=["Cs"])),
    )
)
def test_headers_round_trip(headers: dict[str, str]) -> None:
    assert decode_headers(encode_headers(headers.items())) == headers


def test_of_equal_headers_the_last_wins() -> None:
    assert decode_headers(encode_headers([("a", "1"), ("a", "2")])) == {"a": "2"}


def test_a_partition_id_is_16_hex_digits_and_never_changes() -> None:
    assert Partition("logs/a.log").id == "21ebd6910978e460"


def test_an_error_says_what_where_and_what_next() -> None:
    error = OffsetGone("records are gone", where="partition a, offset 7", next_step="Set errors.on_data_loss: skip")
    assert str(error) == "records are gone [partition a, offset 7]. Set errors.on_data_loss: skip"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_failure_becomes_the_error_that_it_was() -> None:
    failure = Failure.of(OffsetGone("what", where="where", next_step="next"))
    error = failure.as_error()
    assert type(error) is OffsetGone
    assert (error.what, error.where, error.next_step) == ("what", "where", "next")


def test_a_foreign_error_is_retriable_and_keeps_its_words() -> None:
    error = Failure.of(ZeroDivisionError("by zero")).as_error()
    assert type(error) is Retriable
    assert "ZeroDivisionError: by zero" in str(error)


def test_a_config_error_lists_every_fault() -> None:
    error = ConfigError("2 faults", where="a.yaml", faults=(Fault("tasks", "too many"), Fault("", "no source")))
    assert str(error) == "2 faults [a.yaml]\n  tasks: too many\n  no source"
    assert pickle.loads(pickle.dumps(error)).faults == error.faults


@pytest.mark.parametrize(("error", "code"), [(Retriable, 1), (ConfigError, 2), (OffsetGone, 5)])
def test_exit_codes(error: type[Retriable], code: int) -> None:
    assert error.exit_code == code


class _TopicMissing(OffsetGone):
    """Stands for a class that a room derives from the tree."""


def test_a_class_of_a_room_recovers_as_the_family_that_it_belongs_to() -> None:
    failure = Failure.of(_TopicMissing("no topic"))
    assert (failure.kind, failure.family) == ("_TopicMissing", "OffsetGone")
    assert type(failure.as_error()) is OffsetGone


VALUES = st.lists(st.none() | st.binary(max_size=5), max_size=6)


@given(values=VALUES, begin=st.integers(0, 6))
def test_the_lengths_of_values(values: list[bytes | None], begin: int) -> None:
    """Of a part of a column too, and of one without a buffer."""
    column = pa.array(values, pa.binary()).slice(begin)
    assert value_lengths(column).tolist() == [len(value or b"") for value in values[begin:]]
    assert value_lengths(pa.array(["ä", None, "b"])).tolist() == [2, 0, 1]


@given(values=VALUES)
def test_nulls_are_replaced_where_there_are_any(values: list[bytes | None]) -> None:
    column = pa.array(values, pa.binary())
    assert without_nulls(column, b"-").to_pylist() == [b"-" if value is None else value for value in values]
    assert (without_nulls(column, b"-") is column) == (None not in values)
