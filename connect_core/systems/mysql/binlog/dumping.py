"""The log as the server sends it to a replica."""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pymysql
from pymysql.constants import COMMAND

from connect_core import clock
from connect_core.errors import ConfigError, Retriable, Unreachable, WaybillError
from connect_core.systems.mysql.binlog import log_events
from connect_core.systems.mysql.binlog.log_events import DamagedLog, LogEvent
from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from connect_core.systems.mysql.binlog.packets import StreamedPackets
from connect_core.systems.mysql.connecting import connected, server_of, server_uid
from connect_core.systems.mysql.failures import meaning, number_of

_HEARTBEAT_NS = 10_000_000
"""Between two signs of life of a server that has nothing to send: for so long who follows the log waits whether more
comes."""
SILENT_S = 10.0
"""Without one for so long it is an error: no server is that slow, and who waits longer is ended by his lease."""
_PAUSES_EVERY_S = 0.005
_MAY_END = frozenset((log_events.XID, log_events.QUERY, log_events.XA_PREPARE, log_events.PACKED_TRANSACTION))
_PAUSE = LogEvent(log_events.PAUSE, 0, 0, 0, 0, 0, b"")
_FATAL, _SAME_ID = 1236, 4052
_IS_TORN = "truncated in the middle of event"
_NONE: Mapping[str, str] = MappingProxyType({})

_DAMAGED = (
    "If that stays so, the file is damaged: look at it with mariadb-binlog or mysqlbinlog, and restore it; to continue"
    " behind that place, with a loss: waybill offsets set NAME PARTITION OFFSET"
)
_STEPS = (
    ("could not find first log file", "The next run says what is lost"),
    ("impossible position", "The next run says what is lost"),
    (
        "anonymous transaction",
        "With gtid_mode=ON it gives none of its transactions without a GTID: SET GLOBAL gtid_mode = ON_PERMISSIVE, and"
        " set it back when they were read",
    ),
    ("max_allowed_packet", "Set max_allowed_packet of the server higher: 1073741824 is the most"),
)
"""By what the server says."""


@dataclass
class _Reached:
    """The place of the event that is read."""

    file: str
    at: int


@contextmanager
def log_from(
    options: MysqlChangesOptions,
    where: str,
    file: str,
    at: int,
    as_who: int,
    server: str = "",
    silent_s: float = SILENT_S,
    following: Mapping[str, str] = _NONE,
) -> Iterator[Iterator[LogEvent]]:
    """Events from this place of the log on; a pause where nothing more has come behind a transaction; at the end of the
    log, heartbeats for as long as nothing comes; without any for so long the server does not answer. Where a file ends
    within an event, and `following` has the next one, that is told, and it follows: MariaDB leaves so what it wrote
    when it crashed, and gives nothing behind it. Nothing is tried again: what else goes wrong ends the reading, as when
    another `server` answers."""
    reached = _Reached(file, at)

    def sent() -> Generator[LogEvent, None, None]:
        return _sent(options, where, reached, as_who, server, silent_s)

    with _understood(where, as_who, reached), closing(_through_files(sent, reached, following)) as events:
        yield events


def _through_files(
    sent: Callable[[], Generator[LogEvent, None, None]], reached: _Reached, following: Mapping[str, str]
) -> Generator[LogEvent, None, None]:
    while True:
        try:
            yield from sent()
        except pymysql.Error as error:
            if number_of(error) != _FATAL or _IS_TORN not in str(error) or reached.file not in following:
                raise
        reached.file, reached.at = following[reached.file], log_events.FIRST_EVENT
        yield log_events.torn(reached.file)


def _sent(
    options: MysqlChangesOptions, where: str, reached: _Reached, as_who: int, server: str, silent_s: float
) -> Generator[LogEvent, None, None]:
    file, at = reached.file, reached.at
    with closing(connected(options, where)) as database:
        with database.cursor() as setting:
            require_server(setting, server, where)
            _announce(setting, is_mariadb=server_of(database).is_mariadb)
            setting.execute("SELECT @@GLOBAL.binlog_checksum")
            [checked] = setting.fetchone() or ("NONE",)
        # Private names of the driver, which knows no public ones for commands of replicas.
        database._execute_command(COMMAND.COM_BINLOG_DUMP, struct.pack("<IHI", at, 0, as_who) + file.encode())
        packets = StreamedPackets(database._sock, silent_s)
        yield from _events(packets, log_events.CRC32 if checked == "CRC32" else 0, reached)


def require_server(asking: Any, server: str, where: str) -> None:
    """Where it is known which one it was. Raises Retriable: the next look finds out what that means."""
    if server and server_uid(asking) != server:
        raise Retriable("Another server answers than the one whose log was read", where=where)


def _announce(setting: Any, *, is_mariadb: bool) -> None:
    """What a replica says of itself: it takes events as they are in the log, with their checksums."""
    name = "master" if is_mariadb else "source"
    said = f"SET @master_binlog_checksum = @@GLOBAL.binlog_checksum, @master_heartbeat_period = {_HEARTBEAT_NS}"
    setting.execute(f"{said}, @mariadb_slave_capability = 4")
    if is_mariadb:
        setting.execute("SET SESSION max_statement_time = 0")
    else:
        setting.execute(f"SET @{name}_binlog_checksum = @master_binlog_checksum")
        setting.execute(f"SET @{name}_heartbeat_period = {_HEARTBEAT_NS}")


def _events(packets: StreamedPackets, checked: int, reached: _Reached) -> Iterator[LogEvent]:
    may_pause_at = 0.0
    while True:
        packet = packets.packet()
        if packet is None:
            raise Unreachable("The server has ended the log: it is being stopped")
        event = log_events.parsed(packet, checked)
        if event.kind == log_events.FORMAT:
            checked = log_events.check_of(packet)
        yield event
        if event.kind == log_events.ROTATE:
            reached.file, reached.at = log_events.next_file(event), log_events.next_place(event)
        elif event.is_in_file:
            reached.at = event.end
        # Who follows a busy log would meet no heartbeat, and who waits for more before he gives what he has is late.
        if event.kind in _MAY_END and not packets.has_more() and clock.monotonic() >= may_pause_at:
            yield _PAUSE
            may_pause_at = clock.monotonic() + _PAUSES_EVERY_S


@contextmanager
def _understood(where: str, as_who: int, reached: _Reached) -> Iterator[None]:
    try:
        yield
    except pymysql.Error as error:
        raise _meaning(error, f"{where}, {reached.file}:{reached.at}", as_who) from None
    except DamagedLog as error:
        place = f"{where}, {reached.file}:{reached.at}"
        raise Retriable(f"The log cannot be read: {error}", where=place, next_step=_DAMAGED) from None


def _meaning(error: pymysql.Error, where: str, as_who: int) -> WaybillError:
    number, said = number_of(error), " ".join(str(one) for one in error.args[1:]).lower()
    if number == _SAME_ID or (number == _FATAL and "same server" in said):
        step = "If it is not a worker of this connector, write another server_id"
        return Unreachable(f"Another reader has taken over server_id {as_who}", where=where, next_step=step)
    if number == _FATAL and "binary logging is not enabled" in said:
        return ConfigError("The server keeps no binary log", where=where, next_step="Set log_bin, and restart it")
    if number == _FATAL:
        steps = [step for words, step in _STEPS if words in said]
        # Its words name files and places, and nothing of a row.
        words = f"The server does not give the log from this place on: {error.args[1]}"
        return Retriable(words, where=where, next_step=(*steps, _DAMAGED)[0])
    return meaning(error, where)
