"""What a copy from topic to topic keeps, and what it leaves behind, on a real broker: the rows of docs/fidelity.md.

Source, sink and lane are those of a connector; what is sent is what clients and brokers leave in a topic.
"""

from __future__ import annotations

import time
import uuid
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import lz4.frame
import pytest
import zstandard

from connect_core.clock import now_ns
from connect_core.replication.worker.lane import move
from connect_core.rocketmq import Client, ClientOptions, Queue, StoredMessage, TopicConfig, encode_batch
from connect_core.rocketmq.network import accepted, command
from connect_core.rocketmq.wire import properties
from connect_core.rocketmq.wire.commands import RequestCode, SendRequest, SendResponse
from connect_core.rocketmq.wire.fields import from_fields
from connect_core.rocketmq.wire.header import Command
from connect_core.sdk.digest import RecordDigest
from connect_core.sdk.records import Lineage
from connect_core.sdk.testing.driving import UID, limit, range_of
from connect_core.sdk.values import OpenRange
from connect_core.systems import sink, source
from connect_core.work import Lane, Outcome, Receipt, Side
from tests.servers import RocketMQ

pytestmark = pytest.mark.server

FOUR_MIB = 4 * 1024 * 1024
END_TRANSACTION, COMMIT, PREPARED = 37, 8, 0x4


def soon(seconds: float = 20.0) -> float:
    return time.monotonic() + seconds


@dataclass
class Cluster:
    name_servers: list[str]
    broker: str
    client: Client
    folder: Path
    uid: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    def topic(self, suffix: str = "", **attributes: str) -> Queue:
        """The only queue of a new one."""
        name = f"fid-{uuid.uuid4().hex[:10]}{suffix}"
        self.client.topics.put(TopicConfig(name, 1, 1, attributes=tuple(attributes.items())), self.broker)
        return Queue(name, self.broker, 0)

    def send(self, queue: Queue, body: bytes, told: dict[str, str] | None = None, **header: int) -> SendResponse:
        """One message, as most clients send it: the broker reads its properties."""
        request = SendRequest("p", queue.topic, 0, int(time.time() * 1000), batch=False)
        request = replace(request, properties=properties.encode(told or {}).decode(), **header)  # type: ignore[arg-type]
        sent = command(RequestCode.SEND_MESSAGE_V2, request, body)
        reply = self.client._network.start_sending(self.broker, sent, soon()).result()
        return from_fields(SendResponse, accepted(reply, str(queue)).fields)

    def messages(self, queue: Queue) -> list[StoredMessage]:
        self.client.barrier(self.broker, deadline=soon())
        parts = list(self.client.read(queue, 0, self.client.offsets.end(queue), deadline=soon()))
        return [message for part in parts for message in part.messages]

    def copy(self, begin: Queue, end: Queue, *, tolerance: int = 0) -> Outcome:
        """One range over everything that stands in the first, moved as a lane moves it."""
        self.client.barrier(self.broker, deadline=soon())
        servers = {"name_servers": self.name_servers}
        with ExitStack() as kept:
            there = source(Side("rocketmq", {**servers, "topics": [begin.topic], "sink_system": "rocketmq"}), kept)
            target = sink(Side("rocketmq", {**servers, "topic": end.topic, "create": False}), kept)
            (partition,) = there.partitions([])
            bounds = there.available_offsets({partition: None})[partition]
            wanted = range_of(partition, bounds, pins=target.targets(0, (), {}).pins)
            item = OpenRange(1, wanted, target.floors(wanted, ()))
            (outcome,) = move(self._lane(item, tolerance), there, target)
        return outcome

    def copied(self, begin: Queue) -> tuple[list[StoredMessage], Receipt]:
        """To a new topic."""
        target = self.topic()
        outcome = self.copy(begin, target)
        assert outcome.failure is None, outcome.failure
        assert outcome.receipt is not None
        assert outcome.receipt.identity_faults() == []
        return self.messages(target), outcome.receipt

    def _lane(self, item: OpenRange, tolerance: int) -> Lane:
        side = Side("rocketmq", {})
        deadline = now_ns() + 30 * 10**9
        lock = str(self.folder / "home" / "locks" / "none")
        return Lane("fid", UID, 0, 1, side, side, {}, tolerance, (item,), 20.0, "boot", deadline, (lock,), "test")


@pytest.fixture(scope="module")
def cluster(rocketmq: RocketMQ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Client(ClientOptions(tuple(rocketmq.name_servers))) as client:
        yield Cluster(rocketmq.name_servers, rocketmq.broker_name, client, tmp_path_factory.mktemp("fidelity"))


def told(message: StoredMessage) -> dict[str, str]:
    return properties.decode(message.properties)


def test_identity_flag_and_time(cluster: Cluster) -> None:
    begin = cluster.topic()
    given = {"UNIQ_KEY": "7F000001000051AF0000000000000102", "KEYS": "k1 k2", "TAGS": "even"}
    user = {"größe": "süß £", "sep": "a\x01b", "__SHARDINGKEY": "s1", "TRACE_CONTEXT": "00-ab-01"}
    cluster.send(begin, b"one", given | user, flag=-7, born_timestamp_ms=1_234_567_890_123)
    cluster.send(begin, b"two", {"BORN_TIMESTAMP": "99"}, flag=1)
    (first, second), _ = cluster.copied(begin)
    assert told(first).items() >= (given | user).items()
    assert (first.flag, told(first)["BORN_TIMESTAMP"]) == (-7, "1234567890123")
    assert (second.flag, told(second)["BORN_TIMESTAMP"]) == (1, "99")
    assert told(second)["UNIQ_KEY"] == told(cluster.messages(begin)[1])["UNIQ_KEY"], "which the broker gave it"


def test_bodies(cluster: Cluster) -> None:
    begin = cluster.topic()
    sender = cluster.client.sender(begin)
    small = [b"", bytes(range(256)) * 4, b"\x01\x02"]
    sender.submit(encode_batch(small, [b""] * 3), deadline=soon())
    sender.finish(deadline=soon())
    cluster.send(begin, b"x" * FOUR_MIB, {"UNIQ_KEY": "LARGE", "größe": "ß"}, flag=3)
    cluster.send(begin, b"behind")
    copies, receipt = cluster.copied(begin)
    assert [copy.body for copy in copies] == [*small, b"x" * FOUR_MIB, b"behind"]
    assert (told(copies[3])["UNIQ_KEY"], told(copies[3])["größe"], copies[3].flag) == ("LARGE", "ß", 3)
    assert receipt.delivered == 5


@pytest.fixture
def larger_limit(cluster: Cluster) -> Iterator[None]:
    """The broker takes more than four MiB, as one of another cluster may."""
    try:
        cluster.client.brokers.change_settings(cluster.broker, {"maxMessageSize": str(FOUR_MIB + 4096)})
        yield
    finally:
        cluster.client.brokers.change_settings(cluster.broker, {"maxMessageSize": str(FOUR_MIB)})


def test_a_body_just_over_the_limit(cluster: Cluster, larger_limit: None) -> None:
    begin, end = cluster.topic(), cluster.topic()
    cluster.send(begin, b"before")
    cluster.send(begin, b"x" * (FOUR_MIB + 1))
    cluster.send(begin, b"behind")
    stopped = cluster.copy(begin, end)
    assert stopped.failure is not None
    for said in (f"{begin}", "offset 1", "4194305 bytes", "allowed are 4194304", "max_message_bytes", "maxMessageSize"):
        assert said in str(stopped.failure), said
    assert stopped.receipt is not None
    assert (stopped.receipt.end, stopped.receipt.delivered) == (1, 1)
    assert [copy.body for copy in cluster.messages(end)] == [b"before"]
    tolerant = cluster.topic()
    passed = cluster.copy(begin, tolerant, tolerance=-1).receipt
    assert passed is not None
    assert (passed.read, passed.rejected, passed.delivered) == (3, 1, 2)
    assert [copy.body for copy in cluster.messages(tolerant)] == [b"before", b"behind"]


def test_compression(cluster: Cluster) -> None:
    begin, plain = cluster.topic(), b"compress me " * 500
    packed = {0x001: zlib.compress(plain), 0x301: zlib.compress(plain, 1), 0x101: lz4.frame.compress(plain)}
    packed[0x201] = zstandard.ZstdCompressor().compress(plain)
    for bits, body in packed.items():
        cluster.send(begin, body, system_flag=bits)
        cluster.send(begin, b"plain")
    copies, _ = cluster.copied(begin)
    assert [(copy.sys_flag & 0x701, copy.body) for copy in copies[::2]] == list(packed.items())
    assert {(copy.sys_flag & 0x701, copy.body) for copy in copies[1::2]} == {(0, b"plain")}


def test_the_longest_properties(cluster: Cluster) -> None:
    begin, end = cluster.topic(), cluster.topic()
    cluster.send(begin, b"fits", {"a": "x" * 31_485})
    cluster.send(begin, b"fits not", {"a": "x" * 32_500})
    outcome = cluster.copy(begin, end)
    assert outcome.failure is not None
    for said in (f"{begin}", "offset 1", "32503 bytes", "allowed are 31488"):
        assert said in str(outcome.failure), said
    (copy,) = cluster.messages(end)
    assert (copy.body, told(copy)["a"]) == (b"fits", "x" * 31_485)


LEFT_BEHIND = ("DELAY", "TIMER_", "TRAN_MSG", "PGROUP", "__transactionId__", "REAL_", "RETRY_TOPIC", "MSG_TYPE", "WAIT")


@pytest.fixture
def transactions(rocketmq: RocketMQ) -> Iterator[None]:
    """A broker that has ended a transaction keeps one core busy from then on (RocketMQ 5.5.0, apache/rocketmq#10966):
    until it is started again."""
    yield
    rocketmq.restart()


@pytest.mark.usefixtures("transactions")
def test_leftovers_do_not_travel(cluster: Cluster) -> None:
    """A copy is there at once: nothing delays it, hides it or answers it a second time."""
    begin = cluster.topic()
    transaction = {"TRAN_MSG": "true", "PGROUP": "pg", "UNIQ_KEY": "TRANSACTION"}
    half = cluster.send(begin, b"transaction", transaction, system_flag=PREPARED)
    commit(cluster, begin, half)
    cluster.send(begin, b"delayed", {"DELAY": "1"})
    cluster.send(begin, b"timed", {"TIMER_DELAY_MS": "1000"})
    cluster.send(
        begin, b"request", {"MSG_TYPE": "reply", "WAIT": "false", "REPLY_TO_CLIENT": "c", "CORRELATION_ID": "i"}
    )
    cluster.send(begin, b"retried", {"RETRY_TOPIC": "t", "ORIGIN_MESSAGE_ID": "m"}, reconsume_times=3)
    deadline = soon(20)
    while len(cluster.messages(begin)) < 5:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    originals = cluster.messages(begin)
    left = {name for message in originals for name in told(message) if name.startswith(LEFT_BEHIND)}
    assert {"DELAY", "TRAN_MSG", "REAL_TOPIC", "MSG_TYPE", "TIMER_OUT_MS"} <= left, "else this would test nothing"
    copies, receipt = cluster.copied(begin)
    assert [copy.body for copy in copies] == [message.body for message in originals]
    assert receipt.delivered == 5
    ours = {"UNIQ_KEY", "WAYBILL", "BORN_TIMESTAMP", "MSG_REGION", "TRACE_ON", "CLUSTER"}
    assert {name for copy in copies for name in told(copy)} <= ours
    assert {(copy.sys_flag, copy.reconsume_times) for copy in copies} == {(0, 0)}
    (committed,) = [copy for copy in copies if copy.body == b"transaction"]
    assert told(committed)["UNIQ_KEY"] == "TRANSACTION"


def commit(cluster: Cluster, queue: Queue, half: SendResponse) -> None:
    fields = {
        "topic": queue.topic,
        "producerGroup": "pg",
        "tranStateTableOffset": str(half.first_offset),
        "commitLogOffset": str(int(half.message_ids[-16:], 16)),
        "commitOrRollback": str(COMMIT),
        "fromTransactionCheck": "false",
        "msgId": "TRANSACTION",
        "transactionId": "TRANSACTION",
    }
    ended = Command(END_TRANSACTION, fields=fields)  # type: ignore[arg-type]
    accepted(cluster.client._network.start_sending(cluster.broker, ended, soon()).result(), str(queue))


def test_inner_batches(cluster: Cluster) -> None:
    begin = cluster.topic(**{"queue.type": "BatchCQ"})
    texts = [b"UNIQ_KEY\x01ID%d\x02k\x01v\x02" % n for n in range(3)]
    for _ in range(2):
        batch = encode_batch([b"0", b"", b"2"], texts, [5, 6, 7])
        request = SendRequest("p", begin.topic, 0, 1_234, properties="UNIQ_KEY\x01ONE\x02")
        sent = command(RequestCode.SEND_BATCH_MESSAGE, request, batch.body)
        accepted(cluster.client._network.start_sending(cluster.broker, sent, soon()).result(), str(begin))
    copies, receipt = cluster.copied(begin)
    assert [(copy.body, copy.flag, told(copy)["UNIQ_KEY"], told(copy)["k"]) for copy in copies] == [
        (b"0", 5, "ID0", "v"),
        (b"", 6, "ID1", "v"),
        (b"2", 7, "ID2", "v"),
    ] * 2
    assert {told(copy)["BORN_TIMESTAMP"] for copy in copies} == {"1234"}
    assert receipt.read == 6


def test_a_batch_of_a_java_producer(cluster: Cluster) -> None:
    """It puts an id of the whole batch into the request, which older brokers append to each message."""
    begin = cluster.topic()
    batch = encode_batch([b"a", b"b"], [b"UNIQ_KEY\x01ID%d\x02UNIQ_KEY\x01BATCH\x02" % n for n in range(2)])
    sender = cluster.client.sender(begin)
    sender.submit(batch, deadline=soon())
    sender.finish(deadline=soon())
    copies, _ = cluster.copied(begin)
    assert [told(copy)["UNIQ_KEY"] for copy in copies] == ["ID0", "ID1"]
    assert all(copy.properties.count(b"UNIQ_KEY") == 1 for copy in copies)


def test_the_longest_topic_name(cluster: Cluster) -> None:
    name = f"fid-{uuid.uuid4().hex}".ljust(127, "x")
    for queue in (Queue(name, cluster.broker, 0), Queue("y" + name[1:], cluster.broker, 0)):
        cluster.client.topics.put(TopicConfig(queue.topic, 1, 1), cluster.broker)
    begin, end = Queue(name, cluster.broker, 0), Queue("y" + name[1:], cluster.broker, 0)
    cluster.send(begin, b"long")
    assert cluster.copy(begin, end).failure is None
    assert [(copy.topic, copy.body) for copy in cluster.messages(end)] == [(end.topic, b"long")]


def test_a_copy_of_a_copy_and_its_digest(cluster: Cluster) -> None:
    """The receipt's digest is that of what stands in the target, read back as any topic is read."""
    begin, middle, end = cluster.topic(), cluster.topic(), cluster.topic()
    packed = zlib.compress(b"compress me " * 50)
    for n in range(4):
        given = {"UNIQ_KEY": f"ID{n}", "color": "red", "KEYS": f"k{n}"}
        cluster.send(begin, packed, given, flag=n, system_flag=1, born_timestamp_ms=1000 + n)
    for first, second in ((begin, middle), (middle, end)):
        receipt = cluster.copy(first, second).receipt
        assert receipt is not None
        assert receipt.digest_read == receipt.digest_sent == digest_of(cluster, first, second)
    for copies in (cluster.messages(middle), cluster.messages(end)):
        assert [told(copy)["UNIQ_KEY"] for copy in copies] == ["ID0", "ID1", "ID2", "ID3"]
        assert [told(copy)["BORN_TIMESTAMP"] for copy in copies] == ["1000", "1001", "1002", "1003"]
        assert [copy.flag for copy in copies] == [0, 1, 2, 3]
        assert {(copy.body, copy.sys_flag & 0x701) for copy in copies} == {(packed, 1)}
        assert all(
            copy.properties.count(b"WAYBILL") == copy.properties.count(b"BORN_TIMESTAMP") == 1 for copy in copies
        )


def digest_of(cluster: Cluster, begin: Queue, end: Queue) -> str:
    """Of the target, whose offsets are those of the source here."""
    reader = source(Side("rocketmq", {"name_servers": cluster.name_servers, "topics": [begin.topic, end.topic]}))
    cluster.client.barrier(cluster.broker, deadline=soon())
    partitions = {partition.key: partition for partition in reader.partitions([])}
    origin, target = partitions[str(begin)], partitions[str(end)]
    digest = RecordDigest(Lineage(UID, "live", origin.id, 0))
    for batch in reader.read(range_of(target, reader.available_offsets({target: None})[target]), limit()):
        digest.add(batch.records)
    return digest.text()
