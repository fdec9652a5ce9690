from __future__ import annotations

import time

import pytest

from connect_core.errors import Unreachable
from connect_core.rocketmq import (
    Batch,
    BatchEntry,
    BatchSender,
    Client,
    Queue,
    StoreStatus,
    encode_batch,
    encode_batches,
)
from connect_core.rocketmq.errors import (
    BrokerBusy,
    ConnectionLost,
    MessageIllegal,
    NoAnswer,
    PermissionRefused,
    SendUnknown,
    TopicMissing,
)
from connect_core.rocketmq.testing import Handler, ScriptedServer, cut, late, reply, silence
from connect_core.rocketmq.testing_queues import MemoryQueues
from connect_core.rocketmq.wire.commands import RequestCode, SendResponse
from connect_core.rocketmq.wire.fields import to_fields
from tests.unit.rocketmq.conftest import TOPIC

QUEUE = Queue(TOPIC, "broker-a", 1)
SEND = RequestCode.SEND_BATCH_MESSAGE
ONE = encode_batch([b"one", b"two"], [b"", b"a\x01b\x02"])


@pytest.fixture
def queues(server: ScriptedServer) -> MemoryQueues:
    made = MemoryQueues()
    made.attach(server)
    return made


@pytest.fixture
def sender(client: Client) -> BatchSender:
    return client.sender(QUEUE)


def _soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


def _stored(code: int = 0, first: int = 7) -> Handler:
    return reply(code, fields=to_fields(SendResponse(1, first, "id")))


def _send(sender: BatchSender, seconds: float = 5.0) -> object:
    sender.submit(ONE, deadline=_soon(seconds))
    return sender.finish(deadline=_soon(seconds))


def test_acknowledgements_tell_where_the_batch_stands(sender: BatchSender, queues: MemoryQueues) -> None:
    batches = list(encode_batches([b"x"] * 2500, [b""] * 2500))
    acknowledged = [sender.submit(batch, deadline=_soon()) for batch in batches]
    acknowledged.append(sender.finish(deadline=_soon()))
    assert acknowledged[0] is None
    places = [(one.first_offset, one.count, one.next_offset) for one in acknowledged if one]
    assert places == [(0, 1000, 1000), (1000, 1000, 2000), (2000, 500, 2500)]
    assert len(queues.bodies(TOPIC, 1)) == 2500
    assert sender.finish(deadline=_soon()) is None


def test_a_single_message_goes_with_its_own_flag_and_properties(sender: BatchSender, queues: MemoryQueues) -> None:
    sender.submit(BatchEntry(7, b"alone", "größe\x01ß\x02".encode()), deadline=_soon(), sys_flag=0x101)
    sender.submit(ONE, deadline=_soon())
    sender.finish(deadline=_soon())
    alone, *others = queues.messages(TOPIC, 1)
    assert (alone.body, alone.flag, alone.sys_flag) == (b"alone", 7, 0x101)
    assert alone.properties == "größe\x01ß\x02".encode()
    assert [other.body for other in others] == [b"one", b"two"]


def test_a_single_message_without_a_body_is_refused(sender: BatchSender) -> None:
    """A broker fails on it; in a batch it takes one."""
    with pytest.raises(ValueError, match="without a body"):
        sender.submit(BatchEntry(0, b"", b""), deadline=_soon())


def test_one_batch_is_outstanding_at_most(sender: BatchSender, server: ScriptedServer) -> None:
    server.on(SEND, late(0.05, _stored()), _stored(first=9))
    sender.submit(ONE, deadline=_soon())
    sent = time.monotonic()
    assert sender.submit(ONE, deadline=_soon()) is not None
    assert time.monotonic() - sent > 0.04
    assert sender.finish(deadline=_soon()) is not None
    first, second = (received.at for received in server.received if received.command.code == SEND)
    assert second - first > 0.04


def test_what_goes_out(sender: BatchSender, server: ScriptedServer) -> None:
    server.on(SEND, _stored())
    sender.submit(ONE, deadline=_soon(), sys_flag=0x201, born_timestamp_ms=1234)
    sender.finish(deadline=_soon())
    (request,) = server.requests(SEND)
    assert bytes(request.body) == ONE.body
    expected = {"b": TOPIC, "e": "1", "f": "513", "g": "1234", "h": "0", "i": "", "j": "0", "k": "false", "m": "true"}
    assert request.fields.items() >= expected.items()


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (0, StoreStatus.OK),
        (10, StoreStatus.FLUSH_DISK_TIMEOUT),
        (11, StoreStatus.SLAVE_NOT_AVAILABLE),
        (12, StoreStatus.FLUSH_SLAVE_TIMEOUT),
    ],
)
def test_codes_that_mean_stored(sender: BatchSender, server: ScriptedServer, code: int, status: StoreStatus) -> None:
    server.on(SEND, _stored(code))
    acknowledged = _send(sender)
    assert (acknowledged.first_offset, acknowledged.count, acknowledged.status) == (7, 2, status)  # type: ignore[attr-defined]


@pytest.mark.parametrize("code", [2, 14, 215])
def test_a_busy_broker_gets_the_same_batch_again(sender: BatchSender, server: ScriptedServer, code: int) -> None:
    server.on(SEND, reply(code), reply(code), _stored())
    assert _send(sender) is not None
    assert [bytes(request.body) for request in server.requests(SEND)] == [ONE.body] * 3


def test_a_broker_that_stays_busy_is_an_error_at_the_deadline(sender: BatchSender, server: ScriptedServer) -> None:
    server.on(SEND, reply(2, remark="[PCBUSY_CLEAN_QUEUE]"))
    started = time.monotonic()
    with pytest.raises(BrokerBusy, match="PCBUSY"):
        _send(sender, 0.1)
    assert time.monotonic() - started < 2
    server.on(SEND, _stored())
    assert _send(sender) is not None


@pytest.mark.parametrize(
    ("code", "remark", "kind"),
    [
        (13, "too long", MessageIllegal),
        (16, "no", PermissionRefused),
        (17, "no topic", TopicMissing),
        (1, "java.lang.RuntimeException: message body size exceeded, ...", MessageIllegal),
    ],
)
def test_refusals(sender: BatchSender, server: ScriptedServer, code: int, remark: str, kind: type[Exception]) -> None:
    server.on(SEND, reply(code, remark=remark), _stored())
    with pytest.raises(kind, match=r"orders/broker-a/1"):
        _send(sender)
    assert _send(sender) is not None


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (silence, "No answer in time"),
        (cut, "closed"),
        (reply(1, remark="java.lang.NullPointerException"), "NullPointerException"),
        (reply(777), "code 777"),
        (reply(0, fields={"queueId": "1"}), "queueOffset"),
    ],
)
def test_an_unknown_outcome_ends_the_sender(
    hasty_client: Client, server: ScriptedServer, handler: Handler, reason: str
) -> None:
    sender = hasty_client.sender(QUEUE)
    server.on(SEND, handler)
    with pytest.raises(SendUnknown, match=reason):
        _send(sender)
    with pytest.raises(SendUnknown, match="earlier batch"):
        sender.submit(ONE, deadline=_soon())
    with pytest.raises(SendUnknown, match="earlier batch"):
        sender.finish(deadline=_soon())
    assert len(server.requests(SEND)) == 1


def test_nothing_goes_out_after_the_deadline(sender: BatchSender, server: ScriptedServer) -> None:
    with pytest.raises(NoAnswer, match="not stored"):
        sender.submit(ONE, deadline=time.monotonic())
    assert server.requests(SEND) == []
    server.on(SEND, _stored())
    assert _send(sender) is not None


def test_a_batch_that_could_not_leave_is_not_unknown(sender: BatchSender, server: ScriptedServer) -> None:
    server.on(SEND, _stored())
    assert _send(sender) is not None
    server.close()
    with pytest.raises((Unreachable, ConnectionLost)) as error:
        sender.submit(ONE, deadline=_soon())
    assert not isinstance(error.value, SendUnknown)
    assert sender.finish(deadline=_soon()) is None


def test_mistakes_of_the_caller(sender: BatchSender) -> None:
    with pytest.raises(ValueError, match="without messages"):
        sender.submit(Batch(0, b""), deadline=_soon())
    with pytest.raises(ValueError, match="0x4"):
        sender.submit(ONE, deadline=_soon(), sys_flag=0x4)
    with pytest.raises(MessageIllegal, match="does not fit"):
        sender.submit(Batch(1, bytes(17 << 20)), deadline=_soon())


def test_permission_is_looked_at_because_brokers_do_not(server: ScriptedServer, client: Client) -> None:
    server.serve_route("readonly", queues=2, perm=4)
    with pytest.raises(PermissionRefused, match="readonly/broker-a/0"):
        client.sender(Queue("readonly", "broker-a", 0))
    with pytest.raises(TopicMissing):
        client.sender(Queue("absent", "broker-a", 0))


def test_senders_have_a_connection_of_their_own(client: Client, server: ScriptedServer, queues: MemoryQueues) -> None:
    client.pull(QUEUE, 0)
    before = server.connections
    _send(client.sender(QUEUE))
    _send(client.sender(Queue(TOPIC, "broker-a", 0)))
    assert server.connections == before + 1
