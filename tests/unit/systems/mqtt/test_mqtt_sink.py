"""The progress of a partition that the ledger does not know, at a broker that takes its time."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from connect_core.sdk.records import Partition
from connect_core.sdk.testing.driving import range_of
from connect_core.sdk.values import Bounds, Floor, Range
from connect_core.systems.mqtt import sink as module
from connect_core.systems.mqtt.progress import MqttProgress
from connect_core.systems.mqtt.publications import Publication
from connect_core.systems.mqtt.sink import MqttSink
from connect_core.systems.mqtt.sink_options import MqttSinkOptions

PARTITION = Partition("p")
OPTIONS = MqttSinkOptions(host="h", topic="t", uid="u")
OURS = f"waybill/u/{PARTITION.id}"


class SlowPublisher:
    """Its broker needs two seconds to send what it retains."""

    kept: dict[str, bytes]
    where = OPTIONS.where

    def __init__(self, options: MqttSinkOptions, client_id: str) -> None:
        pass

    def all_retained(self, topic_filter: str, limit_s: float) -> Mapping[str, bytes]:
        return self.kept if limit_s > 2 else {}

    def retained(self, topic: str, limit_s: float) -> bytes | None:
        return self.all_retained(topic, limit_s).get(topic)

    def publish(self, one: Publication, offset: int) -> None:
        self.kept[one.topic] = one.payload

    def finish(self, limit_s: float) -> None:
        pass

    def require_accepted(self) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What the broker retains, by topic."""
    monkeypatch.setattr(module, "Publisher", SlowPublisher)
    monkeypatch.setattr(SlowPublisher, "kept", {}, raising=False)
    return SlowPublisher.kept


def planned() -> Range:
    return range_of(PARTITION, Bounds(0, 0, 0, 100), pins={"broker": OPTIONS.where})


def test_a_restored_ledger_waits_for_progress_that_it_may_have_forgotten(kept: dict[str, bytes]) -> None:
    written = MqttProgress(0, 0, 50, count=50, group=10)
    kept[OURS] = written.encode()
    [floor] = MqttSink(OPTIONS).floors(planned(), (), restored=True)
    assert MqttProgress.decode(kept[OURS], OURS) == written
    assert floor == Floor(PARTITION.id, OPTIONS.where, 0, ahead=True)


def test_a_partition_that_is_new_has_its_progress_made(kept: dict[str, bytes]) -> None:
    [floor] = MqttSink(OPTIONS).floors(planned(), (), restored=True)
    assert MqttProgress.decode(kept[OURS], OURS).count == 0
    assert floor == Floor(PARTITION.id, OPTIONS.where, 0)
