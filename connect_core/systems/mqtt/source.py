"""The MQTT source: sessions that a broker keeps, each a partition whose offsets are numbers of arrival.

Why it works as it does: docs/decisions/mqtt-inbox.md. On the driver it connects once a run to each session, to see
whether the broker still knows it; in the worker for each quantum.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import datetime

from connect_core.contracts import Bounds, Gap, Json, Limit, Position, Range, Recovered, SourceBatch
from connect_core.errors import ConfigError, Unreachable
from connect_core.found import Found
from connect_core.records import Partition
from connect_core.systems.mqtt.facts import counts_ids_up
from connect_core.systems.mqtt.member import LARGEST_WINDOW, Member
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.session import Session, wait
from connect_core.systems.mqtt.standing import Standing
from connect_core.systems.mqtt.unconfirmed import is_doubtful, left_by

LOST = "the broker has lost the session, and what it held"
_PARTITION = "session-"
_LOOK_S = 0.1


class MqttSource:
    """A `contracts.Inbox`."""

    def __init__(self, options: MqttSourceOptions, resources: ExitStack | None = None) -> None:
        self._options = options
        self._resources = resources or ExitStack()
        self._members: dict[Partition, Member] = {}
        self._looked_at: dict[Partition, Bounds] = {}
        self._shares = options.shares()

    # ------------------------------------------------------------------------------------------------------ the driver

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        """Sessions that the filters do not need any more are there until they are emptied: they were subscribed."""
        wanted = [Partition(f"{_PARTITION}{number}") for number in range(len(self._shares))]
        return sorted({*wanted, *known}, key=_number)

    def topic(self, partition: Partition) -> str:
        """Each record has its own."""
        return ""

    def bounds(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        return {partition: self._bounds(partition, at or Position(0, 0)) for partition, at in known.items()}

    def _bounds(self, partition: Partition, at: Position) -> Bounds:
        """A session is looked at once a run: one that is lost later is told by the worker, and by the next run."""
        standing = Standing.of(at.evidence)
        lost = partition not in self._looked_at and bool(standing.subscribed) and self._is_lost(partition)
        gaps = (Gap(at.incarnation, at.offset, None, LOST),) if lost else ()
        if lost:
            standing = standing.without_session()
        standing = replace(standing, counts_up=self._counts_up(standing))
        pushes = bool(self._filters(partition) or standing.subscribed)
        seen = Bounds(
            at.incarnation, at.offset, at.offset, at.offset, evidence=standing.evidence(), gaps=gaps, pushes=pushes
        )
        if not lost:
            self._looked_at[partition] = seen
        return seen

    def _is_lost(self, partition: Partition) -> bool:
        """What comes over this connection is not acknowledged, and comes again."""
        session = Session(self._options, self._client_id(partition), receive_maximum=1)
        if session.kept:
            session.close()
        else:
            session.give_up()  # else the next look would take the one that was just made for the lost one
        return not session.kept

    def _counts_up(self, standing: Standing) -> bool:
        if self._options.packet_ids == "detect":
            return standing.counts_up or self._broker_counts_up()
        return self._options.packet_ids == "count_up"

    def _broker_counts_up(self) -> bool:
        if self._known_to_count is None:
            self._known_to_count = counts_ids_up(self._options)
        return self._known_to_count

    _known_to_count: bool | None = None

    def at_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        raise _no_history()

    def record_at(self, partition: Partition, seen: Bounds, offset: int) -> int:
        raise _no_history()

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        """Only sessions that have ended are waited for."""
        time.sleep(limit_s)

    def confirm(self, positions: Mapping[Partition, Position]) -> None:
        """The worker has told the broker what it has. A session that is not needed any more, and is empty, ends."""
        for partition, at in positions.items():
            if not self._filters(partition) and at.evidence and not Standing.of(at.evidence).subscribed:
                Session(self._options, self._client_id(partition)).give_up()

    def recovered(self, wanted: Range, found: Found) -> Recovered:
        before, traced = Standing.of(wanted.evidence), found.traced()
        after = replace(
            before,
            subscribed=self._filters(wanted.partition) if len(found.hits) else before.subscribed,
            entries=tuple(left_by(before.entries, traced, LARGEST_WINDOW)),
        )
        return Recovered(after.evidence(), sum(is_doubtful(trace) for _, trace in traced))

    # ------------------------------------------------------------------------------------------------------ the worker

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        raise _no_history()

    def follow(self, wanted: Sequence[Range], limit: Limit, linger_s: float) -> Iterator[tuple[Range, SourceBatch]]:
        """Stays for the whole quantum while nothing has come at all: the next message finds somebody there."""
        members = {one.partition: self._member(one) for one in wanted}
        started = time.monotonic()
        came: float | None = None
        while (left_s := limit.quantum_left_s()) > 0:
            wait([one.session for one in members.values()], min(left_s, _LOOK_S))
            for one in wanted:
                member = members[one.partition]
                if (batch := member.batch()) is not None:
                    yield one, batch
                    member.acknowledge()
                    came = time.monotonic()
                elif time.monotonic() - (came or started) >= linger_s and (last := member.emptied()) is not None:
                    yield one, last
                    came = time.monotonic()
            if self._is_over(list(members.values()), came, linger_s):
                return

    def _is_over(self, members: Sequence[Member], came: float | None, linger_s: float) -> bool:
        """Raises what has ended a connection, unless what came before has to be settled first."""
        for member in members:
            with suppress(*([Unreachable] if came is not None else [])):
                member.require_open()
        ended = any(not member.session.open for member in members)
        silent = came is not None and time.monotonic() - came >= linger_s
        return ended or silent or all(member.is_full() for member in members)

    def acknowledge(self, wanted: Range, end: int) -> None:
        self._members[wanted.partition].durable(end)

    def evidence(self, wanted: Range, end: int) -> Json:
        return self._members[wanted.partition].evidence(end)

    def _member(self, wanted: Range) -> Member:
        member = Member(self._options, wanted, self._client_id(wanted.partition), self._filters(wanted.partition))
        self._members[wanted.partition] = member
        self._resources.callback(member.session.close)
        return member

    def _filters(self, partition: Partition) -> tuple[str, ...]:
        number = _number(partition)
        return self._shares[number] if number < len(self._shares) else ()

    def _client_id(self, partition: Partition) -> str:
        return self._options.client_id(_number(partition))


def _number(partition: Partition) -> int:
    return int(partition.key.removeprefix(_PARTITION))


def _no_history() -> ConfigError:
    return ConfigError(
        "an MQTT broker cannot give messages again, so there is no backfill and no replay from it",
        next_step="Replay from the target, where they are",
    )
