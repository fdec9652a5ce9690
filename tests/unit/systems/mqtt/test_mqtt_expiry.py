"""How much time a message has left when it is published, and what becomes of one that has none (delivery rule 8): it is
left out, and the next attempt knows that it is not in the target, however often attempts die."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.sdk.records import Partition, encode_headers
from connect_core.sdk.scan import Prefix, ScanResult
from connect_core.sdk.templates import template
from connect_core.sdk.testing.driving import limit, range_of, records
from connect_core.sdk.values import Bounds, Floor, OpenRange
from connect_core.systems.mqtt import progress
from connect_core.systems.mqtt.packets import NO_PROPERTIES
from connect_core.systems.mqtt.progress import MqttProgress
from connect_core.systems.mqtt.publications import (
    MOST_STRETCHES,
    Composer,
    Publication,
    Stretches,
    expired,
    is_over,
    left_s,
)
from connect_core.systems.mqtt.writer import PublishWriter
from tests.unit.systems.mqtt.test_mqtt_writer import GROUP, OURS, Broker

COMPOSER = Composer(template("t"), reserved="waybill/", qos=1, retain=False)
CAME_MS = 1_700_000_000_000
PARTITION = Partition("p")


def good_for(*seconds: int | str | None, first: int = 0) -> pa.RecordBatch:
    """Records that came at `CAME_MS`, each with a header that says how long it is good for."""
    headers = [None if one is None else encode_headers([("a", "b"), ("MQTT_EXPIRY_S", str(one))]) for one in seconds]
    payloads: list[bytes | None] = [b"%d" % (first + row) for row in range(len(seconds))]
    came = [datetime.fromtimestamp(CAME_MS / 1000, UTC)] * len(seconds)
    return records(payloads, first, headers=list(headers), timestamp=list(came))


@pytest.mark.parametrize(
    ("waited_ms", "left", "over"),
    [
        (0, 60, False),
        (999, 60, False),
        (1000, 59, False),
        (59_999, 1, False),
        (60_000, 1, True),
        (90_000, 1, True),
        (-5_000, 60, False),
    ],
)
def test_what_has_been_waited_is_taken_off(waited_ms: int, left: int, over: bool) -> None:
    assert (left_s(60, CAME_MS, CAME_MS + waited_ms), is_over(60, CAME_MS, CAME_MS + waited_ms)) == (left, over)


def test_a_record_without_a_time_has_all_of_its_time() -> None:
    assert left_s(60, None, CAME_MS) == 60
    assert not is_over(60, None, CAME_MS)


def test_which_records_have_expired() -> None:
    said = good_for(10, None, 30, "soon", 0, 10**9)
    assert expired(said, CAME_MS + 10_000).tolist() == [True, False, False, False, True, False]
    assert expired(said.slice(0, 0), CAME_MS).tolist() == []


def test_only_the_header_itself_says_it() -> None:
    """Not a value that holds its name, nor another header whose name ends with it."""
    headers = encode_headers([("x", "MQTT_EXPIRY_S"), ("MQTT_USER_MQTT_EXPIRY_S", "1")])
    said = good_for(None).set_column(4, "headers", pa.array([headers], pa.binary()))
    assert not expired(said, CAME_MS + 10**9).any()


def test_a_message_is_published_with_what_is_left() -> None:
    [one] = COMPOSER.compose(good_for(60))
    assert isinstance(one, Publication)
    assert one.properties.expiry_s == 60
    assert COMPOSER.on_time(one, CAME_MS, CAME_MS + 25_000).properties.expiry_s == 35
    [plain] = COMPOSER.compose(good_for(None))
    assert isinstance(plain, Publication)
    assert COMPOSER.on_time(plain, CAME_MS, CAME_MS + 25_000).properties == NO_PROPERTIES


def test_the_time_that_the_document_gives_begins_with_the_publish() -> None:
    composer = replace(COMPOSER, expiry_s=9)
    [one] = composer.compose(good_for(60))
    assert isinstance(one, Publication)
    assert composer.on_time(one, CAME_MS, CAME_MS + 10**6).properties.expiry_s == 9
    begun = MqttProgress(0, 0, 0, group=50)
    writer = PublishWriter(Broker(), composer, "broker", OURS, begun, lambda: CAME_MS + 10**6)  # type: ignore[arg-type]
    assert not writer.outdated(good_for(60)).any()


@given(st.lists(st.booleans(), max_size=60), st.lists(st.integers(1, 20), max_size=5), st.integers(1, 3))
def test_stretches_are_what_lies_between_records_that_were_sent(late: list[bool], cuts: list[int], apart: int) -> None:
    offsets = np.arange(len(late)) * apart + 7
    stretches, at = Stretches([(0, 3)]), 0
    for size in [*cuts, len(late)]:
        if len(offsets[at : at + size]):
            stretches.add(offsets[at : at + size], np.array(late[at : at + size], dtype=np.bool_))
        at += size
    found = stretches.before(10**6)
    assert found[0] == (0, 3)
    assert len(found) - 1 == sum(1 for one, _ in groupby(late) if one)
    covered = [any(begin <= offset < end for begin, end in found) for offset in offsets.tolist()]
    assert covered == late
    assert all(first[1] <= second[0] for first, second in pairwise(found))


@dataclass
class Link:
    """A source whose records are good for so long, a broker, and attempts that come when it is so late."""

    good_for_s: list[int]
    broker: Broker = field(default_factory=Broker)
    settled: int = 0
    epoch: int = 0

    def attempt(self, now_s: int, *, dies_behind: int | None = None) -> tuple[int, int, int]:
        """What it counts: delivered, in the target already, expired. It dies behind so many records."""
        kept = self.broker.kept[-1] if self.broker.kept else None
        item = self._found(kept)
        begun = progress.begun(kept, item, 0, GROUP, self.epoch)
        now_ms = CAME_MS + now_s * 1000
        writer = PublishWriter(self.broker, COMPOSER, "broker", OURS, begun, lambda: now_ms)  # type: ignore[arg-type]
        if item.inherited:
            writer.keep(limit())
        self.epoch += 1
        rows = good_for(*self.good_for_s[:dies_behind])
        there = (item.found or ScanResult()).present(rows.column("offset").to_numpy())
        fresh = rows.filter(pa.array(~there))
        late = writer.outdated(fresh) if len(fresh) else np.zeros(0, dtype=np.bool_)
        fresh = fresh.filter(pa.array(~late))
        assert writer.write(fresh, limit()) == len(fresh)
        if dies_behind is not None:
            self.broker.finish(1)
            return (0, 0, 0)
        return (writer.flush(limit()).records, int(there.sum()), int(late.sum()))

    def _found(self, kept: MqttProgress | None) -> OpenRange:
        wanted = range_of(PARTITION, Bounds(0, 0, 0, len(self.good_for_s)))
        item = OpenRange(1, wanted, (Floor(PARTITION.id, "broker", 0),), inherited=self.epoch > 0)
        if not item.inherited:
            return item
        count = kept.count if kept else 0
        found = ScanResult({"broker": count}, True, prefix=progress.covered(kept, wanted, 0, GROUP))
        return replace(item, found=ScanResult.decode(found.encode()))


def test_what_expired_before_an_attempt_died_is_not_taken_for_delivered() -> None:
    """The first one comes after 10 s, and leaves out every third record; the others last longer than the second."""
    link = Link([5 if n % 3 == 0 else 600 for n in range(60)])
    link.attempt(10, dies_behind=45)
    delivered, already, late = link.attempt(20)
    assert link.broker.kept[-1].count == delivered + already == 40
    assert late == 20
    assert already == 20, "two groups of ten: the third was sent, and not kept"


def test_what_was_delivered_in_time_is_there_though_it_would_be_late_now() -> None:
    """Of what was sent behind the last progress nobody knows: that is late."""
    link = Link([15] * 30)
    link.attempt(10, dies_behind=20)
    assert link.attempt(20) == (0, 10, 20)
    assert len(link.broker.taken) == 20


def test_what_was_left_out_once_is_left_out_when_the_clock_goes_back() -> None:
    """It stands before what is known to be delivered, and the next attempt would take it for missing."""
    link = Link([5 if n % 3 == 0 else 600 for n in range(60)])
    link.attempt(10, dies_behind=45)
    known = link.broker.kept[-1].left_out
    delivered, already, late = link.attempt(0)
    assert (delivered, already, late) == (30, 20, 10)
    assert link.broker.kept[-1].left_out == known


@given(st.integers(0, 2**32), st.lists(st.integers(0, 80), max_size=4))
def test_whoever_dies_wherever_each_record_is_delivered_or_late(seed: int, deaths: list[int]) -> None:
    chance = random.Random(seed)
    link = Link([chance.choice([5, 15, 25, 35, 10**6]) for _ in range(80)])
    now_s = 0
    for place in deaths:
        link.attempt(now_s := now_s + 10, dies_behind=place)
    delivered, already, late = link.attempt(now_s := now_s + 10)
    taken = {int(payload) for payload in link.broker.taken}
    assert delivered + already + late == 80
    assert already <= len(taken)
    assert delivered + already == link.broker.kept[-1].count <= len(taken)
    assert all(link.good_for_s[n] <= now_s for n in set(range(80)) - taken), "what is not there is late"
    assert len(link.broker.taken) - len(taken) <= GROUP * len(deaths)


def test_a_range_ends_where_more_stretches_have_expired_than_progress_keeps() -> None:
    writer = PublishWriter(Broker(), COMPOSER, "broker", OURS, MqttProgress(0, 0, 0, group=50), lambda: CAME_MS + 9_000)  # type: ignore[arg-type]
    rows = good_for(*([5, 600] * (MOST_STRETCHES + 10)))
    fresh = rows.filter(pa.array(~writer.outdated(rows)))
    assert writer.write(fresh, limit()) == MOST_STRETCHES
    assert writer.flush(limit()).records == MOST_STRETCHES


def test_of_a_progress_that_is_lost_nothing_is_known_to_have_expired() -> None:
    kept = MqttProgress(0, 0, 70, count=40, group=10, left_out=((3, 5), (60, 63)))
    wanted = range_of(PARTITION, Bounds(0, 0, 0, 100))
    assert progress.covered(kept, wanted, 0, 10) == Prefix(70, 40, 10, ((3, 5), (60, 63)))
    assert progress.covered(kept, replace(wanted, begin=4), 3, 10) == Prefix(70, 37, 10, ((4, 5), (60, 63)))
    assert progress.covered(kept, wanted, 41, 10).without == ()
    item = OpenRange(1, replace(wanted, begin=70), (Floor(PARTITION.id, "broker", 40),))
    assert progress.begun(kept, item, 40, 10, 2).left_out == (), "it was settled"


def test_what_is_kept_of_it_at_the_broker() -> None:
    kept = MqttProgress(0, 0, 7, count=3, left_out=((1, 3), (5, 6)))
    assert kept.encode().endswith(b', "left_out": [[1, 3], [5, 6]]}')
    assert MqttProgress.decode(kept.encode(), "t") == kept
