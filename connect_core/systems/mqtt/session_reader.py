"""One session at work, in a worker: packets become batches, what is durable is acknowledged. It may stay connected from
one lane to the next."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

from connect_core.errors import ConfigError, Retriable, WaybillError
from connect_core.sdk.batches import empty_records
from connect_core.sdk.cutting import part_behind
from connect_core.sdk.values import Json, Range, SourceBatch
from connect_core.systems.mqtt.copies import Copies
from connect_core.systems.mqtt.deduplication import Deduplication
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.records import record_batch, sorted_out
from connect_core.systems.mqtt.rocketmq_mqtt_deduplication import RocketmqMqttDeduplication
from connect_core.systems.mqtt.session import Session, is_of_another_broker
from connect_core.systems.mqtt.session_state import Reception, SessionState
from connect_core.systems.topic_filters import is_shared


class SessionReader:
    """Connects when it is made; `filters` is what this session is to be subscribed to, nothing when it has to leave.
    `client_ids` are the session's and its witness's. Raises Retriable when the broker does not know the session any
    more: the next look of the driver says so."""

    def __init__(
        self, options: MqttSourceOptions, wanted: Range, client_ids: tuple[str, str], filters: tuple[str, ...]
    ) -> None:
        self._options, self._filters = options, filters
        self._where = f"partition {wanted.partition.key}"
        self._standing = self._told_last = standing = _standing_at(wanted)
        client_id, witness_id = client_ids
        self.session = Session(options, client_id)
        kept = self.session.kept
        if standing.subscribed and not kept and options.keeps_its_word:
            self.session.give_up()  # first: beside a witness that is there it would pass for the old one
            Session(self.session.there, witness_id).give_up()
            raise Retriable(
                "The broker has lost the session",
                where=self._where,
                next_step="The next run reports what was lost",
            )
        asks = options.failover and options.keeps_its_word
        if standing.subscribed and asks and is_of_another_broker(self.session, witness_id):
            self.session.close()
            raise Retriable(
                "Another broker answers than the one that has the session: it has one of before",
                where=f"{self._where}, {self.session.there.where}",
                next_step="Nothing was read from it; the next run reports what was lost. The addresses in failover "
                "have to be those of one cluster whose nodes share sessions",
            )
        self._shares = any(map(is_shared, (*filters, *standing.subscribed)))
        self._learns = learns = options.packet_ids == "detect" and options.keeps_its_word
        unconfirmed = _known(options, standing, kept=kept)
        copies = Copies(filters)
        self._reception = Reception(wanted.begin, unconfirmed, learns=learns, shares=self._shares, copies=copies)
        self._told_at = self._taken_to = wanted.begin
        self._given: SourceBatch | None = None
        """What was given last, as long as not all of it is known to be taken."""
        self._answers = 0
        self._spoke_at = time.monotonic()
        self._emptied = False
        self.owes = False
        """Whether there is something to acknowledge, or acknowledged, of which nothing that is settled tells."""
        self._subscribed = tuple(dict.fromkeys((*standing.subscribed, *filters)))
        """What the session may be subscribed to; until the broker has answered, to what it was and what it is to be."""
        unchanged = standing.subscribed == (filters or standing.subscribed)
        self._told = unchanged and not standing.not_granted(filters, options.qos)
        """Whether it is settled what the session is subscribed to, or comes to be with what this quantum brings."""
        self._answered = False
        self._refused: WaybillError | None = None
        """What the broker does not do of what it was asked, when it says so behind messages."""
        self._leaving = tuple(one for one in standing.subscribed if one not in filters)
        """What is to be unsubscribed when all that is asked for is granted."""
        self._granted = tuple(one for one in standing.granted if kept and one[0] in filters)
        try:
            self.session.grants.require(options)  # first: an answer that grants less would change the subscription
            self._subscribe(standing)
            self._hear(waits=True)
        except WaybillError:
            self.session.close()  # the others go on: nobody would read what the broker sends
            raise

    def _subscribe(self, standing: SessionState) -> None:
        """MQTT 5 does not send retained messages again to who has the subscription: to subscribe once more is certain.
        3.1.1 does, so that only what is not known to be granted is asked for: the broker may have refused it in an
        answer that nobody has read. What is left out goes behind that: what comes to both filters between is lost
        else."""
        again = self._options.protocol == "5" or not self.session.kept
        asked = self._filters if again else standing.not_granted(self._filters, self._options.qos)
        if asked:
            self.session.subscribe(asked, self._options.qos)

    def _hear(self, *, waits: bool = False) -> None:
        if self._answered or self._refused or not self.session.answered():
            return
        leaving, self._leaving = self._leaving, ()
        if leaving and self.session.open:
            self.session.unsubscribe(leaving, waits=waits)
        if self.session.answered():
            self._answered = True
            self._subscribed = self._filters or self._standing.subscribed
            self._granted = tuple((one, self._options.qos) for one in self._filters)

    def goes_on(self, wanted: Range) -> bool:
        """Whether the next quantum is to begin over this connection: it begins where what came over it is settled, as
        it was told, and nothing else has happened to the position. What the lane has not taken is given again
        (`first`)."""
        self.session.read()  # or it would not be known that the connection has ended
        with suppress(WaybillError):  # it comes again over the next one
            self._hear()
        standing, reception = _standing_at(wanted), self._reception
        settled = (wanted.begin, standing.entries) == (self._told_at, self._told_last.entries)
        settled = settled and wanted.begin >= self._taken_to
        subscribed = self._subscribed == self._filters == standing.subscribed
        learned = self._options.counts_up(standing.counts_up) != reception.counts_up
        if not (settled and subscribed and self.session.open) or self._refused or self._emptied or learned:
            return False
        self._standing = self._told_last = standing
        reception.settled(wanted.begin)
        self._given = part_behind(self._given, wanted.begin) if self._given and wanted.begin < reception.next else None
        self._taken_to = wanted.begin
        self.owes = any(not one.confirmed for one in standing.entries)
        return True

    def first(self) -> SourceBatch | None:
        """What a quantum begins with over a connection that goes on: the rest of what came, or else a number without a
        packet where something is to be acknowledged. What is settled is acknowledged only behind something else of the
        quantum. Else an acknowledgement would be sent of which nothing tells when the quantum ends without a record, or
        dies: a broker may give that id to another message, which would be taken for this one."""
        owes, self.owes = self.owes, False
        if self._given is None and owes:
            return self._without_packet()
        return self._given

    def taken(self) -> None:
        """The lane has taken all that was given."""
        self._given, self._taken_to = None, self._reception.next
        self.acknowledge()

    def _give(self, batch: SourceBatch) -> SourceBatch:
        self._given = batch
        return batch

    def _without_packet(self, doubtful: tuple[int, ...] = ()) -> SourceBatch:
        """A number that no packet has, so that something is settled."""
        number, behind = self._reception.next, self._reception.passed_over()
        return self._give(SourceBatch(empty_records(), behind, ((number, behind),), doubtful=doubtful))

    def batch(self) -> SourceBatch | None:
        """What has come; None when nothing has. The numbers of packets that are there already are holes."""
        packets = self.session.receive()
        try:
            self._hear()
        except ConfigError:
            raise  # it concerns all
        except WaybillError as error:
            self._refused = error  # what it has of before is taken on, and the others are followed
        self._confirm()
        self._keep_alive()
        if not packets:
            return None
        self._told = True
        first = self._reception.next
        arrivals, passed = self._reception.take(packets), tuple[int, ...]()
        if self._options.max_hops:
            arrivals, passed = sorted_out(arrivals, self._options.uid, self._options.max_hops)
        records, rejects = record_batch(arrivals)
        elsewhere = self._elsewhere(first) if self._reception.new_seen else ()
        return self._give(
            SourceBatch(
                records,
                self._reception.next,
                tuple((number, number + 1) for number in self._reception.dropped()),
                rejects,
                passed,
                doubtful=(*elsewhere, *(one.number for one in arrivals if one.doubtful)),
            )
        )

    def _elsewhere(self, number: int) -> tuple[int, ...]:
        """The number once for each record that another member of a shared subscription may deliver again."""
        return (number,) * self._reception.not_come_again(number) if self._shares else ()

    def durable(self, end: int) -> None:
        self._reception.durable(end)
        self.acknowledge()

    def acknowledge(self) -> None:
        """Sends what is due, in the order of arrival."""
        if self.session.open and (packet_ids := self._reception.due()):
            self.session.acknowledge(packet_ids)
            self._reception.pinged()

    def _keep_alive(self) -> None:
        """A broker that wants to hear of its clients hears of this one twice as often (MQTT 5, section 3.2.2.3.14)."""
        limit_s, now = self.session.grants.keep_alive_s, time.monotonic()
        if limit_s and self.session.open and now - self._spoke_at > limit_s / 2:
            self._spoke_at = now
            self.session.acknowledge(())
            self._reception.pinged()

    def is_full(self) -> bool:
        """Whether the broker waits for acknowledgements that this quantum does not give."""
        return self._reception.unacknowledged() >= self._options.receive_maximum

    def remark(self, *, silent: bool) -> SourceBatch | None:
        """What is to be settled though no record tells of it: that the session is subscribed; and when it is `silent`,
        so that nothing comes any more, that it has to leave and is empty, so that it is given up when this is settled,
        and that records may be with another member. Nothing when the connection has ended."""
        if not self.session.open:
            return None
        elsewhere = self._elsewhere(self._reception.next) if silent else ()
        leaves = silent and self._answered and not (self._filters or self._emptied or self._awaits_broker())
        if self._told and not leaves and not elsewhere:
            return None
        self._told = True
        if leaves:
            self._emptied, self._subscribed = True, ()
        return self._without_packet(elsewhere)

    def _awaits_broker(self) -> bool:
        """Whether silence does not show that the session is empty: the broker has to hear or to answer something."""
        return bool(self._reception.unacknowledged()) or self._reception.awaits_answer()

    def lost(self) -> WaybillError | None:
        """What has ended the connection, or what the broker has refused; None while nothing is wrong."""
        ended = self._refused or self.session.lost()
        if ended is not None:
            ended.where = f"{self._where}, {ended.where}"
        return ended

    def evidence(self, end: int, until: float) -> Json:
        """How the session stands at `end`, as well as can be known at the moment `until`. What is there by now is
        looked at also when that has passed."""
        self._take_answers(0.0)
        while self._reception.awaits_answer() and self.session.open and time.monotonic() < until:
            if not self._take_answers(0.05):
                break
        reception = self._reception
        standing = replace(
            self._standing,
            subscribed=self._subscribed,
            entries=reception.entries(end),
            counts_up=reception.counts_up if self._learns else self._standing.counts_up,
            granted=self._granted,
            asks=(),
        )
        self._told_at, self._told_last = end, standing
        return standing.evidence()

    def _take_answers(self, limit_s: float) -> bool:
        """False when answers are behind more messages than the next quantum takes at once."""
        there = self.session.listen(limit_s)
        self._confirm()
        return there

    def _confirm(self) -> None:
        while self._answers < self.session.answers:
            self._answers += 1
            self._reception.answered()


def _known(
    options: MqttSourceOptions, standing: SessionState, *, kept: bool
) -> Deduplication | RocketmqMqttDeduplication:
    """What is in the target and may come again."""
    if not options.keeps_its_word:
        return RocketmqMqttDeduplication(standing.entries)
    return Deduplication(standing.entries if kept else (), counts_up=options.counts_up(standing.counts_up))


def _standing_at(wanted: Range) -> SessionState:
    return SessionState.of(wanted.evidence).numbered_below(wanted.begin)
