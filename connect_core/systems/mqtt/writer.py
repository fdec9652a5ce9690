"""Records -> acknowledged publishes, in groups with the progress behind each of them: the MQTT sink's hot path."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from connect_core import clock
from connect_core.errors import DataError, Retriable, WaybillError
from connect_core.sdk.sink import OnRefused
from connect_core.sdk.values import Delivered, Limit
from connect_core.systems.mqtt.progress import MqttProgress
from connect_core.systems.mqtt.publications import Composer, Publication, Stretches, Unfit, came_ms, expired, retained
from connect_core.systems.mqtt.publisher import Publisher, RefusedPublish

ANSWER_S = 10.0
"""For so long a broker may acknowledge nothing."""
_MARGIN_S = 0.5
"""Before the moment at which the kernel ends the worker, it ends by itself and says why."""
_TURN_S = 0.05
_UNDER_WAY_S = 2.0
"""Not more is under way than the broker acknowledges in so long, so that what was sent can be waited for when the
quantum ends, however slow the broker is."""
_FIRST = 10
"""So many may be under way before anybody knows how fast it is: the smallest window that a broker is known to have."""


def _now_ms() -> int:
    return int(clock.utc().timestamp() * 1000)


class PublishWriter:
    """A `sdk.sink.Writer` for one range, `Refusable` and `Outdating`. `begun` is what is kept at the broker, or has to
    be before the first record is sent. Without a `topic` nothing is kept there: the range takes one group, and the
    ledger knows the rest. `now_ms` is the time by which records expire. `one_by_one`: a record is sent when the broker
    has answered all before it, so that the range can end behind the first that it refuses."""

    def __init__(
        self,
        publisher: Publisher,
        composer: Composer,
        target: str,
        topic: str | None,
        begun: MqttProgress,
        now_ms: Callable[[], int] = _now_ms,
        *,
        one_by_one: bool = False,
    ) -> None:
        self._one_by_one = one_by_one
        self._now_ms, self._expired = now_ms, Stretches(begun.left_out)
        self._publisher, self._composer = publisher, composer
        self._target, self._topic = target, topic
        self._begun = self._kept = begun
        self._group: list[int] = []
        """The offsets that were sent behind what is kept."""
        self._left_out: int | None = None
        """The lowest offset of a record that the broker has refused and that is left out."""
        self.on_refused: OnRefused | None = None
        """See `sdk.sink.Refusable`."""
        self._bytes = 0
        self._sent = 0
        self._since = time.monotonic()

    def outdated(self, records: pa.RecordBatch) -> NDArray[np.bool_]:
        """What an attempt before has left out is left out for good, whatever the clock says by now."""
        offsets = records.column("offset").to_numpy()
        before = int(np.searchsorted(offsets, self._begun.position))
        late = np.zeros(len(records), dtype=np.bool_)
        if self._composer.expiry_s is None:
            late = expired(records, self._now_ms())
        late[:before] = True
        self._expired.add(offsets[before:], late[before:])
        return late

    def write(self, records: pa.RecordBatch, limit: Limit) -> int:
        """Takes one record after the other while there is time, and until one is left out, or more have expired before
        it than is kept. A group ends between records."""
        offsets = records.column("offset").to_pylist()
        outputs = records.column("outputs").to_pylist()
        times = came_ms(records)
        self._since, self._sent = time.monotonic(), self._publisher.under_way
        last = None
        for taken, one in enumerate(self._composer.compose(records, self._publisher.most_bytes)):
            if offsets[taken] != last:
                if limit.quantum_left_s() <= 0 or limit.left_s() <= _MARGIN_S:
                    return taken
                if self._is_full(outputs[taken] or 1):
                    return taken
                self._make_room(outputs[taken] or 1, limit)
                if self._one_by_one:
                    self._wait(lambda: not self._publisher.under_way, limit)
                if self._left_out is not None or self._expired.too_many_before(offsets[taken]):
                    return taken
                last = offsets[taken]
            if isinstance(one, Unfit):
                raise DataError(one.message, where=f"offset {offsets[taken]}")  # `invalid_rows` has let it pass
            self._send(one, offsets[taken], times[taken], records.slice(taken, 1), limit)
        return len(offsets)

    def flush(self, limit: Limit) -> Delivered:
        if self._group:
            self.keep(limit)
        before, now = self._begun, self._kept
        records = now.count - before.count
        return Delivered(
            records=records,
            bytes=self._bytes,
            behind={self._target: now.count},
            where={self._target: [[before.count, now.count]]} if records else {},
            possible_duplicates=now.repeats - before.repeats,
            evidence={"unsure": list(now.unsure)},
        )

    def keep(self, limit: Limit) -> None:
        """Waits until all that was sent is acknowledged, and has the broker keep how far that is. It does not keep that
        a record is delivered which was left out: when this attempt dies before that is settled, the next one must come
        upon it again. What is behind it counts when it is settled."""
        self._wait(lambda: self._publisher.under_way == 0, limit)
        told = len(self._group) if self._left_out is None else sum(one < self._left_out for one in self._group)
        self._tell(told)
        self._wait(lambda: self._publisher.under_way == 0, limit)
        if self._group and self._left_out is not None:
            self._advance(len(self._group))

    def _is_full(self, outputs: int) -> bool:
        """Whether the range ends here, so that the ledger knows of what was sent."""
        sent = self._kept.count - self._begun.count + len(self._group)
        return self._topic is None and bool(sent) and sent + outputs > self._begun.group

    def _make_room(self, outputs: int, limit: Limit) -> None:
        """For all outputs of one record, in this group or the next."""
        if self._group and len(self._group) + outputs > self._begun.group:
            self.keep(limit)

    def _send(self, one: Publication, offset: int, came_ms: int | None, row: pa.RecordBatch, limit: Limit) -> None:
        self._wait(lambda: self._publisher.has_room(one.packet_bytes, self._most_under_way()), limit)
        self._publisher.publish(self._composer.on_time(one, came_ms, self._now_ms()), offset, row)
        self._sent += 1
        self._group.append(offset)
        self._bytes += len(one.payload)

    def _most_under_way(self) -> int:
        acknowledged = self._sent - self._publisher.under_way
        elapsed_s = time.monotonic() - self._since
        return _FIRST + int(acknowledged / max(elapsed_s, 0.001) * _UNDER_WAY_S)

    def _tell(self, records: int) -> None:
        """The first so many of the group are delivered."""
        if records:
            self._advance(records)
        if self._topic is None:
            return
        self._publisher.publish(retained(self._topic, self._kept.encode()), self._kept.position)

    def _advance(self, records: int) -> None:
        position = self._group[records - 1] + 1
        self._kept = replace(self._kept.advanced(records, position), left_out=self._expired.before(position))
        del self._group[:records]

    def _wait(self, condition: Callable[[], bool], limit: Limit) -> None:
        """Until that is so, and of everything that was refused so far it is told: what is not told counts as delivered.
        Raises Retriable when there is no time left, and what the publisher raises."""
        silent_since, before = time.monotonic(), self._publisher.under_way
        while self._publisher.refused or not condition():
            if limit.left_s() <= _MARGIN_S:
                raise _late("No time was left to wait for the broker's acknowledgements", self._publisher)
            if time.monotonic() - silent_since > ANSWER_S:
                raise _late(f"The broker has acknowledged nothing for {ANSWER_S:.0f} s", self._publisher)
            try:
                self._publisher.turn(_TURN_S)
            except RefusedPublish as refused:
                self._leave_out(refused)
            if self._publisher.under_way != before:
                silent_since, before = time.monotonic(), self._publisher.under_way

    def _leave_out(self, refused: RefusedPublish) -> None:
        """Raises what the refusal means unless somebody takes the record for a reject."""
        lowest = refused.offset if self._left_out is None else min(refused.offset, self._left_out)
        if refused.row is None or self.on_refused is None:
            self._keep_before(lowest)
            raise refused.error from None
        try:
            self.on_refused(refused.row, type(refused).__name__, f"{refused.error.what}. {refused.error.next_step}")
        except WaybillError:
            self._keep_before(lowest)
            raise
        self._left_out = lowest
        self._bytes -= len(refused.row.column("value")[0].as_py() or b"")
        self._group.remove(refused.offset)

    def _keep_before(self, offset: int) -> None:
        """What stands before a record that was refused is delivered: the next attempt need not send it again."""
        with suppress(WaybillError):
            self._publisher.finish(ANSWER_S / 5)
            lowest = min((offset, *self._publisher.refused))
            self._tell(sum(one < lowest for one in self._group))
            self._publisher.finish(ANSWER_S / 5)


def _late(what: str, publisher: Publisher) -> Retriable:
    return Retriable(
        what,
        where=publisher.where,
        next_step=f"{publisher.advice}. The next attempt continues after the last group that was kept. If the broker "
        "is slow, lower in_flight and progress_every",
    )
