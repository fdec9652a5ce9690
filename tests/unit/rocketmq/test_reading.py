from __future__ import annotations

import time

import pytest

from connect_core.errors import OffsetGone, WireFormatError
from connect_core.rocketmq import Client, MissingRange, Queue, backoff, wait_for_any
from connect_core.rocketmq.errors import BrokerBusy, BrokerFault, NoAnswer, TopicMissing
from connect_core.rocketmq.reading import HOLE, QueueSlice
from connect_core.rocketmq.testing import Handler, Link, ScriptedServer, cut, late, reply, silence
from connect_core.rocketmq.testing_queues import MemoryQueues
from connect_core.rocketmq.wire.commands import PullResponse, RequestCode
from connect_core.rocketmq.wire.fields import to_fields
from connect_core.rocketmq.wire.header import Command
from tests.unit.rocketmq.conftest import TOPIC

QUEUE = Queue(TOPIC, "broker-a", 0)
PULL = RequestCode.PULL_MESSAGE


@pytest.fixture
def queues(server: ScriptedServer) -> MemoryQueues:
    made = MemoryQueues(cap=4)
    made.attach(server)
    made.append(TOPIC, 0, *(str(number).encode() for number in range(10)))
    return made


def _soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


def _status(code: int, remark: str, next_offset: int) -> Handler:
    return reply(code, remark=remark, fields=to_fields(PullResponse(next_offset, 0, 10)))


def _offsets(slices: list[QueueSlice]) -> list[int]:
    return [message.queue_offset for part in slices for message in part.messages]


@pytest.mark.parametrize(("begin", "end", "cuts"), [(0, 10, [4, 8, 10]), (1, 7, [5, 7]), (3, 3, []), (9, 10, [10])])
def test_a_range_comes_whole_and_nothing_beside_it(
    client: Client, queues: MemoryQueues, begin: int, end: int, cuts: list[int]
) -> None:
    reader = client.read(QUEUE, begin, end, deadline=_soon())
    slices = list(reader)
    assert _offsets(slices) == list(range(begin, end))
    assert [part.end for part in slices] == cuts
    assert [part.begin for part in slices] == [begin, *cuts[:-1]][: len(cuts)]
    assert not any(part.missing for part in slices)
    assert reader.position == end


def test_the_next_pull_is_under_way_while_the_caller_works(
    client: Client, server: ScriptedServer, queues: MemoryQueues
) -> None:
    reader = iter(client.read(QUEUE, 0, 10, deadline=_soon()))
    next(reader)
    deadline = _soon()
    while len(server.requests(PULL)) < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert [request.fields["queueOffset"] for request in server.requests(PULL)] == ["0", "4"]


def test_a_caller_that_takes_its_time_loses_nothing(
    hasty_client: Client, server: ScriptedServer, queues: MemoryQueues
) -> None:
    server.on(PULL, queues.pull, late(0.6, queues.pull), queues.pull)
    reader = iter(hasty_client.read(QUEUE, 0, 10, deadline=_soon(30)))
    first = next(reader)
    time.sleep(0.5)  # longer than a request may take
    assert _offsets([first, *reader]) == list(range(10))


def test_no_pull_asks_for_more_than_the_range(client: Client, server: ScriptedServer, queues: MemoryQueues) -> None:
    list(client.read(QUEUE, 0, 6, deadline=_soon()))
    assert [request.fields["maxMsgNums"] for request in server.requests(PULL)] == ["6", "2"]


def test_the_end_of_the_queue_ends_a_range(client: Client, queues: MemoryQueues) -> None:
    reader = client.read(QUEUE, 8, 100, deadline=_soon())
    assert _offsets(list(reader)) == [8, 9]
    assert reader.position == 10


def test_holes_are_told(client: Client, queues: MemoryQueues) -> None:
    queues.remove(TOPIC, 0, 0, 2, 3, 9)
    slices = list(client.read(QUEUE, 0, 9, deadline=_soon()))
    assert _offsets(slices) == [1, 4, 5, 6, 7, 8]
    assert [gap for part in slices for gap in part.missing] == [MissingRange(0, 1, HOLE), MissingRange(2, 4, HOLE)]
    assert sum(len(part.messages) + sum(gap.end - gap.begin for gap in part.missing) for part in slices) == 9


def test_expired_messages_are_told(client: Client, queues: MemoryQueues) -> None:
    queues.expire(TOPIC, 0, 5)
    slices = list(client.read(QUEUE, 1, 10, deadline=_soon()))
    assert slices[0] == QueueSlice(1, 5, [], (MissingRange(1, 5, "the offset lies before the oldest message"),))
    assert _offsets(slices) == [5, 6, 7, 8, 9]


def test_expiry_reaches_no_further_than_the_range(client: Client, queues: MemoryQueues) -> None:
    queues.expire(TOPIC, 0, 8)
    (part,) = client.read(QUEUE, 1, 4, deadline=_soon())
    assert (part.begin, part.end, [(gap.begin, gap.end) for gap in part.missing]) == (1, 4, [(1, 4)])


@pytest.mark.parametrize(("code", "remark"), [(20, "MESSAGE_WAS_REMOVING"), (19, "OFFSET_FOUND_NULL")])
def test_removed_messages_are_told(
    client: Client, server: ScriptedServer, queues: MemoryQueues, code: int, remark: str
) -> None:
    server.on(PULL, _status(code, remark, 6), queues.pull)
    slices = list(client.read(QUEUE, 0, 8, deadline=_soon()))
    assert [(gap.begin, gap.end) for part in slices for gap in part.missing] == [(0, 6)]
    assert _offsets(slices) == [6, 7]


@pytest.mark.parametrize("remark", ["FOUND", "OFFSET_OVERFLOW_ONE", ""])
def test_what_a_broker_that_is_no_master_says_passes_nothing_over(
    client: Client, server: ScriptedServer, remark: str
) -> None:
    server.on(PULL, _status(20, remark, 6))
    reader = client.read(QUEUE, 0, 8, deadline=_soon())
    with pytest.raises(BrokerFault, match=r"code 20.*orders/broker-a/0 at 0.*is a master"):
        list(reader)
    assert reader.position == 0


def test_a_queue_that_ends_before_the_offset_was_made_anew(client: Client, queues: MemoryQueues) -> None:
    with pytest.raises(OffsetGone, match=r"ends at 10.*orders/broker-a/0 at 50"):
        list(client.read(QUEUE, 50, 60, deadline=_soon()))


def test_an_operators_reset_is_passed_over_once(client: Client, server: ScriptedServer, queues: MemoryQueues) -> None:
    server.on(PULL, _status(21, "OFFSET_RESET", 0), queues.pull)
    assert _offsets(list(client.read(QUEUE, 6, 10, deadline=_soon()))) == [6, 7, 8, 9]


def test_endless_resets_are_a_fault(client: Client, server: ScriptedServer) -> None:
    server.on(PULL, _status(21, "OFFSET_RESET", 0))
    with pytest.raises(BrokerFault, match="again and again"):
        list(client.read(QUEUE, 6, 10, deadline=_soon()))


def test_a_broker_that_does_not_go_on_is_a_fault(client: Client, server: ScriptedServer) -> None:
    server.on(PULL, _status(20, "MESSAGE_WAS_REMOVING", 3))
    with pytest.raises(BrokerFault, match="continues at 3"):
        list(client.read(QUEUE, 3, 10, deadline=_soon()))


def test_offsets_that_do_not_ascend_are_nonsense(client: Client, server: ScriptedServer, queues: MemoryQueues) -> None:
    def twice(request: Command, link: Link) -> None:
        captured: list[bytes] = []
        queues.pull(request, _Recording(captured))
        body = captured[0]
        reply(fields=to_fields(PullResponse(4, 0, 10)), body=body[: len(body) // 4] * 2)(request, link)

    class _Recording(Link):
        def __init__(self, into: list[bytes]) -> None:
            self._into = into

        def send(self, data: bytes) -> None:
            header_length = int.from_bytes(data[5:8], "big")
            self._into.append(data[8 + header_length :])

    server.on(PULL, twice)
    with pytest.raises(WireFormatError, match="Offset 0 where 1 or more was expected"):
        list(client.read(QUEUE, 0, 10, deadline=_soon()))


def test_a_busy_broker_is_asked_again(client: Client, server: ScriptedServer, queues: MemoryQueues) -> None:
    server.on(PULL, reply(2, remark="[OVERLOAD]"), reply(2), queues.pull)
    assert _offsets(list(client.read(QUEUE, 0, 4, deadline=_soon()))) == [0, 1, 2, 3]


def test_a_broker_that_stays_busy_is_an_error_at_the_deadline(
    client: Client, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "LONGEST_S", 0.1)
    server.on(PULL, reply(2, remark="[OVERLOAD]"))
    started = time.monotonic()
    with pytest.raises(BrokerBusy, match="OVERLOAD"):
        list(client.read(QUEUE, 0, 4, deadline=_soon(0.5)))
    assert time.monotonic() - started < 5


def test_a_broker_that_is_busy_at_the_deadline_ends_what_has_come(
    client: Client, server: ScriptedServer, queues: MemoryQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "LONGEST_S", 0.1)
    server.on(PULL, queues.pull, reply(2, remark="[OVERLOAD]"))
    reader, deadline = client.read(QUEUE, 0, 10, deadline=_soon(0.5)), _soon(0.5)
    assert _offsets(list(reader)) == [0, 1, 2, 3]
    assert reader.position == 4
    assert time.monotonic() > deadline - 0.1, "it was asked again until then"


def test_a_broker_that_is_busy_for_a_moment_before_the_deadline_says_nothing(
    client: Client, server: ScriptedServer
) -> None:
    server.on(PULL, reply(2, remark="[OVERLOAD]"))
    reader = client.read(QUEUE, 0, 4, deadline=_soon(0.2))
    assert list(reader) == []
    assert (reader.position, reader.queue_end) == (0, -1)


def test_other_queues_do_not_wait_while_a_busy_broker_is_left_alone(
    client: Client, server: ScriptedServer, queues: MemoryQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "FIRST_S", 0.6)
    server.on(PULL, reply(2), queues.pull)
    reader = client.follow(QUEUE, 8, deadline=_soon())
    wait_for_any([reader], _soon())
    started = time.monotonic()
    assert reader.arrived() is None
    assert time.monotonic() - started < 0.5
    wait_for_any([reader], _soon())
    assert 0.5 < time.monotonic() - started < 4
    wait_for_any([reader], _soon())
    part = reader.arrived()
    assert part is not None
    assert (part.begin, part.end) == (8, 10)
    reader.give_up()


def test_refusals_are_errors_of_their_class(client: Client, server: ScriptedServer) -> None:
    server.on(PULL, reply(17, remark="topic[orders] not exist"))
    with pytest.raises(TopicMissing, match="not exist"):
        list(client.read(QUEUE, 0, 4, deadline=_soon()))


def test_a_lost_connection_costs_nothing(client: Client, server: ScriptedServer, queues: MemoryQueues) -> None:
    server.on(PULL, queues.pull, cut, queues.pull)
    assert _offsets(list(client.read(QUEUE, 0, 10, deadline=_soon()))) == list(range(10))


def test_the_deadline_ends_reading_where_it_is(client: Client, server: ScriptedServer, queues: MemoryQueues) -> None:
    server.on(PULL, queues.pull, silence)
    reader = client.read(QUEUE, 0, 10, deadline=_soon(0.1))
    assert _offsets(list(reader)) == [0, 1, 2, 3]
    assert reader.position == 4


def test_a_silent_broker_is_an_error_before_the_deadline(hasty_client: Client, server: ScriptedServer) -> None:
    server.on(PULL, silence)
    with pytest.raises(NoAnswer):
        list(hasty_client.read(QUEUE, 0, 10, deadline=_soon(30)))


def test_following_gives_what_comes_and_tells_of_silence(client: Client, queues: MemoryQueues) -> None:
    reader = client.follow(QUEUE, 8, deadline=_soon(), idle_timeout_s=0.05)
    slices = iter(reader)
    assert _offsets([next(part for part in slices if part.messages)]) == [8, 9]
    assert next(slices) == QueueSlice(10, 10, [])
    queues.append(TOPIC, 0, b"ten")
    part = next(part for part in slices if part.messages)
    assert [message.body for message in part.messages] == [b"ten"]
    assert reader.position == 11


def test_following_ends_at_its_deadline(client: Client, queues: MemoryQueues) -> None:
    started = time.monotonic()
    reader = client.follow(QUEUE, 10, deadline=_soon(0.12), idle_timeout_s=0.05)
    assert all(part.begin == part.end == 10 for part in reader)
    assert 0.1 < time.monotonic() - started < 2


def test_following_asks_again_when_the_broker_lets_go(
    client: Client, server: ScriptedServer, queues: MemoryQueues
) -> None:
    server.on(PULL, _status(19, "OFFSET_OVERFLOW_ONE", 10), late(0.02, _status(19, "", 10)), queues.pull)
    queues.append(TOPIC, 0, b"ten")
    part = next(part for part in client.follow(QUEUE, 10, deadline=_soon(), idle_timeout_s=1.0) if part.messages)
    assert part.begin == 10
    assert {request.fields["sysFlag"] for request in server.requests(PULL)} == {"6"}


def test_an_abandoned_reader_leaves_nothing_behind(client: Client, queues: MemoryQueues) -> None:
    for _ in client.read(QUEUE, 0, 10, deadline=_soon()):
        break
    assert _offsets(list(client.read(QUEUE, 0, 10, deadline=_soon()))) == list(range(10))
