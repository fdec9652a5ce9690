"""The parts of `client: native` that need no library: what is given to it, what is not, and what is said without it."""

from __future__ import annotations

import socket
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pydantic import ValidationError

from connect_core.clock import now_ns
from connect_core.config import check, create_home, load_settings
from connect_core.config.written import Written
from connect_core.errors import OffsetGone, TargetChanged
from connect_core.rocketmq import NoAnswer, Queue, SendUnknown, StoredMessage, encode_batch
from connect_core.rocketmq.wire import properties
from connect_core.rocketmq.wire.batch_entries import BatchEntry
from connect_core.rocketmq.wire.stored_message import COMPRESSED, MAGIC_V1
from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.records import Lineage
from connect_core.sdk.values import Delivered, Limit
from connect_core.systems.rocketmq.native import RECORDS, NativeAppender, Slices, own_properties, unsendable
from connect_core.systems.rocketmq.native_library import NativeProducer, QueuePlace, drop_unsent, missing
from connect_core.systems.rocketmq.options import RocketMQSinkOptions
from connect_core.systems.rocketmq.parcels import Parcel
from tests.unit.systems.rocketmq.cluster import MemoryCluster, MemoryQueue

LINEAGE = Lineage("0123abcd", "live", "89abcdef01234567", 0)
FOREVER = Limit(now_ns() + 10**15, now_ns() + 10**15)


def records(*rows: dict[str, object]) -> pa.RecordBatch:
    full = [{field.name: None for field in RECORD_SCHEMA} | row for row in rows]
    columns = [pa.array([row[field.name] for row in full], type=field.type) for field in RECORD_SCHEMA]
    return pa.RecordBatch.from_arrays(columns, names=RECORD_SCHEMA.names)


def test_it_is_given_the_user_s_properties_and_ours_but_nothing_that_a_broker_obeys() -> None:
    kept = {"größe": "ü", "KEYS": "a b", "__SHARDINGKEY": "s", "WAYBILL": "u:live:p:0:1:0"}
    left_out = {"UNIQ_KEY": "its own", "DELAY": "3", "TRAN_MSG": "true", "TIMER_DELIVER_MS": "1", "WAIT": "false"}
    entry = BatchEntry(0, b"body", properties.encode({**kept, **left_out}))
    assert dict(own_properties(entry)) == kept


def test_what_it_would_change_or_refuse_is_told() -> None:
    rows = records(
        {"value": b"body", "key": "k", "headers": "größe\x01ü\x02".encode()},
        {"value": b""},
        {"value": None},
        {"value": b"zero in the body: \0"},
        {"value": b"body", "tags": "a\0b"},
        {"value": b"body", "headers": b"name\x01\xff\x02"},
    )
    assert [(row, kind) for row, kind, _ in unsendable(rows)] == [
        (1, "EmptyBody"),
        (2, "EmptyBody"),
        (4, "IllegalProperty"),
        (5, "IllegalProperty"),
    ]


class Recording:
    """Takes what it is given until it has `most` rows."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.given: list[int] = []

    def write(self, records: pa.RecordBatch, limit: Limit) -> int:
        self.given.append(len(records))
        taken = min(len(records), self.most)
        self.most -= taken
        return taken

    def flush(self, limit: Limit) -> Delivered:
        return Delivered(7, 0, {}, {}, 0)


@pytest.mark.parametrize(
    ("most", "taken", "given"),
    [(1_000, 70, [RECORDS, RECORDS, 6]), (40, 40, [RECORDS, RECORDS]), (RECORDS, RECORDS, [RECORDS, RECORDS])],
)
def test_it_is_handed_few_records_at_a_time_until_it_takes_no_more(most: int, taken: int, given: list[int]) -> None:
    inner = Recording(most)
    writer = Slices(inner)
    assert writer.write(records(*({"value": b"x", "offset": n} for n in range(70))), FOREVER) == taken
    assert inner.given == given
    assert writer.flush(FOREVER).records == 7


def test_the_outputs_of_one_record_are_handed_over_together() -> None:
    inner = Recording(1_000)
    rows = ({"value": b"x", "offset": n // 50, "ordinal": n % 50} for n in range(120))
    assert Slices(inner).write(records(*rows), FOREVER) == 120
    assert inner.given == [50, 50, 20]


QUEUE = Queue("t", "b", 1)
OURS = properties.encode({"WAYBILL": f"{LINEAGE.prefix()}0:0"})


@dataclass
class Places(MemoryCluster):
    """A topic of three queues on one broker, for an appender."""

    @property
    def topics(self) -> Any:
        return self

    @property
    def brokers(self) -> Any:
        return self

    def write_queues(self, topic: str) -> list[Queue]:
        return [Queue("t", "b", number) for number in range(3)]

    def masters(self) -> dict[str, str]:
        return {"b": "127.0.0.1:1"}

    def sender(self, queue: Queue) -> None:
        return None


@dataclass
class Producer:
    """Says what it is told to: an offset a message, or None."""

    answers: list[int | None]
    places: list[QueuePlace] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def send(self, place: QueuePlace, body: bytes, properties: object) -> int | None:
        self.places.append(place)
        self.bodies.append(body)
        return self.answers.pop(0)


def appender(stands_there: bytes, *answers: int | None) -> tuple[NativeAppender, Producer]:
    """On a queue at the offset 5 of which a message with these properties stands."""
    producer = Producer(list(answers))
    host = b"\x7f\0\0\1\0\0\1\1"
    held = StoredMessage(0, MAGIC_V1, 0, 1, 0, 5, 0, 0, 1, host, 2, host, 0, 0, 4, "t", b"body", stands_there)
    client = Places({QUEUE: MemoryQueue([held], begin=5)}).client
    return NativeAppender(client, QUEUE, LINEAGE, 5, 3.0, cast(NativeProducer, producer)), producer


def parcel(bodies: list[bytes], marks: list[bytes], packing: int = 0) -> Parcel:
    return Parcel(len(bodies), encode_batch(bodies, marks), packing)


def test_packed_bodies_go_plain() -> None:
    sending, producer = appender(OURS, 5, 6)
    packed = COMPRESSED | 3 << 8  # zlib
    sending.send(parcel([zlib.compress(b"plain")], [OURS], packed), FOREVER)
    sending.send(Parcel(1, BatchEntry(0, zlib.compress(b"large"), OURS), packed), FOREVER)
    assert producer.bodies == [b"plain", b"large"]


def test_messages_go_to_the_place_of_the_queue_and_are_counted_where_they_are_stored() -> None:
    sending, producer = appender(OURS, 5, 6, 9)
    sending.send(parcel([b"1", b"2", b"3"], [OURS] * 3), FOREVER)
    assert producer.places == [QueuePlace("t", 1, 3)] * 3
    assert sending.written() == [(5, 7), (9, 10)]
    assert (sending.records, sending.expected) == (3, 10)


def test_a_first_message_that_is_not_visible_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy broker not even the one before it may be."""
    sending, producer = appender(OURS, 5, 6)
    read, behind = sending._client.read, [NotYet(5), NotYet(5)]
    monkeypatch.setattr(
        sending._client, "read", lambda *place, **more: behind.pop() if behind else read(*place, **more)
    )
    sending.send(parcel([b"1", b"2"], [OURS] * 2), FOREVER)
    assert (len(producer.places), behind) == (2, [])


@dataclass
class NotYet:
    position: int

    def __iter__(self) -> Iterator[Any]:
        raise OffsetGone("The queue ends at 4, before the offset that is to be read")
        yield


def test_nothing_follows_a_message_that_stands_elsewhere() -> None:
    sending, producer = appender(b"", 5)
    with pytest.raises(TargetChanged, match="elsewhere than into this queue at offset 5"):
        sending.send(parcel([b"1", b"2"], [OURS] * 2), FOREVER)
    assert len(producer.places) == 1


def test_nothing_follows_a_message_of_which_nobody_knows() -> None:
    sending, producer = appender(OURS, 5, None)
    for _ in range(2):
        with pytest.raises(SendUnknown):
            sending.send(parcel([b"1", b"2", b"3"], [OURS] * 3), FOREVER)
    with pytest.raises(SendUnknown):
        sending.finish(FOREVER)
    assert len(producer.places) == 2


def test_no_message_begins_that_might_end_behind_the_deadline() -> None:
    sending, producer = appender(OURS)
    nearly_over = Limit(FOREVER.quantum_end_ns, now_ns() + 2 * 10**9)
    with pytest.raises(NoAnswer, match="it is not stored"):
        sending.send(parcel([b"1"], [OURS]), nearly_over)
    assert producer.places == []


def test_bytes_that_are_not_sent_go_with_the_process_on_the_connections_to_that_port_only() -> None:
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        to_first = socket.create_connection(first.getsockname())
        to_second = socket.create_connection(second.getsockname())
        without_ports = socket.socketpair()
        with to_first, to_second, without_ports[0], without_ports[1]:
            drop_unsent(first.getsockname()[1], 2.5)
            assert to_first.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 2500
            assert lingering(to_first) == (1, 0)
            assert lingering(to_second) == (0, 0)


def lingering(one: socket.socket) -> tuple[int, int]:
    on, seconds = struct.unpack("ii", one.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))
    return on, seconds


@pytest.fixture
def without_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connect_core.systems.rocketmq.native_library.find_spec", lambda name: None)


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "rocketmq").mkdir()
    (tmp_path / "rocketmq" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("connect_core.systems.rocketmq.native_library.find_library", lambda name: None)


@pytest.mark.usefixtures("without_package")
def test_a_missing_package_is_named() -> None:
    assert "pip install 'waybill[native]'" in str(missing())


@pytest.mark.usefixtures("without_library")
def test_a_missing_library_is_named_with_a_place_for_it(tmp_path: Path) -> None:
    assert "librocketmq.so (RocketMQ's client for C++, 2.0 or 2.1), which is not there" in str(missing())
    assert f"Put it into {tmp_path / 'rocketmq'}" in str(missing())
    (tmp_path / "rocketmq" / "librocketmq.so").touch()
    assert missing() is None


def document(**sink: object) -> Written:
    cluster = {"name_servers": "127.0.0.1:9876"}
    ends = {"source": {"rocketmq": {**cluster, "topics": "a"}}, "sink": {"rocketmq": {**cluster, "topic": "b", **sink}}}
    return Written({"version": 1, "name": "natively", **ends}, "natively.yaml")


@pytest.mark.usefixtures("without_package")
def test_checking_a_document_tells_what_is_missing_here_and_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings(create_home())
    (notice,) = check(document(client="native"), None, settings).notices
    assert "rocketmq-client-python" in notice
    assert check(document(), None, settings).notices == ()


def test_tls_is_refused() -> None:
    with pytest.raises(ValidationError, match="client: native has no TLS"):
        RocketMQSinkOptions.model_validate(
            {"name_servers": "127.0.0.1:9876", "topic": "b", "client": "native", "tls": True}
        )
