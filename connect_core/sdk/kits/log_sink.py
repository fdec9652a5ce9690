"""A sink that appends to a log which keeps coordinates with each record: exactly once, by reading back.

Each partition goes to one log of the target, in order. What an attempt that died has left is found by its coordinates.
A floor's target is one log: `target#log`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

from connect_core import clock
from connect_core.errors import ConfigError, Failure, TargetChanged, WaybillError
from connect_core.sdk.guarantee import Guarantee
from connect_core.sdk.kits.log_connection import LogConnection
from connect_core.sdk.kits.log_scan import OnUnknown, Sought, scan
from connect_core.sdk.kits.log_standing import anchors, anchors_of, check, found_anchors, moved, newest, read_to
from connect_core.sdk.kits.log_writer import Before, LogWriter
from connect_core.sdk.kits.one_target import OneTarget
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Scan, Targets
from connect_core.sdk.spans import Span
from connect_core.sdk.values import Attempt, Floor, Json, OpenRange, Range


class LogSink(OneTarget, ABC):
    """A `sdk.sink.Sink`, `Expiring` and `Homing`.

    Guarantee: exactly once, where the log keeps each record until it expires, the oldest first, and a target that is up
    stores or drops the request of a crashed sender within `in_flight_s`. A request that it keeps longer is repeated
    once and counted as duplicates.
    """

    guarantee = Guarantee(
        "exactly once",
        (
            "The target log keeps each record until it expires, the oldest first.",
            "A target that is up stores or drops a crashed sender's request within the time that the sink states.",
        ),
    )
    scan_tells_records = True
    in_flight_s = 1.0
    """A target that is up stores or drops the request of a crashed sender within this time."""
    append_s = 3.0
    """`LogConnection.append` returns or raises within this time."""
    look_back = 10_000
    """So many records of others are read before the first batch of a range, in search of late requests."""
    on_unknown: OnUnknown = "fail"
    """What becomes of a range whose records may have expired unseen: a person decides, or it is delivered again and its
    records count as possible duplicates."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self._spans: dict[str, Span] = {}
        self._writers: dict[str, list[LogWriter]] = {}
        self._written: dict[str, list[Span]] = {}

    @abstractmethod
    def connect(self) -> AbstractContextManager[LogConnection]:
        """Opens the target. Raises Unreachable when it does not answer."""

    def reaches(self, target: Json, name: str) -> bool:
        return self._log_of(name) in target["logs"]

    def targets(self, task: int, floors: Sequence[Floor], topics: Mapping[str, int]) -> Targets:
        """A range pins the logs that there are; one of them is its home. A partition stays in the log in which it has a
        floor (delivery rule 25)."""
        self.prepare()
        with self.connect() as connection:
            logs = list(connection.logs())
            if not logs:
                raise ConfigError(
                    "The target has no log to append to",
                    where=self.target,
                    next_step="Create the target, or correct its name",
                )
            mine = [floor for floor in floors if self._log_of(floor.target) is not None]
            self._check_kept(connection, [one for one in mine if self._log_of(one.target) in logs])
        homes = self._homes(mine)
        gone = {one: self._log_gone(home) for one, home in homes.items() if home not in logs}
        kept = {one: {"home": home} for one, home in homes.items() if home in logs}
        return Targets({"target": self.target, "logs": logs}, by_partition=kept, gone=gone)

    def floors(self, wanted: Range, known: Sequence[Floor], *, restored: bool = False) -> tuple[Floor, ...]:
        """One for the home of the range's partition; one for each log where the ledger was `restored`."""
        logs, home = wanted.pins.target["logs"], _home(wanted)
        there = {floor.target: floor for floor in known}
        with self.connect() as connection:
            return tuple(
                self._floor(connection, wanted, log, there.get(self._floor_name(log)), restored)
                for log in logs
                if log == home or restored
            )

    def within(self, floors: Sequence[Floor]) -> list[Floor]:
        return [self._within(floor) for floor in floors]

    def home_found(self, item: OpenRange) -> Json | None:
        found, home = item.known, _home(item.range)
        if not len(found.hits) or self._floor_name(home) in found.targets:
            return None
        last = found.hits[found.hits[:, 0].argmax(), 2]
        return {"home": self._log_of(found.targets[int(last)])}

    def scan(self, wanted: Scan) -> dict[int, ScanResult]:
        clock.sleep(self.in_flight_s)
        places = [
            Sought(item, log, floor)
            for item in wanted.ranges
            for floor in item.floors
            if (log := self._log_of(floor.target)) in item.range.pins.target["logs"] and log is not None
        ]
        with self.connect() as connection:
            return scan(connection, wanted, places, self.on_unknown)

    @contextmanager
    def writer(self, attempt: Attempt, wanted: OpenRange) -> Iterator[LogWriter]:
        log = _home(wanted.range)
        side_by_side, written = self._writers.setdefault(log, []), self._written.setdefault(log, [])
        with self.connect() as connection:
            writer = LogWriter(
                connection,
                log,
                self._floor_name(log),
                wanted.range.lineage(attempt.uid),
                self._before(connection, log, wanted, attempt),
                append_s=self.append_s,
                look_back=self.look_back,
                others=lambda: [*written, *(span for one in side_by_side for span in one.written())],
            )
            side_by_side.append(writer)
            try:
                yield writer
            finally:
                side_by_side.remove(writer)
                written += writer.written()

    def _before(self, connection: LogConnection, log: str, wanted: OpenRange, attempt: Attempt) -> Before:
        name = self._floor_name(log)
        floor = next((one for one in wanted.floors if one.target == name), Floor(wanted.range.partition.id, name, 0))
        scanned = wanted.found.scanned.get(name, floor.position) if wanted.found else floor.position
        known = anchors(wanted, name, attempt.uid)
        end = check(connection, log, name, known, max(floor.position, scanned))
        oldest = connection.begin(log)
        spans = [(max(read_to(floor), oldest), floor.position), (max(scanned, oldest), end)]
        stands = found_anchors(wanted, name, attempt.uid)[-1:]
        unread = tuple(one for one in spans if one[0] < one[1])
        return Before(end, unread, tuple(known), stands[0].evidence() if stands else {})

    def _check_kept(self, connection: LogConnection, floors: Sequence[Floor]) -> None:
        """Raises TargetChanged when a log has lost what was delivered to it."""
        by_log: dict[str, list[Floor]] = {}
        for floor in floors:
            by_log.setdefault(floor.target, []).append(floor)
        for name, mine in sorted(by_log.items()):
            log = self._log_of(name) or ""
            check(connection, log, name, list(anchors_of(mine)), max(floor.position for floor in mine))

    def _homes(self, floors: Sequence[Floor]) -> dict[str, str]:
        """By id of the partition the log that it is written to. One that has floors in several logs, and was written to
        none that is known, has no home yet."""
        by_partition: dict[str, list[Floor]] = {}
        for floor in floors:
            by_partition.setdefault(floor.partition_id, []).append(floor)
        homes = {one: newest(mine) or (mine[0] if len(mine) == 1 else None) for one, mine in by_partition.items()}
        return {one: self._log_of(floor.target) or "" for one, floor in homes.items() if floor is not None}

    def _floor(
        self, connection: LogConnection, wanted: Range, log: str, standing: Floor | None, restored: bool
    ) -> Floor:
        begin, end = self._span(connection, log)
        if standing is not None and not standing.ahead:
            return moved(standing, _moved_up(standing.position, begin, end))
        if standing is not None:
            return standing
        return Floor(wanted.partition.id, self._floor_name(log), begin if restored else end, ahead=restored)

    def _span(self, connection: LogConnection, log: str) -> Span:
        """As it was when this run first asked: an older end is only a lower floor."""
        if log not in self._spans:
            self._spans[log] = connection.begin(log), connection.end(log)
        return self._spans[log]

    def _within(self, floor: Floor) -> Floor:
        log = self._log_of(floor.target)
        with suppress(WaybillError), self.connect() as connection:
            if log is not None:
                return floor._replace(position=max(floor.position, connection.begin(log)))
        return floor

    def _floor_name(self, log: str) -> str:
        return f"{self.target}#{log}"

    def _log_of(self, name: str) -> str | None:
        """The log of a floor; None of a floor that another target has."""
        begins = f"{self.target}#"
        return name.removeprefix(begins) if name.startswith(begins) else None

    def _log_gone(self, log: str) -> Failure:
        gone = TargetChanged(
            "The log that this partition goes to is gone",
            where=self._floor_name(log),
            next_step="Restore it from a backup of its own, with what was delivered to it",
        )
        return Failure.of(gone)


def _home(wanted: Range) -> str:
    """The log that a range goes to. It does not change while the range is open: both are pinned."""
    logs: list[str] = wanted.pins.target["logs"]
    return str(wanted.pins.target.get("home", logs[wanted.slot % len(logs)]))


def _moved_up(position: int, begin: int, end: int) -> int:
    """A log may get nothing of a partition for long. With nothing of ours ahead its floor moves to the end when it is
    in the older half of what is left: it might expire while the range is open, and then nobody could say what of the
    range is there."""
    expires_soon = begin > 0 and position - begin <= end - position
    return end if expires_soon else position
