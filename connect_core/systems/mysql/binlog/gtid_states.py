"""Which transactions are before a place of the log, by their GTIDs: so the place is found again in the log of another
server that has them, too. Pure.

A state that cannot be told for sure (a transaction without a GTID, with a tag, or out of order) is None.
https://dev.mysql.com/doc/refman/en/replication-gtids-concepts.html, https://mariadb.com/docs/server/ha-and-performance/standard-replication/gtid
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from connect_core.systems.mysql.binlog import log_events
from connect_core.systems.mysql.binlog.log_events import LogEvent

_OR_MORE = "~"
"""Before a server, in the evidence."""

Runs = tuple[tuple[int, int], ...]
"""Numbers from the first to the last, in order."""


@dataclass(frozen=True)
class MysqlGtids:
    """By server the numbers of its transactions. Each transaction has its own, whoever logs it. The place may be behind
    more of the servers `or_more` than these: nobody can ask for place and numbers at once. A server logs its numbers in
    order, so the first one that is read tells."""

    runs: Mapping[str, Runs]
    or_more: frozenset[str] = frozenset()

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
        server, _, number = gtid.partition(":")
        runs = self.runs.get(server, ())
        if server in self.or_more and number:
            runs = _filled(runs, int(number))
        added = _with(runs, int(number)) if number else None
        return MysqlGtids({**self.runs, server: added}, self.or_more - {server}) if added else None

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

    @property
    def text(self) -> str:
        return ",".join(f"{domain}-{server}-{last}" for (domain, server), last in sorted(self.last.items()))

    def at_least(self) -> MariadbGtids:
        """Of a place that was asked for a moment later: the first one that is read tells."""
        return self

    def behind(self, gtid: str) -> MariadbGtids | None:
        parts = [int(one) for one in gtid.split("-")] if gtid else []
        if len(parts) != 3 or parts[2] <= max(
            (last for (one, _), last in self.last.items() if one == parts[0]), default=0
        ):
            return None
        return MariadbGtids({**self.last, (parts[0], parts[1]): parts[2]})

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


def parsed_state(text: str, *, is_mariadb: bool) -> GtidState | None:
    """As servers and evidence write it; None where it has what is not known."""
    words = [one.strip() for one in text.replace("\n", "").split(",") if one.strip()]
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
    runs = {}
    for one in words:
        server, *said = one.lower().removeprefix(_OR_MORE).split(":")
        runs[server] = tuple(_ends(run) for run in said)
    or_more = (one.partition(":")[0].lower() for one in words if one.startswith(_OR_MORE))
    return MysqlGtids(runs, frozenset(one.removeprefix(_OR_MORE) for one in or_more))


def _ends(run: str) -> tuple[int, int]:
    """Of a tag, which is no number, ValueError."""
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
    """Another form than the first one, of transactions with tags, says so in its highest byte."""
    [servers] = struct.unpack_from("<Q", body)
    if servers >> 56:
        return None
    runs, at = dict[str, Runs](), 8
    for _ in range(servers):
        name, [count] = log_events.uuid_of(body[at : at + 16]), struct.unpack_from("<Q", body, at + 16)
        ends = struct.iter_unpack("<QQ", body[at + 24 : at + 24 + 16 * count])
        runs[name] = tuple((first, behind - 1) for first, behind in ends)
        at += 24 + 16 * count
    return MysqlGtids(runs)


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
