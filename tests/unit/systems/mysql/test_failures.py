"""What an answer of the server means, and that nothing of a row is passed on."""

from __future__ import annotations

import pymysql
import pytest

from connect_core.errors import ConfigError, Refused, Unreachable
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.systems.mysql.failures import made, meaning

SECRET = "secret"


@pytest.mark.parametrize(
    ("number", "said", "kind", "words"),
    [
        (1062, f"Duplicate entry '{SECRET}' for key 'PRIMARY'", "DuplicateKey", "Key PRIMARY does"),
        (1062, f"Duplicate entry '{SECRET} for key {SECRET}' for key 't.k'", "DuplicateKey", "Key k does"),
        (1406, "Data too long for column 'name' at row 3", "TooLong", "Column name does"),
        (1366, f"Incorrect integer value: '{SECRET}' for column `d`.`t`.`n` at row 1", "WrongValue", "Column n does"),
        (
            3140,
            "Invalid JSON text: \"Invalid value.\" at position 1 in value for column 't.c'.",
            "WrongValue",
            "Column c does",
        ),
        (4025, "CONSTRAINT `few` failed for `d`.`t`", "CheckViolation", "Constraint few forbids"),
        (3819, "Check constraint 'few' is violated.", "CheckViolation", "Constraint few forbids"),
        (
            1452,
            "Cannot add or update a child row: a foreign key constraint fails (`d`.`t`, CONSTRAINT `of_order` FOREIGN"
            " KEY (`n`) REFERENCES `orders` (`id`))",
            "ForeignKeyViolation",
            "Constraint of_order forbids the row: a row that it needs is not there",
        ),
        (1644, SECRET, "RaisedByTrigger", "The table does not take one of its values"),
        (1292, f"Incorrect datetime value: '{SECRET}'", "WrongValue", "The table does not take one of its values"),
    ],
)
def test_a_row_that_is_refused(number: int, said: str, kind: str, words: str) -> None:
    refused = meaning(pymysql.OperationalError(number, said), "here")
    assert isinstance(refused, RowsRefused)
    assert refused.kind == kind
    assert words in str(refused)
    assert SECRET not in str(refused)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1146, "There is no such table"),
        (1205, "held a lock"),
        (1213, "waited for each other"),
        (1290, "takes no writes"),
        (1047, "not in touch with its cluster"),
        (1114, "full"),
        (1021, "full"),
        (1927, "does not answer as it should: error 1927"),
        (2013, "The connection was lost, or the server no longer answers"),
        (2003, "whether the server runs"),
    ],
)
def test_what_may_go_by_is_tried_again(number: int, words: str) -> None:
    told = meaning(pymysql.OperationalError(number, SECRET), "here")
    assert isinstance(told, Unreachable)
    assert words in str(told)
    assert SECRET not in str(told)


def test_what_a_person_has_to_do() -> None:
    assert isinstance(meaning(pymysql.OperationalError(1045, SECRET), ""), ConfigError)
    assert "no right on the database" in str(meaning(pymysql.OperationalError(1044, SECRET), ""))
    assert isinstance(meaning(pymysql.OperationalError(1142, SECRET), ""), Refused)
    assert isinstance(meaning(pymysql.InterfaceError(), ""), Unreachable)
    for number in (1118, 3750):
        with pytest.raises(ConfigError, match=f"does not take it: error {number}"), made(""):
            raise pymysql.OperationalError(number, SECRET)
    for number in (2013, 1047):
        with pytest.raises(Unreachable), made(""):
            raise pymysql.OperationalError(number, SECRET)
