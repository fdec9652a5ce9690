"""What an answer of a database means to a run. Nothing of a row goes into a message: the words of a database may quote
values, so only those of SQLite are passed on that name a table or a column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import exc

from connect_core.errors import ConfigError, Missing, Refused, Unreachable, WaybillError
from connect_core.sdk.kits.refused import RowsRefused

_OF_ROWS = {
    "SQLITE_CONSTRAINT_CHECK": ("CheckViolation", "A CHECK constraint forbids the row"),
    "SQLITE_CONSTRAINT_DATATYPE": ("WrongValue", "A column of a STRICT table does not take its value"),
    "SQLITE_CONSTRAINT_FOREIGNKEY": (
        "ForeignKeyViolation",
        "A foreign key forbids the row: a row that it needs is not there, or one needs it",
    ),
    "SQLITE_CONSTRAINT_NOTNULL": ("NullRefused", "A column takes no NULL"),
    "SQLITE_CONSTRAINT_TRIGGER": ("RaisedByTrigger", "A trigger forbids the row"),
    **dict.fromkeys(
        ("SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_ROWID", "SQLITE_CONSTRAINT_UNIQUE"),
        ("DuplicateKey", "The table has a row with this key"),
    ),
    "SQLITE_MISMATCH": ("WrongValue", "The table does not take one of its values"),
    "SQLITE_TOOBIG": ("TooLong", "A value is longer than SQLite takes them"),
}
"""By SQLite's name of an error the kind of a refusal, and what is said of it."""
_LATER = {
    "SQLITE_BUSY": "Another program has the file for longer than lock_timeout_s",
    "SQLITE_LOCKED": "Another program has the table",
    "SQLITE_FULL": "The disk is full",
    "SQLITE_IOERR": "The file system does not read or write the file",
    "SQLITE_CANTOPEN": "The file cannot be opened: it is not there, or may not be read",
    "SQLITE_READONLY": "The file, or its folder, may not be written",
    "SQLITE_CORRUPT": "The file is damaged",
}
"""By its first words: what may be otherwise in the next attempt."""
_NO_DATABASE = "SQLITE_NOTADB"
_COLUMNS = re.compile(r"(?:UNIQUE|NOT NULL) constraint failed: ([\w., ]+)")
_MISSING = re.compile(r"no such (table|column): [\w.]+")
_NO_RIGHT = ("InsufficientPrivilege", "PermissionError")


@contextmanager
def understood(where: str) -> Iterator[None]:
    """Raises what driver and worker know instead of what SQLAlchemy, or the driver of the database, raises."""
    try:
        yield
    except exc.DBAPIError as error:
        raise meaning(error, where) from None
    except exc.NoSuchTableError:
        step = "Create it, or name another one; the next attempt looks again"
        raise Missing("There is no such table", where=where, next_step=step) from None
    except exc.SQLAlchemyError as error:
        raise Unreachable(f"The database does not answer as it should: {type(error).__name__}", where=where) from None


@contextmanager
def made(where: str) -> Iterator[None]:
    """The same where a table is made or altered, and no row is at fault."""
    try:
        with understood(where):
            yield
    except RowsRefused as error:
        step = "Make the table or its columns by hand, or rename or drop the fields"
        raise ConfigError(f"The database does not take it: {error.kind}", where=where, next_step=step) from None


def meaning(error: exc.DBAPIError, where: str) -> WaybillError:
    name = str(getattr(error.orig, "sqlite_errorname", ""))
    if name:
        return _of_sqlite(name, str(error.orig), where)
    kind = type(error.orig).__name__
    if isinstance(error, exc.IntegrityError | exc.DataError):
        return RowsRefused(kind, "The database does not take one of its values")
    if kind in _NO_RIGHT:
        return Refused("The user may not do that", where=where, next_step="Grant what `waybill check --probe` names")
    return Unreachable(f"The database does not answer as it should: {kind}", where=where)


def _of_sqlite(name: str, said: str, where: str) -> WaybillError:
    if name in _OF_ROWS:
        kind, words = _OF_ROWS[name]
        found = _COLUMNS.search(said)
        return RowsRefused(kind, f"{words} ({found[1]})" if found else words)
    if name == _NO_DATABASE:
        return ConfigError("The file is no database of SQLite", where=where, next_step="Name another one as url")
    for begin, words in _LATER.items():
        if name.startswith(begin):
            return Unreachable(words, where=where)
    if found := _MISSING.search(said):
        step = "Create it, or name another one; the next attempt looks again"
        return Missing(f"There is {found[0]}", where=where, next_step=step)
    return Unreachable(f"SQLite does not do it: {name}", where=where)
