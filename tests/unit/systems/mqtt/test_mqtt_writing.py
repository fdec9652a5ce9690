"""What becomes of a publish that the broker refuses for good: the record is left out, and comes up again until that is
settled (delivery rules 19 and 26)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from connect_core.errors import DataError, TooManyRejects
from connect_core.sdk.testing.driving import limit, records
from connect_core.systems.mqtt.progress import MqttProgress
from connect_core.systems.mqtt.publications import Composer, Publication
from connect_core.systems.mqtt.refusals import RefusedPublish
from connect_core.systems.mqtt.templates import TopicTemplate
from connect_core.systems.mqtt.writing import PublishWriter

OURS = "waybill/u/p"
GROUP = 10


@dataclass
class Broker:
    """A publisher whose broker refuses these payloads; it answers one publish a turn, in order."""

    refused: frozenset[bytes] = frozenset()
    of_one: bool = True
    taken: list[bytes] = field(default_factory=list)
    kept: list[MqttProgress] = field(default_factory=list)
    waiting: deque[tuple[Publication, int, pa.RecordBatch | None]] = field(default_factory=deque)
    where: str = "broker"
    most_bytes: int = 1_000

    @property
    def under_way(self) -> int:
        return len(self.waiting)

    def has_room(self, size: int, most: int) -> bool:
        return len(self.waiting) < 4

    def publish(self, one: Publication, offset: int, row: pa.RecordBatch | None = None) -> None:
        self.waiting.append((one, offset, row))

    def turn(self, limit_s: float) -> None:
        one, offset, row = self.waiting.popleft()
        if one.payload in self.refused:
            raise RefusedPublish(offset, DataError("it is refused"), row if self.of_one else None)
        if one.topic == OURS:
            self.kept.append(MqttProgress.decode(one.payload, one.topic))
        else:
            self.taken.append(one.payload)

    def finish(self, limit_s: float) -> None:
        while self.waiting:
            try:
                self.turn(limit_s)
            except RefusedPublish:
                continue


def writer_to(broker: Broker) -> PublishWriter:
    composer = Composer(TopicTemplate("", ("t",)), reserved="waybill/", qos=1, retain=False)
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
