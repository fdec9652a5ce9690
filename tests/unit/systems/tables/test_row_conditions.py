"""Which conditions are one expression, whatever statement they are put in."""

from __future__ import annotations

import pytest

from connect_core.errors import ConfigError
from connect_core.systems.tables.row_conditions import MOST, MYSQL, POSTGRESQL, Dialect, check_condition

BOTH = pytest.mark.parametrize("dialect", [POSTGRESQL, MYSQL])


def fault(condition: str, dialect: Dialect) -> str:
    """Empty: it has none."""
    try:
        check_condition(condition, dialect, "here")
    except ConfigError as error:
        return error.what.removeprefix("The condition ")
    return ""


@BOTH
@pytest.mark.parametrize(
    "condition",
    [
        "id > 3",
        "(a = 1) OR (b = 2 AND c IN (1, 2))",
        "note = 'a;b -- c /* d # (e'",
        "note = 'it''s (' AND b = ')'",
        "note LIKE '50%' AND selected = 1",
        "lower(note) = 'große' AND \n\ttable_number = 3",
        '"odd;(name" = 1',
        "note = 'select'",
        "note = ''",
        "CASE WHEN a > 0 THEN b END = 1",
        "a % 2 = 1 AND b - -1 > 0",
    ],
)
def test_one_expression(condition: str, dialect: Dialect) -> None:
    assert fault(condition, dialect) == ""


@BOTH
@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("1=1) OR (1=1", "closes a parenthesis"),
        ("true) UNION SELECT * FROM secrets WHERE (true", "closes a parenthesis"),
        ("(a = 1", "not closed"),
        ("a = 1)", "closes a parenthesis"),
        ("a = 1; DROP TABLE orders", "has ';'"),
        ("a = 1 -- ", "has '--'"),
        ("a = 1 --", "has '--'"),
        ("a = 1 /* b", "has '/*'"),
        ("a /*! OR 1 */ = 1", "has '/*'"),
        ("a = 'b", "a quote"),
        ("a = 'b\\'' OR (1", "a quote"),
        ('a = "b', "a quote"),
        ("a = 'b''", "a quote"),
        ("a = 'b' OR c = \\'", "outside of a text"),
        ("a = 1\0", "outside of a text"),
        ("id IN (SELECT id FROM others)", "a subquery"),
        ("id IN (TABLE others)", "a subquery"),
        ("id = (sElEcT/**/1)", "a subquery"),
        ("", "is empty"),
        (" \n", "is empty"),
        ("a" * (MOST + 1), "characters"),
    ],
)
def test_what_is_none(condition: str, words: str, dialect: Dialect) -> None:
    assert words in fault(condition, dialect)


def test_signs_of_one_server_alone() -> None:
    assert fault("doc #>> '{a}' = 'b'", POSTGRESQL) == ""
    assert "'#'" in fault("a = 1 # b", MYSQL)
    assert fault("`odd)name` = 1 AND `b``)` = 2", MYSQL) == ""
    assert "quote" in fault("`a = 1", MYSQL)
    for text in ("$$ ) $$", "$a$ ) $a$", "$1"):
        assert "'$'" in fault(f"note = {text}", POSTGRESQL)
    for text in ("E'\\') OR (note = '", "e'a'", "E'a'\n'\\'') OR ('"):
        assert "backslash" in fault(f"note = {text}", POSTGRESQL)
    assert fault("note = 'a\\' AND tree = 'E' AND e = 'b'", POSTGRESQL) == ""
    assert fault("note = 'a\\'", MYSQL) == "", "a backslash is a character as others are"
