"""Conditions of rules: by column they say the same as row by row, whatever stands in the records."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.pipeline import conditions, sql
from connect_core.pipeline.comparing import Incomparable, Whole
from connect_core.pipeline.fields import Fields
from connect_core.pipeline.references import names_in, read_condition
from connect_core.sdk.records import encode_headers
from connect_core.sdk.templates import WRITTEN, Reference, reference
from connect_core.sdk.testing.driving import records

NAMES = ["$.a", "$.b[0]", "$['a b']", "topic", "topic[2]", "header:x-1", "plain", "TAGS", "KEYS"]
NAMES += ["payload:text", "file:name", "file:offset"]
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.integers(2**53 - 2, 2**70), st.sampled_from([0.5, -0.0, 2.0])
) | st.sampled_from(["", "a", "2", "2.5", "true", "ab"])
PAYLOADS = st.one_of(
    st.just(b"no json"),
    st.just(None),
    st.fixed_dictionaries(
        {}, optional={"a": SCALARS, "b": st.lists(SCALARS, max_size=2), "a b": SCALARS | st.just({"c": 1})}
    ).map(lambda one: json.dumps(one).encode()),
    SCALARS.map(lambda one: json.dumps(one).encode()),
)
TEXTS = st.sampled_from(["", "a", "2", "2.5", "ab"])
ROWS = st.lists(
    st.tuples(PAYLOADS, st.sampled_from(["a", "a/2", "a/b/c", ""]), TEXTS, TEXTS, TEXTS | st.none(), TEXTS | st.none()),
    min_size=1,
    max_size=20,
)
CONSTANTS = st.sampled_from(["'a'", "'2'", "2", "-3", "2.5", "9007199254740993", "TRUE", "''"])
OPERANDS = st.sampled_from(NAMES) | CONSTANTS
NUMBERS = st.sampled_from(["2", "-3", "2.5", "9007199254740992"])
LEAVES = st.one_of(
    st.builds("{} {} {}".format, OPERANDS, st.sampled_from(["=", "<>"]), OPERANDS),
    st.builds("{} {} {}".format, st.sampled_from(NAMES), st.sampled_from([">", ">=", "<", "<="]), NUMBERS),
    st.builds("{} {} {}".format, NUMBERS, st.sampled_from([">", "<="]), st.sampled_from(NAMES)),
    st.builds("{} {}BETWEEN 1 AND 2.5".format, st.sampled_from(NAMES), st.sampled_from(["", "NOT "])),
    st.builds("{} {}IN ('a', '2')".format, st.sampled_from(NAMES), st.sampled_from(["", "NOT "])),
    st.builds(
        "{} {}{} '{}'".format,
        st.sampled_from(NAMES),
        st.sampled_from(["", "NOT "]),
        st.sampled_from(["CONTAINS", "STARTSWITH", "ENDSWITH"]),
        st.sampled_from(["a", ""]),
    ),
    st.builds("{} IS {}NULL".format, st.sampled_from(NAMES), st.sampled_from(["", "NOT "])),
    st.sampled_from([*NAMES, "TRUE", "NULL"]),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=4,
)


def fields_of(rows: list[tuple[Any, ...]]) -> Fields:
    bodies, topics, first, second, tags, keys = map(list, zip(*rows, strict=True))
    headers = [encode_headers([("x-1", a), ("plain", b)]) for a, b in zip(first, second, strict=True)]
    return Fields(records(bodies, topic=topics, headers=headers, tags=tags, key=keys), "/logs/a")


def row_by_row(text: str, fields: Fields) -> list[bool]:
    """The same by `sql` alone, which its tests compare with RocketMQ."""
    holds = sql.meaning(sql.tree(text, WRITTEN))
    columns = {name: fields.column(reference(name, bare=True)).values for name in NAMES}
    return [
        _holds(holds, {name: _as_sql(column[row]) for name, column in columns.items()}) for row in range(len(fields))
    ]


def _holds(holds: sql.Evaluate, values: dict[str, Any]) -> bool:
    try:
        return holds(values) is True
    except Incomparable:
        return False


def _as_sql(value: Any) -> Any:
    return Whole(value) if type(value) is int else value


def legal(text: str) -> bool:
    try:
        conditions.compiled(text)
    except ValueError:
        return False
    return True


@given(CONDITIONS | CONDITIONS.map(str.swapcase))
def test_what_a_document_is_checked_with_finds_all_that_a_worker_would(text: str) -> None:
    try:
        read_condition(text)
    except ValueError:
        assert not legal(text)
    else:
        assert legal(text)


@given(CONDITIONS.filter(legal), ROWS)
def test_by_column_is_the_same_as_row_by_row(text: str, rows: list[tuple[Any, ...]]) -> None:
    fields = fields_of(rows)
    assert conditions.holding(text, fields).tolist() == row_by_row(text, fields)


ROW = (b'{"temp": 21.5, "unit": "C", "on": true, "n": 7, "list": [1, {"x": "y"}], "a b": null}', "site/1/temp")


@pytest.mark.parametrize(
    "text",
    [
        "$.temp > 20",
        "$.temp BETWEEN 21 AND 22 AND $.n = 7",
        "$.unit = 'C' AND $.unit IN ('C', 'F')",
        "$.n IN ('7') AND $.temp IN ('21.5') AND $.on IN ('true') AND $.n = '7'",
        "$.on",
        "$.on = TRUE",
        "$.list[1].x = 'y' AND $.list[-2] = 1",
        "$['a b'] IS NULL AND $.none IS NULL",
        '$.list[1] = \'{"x":"y"}\'',
        "topic[1] = 'site' AND topic[2] = '1' AND topic[4] IS NULL",
        "topic STARTSWITH 'site/'",
        "topic[2:] = '1/temp' AND topic[1:] = topic AND topic[4:] IS NULL",
        "$.unit CONTAINS 'C' AND NOT ($.unit CONTAINS 'F')",
        "header:x-1 = 'v' AND plain = 'w'",
        "$.temp > $.n",
    ],
)
def test_what_holds(text: str) -> None:
    assert conditions.holding(text, fields_of([(*ROW, "v", "w", None, None)])).tolist() == [True]


@pytest.mark.parametrize("text", ["$.n > 1", "NOT ($.n > 1)", "$.n <> 1", "$.n = 'x'", "$.n"])
@pytest.mark.parametrize("body", [b"no json", b"\xff", b"", b"{}", b"[1]", b"7", b'{"n": null}', b'{"n": {}}'])
def test_what_a_payload_does_not_have_is_unknown_and_no_error(text: str, body: bytes) -> None:
    assert conditions.holding(text, fields_of([(body, "t", "", "", None, None)])).tolist() == [False]


def test_headers_that_are_no_text_are_no_error() -> None:
    rows = records([b"{}"], topic=["t"], headers=[b"MQTT_TOPIC\x01a/\xff\x02color\x01red\x02odd\x01\xff\x02"])
    assert conditions.holding("color = 'red' AND topic[1] = 'a' AND odd IS NOT NULL", Fields(rows)).tolist() == [True]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("$.temp >", "at its end"),
        ("$temp.x > 1", "at character 6"),
        ("topic[0] = 'a'", "at character 6"),
        ("HEADER:x = 'a'", "names nothing"),
        ("$.temp > 'a'", "compares numbers only"),
        ("'text'", "is not a condition"),
    ],
)
def test_what_is_no_condition_is_said(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        conditions.compiled(text)


def test_what_a_condition_names() -> None:
    named = names_in(read_condition("$.a.b > 1 AND (topic[2] = 'x' OR color IS NULL)"))
    assert named == {
        "$.a.b": Reference("payload", steps=("a", "b")),
        "topic[2]": Reference("topic", level=2),
        "color": Reference("header", name="color"),
    }


@pytest.mark.parametrize("number", ["18446744073709551616", "-9223372036854775810"])
def test_whole_numbers_that_differ_in_the_last_digit_are_not_equal(number: str) -> None:
    other = str(int(number) + 1)
    rows = records([b'{"id": %s, "of": %s}' % (number.encode(), one.encode()) for one in (number, other)])
    assert conditions.holding("$.id = $.of", Fields(rows)).tolist() == [True, False]
