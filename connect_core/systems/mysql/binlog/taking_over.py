"""Where the log of another server goes on behind what was read of a former one, by its GTIDs: or why nobody can say."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from typing import NamedTuple

from pymysql.cursors import Cursor

from connect_core.systems.mysql.binlog import log_events
from connect_core.systems.mysql.binlog.dumping import log_from
from connect_core.systems.mysql.binlog.gtid_states import GtidState, parsed_state, state_in, why_unknown
from connect_core.systems.mysql.binlog.gtids import gtid_of
from connect_core.systems.mysql.binlog.log_events import FIRST_EVENT, LogEvent
from connect_core.systems.mysql.binlog.options import MysqlChangesOptions
from connect_core.systems.mysql.binlog.packed_transactions import Unpacking
from connect_core.systems.mysql.binlog.server_log import LogFiles, LogPlace

_STATES = (log_events.PREVIOUS_GTIDS, log_events.GTID_LIST)
_IDLE = (log_events.HEARTBEAT, log_events.HEARTBEAT_2)
NO_GTIDS = "has transactions without a GTID (gtid_mode)"
_MOST = 200
"""Characters of GTIDs that a sentence has."""


class PlaceFound(NamedTuple):
    """Between two transactions: `at` in its file, behind which offsets are so much `ahead`; `state` is what is before
    it, and `gtid` the transaction before it in this file, with when it began; none where the file begins."""

    file: str
    created: int
    at: int
    ahead: int
    state: GtidState | None
    gtid: str = ""
    began_s: int = 0

    def place(self, number: int) -> LogPlace:
        return LogPlace(number, self.at + self.ahead)


class Unprovable(Exception):
    """Why it cannot be proven where reading goes on."""


def executed_state(asking: Cursor, *, is_mariadb: bool) -> GtidState | None:
    """Of all that the log has, or nearly: it must be asked before the place where the log ends."""
    text, mode = _said_of_gtids(asking, is_mariadb)
    return parsed_state(text, is_mariadb=is_mariadb) if mode == "ON" else None


def _said_of_gtids(asking: Cursor, is_mariadb: bool) -> tuple[str, str]:
    if is_mariadb:
        asking.execute("SELECT @@GLOBAL.gtid_binlog_state, 'ON'")
    else:
        asking.execute("SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_mode")
    text, mode = asking.fetchone() or ("", "OFF")
    return str(text or ""), str(mode)


def why_no_state(asking: Cursor, *, is_mariadb: bool) -> str:
    """Empty where there is one."""
    text, mode = _said_of_gtids(asking, is_mariadb)
    if mode != "ON":
        return f"gtid_mode is {mode}, so transactions may have no GTID"
    return "" if parsed_state(text, is_mariadb=is_mariadb) else f"its GTIDs are not understood: {short(text)}"


class OtherLog(NamedTuple):
    """That of the server that answers now, which calls itself so."""

    options: MysqlChangesOptions
    where: str
    files: LogFiles
    server: str

    def place_behind(self, read: GtidState) -> tuple[int, PlaceFound]:
        """The number of the file, and the place in it before which is what was read, and nothing else. Raises
        Unprovable."""
        beyond = ""
        for number in sorted(self.files.sizes, reverse=True):
            boundaries = self._boundaries(self.files.names[number])
            first = next(boundaries)
            if first.state is None:
                raise Unprovable(f"{first.file} {NO_GTIDS}")
            if first.state.is_within(read):
                return number, _behind(read, first, boundaries)
            beyond = read.lacks(first.state) or first.state.text
        raise Unprovable(f"its log no longer has, or has in another order, what follows; purged there: {short(beyond)}")

    def check_same(self, number: int, behind: PlaceFound, moments: Mapping[str, int]) -> None:
        """A server that was restored from a backup gives out numbers again that were read with other transactions: of
        each who gives out numbers the last one that was read has the moment that it had, wherever it is logged before
        that place. One that was purged is not looked for. Raises Unprovable."""
        wanted = dict(moments)
        for one in sorted((one for one in self.files.sizes if one <= number), reverse=True):
            with closing(self._boundaries(self.files.names[one])) as boundaries:
                before = next(boundaries).state
                here = {gtid for gtid in wanted if before is None or not before.has(gtid)}
                for place in boundaries if here else ():
                    if place.gtid in here and place.began_s != wanted.pop(place.gtid):
                        words = f"it has another transaction {place.gtid} than the one that was read: was it restored?"
                        raise Unprovable(words)
                    here.discard(place.gtid)
                    if not here or place.place(one) == behind.place(number):
                        break  # a server that others write to logs more for as long as anybody reads
            if not wanted:
                return

    def _boundaries(self, name: str) -> Generator[PlaceFound, None, None]:
        """Of one file: where each transaction begins, and where the last one ends."""
        reader = self.options.reader_id + 1
        following = self.files.following
        with log_from(self.options, self.where, name, FIRST_EVENT, reader, self.server, following=following) as log:
            yield from boundaries_of(log, name)


def _behind(read: GtidState, first: PlaceFound, others: Iterator[PlaceFound]) -> PlaceFound:
    place = first
    while place.state is not None and not place.state.is_at(read):
        if not place.state.is_within(read):
            alien = read.lacks(place.state) or place.state.text
            raise Unprovable(f"its log has transactions that were not read before others that were: {short(alien)}")
        following = next(others, None)
        if following is None:
            raise Unprovable("its log has what was read in another order")
        place = following
    if place.state is None:
        raise Unprovable(why_unknown(place.gtid, f"its {place.file}, before {place.at},"))
    return place


def boundaries_of(log: Iterator[LogEvent], name: str) -> Iterator[PlaceFound]:
    at = PlaceFound(name, 0, FIRST_EVENT, 0, None)
    for event in Unpacking(name, 0).events(log):
        if event.kind == log_events.FORMAT:
            at = at._replace(created=event.at_s)
        if event.kind in _IDLE or (event.kind in log_events.CHANGES_FILE and log_events.next_file(event) != name):
            break
        if event.kind in log_events.BEGINS:
            yield at
            gtid = gtid_of(event)
            at = at._replace(state=at.state.behind(gtid) if at.state else None, gtid=gtid, began_s=event.at_s)
        elif event.kind in _STATES:
            at = at._replace(state=state_in(event))
        if event.is_in_file and not event.is_packed:
            at = at._replace(at=event.end, ahead=event.ahead)
    yield at


def short(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[:_MOST]} …"
