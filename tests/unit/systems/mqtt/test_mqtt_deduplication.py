"""Which packets count as delivered before, and when acknowledgements are due."""

from __future__ import annotations

import pytest

from connect_core.systems.mqtt.deduplication import (
    Deduplication,
    PacketVerdict,
    UnconfirmedRecord,
    doubtful,
    is_doubtful,
    left_by,
    packet_id_of,
    trace_of,
)
from connect_core.systems.mqtt.packets import Packet
from connect_core.systems.mqtt.session_state import Arrival, Reception, SessionState
from tests.unit.systems.mqtt.bridge_model import WINDOW, Bridge, perform
from tests.unit.systems.mqtt.broker_model import BrokerModel


def packet(packet_id: int, payload: bytes = b"x", *, qos: int = 1, dup: bool = False) -> Packet:
    return Packet(b"t", payload, qos, packet_id, dup)


def test_acknowledgements_go_in_the_order_of_arrival() -> None:
    again = trace_of(3, b"t", b"x")
    reception = Reception(10, Deduplication([UnconfirmedRecord(4, again)], counts_up=True), 100)
    records = reception.take([packet(1, dup=True), packet(0, qos=0), packet(3, dup=True), packet(4)])
    assert [one.number for one in records] == [10, 11, 13]
    assert (reception.next, reception.due(), reception.unacknowledged()) == (14, [], 3)
    reception.durable(11)
    assert reception.due() == [1, 3]
    reception.durable(14)
    assert reception.due() == [4]


def test_every_number_is_a_record_or_one_that_was_dropped() -> None:
    """What came again has a number and no record: by it the receipt accounts for it."""
    before = Reception(10, Deduplication((), counts_up=True), 4096)
    before.take([packet(1), packet(2, b"y")])
    after = Reception(12, Deduplication(before.entries(12), counts_up=True), 4096)
    arrivals = after.take([packet(1, dup=True), packet(2, b"y", dup=True), packet(3), packet(0, qos=0)])
    assert ([one.number for one in arrivals], [*after.dropped()], after.next) == ([14, 15], [12, 13], 16)
    after.take([packet(4)])
    assert [*after.dropped()] == []


def test_an_answer_confirms_what_was_sent_before_its_ping() -> None:
    reception = Reception(0, Deduplication(), 100)
    reception.take([packet(1), packet(2)])
    reception.durable(1)
    assert (reception.due(), reception.entries(2)[0].sent) == ([1], True)
    reception.pinged()
    reception.durable(2)
    assert reception.due() == [2]
    reception.answered()
    assert [(one.arrival, one.sent) for one in reception.entries(2) if not one.confirmed] == [(1, True)]
    assert [one for one in reception.entries(1) if not one.confirmed] == []
    assert not reception.awaits_answer()


@pytest.mark.parametrize("counts_up", [True, False])
def test_the_verdicts(counts_up: bool) -> None:
    trace, other = trace_of(5, b"t", b"x"), trace_of(5, b"t", b"y")

    def judged(entry: UnconfirmedRecord, seen: int, *, dup: bool) -> PacketVerdict:
        return Deduplication([entry], counts_up=counts_up).judge(seen, dup=dup)

    assert judged(UnconfirmedRecord(1, trace), trace, dup=True) is PacketVerdict.AGAIN
    assert judged(UnconfirmedRecord(1, doubtful(trace)), trace, dup=True) is PacketVerdict.AGAIN
    again = judged(UnconfirmedRecord(1, trace), trace, dup=False)
    assert again is PacketVerdict.DOUBTFUL
    acknowledged = judged(UnconfirmedRecord(1, trace, sent=True), trace, dup=False)
    assert acknowledged is PacketVerdict.DOUBTFUL
    assert judged(UnconfirmedRecord(1, trace, sent=True), other, dup=False) is (
        PacketVerdict.DOUBTFUL if counts_up else PacketVerdict.NEW
    )
    assert judged(UnconfirmedRecord(1, trace), other, dup=True) is PacketVerdict.NEW
    sent = judged(UnconfirmedRecord(1, trace, sent=True), trace, dup=True)
    assert sent is (PacketVerdict.AGAIN if counts_up else PacketVerdict.DOUBTFUL)
    confirmed = judged(UnconfirmedRecord(1, trace, sent=True, confirmed=True), trace, dup=True)
    assert confirmed is PacketVerdict.DOUBTFUL
    elsewhere = judged(UnconfirmedRecord(1, trace), trace_of(6, b"t", b"x"), dup=True)
    assert elsewhere is (PacketVerdict.NEW if counts_up else PacketVerdict.DOUBTFUL)
    assert judged(UnconfirmedRecord(1, trace), trace_of(6, b"t", b"y"), dup=True) is PacketVerdict.NEW


def test_where_another_id_comes_first_ids_tell_nothing() -> None:
    """Of 20 messages that say the same the first 10 were acknowledged: the others come under the ids of those, and what
    came behind them meanwhile under theirs."""
    entries = [UnconfirmedRecord(n, trace_of(n + 1, b"t", b"x")) for n in range(10, 20)]
    reception = Reception(20, Deduplication(entries), 100)
    come = reception.take([packet(n + 1, dup=True) for n in range(20)])
    assert [one.doubtful for one in come] == [True] * 20
    after = Reception(40, Deduplication(reception.entries(40)), 100)
    assert after.take([packet(n + 1, dup=True) for n in range(20)]) == [], "it goes on: they are acknowledged"


def test_behind_what_may_have_been_acknowledged_ids_tell_nothing() -> None:
    """The first five may have been; then the ids of the others are those of what came behind them."""
    entries = [UnconfirmedRecord(n, trace_of(n + 1, b"t", b"x"), sent=n < 5) for n in range(10)]
    come = Reception(10, Deduplication(entries), 100).take([packet(n + 1, dup=True) for n in range(10)])
    assert [one.doubtful for one in come] == [True] * 10


def test_behind_what_comes_for_the_first_time_nothing_is_sent_again() -> None:
    """A broker that lost count has given out an old id; what it marks as sent again behind it may be new as well."""
    first, second = trace_of(5, b"t", b"x"), trace_of(6, b"t", b"y")
    met = Deduplication([UnconfirmedRecord(1, first), UnconfirmedRecord(2, second)], counts_up=True)
    assert met.judge(first, dup=False) is PacketVerdict.DOUBTFUL
    assert met.judge(second, dup=True) is PacketVerdict.DOUBTFUL


@pytest.mark.parametrize(("ids", "counts_up"), [([40], False), ([41], True), ([1, 41], False)])
def test_a_first_id_beyond_what_can_be_under_way_shows_that_ids_count_up(ids: list[int], counts_up: bool) -> None:
    """Not a later one: a connection may count from 1."""
    reception = Reception(0, Deduplication(), 20)
    reception.take([packet(packet_id) for packet_id in ids])
    assert reception.counts_up == counts_up


def test_ids_come_round_again() -> None:
    """More than 65,535 packets in one session."""
    broker = BrokerModel(counts_up=True, window=WINDOW, last_id=65_530)
    bridge = Bridge(broker, tells=True, standing=SessionState(("t",), counts_up=True))
    assert perform(bridge, [("publish", 9), ("receive", 7), ("die", 0)], b"the same") == [*range(9)]
    assert [message for _, _, message in bridge.target] == list(range(9))


def test_a_trace_holds_an_id_and_tells_contents_apart() -> None:
    traces = {trace_of(65_535, b"t", payload) for payload in (b"", b"a", b"b")} | {trace_of(65_535, b"ta", b"")}
    assert len(traces) == 4
    assert all(packet_id_of(one) == 65_535 and 0 < one < 2**63 and not is_doubtful(one) for one in traces)
    assert {packet_id_of(doubtful(one)) for one in traces} == {65_535}


def test_a_standing_is_stored_as_it_is() -> None:
    entries = (
        UnconfirmedRecord(7, trace_of(1, b"t", b"x"), sent=True),
        UnconfirmedRecord(9, doubtful(trace_of(2, b"t", b"")), sent=False),
    )
    entries = (*entries, UnconfirmedRecord(11, trace_of(3, b"t", b"y"), sent=True, confirmed=True))
    for standing in (SessionState(), SessionState(("a/#", "b"), entries, counts_up=True)):
        assert SessionState.of(standing.evidence()) == standing
    assert SessionState.of({}) == SessionState()


def test_an_arrival_of_qos_0_has_no_trace() -> None:
    reception = Reception(3, Deduplication(), 10)
    assert reception.take([packet(0, qos=0)]) == [Arrival(3, packet(0, qos=0), 0, False)]
    assert (reception.unacknowledged(), reception.entries(9)) == (0, ())


def test_of_a_broker_that_counts_up_it_is_known_how_far_it_came() -> None:
    """What it sends again of that, it has forgotten that it was acknowledged, or it counts again what it has counted
    before: nobody can tell, and nothing is dropped."""
    reception = Reception(0, Deduplication(counts_up=True), 100)
    reception.take([packet(n + 1) for n in range(300)])
    reception.durable(300)
    reception.due()
    reception.pinged()
    reception.answered()
    assert [one.arrival for one in reception.entries(300)] == [299]
    after = Reception(300, Deduplication(reception.entries(300), counts_up=True), 100)
    records = after.take([packet(300, dup=True), packet(1, dup=True), packet(301, dup=True)])
    assert [(one.packet.packet_id, one.doubtful) for one in records] == [(300, True), (1, True), (301, False)]


def test_what_is_sent_again_from_before_all_that_is_known_is_doubtful() -> None:
    unconfirmed = Deduplication([UnconfirmedRecord(9, trace_of(500, b"t", b"x"), sent=True)], counts_up=True)
    assert unconfirmed.judge(trace_of(3, b"t", b"x"), dup=True) is PacketVerdict.DOUBTFUL
    assert unconfirmed.judge(trace_of(501, b"t", b"x"), dup=True) is PacketVerdict.NEW
    assert unconfirmed.judge(trace_of(3, b"t", b"x"), dup=False) is PacketVerdict.DOUBTFUL
    assert unconfirmed.judge(trace_of(501, b"t", b"x"), dup=False) is PacketVerdict.NEW


@pytest.mark.parametrize("counts_up", [True, False])
def test_what_has_not_come_again_may_be_with_another_member(counts_up: bool) -> None:
    """Of a shared subscription: two of three come again, a new one behind them; the third counts, once."""
    entries = [UnconfirmedRecord(n, trace_of(n, b"t", b"x")) for n in (1, 2, 3)]
    reception = Reception(10, Deduplication(entries, counts_up=counts_up), 100)
    reception.take([packet(1, dup=True), packet(2, dup=True)])
    assert not reception.new_seen
    reception.take([packet(7)])
    assert (reception.new_seen, reception.not_come_again(12), reception.not_come_again(12)) == (True, 1, 0)
    assert [one.arrival for one in reception.entries(12) if not one.confirmed] == [1, 2, 3], "until that is settled"
    assert [one.arrival for one in reception.entries(13) if not one.confirmed] == [1, 2, 12]


def test_entries_do_not_heap_up() -> None:
    """A broker that answers no ping in time leaves entries; the next connection shows that they were acknowledged."""
    entries: tuple[UnconfirmedRecord, ...] = ()
    for quantum in range(20):
        begin = quantum * 100
        reception = Reception(begin, Deduplication(entries), 1000)
        reception.take([packet(n + 1, b"%d" % (begin + n)) for n in range(100)])
        reception.durable(begin + 100)
        reception.due()
        entries = reception.entries(begin + 100)
    assert len(entries) == 100


def test_an_id_given_anew_in_a_shared_subscription_does_not_show_that_its_acknowledgement_arrived() -> None:
    entries = [UnconfirmedRecord(number, trace_of(number + 1, b"t", b"x"), sent=True) for number in range(3)]
    reception = Reception(3, Deduplication(entries), WINDOW, shares=True)
    reception.take([Packet(b"t", b"x", 1, packet_id) for packet_id in (1, 2, 3)])
    assert (reception.not_come_again(3), reception.not_come_again(3)) == (3, 0)


def test_an_id_that_comes_twice_over_one_connection_is_not_taken_for_the_first() -> None:
    """Behind a backlog longer than there are ids, of messages that say the same: Mosquitto may call all of it DUP."""
    reception = Reception(0, Deduplication(counts_up=True), WINDOW)
    first = reception.take([packet(5, dup=True)])
    reception.durable(1)
    reception.due()
    reception.pinged()
    reception.answered()
    second = reception.take([packet(5, dup=True)])
    assert [one.doubtful for one in (*first, *second)] == [False, True]
    written = Deduplication([UnconfirmedRecord(0, trace_of(5, b"t", b"x"))], counts_up=True)
    reception = Reception(1, written, WINDOW)
    assert reception.take([packet(5, dup=True)]) == []
    assert [one.doubtful for one in reception.take([packet(5, dup=True)])] == [True]


def test_of_ids_that_count_up_what_comes_behind_something_new_is_not_sent_again() -> None:
    """However many come again before that: a broker may have fallen behind by more than half of all ids."""
    entries = [UnconfirmedRecord(number, trace_of(number + 1, b"t", b"x"), sent=True) for number in range(50_000)]
    reception = Reception(50_000, Deduplication(entries, counts_up=True), WINDOW)
    assert reception.take([packet(number + 1, dup=True) for number in range(100, 50_000)]) == []
    come = reception.take([packet(50_001, dup=True), packet(7, dup=True), packet(8)])
    assert [one.doubtful for one in come] == [False, True, False]


def test_after_an_attempt_that_died_as_much_is_known_as_there_are_ids() -> None:
    found = [(number, trace_of(number % 65_535 + 1, b"t", b"x")) for number in range(100_000)]
    left = left_by([UnconfirmedRecord(-1, trace_of(9, b"t", b"x"))], found)
    assert (len(left), left[0].arrival, left[-1].arrival) == (65_535, 34_465, 99_999)
    reception = Reception(100_000, Deduplication(left, counts_up=True), WINDOW)
    assert reception.take([packet_of(trace) for _, trace in found[40_000:]]) == []


def packet_of(trace: int) -> Packet:
    return packet(packet_id_of(trace), dup=True)


@pytest.mark.parametrize("sent", [False, True], ids=["not acknowledged", "acknowledged"])
def test_what_a_broker_has_forgotten_that_it_sent_is_counted(sent: bool) -> None:
    """HiveMQ CE, killed, comes back without the last of what it had noted: three of five come again, and the others as
    new ones. Of three that say the same two may be there already."""
    entries = [UnconfirmedRecord(number, trace_of(number, b"t", b"x"), sent=sent) for number in range(1, 6)]
    reception = Reception(6, Deduplication(entries))
    arrivals = reception.take([packet(number, dup=True) for number in (1, 2, 3)])
    assert [one.doubtful for one in arrivals] == ([True] * 3 if sent else [])
    arrivals = reception.take([packet(4), packet(5, b"y"), packet(6), packet(7)])
    assert [one.doubtful for one in arrivals] == [True, False, True, False]


def test_a_broker_may_have_forgotten_all_that_is_not_confirmed() -> None:
    """Acknowledgements were sent, and nothing shows whether they arrived: the new messages that say the same are
    doubtful, each record once."""
    entries = [UnconfirmedRecord(number, trace_of(number, b"t", b"x"), sent=True) for number in (1, 2, 3)]
    arrivals = Reception(6, Deduplication(entries)).take([packet(1, b"y"), *map(packet, (2, 3, 4, 5))])
    assert [one.doubtful for one in arrivals] == [False, True, True, True, False]


@pytest.mark.parametrize(("later_s", "doubtful"), [(0.1, True), (6.0, False)])
def test_a_broker_that_is_killed_may_have_forgotten_what_it_confirmed_just_before(
    later_s: float, doubtful: bool
) -> None:
    """HiveMQ CE answers a ping before it has stored the acknowledgements that it had before that."""
    now = [0.0]
    reception = Reception(0, Deduplication(clock=lambda: now[0]))
    reception.take([packet(1), packet(2), packet(3)])
    reception.durable(3)
    reception.due()
    reception.pinged()
    reception.answered()
    now[0] = later_s
    entries = reception.entries(3)
    assert not any(not one.confirmed for one in entries), "nothing is owed"
    after = Reception(3, Deduplication(entries, clock=lambda: now[0]))
    assert after.entries(3) == entries
    arrivals = after.take([packet(1, dup=True), packet(2, b"y", dup=True), packet(3)])
    assert [one.doubtful for one in arrivals] == [doubtful, False, False]


def test_what_was_confirmed_lately_does_not_hinder_what_was_not_acknowledged() -> None:
    entries = [
        UnconfirmedRecord(1, trace_of(1, b"t", b"x"), confirmed=True),
        UnconfirmedRecord(2, trace_of(2, b"t", b"x")),
    ]
    assert Reception(3, Deduplication(entries)).take([packet(2, dup=True)]) == []


def test_after_an_attempt_that_died_what_was_confirmed_before_it_is_doubtful_as_well() -> None:
    settled = [UnconfirmedRecord(1, trace_of(1, b"t", b"x"), confirmed=True)]
    arrivals = Reception(2, Deduplication(left_by(settled, []))).take([packet(1, dup=True), packet(2)])
    assert [one.doubtful for one in arrivals] == [True, False]
