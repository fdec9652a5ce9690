"""Which transactions are before a place of the log, by their GTIDs: so the place is found again in the log of another
server that has them, too. Pure.

A state that cannot be told for sure (a transaction without a GTID, or out of order) is None.
https://dev.mysql.com/doc/refman/en/replication-gtids-concepts.html, https://mariadb.com/docs/server/ha-and-performance/standard-replication/gtid
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from connect_core.systems.mysql.binlog import log_events
from connect_core.systems.mysql.binlog.gtids import tag_at, uuid_of
from connect_core.systems.mysql.binlog.log_events import LogEvent

_OR_MORE = "~"
"""Before a server, or one of its tags, in the evidence."""
_TAG = re.compile("[a-z_][a-z0-9_]{0,31}")
_WITHOUT_TAGS, _WITH_TAGS = 0, 1
"""Forms of what a file of MySQL says at its begin, in the highest byte of how many there are."""

Runs = tuple[tuple[int, int], ...]
"""Numbers from the first to the last, in order."""


@dataclass(frozen=True)
class MysqlGtids:
    """By server, or `server:tag`, the numbers of its transactions: each tag of a server has numbers of its own, from 1
    on. Each transaction has its own, whoever logs it. Of those of `or_more` the place may be behind more than these:
    nobody can ask for place and numbers at once. A server logs the numbers of a tag in order, as those without one, so
    the first one that is read tells."""

    runs: Mapping[str, Runs]
    or_more: frozenset[str] = frozenset()
    none: ClassVar[str] = ":"
    """In the place of a text where there are no transactions: whose GTIDs these are can be seen, too."""

    @property
    def text(self) -> str:
        return ",".join(
            f"{_OR_MORE if one in self.or_more else ''}{one}:{':'.join(map(_run, runs))}"
            for one, runs in sorted(self.runs.items())
        )

    def at_least(self) -> MysqlGtids:
        """Of a place that was asked for a moment later."""
        return MysqlGtids(self.runs, frozenset(self.runs))

    def behind(self, gtid: str) -> MysqlGtids | None:
        server, _, number = gtid.rpartition(":")
        runs = self.runs.get(server, ())
        if server in self.or_more and number:
            runs = _filled(runs, int(number))
        added = _with(runs, int(number)) if number else None
        return MysqlGtids({**self.runs, server: added}, self.or_more - {server}) if added else None

    def has(self, gtid: str) -> bool:
        return self.behind(gtid) is None

    def is_within(self, other: GtidState) -> bool:
        return not other.lacks(self)

    def is_at(self, wanted: GtidState) -> bool:
        return isinstance(wanted, MysqlGtids) and self.runs == wanted.runs

    def lacks(self, wanted: GtidState) -> str:
        """What of these is not here; empty where nothing is."""
        if not isinstance(wanted, MysqlGtids):
            return wanted.text
        missing = {one: _without(runs, self.runs.get(one, ())) for one, runs in wanted.runs.items()}
        return MysqlGtids({one: runs for one, runs in missing.items() if runs}).text


@dataclass(frozen=True)
class MariadbGtids:
    """By domain and server the last number. In a domain each server logs transactions in one order; of those before its
    own beginning it knows nothing."""

    last: Mapping[tuple[int, int], int]
    none: ClassVar[str] = ""

    @property
    def text(self) -> str:
        return ",".join(f"{domain}-{server}-{last}" for (domain, server), last in sorted(self.last.items()))

    def at_least(self) -> MariadbGtids:
        """Of a place that was asked for a moment later: the first one that is read tells."""
        return self

    def behind(self, gtid: str) -> MariadbGtids | None:
        found = _numbers_of(gtid)
        if found is None or found[2] <= 0:
            return None
        domain, server, number = found
        for (one, _), last in self.last.items():
            if one == domain and number <= last:
                return None
        return MariadbGtids({**self.last, (domain, server): number})

    def has(self, gtid: str) -> bool:
        """Each server gives out higher numbers than before, whatever others do in its domain."""
        found = _numbers_of(gtid)
        return found is not None and found[2] <= self.last.get(found[:2], 0)

    def is_within(self, other: GtidState) -> bool:
        return isinstance(other, MariadbGtids) and all(
            last <= other.last.get(one, 0) for one, last in self.last.items()
        )

    def is_at(self, wanted: GtidState) -> bool:
        """What it has is as there, and it has the newest of each domain."""
        same = isinstance(wanted, MariadbGtids) and all(wanted.last.get(one) == last for one, last in self.last.items())
        return same and not self.lacks(wanted)

    def lacks(self, wanted: GtidState) -> str:
        """The newest of a domain, where it is not here."""
        if not isinstance(wanted, MariadbGtids):
            return wanted.text
        newest: dict[int, tuple[int, int]] = {}
        for (domain, server), last in wanted.last.items():
            newest[domain] = max(newest.get(domain, (0, 0)), (last, server))
        missing = {
            (domain, server): last
            for domain, (last, server) in newest.items()
            if self.last.get((domain, server), 0) < last
        }
        return MariadbGtids(missing).text


GtidState = MysqlGtids | MariadbGtids


def why_unknown(gtid: str, place: str) -> str:
    """Behind a transaction at a place of the log."""
    if not gtid:
        return f"the transaction at {place} has no GTID"
    return f"the transaction at {place} has the GTID {gtid}, a number that was there before or came too late"


def parsed_state(text: str, *, is_mariadb: bool) -> GtidState | None:
    """As servers and evidence write it; None where it has what is not known."""
    words = [one.strip() for one in text.replace("\n", "").split(",") if one.strip(" :")]
    try:
        return _mariadb(words) if is_mariadb else _mysql(words)
    except ValueError:
        return None


def _mariadb(words: list[str]) -> MariadbGtids:
    last = {}
    for one in words:
        domain, server, number = map(int, one.split("-"))
        last[domain, server] = number
    return MariadbGtids(last)


def _mysql(words: list[str]) -> MysqlGtids:
    """Servers write the tags of one behind it, `server:1-5:tag:1-3`."""
    runs, or_more = dict[str, Runs](), set[str]()
    for one in words:
        server, *said = one.lower().removeprefix(_OR_MORE).split(":")
        source = server
        for part in said:
            if _TAG.fullmatch(part):
                source = f"{server}:{part}"
            else:
                runs[source] = (*runs.get(source, ()), _ends(part))
        if one.startswith(_OR_MORE):
            or_more.add(source)
    return MysqlGtids(runs, frozenset(or_more))


def _ends(run: str) -> tuple[int, int]:
    first, _, last = run.partition("-")
    return int(first), int(last or first)


def state_in(event: LogEvent) -> GtidState | None:
    """What the first events of a file say was logged before it."""
    if event.kind == log_events.GTID_LIST:
        [count] = struct.unpack_from("<I", event.body)
        listed = (struct.unpack_from("<IIQ", event.body, 4 + 16 * one) for one in range(count & 0x0FFFFFFF))
        return MariadbGtids({(domain, server): number for domain, server, number in listed})
    return _previous(event.body)


def _previous(body: bytes) -> MysqlGtids | None:
    """In either form; None where a later server has a third one."""
    [said], at, runs = struct.unpack_from("<Q", body), 8, dict[str, Runs]()
    form, count = said >> 56, said & (1 << 56) - 1
    if form not in (_WITHOUT_TAGS, _WITH_TAGS):
        return None
    for _ in range(count >> 8 if form == _WITH_TAGS else count):  # the lowest byte says the form, too
        source, at = uuid_of(body[at : at + 16]), at + 16
        if form == _WITH_TAGS:
            tag, at = tag_at(body, at)
            source = f"{source}:{tag}" if tag else source
        [many] = struct.unpack_from("<Q", body, at)
        ends = struct.iter_unpack("<QQ", body[at + 8 : at + 8 + 16 * many])
        runs[source] = tuple((first, behind - 1) for first, behind in ends)
        at += 8 + 16 * many
    return MysqlGtids(runs)


def _numbers_of(gtid: str) -> tuple[int, int, int] | None:
    """Of MariaDB: domain, server, number."""
    parts = gtid.split("-")
    return (int(parts[0]), int(parts[1]), int(parts[2])) if len(parts) == 3 else None


def _run(run: tuple[int, int]) -> str:
    return f"{run[0]}-{run[1]}" if run[0] != run[1] else str(run[0])


def _filled(runs: Runs, number: int) -> Runs:
    """With all between the last one and this number."""
    first, last = runs[-1]
    return (*runs[:-1], (first, max(last, number - 1)))


def _with(runs: Runs, number: int) -> Runs | None:
    """None where it is there already."""
    if not runs or number > runs[-1][1] + 1:
        return (*runs, (number, number))
    if number == runs[-1][1] + 1:
        return (*runs[:-1], (runs[-1][0], number))
    return None if any(first <= number <= last for first, last in runs) else _joined(sorted((*runs, (number, number))))


def _joined(runs: list[tuple[int, int]]) -> Runs:
    joined = runs[:1]
    for first, last in runs[1:]:
        if first == joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return tuple(joined)


def _without(runs: Runs, others: Runs) -> Runs:
    return tuple(left for run in runs for left in _left(run, others))


def _left(run: tuple[int, int], others: Runs) -> Iterator[tuple[int, int]]:
    first, last = run
    for begin, end in others:
        if end < first or begin > last:
            continue
        if begin > first:
            yield first, begin - 1
        first = end + 1
    if first <= last:
        yield first, last
