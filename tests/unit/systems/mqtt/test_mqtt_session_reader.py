"""One session at work, and several beside each other, without a broker: what is asked of it in which order, and when it
is told how a session stands."""

from __future__ import annotations

import json
import time
from collections import deque
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace

import pytest

from connect_core.errors import Failure, Refused, Retriable
from connect_core.sdk.cutting import part_before
from connect_core.sdk.testing.driving import limit
from connect_core.sdk.values import Range, SourceBatch
from connect_core.systems.mqtt import session as session_module
from connect_core.systems.mqtt import session_reader as module
from connect_core.systems.mqtt import source as source_module
from connect_core.systems.mqtt.deduplication import UnconfirmedRecord, trace_of
from connect_core.systems.mqtt.packets import Packet
from connect_core.systems.mqtt.session_state import SessionState
from connect_core.systems.mqtt.source import MqttSource
from tests.unit.systems.mqtt.session_doubles import Broker, Session, member, options, planned


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    there = Broker({"s", "w"})
    monkeypatch.setattr(module, "Session", there.session)
    monkeypatch.setattr(source_module, "wait", lambda sessions, limit_s: time.sleep(0.01))
    return there


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("said", ["count_up", "used_again"])
def test_what_the_document_says_of_packet_ids_is_not_settled_as_learned(
    broker: Broker, said: str, learned: bool
) -> None:
    """It holds as long as the document says it."""
    there = member(SessionState(("a",), counts_up=learned), "a", packet_ids=said)
    assert there._reception.counts_up == (said == "count_up")
    assert SessionState.of(there.evidence(5, 0.0)).counts_up == learned


def test_what_an_id_shows_is_settled(broker: Broker) -> None:
    broker.packets["s"] = deque([Packet(b"a", b"", 1, 40_000)])
    there = member(SessionState(("a",)), "a")
    there.batch()
    assert SessionState.of(there.evidence(6, 0.0)).counts_up


def test_what_is_not_confirmed_is_known_also_when_a_person_has_set_the_number_back(broker: Broker) -> None:
    """It comes again whatever its number was, and is not delivered then."""
    entries = tuple(UnconfirmedRecord(number, trace_of(number, b"a", b"x")) for number in (90, 91))
    broker.packets["s"] = deque(Packet(b"a", b"x", 1, number, True) for number in (90, 91))
    there = member(SessionState(("a",), entries), "a")
    assert (batch := there.batch()) is None or not len(batch.records)
    assert [one.trace for one in SessionState.of(there.evidence(6, 0.0)).entries] == [one.trace for one in entries]


def test_what_takes_the_place_of_a_filter_is_subscribed_before_that_is_unsubscribed(broker: Broker) -> None:
    member(SessionState(("a/+",)), "a/#")
    assert broker.said[1:] == ["subscribe a/#", "unsubscribe a/+"]


def test_a_filter_is_kept_as_long_as_nobody_knows_that_the_other_one_is_granted(broker: Broker) -> None:
    """The answer may come behind a backlog."""
    broker.answers_at_once = False
    there = member(SessionState(("a/+",)), "a/#")
    there.batch()
    assert broker.said[1:] == ["subscribe a/#"]
    broker.asked = 0
    there.batch()
    assert broker.said[1:] == ["subscribe a/#", "unsubscribe a/+"]
    assert SessionState.of(there.evidence(5, 0.0)).subscribed == ("a/+", "a/#"), "until that is answered, too"
    broker.asked = 0
    there.batch()
    assert broker.said[3:] == []
    assert SessionState.of(there.evidence(5, 0.0)).subscribed == ("a/#",)


def test_a_filter_is_kept_where_the_other_one_is_refused(broker: Broker) -> None:
    broker.refuses = True
    with pytest.raises(Refused):
        member(SessionState(("a/+",)), "a/#")
    assert broker.said[1:] == ["subscribe a/#"]


def test_a_session_that_leaves_is_unsubscribed_at_once(broker: Broker) -> None:
    member(SessionState(("a/+",)))
    assert broker.said[1:] == ["unsubscribe a/+"]


def test_a_session_made_anew_never_stands_beside_a_witness_made_anew(broker: Broker) -> None:
    """Who finds it lost may die between any two steps."""
    broker.kept = set()
    with pytest.raises(Retriable, match="has lost the session"):
        member(SessionState(("a",), witnessed=True), "a")
    assert broker.said == ["connect s", "give up s", "connect w", "give up w"]


@pytest.mark.parametrize("witness", ["is there", "is not there"])
def test_a_session_that_another_broker_has_kept_is_not_gone_on_with(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, witness: str
) -> None:
    """Asked only where it may be another one: at the address that has answered."""
    broker.kept = {"s", "w"} if witness == "is there" else {"s"}
    monkeypatch.setattr(session_module, "Session", lambda options, client_id, **_: broker.session(options, client_id))
    standing = SessionState(("a",), witnessed=True)
    if witness == "is there":
        member(standing, "a", failover=("b",))
        assert broker.said == ["connect s", "connect w", "subscribe a"]
    else:
        with pytest.raises(Retriable, match="Another broker answers"):
            member(standing, "a", failover=("b",))
        assert broker.said == ["connect s", "connect w", "give up w"]
        assert broker.kept == {"s"}, "what waits there is not thrown away"
        assert not broker.sessions[0].open
    broker.said.clear()
    member(standing, "a")
    assert broker.said == ["connect s", "subscribe a"]


def test_a_broker_that_says_nothing_of_sessions_is_not_asked_for_another_one(broker: Broker) -> None:
    member(SessionState(("a",), witnessed=True), "a", failover=("b",), broker="rocketmq-mqtt", protocol="3.1.1")
    assert broker.said == ["connect s", "subscribe a"]


def test_what_comes_again_beside_a_witness_that_is_gone_is_counted(broker: Broker) -> None:
    """The session itself is there: what was settled and not acknowledged comes again."""
    written = tuple(UnconfirmedRecord(n, trace_of(n + 1, b"a", b"%d" % n)) for n in range(5))
    lost = SessionState(("a",), written, counts_up=True, witnessed=True).without_session()
    for standing in (lost, replace(lost, counts_up=True)):
        broker.packets["s"] = deque(Packet(b"a", b"%d" % n, 1, n + 1, dup=True) for n in range(5))
        there = member(SessionState.of(standing.evidence()), "a")
        batches = [batch for _ in range(5) if (batch := there.batch()) is not None]
        assert [number for batch in batches for number in batch.doubtful] == [5, 6, 7, 8, 9]


def followed(
    broker: Broker, quiet: SessionState, *filters: str, quantum_s: float = 1.0, busy_s: float = 0.02
) -> list[SessionState]:
    """What is told of a session to which nothing comes: how it stands then. To the one beside it there comes always
    more, and each message takes so long to write."""
    given = options(filters=filters, sessions=2)
    broker.kept = {given.client_id(0), given.client_id(1)}
    broker.packets[given.client_id(0)] = deque(Packet(b"b", b"", 1, n) for n in range(1, 5_000))
    told = []
    source = MqttSource(given)
    ranges = [planned(1, quiet), planned(0, SessionState(("b",), granted=(("b", 1),)))]
    for one, batch in source.follow(ranges, limit(quantum_s), idle_timeout_s=0.4):
        assert isinstance(batch, SourceBatch)
        if one.slot:
            told.append(SessionState.of(source.evidence(one, batch.next_offset)))
        else:
            source.acknowledge(one, batch.next_offset)
            time.sleep(busy_s)
    return told


def test_a_session_whose_subscription_is_refused_behind_a_message_stops_no_other(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it is connected, too. What has come to it is delivered."""
    given = options(filters=["a", "b"], sessions=2)
    refused, fine = given.client_id(0), given.client_id(1)
    broker.kept = {refused, fine}
    broker.packets = {one: deque(Packet(b"t", b"", 1, n) for n in (1, 2, 3)) for one in (refused, fine)}

    def answered(session: Session) -> bool:
        if session.client_id == refused and len(broker.packets[refused]) == 1:
            raise Refused("it does not grant that", where="broker")
        return session.client_id != refused

    monkeypatch.setattr(Session, "answered", answered)
    ranges = [planned(n, SessionState((one,), granted=((one, 1),))) for n, one in enumerate(given.filters)]
    came = list(MqttSource(given).follow(ranges, limit(2), idle_timeout_s=0.2))
    batches = [(one.slot, batch.next_offset) for one, batch in came if isinstance(batch, SourceBatch)]
    assert sorted(batches) == [(0, 6), (0, 7), (0, 8), (1, 6), (1, 7), (1, 8)]
    failures = [(one.slot, what.what, what.where) for one, what in came if isinstance(what, Failure)]
    assert failures == [(0, "it does not grant that", "partition session-0, broker")]


@pytest.mark.parametrize(("confirmed_s", "left_s"), [(0.3, 60.0), (60.0, 0.6)], ids=["in-all", "before-the-deadline"])
def test_sessions_wait_together_for_the_last_answers(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, confirmed_s: float, left_s: float
) -> None:
    """Of a broker that answers none: a lane with many sessions would be killed before its receipts."""
    monkeypatch.setattr(source_module, "_CONFIRMED_S", confirmed_s)
    given = options(filters=["a", "b", "c", "d"], sessions=4)
    broker.kept = {given.client_id(n) for n in range(4)}
    broker.packets = {one: deque([Packet(b"t", b"", 1, 1)]) for one in broker.kept}
    source = MqttSource(given)
    ranges = [planned(n, SessionState((one,), granted=((one, 1),))) for n, one in enumerate(given.filters)]
    for one, batch in source.follow(ranges, limit(0.2, left_s), idle_timeout_s=0.1):
        assert isinstance(batch, SourceBatch)
        source.acknowledge(one, batch.next_offset)
    began = time.monotonic()
    for one in ranges:
        source.evidence(one, 6)
    assert time.monotonic() - began < 0.6


def test_that_a_quiet_session_is_subscribed_is_told_beside_a_busy_one(broker: Broker) -> None:
    assert followed(broker, SessionState(), "b", "c") == [SessionState(("c",), granted=(("c", 1),))]


def test_it_is_told_also_when_the_busy_one_takes_all_of_the_quantum(broker: Broker) -> None:
    assert followed(broker, SessionState(), "b", "c", quantum_s=0.2, busy_s=0.3) == [
        SessionState(("c",), granted=(("c", 1),))
    ]


def test_a_session_that_leaves_is_empty_after_silence_of_its_own(broker: Broker) -> None:
    assert followed(broker, SessionState(("c",)), "b") == [SessionState()]
    assert followed(broker, SessionState(("c",)), "b", quantum_s=0.1, busy_s=0.0) == [], "not without"


def test_a_session_that_leaves_is_not_empty_because_connecting_took_all_of_the_quantum(broker: Broker) -> None:
    assert followed(broker, SessionState(("c",)), "b", quantum_s=-1.0) == []


ONE = SessionState(("a",), granted=(("a", 1),))


def quantum(source: MqttSource, wanted: Range, *, tells: bool) -> Range:
    """What is planned when this one is settled. A sink that `tells` which records it has lets them be acknowledged."""
    end = wanted.begin
    for _, batch in source.follow([wanted], limit(0.3), idle_timeout_s=0.05):
        assert isinstance(batch, SourceBatch)
        end = batch.next_offset
        source.acknowledge(wanted, end if tells else wanted.begin)
    evidence = wanted.evidence if end == wanted.begin else json.loads(json.dumps(source.evidence(wanted, end)))
    return replace(wanted, begin=end, evidence=evidence)


def messages(first: int, count: int) -> deque[Packet]:
    return deque(Packet(b"a", b"%d" % n, 1, n) for n in range(first, first + count))


@pytest.mark.parametrize("tells", [True, False])
def test_a_session_stays_connected_from_one_quantum_to_the_next(broker: Broker, tells: bool) -> None:
    """What was not acknowledged before it was settled is acknowledged then, and does not have to be sent again."""
    given = options()
    broker.kept = {given.client_id(0)}
    source, wanted = MqttSource(given), planned(0, ONE)
    for first in (1, 4, 7):
        broker.packets[given.client_id(0)] = messages(first, 3)
        wanted = quantum(source, wanted, tells=tells)
    assert wanted.begin == 5 + 9 + 2, "with each acknowledgement something is settled"
    assert broker.acknowledged == list(range(1, 10) if tells else range(1, 7))
    wanted = quantum(source, wanted, tells=tells)
    assert broker.acknowledged == list(range(1, 10))
    assert broker.said == [f"connect {given.client_id(0)}", "subscribe a"]
    assert SessionState.of(wanted.evidence).subscribed == ("a",)


def test_a_session_stays_connected_while_the_answer_to_its_subscription_is_behind_messages(broker: Broker) -> None:
    """Where it was subscribed before. What the answer says counts when it comes."""
    given = options()
    broker.kept, broker.answers_at_once = {given.client_id(0)}, False
    source, wanted = MqttSource(given), planned(0, SessionState(("a",)))
    for first in (1, 4, 7):
        broker.packets[given.client_id(0)] = messages(first, 3)
        broker.asked = first < 7
        wanted = quantum(source, wanted, tells=True)
        assert SessionState.of(wanted.evidence).granted == (() if broker.asked else (("a", 1),))
    assert broker.said == [f"connect {given.client_id(0)}", "subscribe a"]


@pytest.mark.parametrize("happens", ["ended", "begin", "entries", "learned"])
def test_a_session_is_connected_again_when_something_else_has_happened(broker: Broker, happens: str) -> None:
    """The broker then sends again what was not acknowledged."""
    given = options()
    broker.kept = {given.client_id(0)}
    source = MqttSource(given)
    broker.packets[given.client_id(0)] = messages(1, 3)
    wanted = quantum(source, planned(0, ONE), tells=False)
    standing = SessionState.of(wanted.evidence)
    if happens == "ended":
        broker.sessions[0].open = False
    elif happens == "begin":
        wanted = replace(wanted, begin=wanted.begin - 1)
    elif happens == "entries":
        wanted = replace(wanted, evidence=replace(standing, entries=standing.entries[:-1]).evidence())
    else:
        wanted = replace(wanted, evidence=replace(standing, counts_up=True).evidence())
    quantum(source, wanted, tells=False)
    assert broker.said == [f"connect {given.client_id(0)}", "subscribe a"] * 2
    assert broker.acknowledged == []
    assert [one.open for one in broker.sessions] == [False, True]


@dataclass
class Lane:
    """Follows one session, quantum by quantum, and takes so many numbers in each; a sink that `tells` which records it
    has lets them be acknowledged. `values` has what was written, by number."""

    source: MqttSource
    wanted: Range
    tells: bool
    values: dict[int, bytes] = field(default_factory=dict)
    doubtful: list[int] = field(default_factory=list)

    def quantum(self, most: int) -> None:
        last, end = self.wanted.begin + most, self.wanted.begin
        with closing(self.source.follow([self.wanted], limit(0.1), idle_timeout_s=0.02)) as batches:
            for _, batch in batches:
                assert isinstance(batch, SourceBatch)
                end = min(batch.next_offset, last)
                part = part_before(batch, end)
                numbers = part.records.column("offset").to_pylist()
                self.values |= dict(zip(numbers, part.records.column("value").to_pylist(), strict=True))
                self.doubtful += part.doubtful
                if end > self.wanted.begin:
                    self.source.acknowledge(self.wanted, end if self.tells else self.wanted.begin)
                if end < batch.next_offset:
                    break
        if end > self.wanted.begin:
            evidence = json.loads(json.dumps(self.source.evidence(self.wanted, end)))
            self.wanted = replace(self.wanted, begin=end, evidence=evidence)


MIXED = [
    Packet(b"a", b"again", 1, 1, dup=True),
    Packet(b"a", b"zero", 0),
    Packet(b"a", b"again, too", 1, 2, dup=True),
    Packet(b"a", b"of id 3 before", 1, 3, dup=True),
    *(Packet(b"a", b"%d" % n, 1, n) for n in range(4, 9)),
    Packet(b"a", b"zero, too", 0),
]
"""What came before and is not acknowledged, and what is new; the entry of id 3 may be acknowledged."""


@pytest.mark.parametrize("most", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("tells", [True, False])
def test_what_a_quantum_leaves_of_a_batch_comes_first_in_the_next_one(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, tells: bool, most: int
) -> None:
    """Over the same connection, under its number, as it was judged. Only what is written is acknowledged, and in order;
    wherever a quantum ends, what is settled says what another connection would need."""
    monkeypatch.setattr(source_module, "_CONFIRMED_S", 0.0)
    given = options()
    broker.kept, broker.at_once = {given.client_id(0)}, len(MIXED)
    broker.packets[given.client_id(0)] = deque(MIXED)
    entries = tuple(UnconfirmedRecord(n, trace_of(n + 1, b"a", MIXED[2 * n].payload)) for n in range(2))
    sent = UnconfirmedRecord(2, trace_of(3, b"a", b"of id 3 before"), sent=True)
    lane = Lane(MqttSource(given), planned(0, replace(ONE, entries=(*entries, sent))), tells)
    for _ in range(2 + 12 // most):
        begin = lane.wanted.begin
        lane.quantum(most)
        durable = lane.wanted.begin if tells else begin
        assert broker.acknowledged == [1, 2, 3, 4, 5, 6, 7, 8][: len(broker.acknowledged)]
        assert all(one + 5 < durable for one in broker.acknowledged[2:]), "the first two are there already"
        unconfirmed = {one.arrival for one in SessionState.of(lane.wanted.evidence).entries}
        assert {number for number in lane.values if MIXED[number - 5].qos} <= unconfirmed, "no ping is answered"
    assert [lane.values[number] for number in sorted(lane.values)] == [
        one.payload for one in MIXED if one.payload not in (b"again", b"again, too")
    ]
    assert (lane.doubtful, broker.acknowledged) == ([8], [1, 2, 3, 4, 5, 6, 7, 8])
    assert broker.said == [f"connect {given.client_id(0)}", "subscribe a"]


def test_sessions_are_left_when_nobody_reads_them_any_longer(broker: Broker) -> None:
    given = options()
    broker.kept = {given.client_id(0)}
    with ExitStack() as resources:
        source = MqttSource(given, resources)
        quantum(source, planned(0, ONE), tells=True)
        assert [one.open for one in broker.sessions] == [True]
    assert [one.open for one in broker.sessions] == [False]
