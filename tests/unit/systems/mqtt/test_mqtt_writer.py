"""What becomes of a publish that the broker refuses for good: the record is left out, and comes up again until that is
settled (delivery rules 19 and 26)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from connect_core.errors import DataError, Retriable, TooManyRejects
from connect_core.sdk.templates import template
from connect_core.sdk.testing.driving import limit, records
from connect_core.systems.mqtt.progress import MqttProgress
from connect_core.systems.mqtt.publications import Composer, Publication
from connect_core.systems.mqtt.publisher import RefusedPublish
from connect_core.systems.mqtt.writer import PublishWriter

OURS = "waybill/u/p"
GROUP = 10


@dataclass
class Broker:
    """A publisher whose broker refuses these payloads, those of `quota` because there were too many. It answers in
    order, one publish a turn or all of them."""

    refused_payloads: frozenset[bytes] = frozenset()
    of_one: bool = True
    at_once: bool = False
    quota: frozenset[bytes] = frozenset()
    taken: list[bytes] = field(default_factory=list)
    kept: list[MqttProgress] = field(default_factory=list)
    waiting: deque[tuple[Publication, int, pa.RecordBatch | None]] = field(default_factory=deque)
    refusals: deque[RefusedPublish] = field(default_factory=deque)
    where: str = "broker"
    most_bytes: int = 1_000

    @property
    def under_way(self) -> int:
        return len(self.waiting)

    @property
    def refused(self) -> list[int]:
        return [one.offset for one in self.refusals]

    def has_room(self, size: int, most: int) -> bool:
        return len(self.waiting) < 4

    def publish(self, one: Publication, offset: int, row: pa.RecordBatch | None = None) -> None:
        self.waiting.append((one, offset, row))

    def turn(self, limit_s: float) -> None:
        for _ in range(len(self.waiting) if self.at_once else min(len(self.waiting), 1)):
            self._answer(*self.waiting.popleft())
        if self.refusals:
            raise self.refusals.popleft()

    def _answer(self, one: Publication, offset: int, row: pa.RecordBatch | None) -> None:
        if one.payload in self.quota:
            self.refusals.append(RefusedPublish(offset, Retriable("its quota is used up"), None))
        elif one.payload in self.refused_payloads:
            self.refusals.append(RefusedPublish(offset, DataError("it is refused"), row if self.of_one else None))
        elif one.topic == OURS:
            self.kept.append(MqttProgress.decode(one.payload, one.topic))
        else:
            self.taken.append(one.payload)

    def finish(self, limit_s: float) -> None:
        while self.waiting:
            self._answer(*self.waiting.popleft())


def writer_to(broker: Broker) -> PublishWriter:
    composer = Composer(template("t"), reserved="waybill/", qos=1, retain=False)
    return PublishWriter(broker, composer, "broker", OURS, MqttProgress(0, 0, 0, group=GROUP))  # type: ignore[arg-type]


def written(broker: Broker, payloads: list[bytes], tolerated: int = 100) -> tuple[PublishWriter, list[int], int]:
    """The writer, the offsets that were refused, and how many rows were taken."""
    writer, told = writer_to(broker), []

    def refused(row: pa.RecordBatch, kind: str, message: str) -> None:
        assert (kind, message) == ("RefusedPublish", "it is refused. ")
        if len(told) == tolerated:
            raise TooManyRejects("one too many")
        told.extend(row.column("offset").to_pylist())

    writer.on_refused = refused
    return writer, told, writer.write(records(list(payloads)), limit())


PAYLOADS = [b"%d" % n for n in range(40)]


@pytest.mark.parametrize("place", [0, 9, 10, 25, 39])
def test_a_record_that_was_refused_is_left_out_and_the_range_ends_soon(place: int) -> None:
    broker = Broker(frozenset({PAYLOADS[place]}))
    writer, told, taken = written(broker, PAYLOADS)
    delivered = writer.flush(limit())
    assert told == [place]
    assert place < taken <= min(place + 5, 40)
    assert broker.taken == [one for one in PAYLOADS[:taken] if one != PAYLOADS[place]]
    assert (delivered.records, delivered.behind) == (taken - 1, {"broker": taken - 1})
    assert delivered.bytes == sum(map(len, broker.taken))


@pytest.mark.parametrize("place", [0, 9, 10, 25, 39])
def test_progress_is_not_kept_past_a_record_that_was_left_out(place: int) -> None:
    """An attempt that comes before this is settled must send it again: it is no dead letter yet."""
    broker = Broker(frozenset({PAYLOADS[place]}))
    writer, _, _ = written(broker, PAYLOADS)
    writer.flush(limit())
    assert max((kept.position for kept in broker.kept), default=0) <= place
    assert broker.kept[-1].count == place


def test_several_of_one_group_are_left_out() -> None:
    broker = Broker(frozenset(PAYLOADS[12:15]))
    writer, told, taken = written(broker, PAYLOADS)
    assert writer.flush(limit()).records == taken - len(told)
    assert told == list(range(12, 12 + len(told)))
    assert broker.kept[-1].position <= 12


@pytest.mark.parametrize("refused", [range(1, 4), range(4), (0, 2, 3), range(13, 16), range(40)])
def test_all_that_are_refused_in_one_burst_are_left_out(refused: Sequence[int]) -> None:
    """Their answers come together, and the writer is told of one a turn."""
    broker = Broker(frozenset(PAYLOADS[one] for one in refused), at_once=True)
    writer, told, taken = written(broker, PAYLOADS)
    delivered = writer.flush(limit())
    assert told == [one for one in refused if one < taken]
    assert broker.taken == [one for number, one in enumerate(PAYLOADS[:taken]) if number not in refused]
    assert delivered.records == taken - len(told)
    assert delivered.bytes == sum(map(len, broker.taken))
    assert max((kept.position for kept in broker.kept), default=0) <= refused[0]


def test_a_refusal_that_concerns_more_is_raised_also_behind_one_of_a_record() -> None:
    broker = Broker(frozenset({PAYLOADS[1]}), at_once=True, quota=frozenset({PAYLOADS[2]}))
    writer, told, _ = written(broker, PAYLOADS[:3])
    with pytest.raises(Retriable, match="quota"):
        writer.flush(limit())
    assert told == [1]
    assert (broker.kept[-1].position, broker.kept[-1].count) == (1, 1)


def test_nothing_is_kept_past_a_record_whose_refusal_is_told_later() -> None:
    """A broker need not answer in order."""
    broker = Broker(frozenset({PAYLOADS[1]}), quota=frozenset({PAYLOADS[2]}))
    writer, _, _ = written(broker, PAYLOADS[:3])
    broker.waiting.rotate(1)
    with pytest.raises(Retriable, match="quota"):
        writer.flush(limit())
    assert broker.kept[-1].position == 1


def test_one_that_is_not_tolerated_ends_the_writer_and_what_is_before_it_is_kept() -> None:
    broker = Broker(frozenset({PAYLOADS[25]}))
    with pytest.raises(TooManyRejects):
        written(broker, PAYLOADS, tolerated=0)
    assert (broker.kept[-1].position, broker.kept[-1].count) == (25, 25)


def test_a_refusal_that_concerns_more_than_the_record_is_raised() -> None:
    broker = Broker(frozenset({PAYLOADS[25]}), of_one=False)
    with pytest.raises(DataError, match="it is refused"):
        written(broker, PAYLOADS)


def test_where_nobody_takes_it_the_refusal_is_raised() -> None:
    writer = writer_to(Broker(frozenset({b"x"})))
    writer.write(records([b"x"]), limit())
    with pytest.raises(DataError, match="it is refused"):
        writer.flush(limit())
