"""What an answer of a database means: its own words may quote rows, and how it was reached."""

from __future__ import annotations

import pytest
from sqlalchemy import exc

from connect_core.errors import Refused, Unreachable, WaybillError
from connect_core.sdk.kits.refused import RowsRefused
from connect_core.systems.sql.connecting import engine_of
from connect_core.systems.sql.failures import meaning, understood
from connect_core.systems.sql.options import SqlOptions


class InsufficientPrivilege(Exception):
    """As drivers call it."""


@pytest.mark.parametrize(
    ("error", "means"),
    [
        (exc.OperationalError("SELECT 'hunter22'", None, ValueError("no login for hunter22")), Unreachable),
        (exc.IntegrityError("INSERT 'hunter22'", None, ValueError("(hunter22) is there")), RowsRefused),
        (exc.DataError("INSERT 'hunter22'", None, ValueError("hunter22 is too long")), RowsRefused),
        (exc.ProgrammingError("INSERT 'hunter22'", None, InsufficientPrivilege("hunter22")), Refused),
    ],
)
def test_nothing_of_what_a_server_says_is_passed_on(error: exc.DBAPIError, means: type[WaybillError]) -> None:
    found = meaning(error, "mssql+pyodbc://db/shop")
    assert type(found) is means
    assert "hunter22" not in str(found)


def test_what_sqlalchemy_itself_does_not_do_is_tried_again() -> None:
    with pytest.raises(Unreachable, match="NoSuchColumnError"), understood("here"):
        raise exc.NoSuchColumnError("hunter22")


def test_a_dialect_that_is_not_there_is_told_without_the_password() -> None:
    options = SqlOptions(url="oracle+psycopg2://db/shop", user="reader", password="hunter22")
    with pytest.raises(WaybillError) as told:
        engine_of(options, options.url, "reads")
    assert "hunter22" not in str(told.value)
    assert "hunter22" not in options.url
