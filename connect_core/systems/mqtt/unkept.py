"""The MQTT sink for a broker that keeps no progress of ours (RocketMQ-MQTT): the ledger alone knows what is delivered.

So a range ends after `progress_every` publishes, and is settled. An attempt that dies has sent no more than these, and
they are sent again; how many attempts have left a range is kept with what was looked for of it, so that all of them
count. Nothing at the broker keeps two attempts apart: their leases and deadlines do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from connect_core.sdk.records import Partition
from connect_core.sdk.scan import ScanResult
from connect_core.sdk.sink import Scan, Writer
from connect_core.sdk.values import Attempt, Floor, OpenRange, Position, Range
from connect_core.systems.mqtt import progress
from connect_core.systems.mqtt.sink import MqttSink, floor_of, target_of
from connect_core.systems.mqtt.writing import PublishWriter


class UnkeptMqttSink(MqttSink):
    """A `sdk.sink.Sink`."""

    def floors(self, wanted: Range, known: Sequence[Floor], *, restored: bool = False) -> tuple[Floor, ...]:
        target = str(wanted.pins.target["broker"])
        standing = tuple(floor for floor in known if floor.target == target)
        return standing or (Floor(wanted.partition.id, target, 0, ahead=restored),)

    def scan(self, wanted: Scan) -> dict[int, ScanResult]:
        """There is nothing to look at: each attempt that has left a range may have sent all that it was let."""
        return {item.id: self._left(item) for item in wanted.ranges}

    @contextmanager
    def writer(self, attempt: Attempt, wanted: OpenRange) -> Iterator[Writer]:
        with self._connected(wanted.range) as publisher:
            self._most_bytes = publisher.most_bytes
            floor = floor_of(wanted)
            begun = progress.unkept(wanted, floor.position, self._options.progress_every, floor.evidence)
            yield PublishWriter(publisher, self._options.composer, target_of(wanted), None, begun)

    def delete_remote_state(self, known: Mapping[Partition, Position | None]) -> list[str]:
        return []

    def _left(self, item: OpenRange) -> ScanResult:
        settled = floor_of(item).position
        prefix = progress.left_unkept(item, self._options.progress_every)
        return ScanResult(scanned={target_of(item): settled}, complete=True, prefix=prefix)
