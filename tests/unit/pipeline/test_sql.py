"""Conditions of RocketMQ's filters: what holds, what is unknown, and what is none. The judge of the meaning is a broker
(tests/system/replication/test_filters.py); these cases are what it said, and texts that it refuses."""

from __future__ import annotations

import pytest

from connect_core.pipeline.sql import condition

ROW = {"amount": "120", "price": "9.50", "region": "eu", "flag": "True", "word": "x1", "quote": "it's", "TAGS": "paid"}


@pytest.mark.parametrize(
    "text",
    [
        "amount > 100 AND region IN ('eu', 'us')",
        "amount = 120 and 100 < amount",
        "amount BETWEEN 120 AND 121",
        "amount NOT BETWEEN -1 AND 119",
        "price >= 9.5 AND price < 1e1 AND price < amount",
        "missing IS NULL AND amount IS NOT NULL",
        "missing > 1 OR region = 'eu'",
        "region <> 'us' AND region NOT IN ('us', 'ap')",
        "NOT (region = 'us')",
        "flag = TRUE",
        "quote = 'it''s' -- a comment\n",
        "TAGS = 'paid' /* and */",
        "region STARTSWITH 'e' AND region ENDSWITH 'u' AND NOT (region NOT CONTAINS 'eu')",
        "missing = other",
        "region = 'us' OR amount > 1 AND price > 1.0",
        "AmounT IS NULL AND $x_1 IS NULL",
        "TRUE",
    ],
)
def test_what_holds(text: str) -> None:
    assert condition(text)(ROW)


@pytest.mark.parametrize(
    "text",
    [
        "amount > 120",
        "missing > 1",
        "missing <> 'x'",
        "NOT (missing = 'x')",
        "missing NOT IN ('x')",
        "missing NOT CONTAINS 'x'",
        "missing NOT BETWEEN 1 AND 2",
        "region CONTAINS ''",
        "region",
        "word > 1",
        "word > 1 OR region = 'eu'",  # what cannot be compared fails the whole condition
        "price > 9",  # a text beside a whole number has to be one
        "amount > word",
        "TRUE = flag",
        "NOT amount = 120",  # NOT binds closer than the comparison
        "FALSE",
        "NULL",
    ],
)
def test_what_does_not_hold(text: str) -> None:
    assert not condition(text)(ROW)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("amount >", "it cannot be read at its end"),
        ("amount > 1 region", "at character 12"),
        ("amount > '1'", "> compares numbers only"),
        ("(a = 1) > 2", "> compares numbers only"),
        ("'x'", "is not a condition: it has a text or a number"),
        ("a = 1 AND 2", "is not a condition: it has a text or a number"),
        ("a IN (1)", "at character 7"),
        ("'a' IN ('a')", "IN needs the name of a property"),
        ("a = NULL", "write IS NULL"),
        ("TRUE = 1", "compares a truth value"),
        ("a BETWEEN 5 AND 1", "takes the lower number first"),
        ("a > 0.0", "write 0 without a fraction"),
        ("a > 9223372036854775808", "is too large a number"),
        ("a LIKE 'x%'", "at character 3"),
        ("a + 1 > 2", "at character 3"),
    ],
)
def test_what_is_no_condition(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        condition(text)


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        ("2147483647", True),
        ("2147483648", False),  # a constant of 32 bits is compared with numbers of 32 bits
        ("+7", True),
        ("7 ", False),
        ("7_0", False),
        ("", False),
    ],
)
def test_whole_numbers(value: str, holds: bool) -> None:
    assert condition("n > 6")({"n": value}) is holds


@pytest.mark.parametrize(
    ("value", "holds"),
    [("7", True), (" 7.0f", True), ("NaN", True), ("-Infinity", False), ("1e400", True), ("7_0", False), ("x", False)],
)
def test_fractions(value: str, holds: bool) -> None:
    assert condition("n > 6.5")({"n": value}) is holds


def test_a_list_of_numbers_is_told_from_other_mistakes() -> None:
    with pytest.raises(ValueError, match="IN takes texts in quotes"):
        condition("a IN (1, 3)")
