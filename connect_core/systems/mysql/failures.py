"""What an answer of the server means to a run, by its number. Nothing of a row goes into a message: the server quotes
values, so its own words are not passed on where they may hold some.

https://mariadb.com/docs/server/reference/error-codes, https://dev.mysql.com/doc/mysql-errors/8.0/en
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pymysql
from pymysql.cursors import Cursor

from connect_core.errors import ConfigError, Missing, Refused, Retriable, Unreachable, WaybillError
from connect_core.sdk.kits.refused import RowsRefused

_OF_ROWS = {
    **dict.fromkeys((1048, 1263), "NullRefused"),
    **dict.fromkeys((1062, 1557, 1586, 1761, 1762), "DuplicateKey"),
    **dict.fromkeys((1216, 1217, 1451, 1452), "ForeignKeyViolation"),
    **dict.fromkeys((1264, 1416, 1426, 1441, 1690), "OutOfRange"),
    **dict.fromkeys((1265, 1292, 1300, 1366, 1367, 1411, 3140, 3141, 3147), "WrongValue"),
    **dict.fromkeys((1118, 1406, 1713), "TooLong"),
    **dict.fromkeys((3819, 4025), "CheckViolation"),
    **dict.fromkeys((1526, 1748), "NoPartition"),
    1644: "RaisedByTrigger",
}
"""By number the kind of a refusal, also where it is a warning."""
_FOREIGN_KEY = (1451, 1452)
_RAISED = {
    **dict.fromkeys((*range(3142, 3159), *range(4035, 4046)), "WrongValue"),
    1301: "TooLong",
    **dict.fromkeys((1139, 1172, 1242, 1321, 1329, 1339, 1643), "RaisedByTrigger"),
}
"""Of functions that generated columns, constraints and triggers call: text that is no JSON, more rows than one."""
_UNREADABLE = (126, 127, 144, 145, 1030, 1034, 1035, 1194, 1195, 1712, 1969, 3024)
"""A table is damaged, or takes longer than the server allows."""
_MISSING = {1146: "There is no such table", 1054: "The table has no such column", 1364: "A column needs a value"}
_ACCESS = {
    **dict.fromkeys((1045, 1251, 1698), "The login was refused"),
    1044: "The user has no right on the database, or it is not there",
    1049: "There is no such database",
}
_NO_RIGHT = 1044
_NO_ANSWER = (2002, 2003, 2005, 2006, 2013, 2026, 2055)
_NO_TLS = ("SSL", "TLS", "certificate")
_REACH_STEP = "See whether the server runs, and whether host and port lead to it"
_TLS_STEP = "Look at tls, tls_ca, tls_certificate and tls_key, and at the names in the server's certificate"
_FORBIDDEN = (1142, 1143, 1227, 1370, 1410)
_CUT = (1290, 1792, 1836, 1874)
_BUSY = {
    1213: "Two transactions waited for each other",
    1205: "Another session held a lock for longer than lock_timeout_s",
    **dict.fromkeys((1317, 1969, 3024), "A statement was ended, or took longer than statement_timeout_s"),
    **dict.fromkeys(_CUT, "The server takes no writes: it is a replica, or read-only"),
    **dict.fromkeys((1021, 1114), "The server's disk, or the table, is full"),
    **dict.fromkeys((1040, 1203, 1226), "The server takes no more connections"),
    **dict.fromkeys((2006, 2013), "The connection was lost, or the server no longer answers"),
    1047: "The server is not in touch with its cluster",
    **dict.fromkeys((1412, 1785), "The table was altered meanwhile"),
}
_ENDED = (1053, 1077, 1079, 1080, 1158, 1159, 1160, 1161, 1184, 1927, 3572)
"""The server stops, or ends the session, or does not wait for a row: nothing is wrong with a statement."""
_MEANWHILE = (1050, 1060)
"""There is such a table, such a column."""
_NO_LOCK = (1213, 1205, 1317, 1969)
_AT_ROW = re.compile(r" at row \d+$")
_FOREIGN = re.compile(r", CONSTRAINT `([^`]+)` FOREIGN KEY ")
"""No value is in such a message."""
_CONSTRAINT = re.compile(r"^(?:CONSTRAINT|Check constraint) [`']([^`']+)[`'] ")


@contextmanager
def understood(where: str) -> Iterator[None]:
    """Raises what driver and worker know instead of what the driver of the database raises."""
    try:
        yield
    except pymysql.Error as error:
        raise meaning(error, where) from None


@contextmanager
def reached(where: str) -> Iterator[None]:
    """The same where a connection is made: there the driver says why, and no row is in its words."""
    try:
        yield
    except pymysql.Error as error:
        if number_of(error) not in _NO_ANSWER:
            raise meaning(error, where) from None
        words = str(error.args[-1])
        step = _TLS_STEP if any(one in words for one in _NO_TLS) else _REACH_STEP
        raise Unreachable(f"The database cannot be reached: {words}", where=where, next_step=step) from None


@contextmanager
def made(where: str) -> Iterator[None]:
    """The same where a table is made or altered, and no row is at fault. Raises ConfigError for what the database does
    not take."""
    try:
        yield
    except pymysql.Error as error:
        number = number_of(error)
        if number in _MEANWHILE:
            raise Retriable("Another session made it meanwhile", where=where, next_step="Try again") from None
        known = (*_ACCESS, *_BUSY, *_FORBIDDEN, *_NO_LOCK)
        if number >= 1000 and number not in (*range(2000, 3000), *known, 1927):
            step = "Make the table or its columns by hand, or rename or drop the fields"
            words = f"The database does not take it: error {number}"
            raise ConfigError(words, where=where, next_step=step) from None
        raise meaning(error, where) from None


def number_of(error: pymysql.Error) -> int:
    """Of the server, or of the driver from 2000 on; 0 where there is none."""
    return error.args[0] if error.args and isinstance(error.args[0], int) else 0


def is_forbidden(error: pymysql.Error) -> bool:
    return number_of(error) in _FORBIDDEN


def is_of_rows(error: pymysql.Error) -> bool:
    """Whether the server does not give or take a row, and would do no better with the next statement."""
    return number_of(error) in (*_OF_ROWS, *_RAISED, *_UNREADABLE)


def is_of_condition(error: pymysql.Error) -> bool:
    """Whether the server does not take a condition for rows that somebody has given, or not with these rows."""
    number = number_of(error)
    is_of_server = number >= 1000 and number not in range(2000, 3000)
    return is_of_rows(error) or (is_of_server and number not in (*_BUSY, *_ENDED))


def changing(asking: Cursor) -> RowsRefused | None:
    """What the warnings mean with which the last statement of this session went through. Of more than the server tells
    (`max_error_count`, which in MySQL few users may set) the rest may mean the same."""
    count = asking.warning_count
    if not count:
        return None
    asking.execute("SHOW WARNINGS")
    numbers = [int(number) for _, number, _ in asking.fetchall()]
    kinds = sorted(_OF_ROWS[number] for number in numbers if number in _OF_ROWS)
    if kinds or len(numbers) < count:
        return RowsRefused((kinds or ["WrongValue"])[0], "The table would keep another value than one of these")
    return None


def meaning(error: pymysql.Error, where: str) -> WaybillError:
    number = number_of(error)
    if kind := _OF_ROWS.get(number) or _RAISED.get(number):
        return RowsRefused(kind, _refusal(error))
    if number in _MISSING:
        step = "Create it, or name another one; the next attempt looks again"
        return Missing(_MISSING[number], where=where, next_step=step)
    if number == _NO_RIGHT:
        step = "Grant the user what `waybill options` says, or correct the name of the database"
        return ConfigError(_ACCESS[number], where=where, next_step=step)
    if number in _ACCESS:
        return ConfigError(_ACCESS[number], where=where, next_step="Correct host, database, user or password")
    if is_forbidden(error):
        return Refused("The user may not do that", where=where, next_step="Grant what `waybill check --probe` names")
    if number in _BUSY:
        return Unreachable(_BUSY[number], where=where, next_step=_REACH_STEP if number in _NO_ANSWER else "")
    named = f": error {number}" if number else ""
    step = _REACH_STEP if number in _NO_ANSWER else ""
    return Unreachable(f"The database does not answer as it should{named}", where=where, next_step=step)


def _refusal(error: pymysql.Error) -> str:
    """Of what the server says only the name of a constraint, a key or a column: all before it may be a value."""
    said = str(error.args[1]) if len(error.args) > 1 else ""
    if number_of(error) in _FOREIGN_KEY and (key := _FOREIGN.search(said)):
        return f"Constraint {key[1]} forbids the row: a row that it needs is not there, or one needs it"
    if found := _CONSTRAINT.match(said):
        return f"Constraint {found[1]} forbids the row"
    for word in ("key", "column"):
        _, there, name = said.rpartition(f" for {word} ")
        if there:
            name = _AT_ROW.sub("", name).rstrip(".").strip("`'").rpartition(".")[2].strip("`'")
            return f"{word.capitalize()} {name} does not take its value"
    return "The table does not take one of its values"
