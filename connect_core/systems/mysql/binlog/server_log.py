"""What the server says of its log, and of how it writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pymysql
from pymysql.cursors import Cursor

from connect_core.errors import ConfigError, DataError, Unreachable
from connect_core.systems.mysql.binlog import log_events
from connect_core.systems.mysql.binlog.dumping import log_from
from connect_core.systems.mysql.binlog.log_events import FIRST_EVENT
from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from connect_core.systems.mysql.failures import number_of

FILE_BITS = 32
LARGEST = 1 << FILE_BITS
_FILE = re.compile(r"(.+)\.(\d+)")
_NO_LOG, _SYNTAX = 1381, 1064
_NO_WORDS = "''"
REQUIRED = {
    "log_bin": ("ON", "1"),
    "binlog_format": ("ROW",),
    "binlog_row_image": ("FULL",),
    "binlog_row_metadata": ("FULL",),
    "binlog_row_value_options": ("",),
}
"""Settings of the server, each with the values that fit. The last one is MySQL's alone."""


def offset_of(file: int, at: int) -> int:
    return file << FILE_BITS | at


class LogPlace(NamedTuple):
    """Between two events: a file's number, and how far in it."""

    file: int
    at: int

    @property
    def offset(self) -> int:
        return offset_of(self.file, self.at)

    @classmethod
    def of(cls, offset: int) -> LogPlace:
        return cls(offset >> FILE_BITS, offset & (LARGEST - 1))


class LogFiles(NamedTuple):
    """Those that the server has, by number, with their sizes. `base` is what their names have in common."""

    base: str
    sizes: Mapping[int, int]
    names: Mapping[int, str]
    end: LogPlace

    @property
    def oldest(self) -> LogPlace:
        return LogPlace(min(self.sizes), FIRST_EVENT)

    @property
    def following(self) -> dict[str, str]:
        """The next file of each but the last one."""
        names = [self.names[one] for one in sorted(self.sizes)]
        return dict(pairwise(names))


def number_of_file(name: str) -> int:
    found = _FILE.fullmatch(name)
    if not found:
        raise DataError(f"The log has a file {name}, whose name has no number")
    return int(found[2])


def files_of(asking: Cursor, where: str) -> LogFiles:
    """Raises ConfigError where the server writes no log, and DataError for a file in which places have no numbers."""
    try:
        asking.execute("SHOW BINARY LOGS")
    except pymysql.Error as error:
        if number_of(error) == _NO_LOG:
            raise ConfigError("The server keeps no binary log", where=where, next_step="Set log_bin") from None
        raise
    names = {number_of_file(row[0]): str(row[0]) for row in asking.fetchall()}
    end_file, end_at = _end(asking)
    asking.execute("SHOW BINARY LOGS")
    sizes = {number_of_file(row[0]): int(row[1]) for row in asking.fetchall()}
    names |= {number_of_file(end_file): end_file}
    if large := [names.get(one, str(one)) for one, size in sizes.items() if size >= LARGEST]:
        words = f"File {large[0]} of the log is larger than 4 GiB: places in it have no number"
        raise DataError(words, where=where, next_step="Write smaller transactions, and set max_binlog_size")
    base, _, _ = end_file.rpartition(".")
    end = LogPlace(number_of_file(end_file), end_at)
    return LogFiles(base, {**sizes, end.file: max(end.at, sizes.get(end.file, 0))}, names, end)


def end_of(asking: Cursor) -> LogPlace:
    file, at = _end(asking)
    return LogPlace(number_of_file(file), at)


def is_logged(asking: Cursor, database: str) -> bool:
    """Whether the log has what happens to tables of the database."""
    only, without = filters_of(asking)
    return database not in without and (not only or database in only)


def _end(asking: Cursor) -> tuple[str, int]:
    file, at, *_ = _status(asking)
    return str(file), int(at)


def _status(asking: Cursor) -> Sequence[Any]:
    try:
        asking.execute("SHOW BINARY LOG STATUS")
    except pymysql.Error as error:
        if number_of(error) != _SYNTAX:
            raise
        asking.execute("SHOW MASTER STATUS")
    found: Sequence[Any] | None = asking.fetchone()
    if not found:
        raise ConfigError("The server keeps no binary log", next_step="Set log_bin, and restart it")
    return found


def filters_of(asking: Cursor) -> tuple[set[str], set[str]]:
    """Databases that alone are in the log (all, where there are none), and those that are not."""
    _, _, only, without, *_ = _status(asking)
    return _names(only), _names(without)


def _names(listed: object) -> set[str]:
    return {one for one in str(listed or "").split(",") if one}


def begun_at(options: MysqlChangesOptions, where: str, file: str) -> int:
    """When the server began this file: another log that has one of the same name began it at another time."""
    with log_from(options, where, file, FIRST_EVENT, options.reader_id + 1) as events:
        for event in events:
            if event.kind == log_events.FORMAT:
                return event.at_s
    raise Unreachable("The server does not say when it began its log", where=where)


def unfit_settings(asking: Cursor) -> Iterator[tuple[str, str]]:
    """Settings with which changes would come in part, or not at all, and how they are to be."""
    asking.execute("SHOW GLOBAL VARIABLES WHERE Variable_name IN %s", ([*REQUIRED],))
    found = {name.lower(): str(value).upper() for name, value in asking.fetchall()}
    for name, fit in REQUIRED.items():
        if name in found and found[name] not in fit:
            yield f"{name} is {found[name]}", f"SET GLOBAL {name} = {fit[0] or _NO_WORDS}"
        elif name == "binlog_row_metadata" and name not in found:
            yield f"the server has no {name}", "Upgrade it: MySQL 8.0.14, MariaDB 10.5 or newer"


def charsets_of(asking: Cursor, *, is_mariadb: bool) -> dict[int, str]:
    """Of collations, by number."""
    asking.execute("SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATIONS WHERE ID IS NOT NULL")
    found = dict(asking.fetchall())
    if is_mariadb:
        try:
            asking.execute(
                "SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
            )
            found |= dict(asking.fetchall())
        except pymysql.Error as error:
            if number_of(error) != 1054:  # before 10.10
                raise
    return {int(number): str(charset) for number, charset in found.items() if number and charset}
