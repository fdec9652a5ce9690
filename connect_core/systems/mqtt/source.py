"""The MQTT source: sessions that a broker keeps, each a partition whose offsets are numbers of arrival.

Why it works as it does: docs/decisions/mqtt-push-source.md. On the driver it connects once a run to each session, to
see whether the broker still knows it; in the worker once, for as long as that stays and nothing goes wrong.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from connect_core.errors import (
    ConfigError,
    Failure,
    LeaseHeld,
    PartitionUnreachable,
    Unreachable,
    WaybillError,
)
from connect_core.sdk.records import Partition
from connect_core.sdk.source import Followed, Recovered
from connect_core.sdk.values import Bounds, Gap, Json, Limit, Position, Range, SourceBatch
from connect_core.systems.mqtt.connection import Unreadable
from connect_core.systems.mqtt.deduplication import is_doubtful, left_by
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.probing import BrokerFacts, broker_facts
from connect_core.systems.mqtt.session import Session, end_session, is_lost, wait
from connect_core.systems.mqtt.session_reader import SessionReader
from connect_core.systems.mqtt.session_state import SessionState
from connect_core.systems.topic_filters import moved_away

if TYPE_CHECKING:
    from connect_core.sdk.scan import ScanResult

LOST = "the broker has lost the session, and what it held"
_LEFT = "left"
"""In the evidence of a position: the filters do not need the session, it is empty and given up, and that was told."""
_MOVED = (
    "is subscribed by another session from now on: what was published between that and the end of the subscription here"
    " may be in the target twice, or not at all"
)
_NOT_KEPT_ON = "is not subscribed from now on: what waits for it at the broker is not moved"
_STAYS = "the places of its sessions stay in RocketMQ; what waits there is not moved"
_PARTITION = "session-"
_LOOK_S = 0.1
_EMPTY_S = 0.5
"""A session that has to leave is empty when nothing has come for so long, or for half of the idle timeout."""
_LOOKS_WITHIN_EXPIRY = 4
_AT_ONCE = 16
"""So many sessions connect side by side."""
_CONFIRMED_S = 1.0
"""How long the end of a quantum waits at most for the broker to answer the last pings, of all sessions together, and no
longer than half of what is left to the deadline. Later answers do no harm: what is not confirmed is settled so."""
_ASK_EVERY_S = 10.0
"""How often, in a window, a broker is asked what it has dropped: Mosquitto counts anew every ten seconds."""


class MqttSource:
    """A `sdk.source.PushSource`, and `RemoteState`."""

    def __init__(self, options: MqttSourceOptions, resources: ExitStack | None = None) -> None:
        self._options = options
        self._resources = resources or ExitStack()
        self._readers: dict[Partition, SessionReader] = {}
        self._looked_at: dict[Partition, float] = {}
        """When each session was seen to be kept."""
        self._refused: dict[Partition, Failure] = {}
        """Sessions that could not be looked at in this run, while others could."""
        self._limit: Limit | None = None
        self._answered_by: float | None = None
        """Until when the last answers are waited for, once they are."""
        self._told: BrokerFacts | None = None
        self._asked_at = 0.0
        self._shares = options.shares()
        self._resources.callback(self._disconnect)

    # ------------------------------------------------------------------------------------------------------ the driver

    def partitions(self, known: Sequence[Partition]) -> list[Partition]:
        """Sessions that the filters do not need any more are there until they are emptied: they were subscribed. Then
        they have ended, and are not among those known."""
        wanted = [Partition(f"{_PARTITION}{number}") for number in range(len(self._shares))]
        return sorted({*wanted, *known}, key=_number)

    def topic(self, partition: Partition) -> str:
        """Each record has its own."""
        return ""

    def available_offsets(self, known: Mapping[Partition, Position | None]) -> dict[Partition, Bounds]:
        places = {partition: at or Position(0, 0) for partition, at in known.items()}
        lost = self._lost(places)
        seen = {
            partition: Bounds.unread(at, self._refused[partition])
            if partition in self._refused
            else self._bounds(partition, at, lost=partition in lost)
            for partition, at in places.items()
        }
        first = min((one for one in seen if seen[one].pushes), key=_number, default=None)
        seen |= {first: self._with_dropped(seen[first])} if first else {}
        return {one: self._asking(one, places[one], seen[one]) for one in seen}

    def _asking(self, partition: Partition, at: Position, seen: Bounds) -> Bounds:
        """What is settled of the session has to be true also when the quantum that follows asks the broker for
        something, and settles nothing. So that is kept before, and nothing else that was seen: what is to be told is
        seen again behind it."""
        settled = SessionState.of(at.evidence)
        kept = settled.before_asking(self._filters(partition), self._options.qos)
        if kept == settled or seen.failure:
            return seen
        return replace(seen, evidence=at.evidence | kept.of_filters(), chosen=True)

    def _lost(self, places: Mapping[Partition, Position]) -> set[Partition]:
        """A session is looked at when a run begins, and so often that what is looked at does not expire: one that is
        lost in between is told by the worker, and by the next run. Side by side, since a lease does not wait for
        hundreds of connections in a row. One that cannot be looked at stops no other (delivery rule 26), and is not
        tried again in this run. Raises why, where that is so of all of them. Of a broker that says nothing of sessions
        nothing is lost as far as can be known."""
        if not self._options.keeps_its_word:
            return set()
        since = time.monotonic() - self._options.session_expiry_s / _LOOKS_WITHIN_EXPIRY
        done = {one for one, at in self._looked_at.items() if at > since} | self._refused.keys()
        unseen = {one: SessionState.of(at.evidence) for one, at in places.items() if one not in done}
        wanted = {partition: standing for partition, standing in unseen.items() if self._pushes(partition, standing)}
        with ThreadPoolExecutor(_AT_ONCE) as together:
            looks = {one: together.submit(is_lost, self._options, _number(one), wanted[one]) for one in wanted}
        errors = {partition: error for partition, look in looks.items() if (error := look.exception())}
        others = bool(self._looked_at.keys() - errors.keys()) or len(errors) < len(looks)
        self._refused |= _of_some(errors, others=others)
        lost = {partition for partition, look in looks.items() if partition not in errors and look.result()}
        self._looked_at |= dict.fromkeys(wanted.keys() - lost - errors.keys(), time.monotonic())
        return lost

    def _pushes(self, partition: Partition, standing: SessionState) -> bool:
        return bool(self._filters(partition) or standing.subscribed)

    def _bounds(self, partition: Partition, at: Position, *, lost: bool) -> Bounds:
        standing, gaps = SessionState.of(at.evidence), list[Gap]()
        pushes = self._pushes(partition, standing)
        moved, becomes = self._moved(partition, standing)
        if lost:
            gaps.append(Gap(at.incarnation, at.offset, None, LOST))
            standing = standing.without_session()
        elif not pushes and not at.evidence.get(_LEFT):
            gaps.append(Gap(at.incarnation, at.offset, at.offset, _LEFT))
        elif moved and moved != standing.moved:
            gaps.append(Gap(at.incarnation, at.offset, None, f"{', '.join(moved)} {becomes}", warns=True))
        standing = replace(
            standing,
            counts_up=standing.counts_up or self._shows_counting(),
            witnessed=partition in self._looked_at,
            asks=self._filters(partition),
            moved=moved,
        )
        return Bounds(
            at.incarnation,
            at.offset,
            at.offset,
            at.offset,
            evidence=standing.evidence() if pushes else standing.evidence() | {_LEFT: True},
            gaps=tuple(gaps),
            grows=pushes,  # into a session that has ended nothing comes
            pushes=pushes,
        )

    def _moved(self, partition: Partition, standing: SessionState) -> tuple[tuple[str, ...], str]:
        """Filters that the session leaves while something may wait for them that comes late or never, and what is said
        of them. Where subscriptions end with their connection, that is so of each filter."""
        if self._options.keeps_its_word:
            return tuple(moved_away(standing.subscribed, _number(partition), self._shares)), _MOVED
        return tuple(one for one in standing.subscribed if one not in self._filters(partition)), _NOT_KEPT_ON

    def _with_dropped(self, seen: Bounds) -> Bounds:
        """Of one session, for all: a broker does not say whose messages it has dropped."""
        standing, told = SessionState.of(seen.evidence).with_dropped(self._facts().dropped)
        warning = (Gap(seen.incarnation, seen.begin, None, told, warns=True),) if told else ()
        return replace(seen, evidence=standing.evidence(), gaps=(*seen.gaps, *warning))

    def _shows_counting(self) -> bool:
        """What the document says is not learned: it may say otherwise the next time."""
        return self._options.packet_ids == "detect" and self._facts().counts_up

    def _facts(self) -> BrokerFacts:
        """One that says nothing is not asked again in this run, and one that has no version 5 not at all."""
        if not self._options.keeps_its_word:
            return BrokerFacts()
        if self._told is None or (self._told != BrokerFacts() and time.monotonic() - self._asked_at > _ASK_EVERY_S):
            self._told, self._asked_at = broker_facts(self._options), time.monotonic()
        return self._told

    def offsets_for_time(self, partitions: Sequence[Partition], moment: datetime) -> dict[Partition, int]:
        raise _no_history()

    def align_offset(self, partition: Partition, seen: Bounds, offset: int) -> int:
        raise _no_history()

    def wait(self, seen: Mapping[Partition, Bounds], limit_s: float) -> None:
        """Only sessions that have ended are waited for."""
        time.sleep(limit_s)

    def commit_offsets(self, positions: Mapping[Partition, Position]) -> None:
        """The worker has told the broker what it has. A session that is not needed any more, and is empty, ends; of
        RocketMQ-MQTT it is no more than places in queues, which nothing ends."""
        ends = positions.items() if self._options.keeps_its_word else ()
        for partition, at in ends:
            if not self._filters(partition) and at.evidence and not SessionState.of(at.evidence).subscribed:
                for client_id in self._client_ids(partition, at.evidence):
                    Session(self._options, client_id).give_up()

    def delete_remote_state(self, known: Mapping[Partition, Position | None]) -> list[str]:
        if not self._options.keeps_its_word:
            return [_STAYS] if known else []
        told = [
            end_session(self._options, _number(partition), SessionState.of(at.evidence if at else {}))
            for partition, at in sorted(known.items(), key=lambda one: _number(one[0]))
        ]
        return [one for one in told if one]

    def recovered(self, wanted: Range, found: ScanResult) -> Recovered:
        """What the attempt asked for is in the range: the document may name other filters by now. Where it has left no
        record of a new session, that may never have been made."""
        before, traced = SessionState.of(wanted.evidence).numbered_below(wanted.begin), found.traced()
        asked = before if before.asks else replace(before, asks=self._filters(wanted.partition))  # of an older version
        began = asked.with_what_it_asks() if before.subscribed or len(found.hits) else replace(before, asks=())
        after = replace(began, entries=tuple(left_by(before.entries, traced)))
        return Recovered(after.evidence(), sum(is_doubtful(trace) for _, trace in traced))

    # ------------------------------------------------------------------------------------------------------ the worker

    def read(self, wanted: Range, limit: Limit) -> Iterator[SourceBatch]:
        raise _no_history()

    def follow(self, wanted: Sequence[Range], limit: Limit, idle_timeout_s: float) -> Iterator[Followed]:
        """In a window it stays for the whole quantum while nothing has come at all: the next message finds somebody
        there. What is to be remarked on of a session comes well before the quantum ends, however busy the others are.
        It looks once even when connecting took all of it. A session that cannot be connected to, whose connection
        ends, or whose subscription is refused, is told of; the others are followed on."""
        self._limit, self._answered_by = limit, None
        members, refused = self._connected(wanted)
        yield from ((one, refused[one.partition]) for one in wanted if one.partition in refused)
        followed = [(one, members[one.partition]) for one in wanted if one.partition in members]
        arrivals = _Arrivals()
        for one, member in followed:
            if (first := member.first()) is not None:
                yield one, first
                member.taken()
                arrivals.came(one.partition)
        remark_s = min(idle_timeout_s, limit.first_record_timeout_s / 2, limit.quantum_left_s() / 2)
        empty_s = max(remark_s, min(_EMPTY_S, idle_timeout_s / 2))
        over = False
        while not over:
            wait([one.session for one in members.values()], min(max(limit.quantum_left_s(), 0), _LOOK_S))
            for one, member in followed:
                if (batch := member.batch()) is not None:
                    yield one, batch
                    member.taken()
                    arrivals.came(one.partition)
                    continue
                silent_s = arrivals.silent_s(one.partition)
                if silent_s >= remark_s and (last := member.remark(silent=silent_s >= empty_s)) is not None:
                    yield one, last
                    member.taken()
                    arrivals.told()
            ended = all(member.is_full() for member in members.values() if member.session.open)
            silent = arrivals.silent_s() >= (idle_timeout_s if arrivals.some else limit.first_record_timeout_s)
            over = ended or silent or limit.quantum_left_s() <= 0
        yield from _last_remarks(followed)
        yield from _ended(followed, something=arrivals.some)

    def acknowledge(self, wanted: Range, end: int) -> None:
        self._readers[wanted.partition].durable(end)

    def evidence(self, wanted: Range, end: int) -> Json:
        if self._answered_by is None:
            left_s = self._limit.left_s() / 2 if self._limit else 0.0
            self._answered_by = time.monotonic() + min(_CONFIRMED_S, left_s)
        return self._readers[wanted.partition].evidence(end, self._answered_by)

    def _connected(self, wanted: Sequence[Range]) -> tuple[dict[Partition, SessionReader], dict[Partition, Failure]]:
        """Those that are connected already, and the others side by side: each needs several round trips, and what it
        takes is taken from the quantum. Gives what keeps some of them from it, too; raises it where that is so of all
        of them."""
        staying = {one.partition for one in wanted if self._goes_on(one)}
        with ThreadPoolExecutor(_AT_ONCE) as together:
            trying = {
                one.partition: together.submit(self._member, one) for one in wanted if one.partition not in staying
            }
        self._readers |= {partition: one.result() for partition, one in trying.items() if one.exception() is None}
        errors = {partition: error for partition, one in trying.items() if (error := one.exception())}
        connected = {one.partition: self._readers[one.partition] for one in wanted if one.partition in self._readers}
        return connected, _of_some(errors, others=bool(connected))

    def _goes_on(self, wanted: Range) -> bool:
        """Whether a session stays connected since the lane before. Else what it got there is given up."""
        member = self._readers.get(wanted.partition)
        if member is None:
            return False
        if member.goes_on(wanted):
            return True
        self._readers.pop(wanted.partition).session.close()
        return False

    def _disconnect(self) -> None:
        for member in self._readers.values():
            member.session.close()

    def _member(self, wanted: Range) -> SessionReader:
        client_ids = self._client_ids(wanted.partition, wanted.evidence)
        return SessionReader(self._options, wanted, client_ids, self._filters(wanted.partition))

    def _filters(self, partition: Partition) -> tuple[str, ...]:
        number = _number(partition)
        return self._shares[number] if number < len(self._shares) else ()

    def _client_ids(self, partition: Partition, evidence: Json) -> tuple[str, str]:
        """Of a session and its witness."""
        number, losses = _number(partition), SessionState.of(evidence).losses
        return self._options.client_id(number), self._options.witness_id(number, losses)


def _of_some(errors: Mapping[Partition, BaseException], *, others: bool) -> dict[Partition, Failure]:
    """Why some sessions fail while there are `others`. Raises one of the errors where there are none; and what is wrong
    with the document, or says that somebody else has taken over the task."""
    for error in errors.values():
        if not others or not isinstance(error, WaybillError) or isinstance(error, (ConfigError, LeaseHeld)):
            raise error
    return {partition: _alone(error) for partition, error in errors.items()}


def _alone(error: BaseException) -> Failure:
    return Failure.of(PartitionUnreachable.of(error) if isinstance(error, Unreachable) else error)


class _Arrivals:
    """When something came last, of each session and of all. Silence begins when all are connected."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()
        self._of: dict[Partition, float] = {}
        self.some = False
        """Whether there is something to settle."""

    def came(self, partition: Partition) -> None:
        self._of[partition] = self._last = time.monotonic()
        self.some = True

    def told(self) -> None:
        """Something is to be settled though nothing came."""
        self.some = True

    def silent_s(self, partition: Partition | None = None) -> float:
        """For how long nothing has come, for this session or for all."""
        return time.monotonic() - (self._of.get(partition, self._began) if partition else self._last)


def _last_remarks(followed: Sequence[tuple[Range, SessionReader]]) -> Iterator[Followed]:
    """Of sessions that came to no remark because the others took all of the time."""
    for one, member in followed:
        if (last := member.remark(silent=False)) is not None:
            yield one, last


def _ended(followed: Sequence[tuple[Range, SessionReader]], *, something: bool) -> Iterator[Followed]:
    """What has ended the connections of some of these, or what was refused to them. Raises it where that is so of all
    of them: then it is the broker; unless `something` came before that, which has to be settled first. What cannot be
    read is told with that: it comes again behind the same messages, over each connection."""
    ended = [(one, error) for one, member in followed if (error := member.lost()) is not None]
    if len(ended) < len(followed):
        yield from ((one, _alone(error)) for one, error in ended)
        return
    for _, error in ended:
        if not (something and isinstance(error, Unreachable)):
            raise error
    yield from ((one, _alone(error)) for one, error in ended if isinstance(error, Unreadable))


def _number(partition: Partition) -> int:
    return int(partition.key.removeprefix(_PARTITION))


def _no_history() -> ConfigError:
    return ConfigError(
        "An MQTT broker cannot give messages again, so there is no backfill and no replay from it",
        next_step="Replay from the target, where they are",
    )
