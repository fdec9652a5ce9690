"""Digests add up whatever the order and the split, and change with every part of a record."""

from __future__ import annotations

import pyarrow as pa
import pytest

from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.digest import RecordDigest
from connect_core.sdk.digest_texts import add_digests
from connect_core.sdk.records import Lineage, encode_headers

LINEAGE = Lineage("uid", "live", "part", 0)


def batch(*rows: dict[str, object]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"operation": 0, **row} for row in rows], schema=RECORD_SCHEMA)


def digest(*rows: dict[str, object], lineage: Lineage = LINEAGE) -> str:
    total = RecordDigest(lineage)
    total.add(batch(*rows))
    return total.text()


PLAIN = {"offset": 7, "value": b"body"}


def test_order_and_split_do_not_matter() -> None:
    rows = [{"offset": n, "value": b"line %d" % n} for n in range(100)]
    whole = digest(*rows)
    assert digest(*reversed(rows)) == whole
    assert add_digests(digest(*rows[:31]), digest(*rows[31:])) == whole


@pytest.mark.parametrize(
    "other",
    [
        {**PLAIN, "offset": 8},
        {**PLAIN, "value": b"bodY"},
        {**PLAIN, "key": "k"},
        {**PLAIN, "tags": "t"},
        {**PLAIN, "headers": encode_headers([("a", "b")])},
    ],
)
def test_every_part_of_a_record_counts(other: dict[str, object]) -> None:
    assert digest(other) != digest(PLAIN)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"key": "k"}, {"key": "l"}),
        ({"tags": "t"}, {"tags": "u"}),
        ({"headers": encode_headers([("a", "b")])}, {"headers": encode_headers([("a", "c")])}),
        ({"key": "x"}, {"tags": "x"}),
        ({"key": "x", "tags": "y"}, {"key": "y", "tags": "x"}),
    ],
)
def test_records_that_differ_in_key_tags_or_headers_alone_differ(
    one: dict[str, object], other: dict[str, object]
) -> None:
    assert digest({**PLAIN, **one}) != digest({**PLAIN, **other})


def test_partition_and_incarnation_count() -> None:
    assert digest(PLAIN, lineage=LINEAGE._replace(partition_id="q")) != digest(PLAIN)
    assert digest(PLAIN, lineage=LINEAGE._replace(incarnation=1)) != digest(PLAIN)


def test_outputs_of_one_record_count_by_their_ordinal() -> None:
    assert digest({**PLAIN, "ordinal": 1}) != digest(PLAIN) == digest({**PLAIN, "ordinal": 0})
    both = digest({**PLAIN, "ordinal": 0}, {**PLAIN, "ordinal": 1})
    assert (
        both == add_digests(digest(PLAIN), digest({**PLAIN, "ordinal": 1})) != add_digests(digest(PLAIN), digest(PLAIN))
    )


def test_swapped_bodies_are_noticed() -> None:
    assert digest({"offset": 1, "value": b"a"}, {"offset": 2, "value": b"b"}) != digest(
        {"offset": 1, "value": b"b"}, {"offset": 2, "value": b"a"}
    )


def test_headers_have_no_order() -> None:
    one = {**PLAIN, "headers": encode_headers([("a", "1"), ("b", "2")])}
    two = {**PLAIN, "headers": encode_headers([("b", "2"), ("a", "1")])}
    assert digest(one) == digest(two)


def test_null_and_empty_are_the_same_body() -> None:
    assert digest({"offset": 1, "value": None}) == digest({"offset": 1, "value": b""})
