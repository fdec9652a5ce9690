"""Stored messages as records: properties sorted out, bodies unpacked and checked, damage rejected."""

from __future__ import annotations

import zlib
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from connect_core.rocketmq import StoredMessage
from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.values import Reject
from connect_core.systems.rocketmq.attributes import attribute_columns, attributes
from connect_core.systems.rocketmq.columns import FEW, Columns, columns_of_messages
from connect_core.systems.rocketmq.decoding import record_batch as batch_of_columns
from connect_core.systems.rocketmq.decoding import sound, without_copies


def stored(
    offset: int, body: bytes, properties: bytes = b"", *, sys_flag: int = 0, crc: int | None = None
) -> StoredMessage:
    return StoredMessage(
        total_size=91 + len(body) + len(properties),
        magic=-626843481,
        body_crc=zlib.crc32(body) & 0x7FFFFFFF if crc is None else crc,
        queue_id=0,
        flag=0,
        queue_offset=offset,
        physical_offset=offset * 100,
        sys_flag=sys_flag,
        born_timestamp_ms=1_700_000_000_000 + offset,
        born_host=b"\x7f\0\0\1\0\0\1\1",
        store_timestamp_ms=1_700_000_000_500 + offset,
        store_host=b"\x7f\0\0\1\0\0\1\1",
        reconsume_times=0,
        prepared_transaction_offset=0,
        body_length=len(body),
        topic="orders",
        body=body,
        properties=properties,
    )


def test_copies_are_told_from_messages_of_others() -> None:
    properties = [
        b"",
        b"WAYBILL\x01u:s:p:0:1:0\x02",
        b"a\x01WAYBILL\x02",
        b"K\x01v\x02WAYBILL\x01u\x02",
        b"XWAYBILL\x01u\x02",
    ]
    columns = columns_of_messages([stored(10 + n, b"%d" % n, text) for n, text in enumerate(properties)])
    own, copies = without_copies(columns)
    assert copies == (11, 13)
    assert own.offsets.tolist() == [10, 12, 14]
    assert own.bodies.to_pylist() == [b"0", b"2", b"4"]
    assert without_copies(own) == (own, ())


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (b"", (None, None, None)),
        (b"UNIQ_KEY\x01ABC\x02WAYBILL\x01u:s:p:0:1:0\x02CLUSTER\x01c\x02", (None, None, None)),
        (b"UNIQ_KEY\x01ABC\x02KEYS\x01k1 k2\x02TAGS\x01t\x02", ("k1 k2", "t", None)),
        (b"color\x01red\x02WAIT\x01true\x02size\x01\x01\x02", (None, None, b"color\x01red\x02size\x01\x01\x02")),
        (b"last\x01one", (None, None, b"last\x01one\x02")),
        (
            b"DELAY\x013\x02TIMER_DELAY_MS\x015\x02__RMQ.TRANSIENT.x\x01y\x02__SHARDINGKEY\x01s\x02",
            (None, None, b"__SHARDINGKEY\x01s\x02"),
        ),
        (b"X_CLUSTER\x01c\x02", (None, None, b"X_CLUSTER\x01c\x02")),
        (b"empty\x01\x02\x01nameless\x02noseparator\x02", (None, None, None)),
        (b"KEYS\x01old\x02KEYS\x01new\x02", ("new", None, None)),
        ("größe\x01ß\x02".encode(), (None, None, "größe\x01ß\x02".encode())),
    ],
)
def test_properties_are_sorted_out(properties: bytes, expected: tuple[object, ...]) -> None:
    assert tuple(attributes(properties))[:3] == expected


@pytest.mark.parametrize("kept", [b"", b"color\x01red\x02"], ids=["nothing kept", "some kept"])
@pytest.mark.parametrize("count", [1, FEW + 1], ids=["few", "many"])
def test_properties_of_few_and_of_many_are_sorted_out_alike(kept: bytes, count: int) -> None:
    usual = b"UNIQ_KEY\x01ABC\x02WAYBILL\x01u:s:p:0:1:0\x02CLUSTER\x01c"
    found = attribute_columns(pa.array([usual] * (count - 1) + [kept + usual], pa.binary()))
    assert found.key.null_count == found.tags.null_count == count
    assert found.headers.to_pylist() == [None] * (count - 1) + [kept or None]
    assert found.born_ms is None


@pytest.mark.parametrize("count", [1, FEW + 1], ids=["few", "many"])
def test_times_of_few_and_of_many_are_found_alike(count: int) -> None:
    texts = [b"UNIQ_KEY\x01ABC\x02BORN_TIMESTAMP\x01%d\x02" % (10 + n) for n in range(count)]
    found = attribute_columns(pa.array(texts, pa.binary()))
    assert found.born_ms is not None
    assert found.born_ms.to_pylist() == list(range(10, 10 + count))
    assert found.headers.null_count == count


def record_batch(messages: list[StoredMessage]) -> tuple[pa.RecordBatch, tuple[Reject, ...]]:
    return batch_of_columns(columns_of_messages(messages), "orders")


def test_messages_become_rows() -> None:
    records, rejects = record_batch([stored(7, b"a", b"TAGS\x01t\x02"), stored(9, b"")])
    assert rejects == ()
    assert records.schema == RECORD_SCHEMA
    assert records.to_pylist()[0] == {
        "topic": "orders",
        "key": None,
        "tags": "t",
        "value": b"a",
        "headers": None,
        "offset": 7,
        "timestamp": datetime(2023, 11, 14, 22, 13, 20, 7000, tzinfo=UTC),
        "operation": 0,
        **dict.fromkeys(("trace", "to", "ordinal", "outputs")),
    }
    assert records.column("offset").to_pylist() == [7, 9]
    assert records.column("value").to_pylist() == [b"a", b""]


def test_no_messages_are_an_empty_batch() -> None:
    records, rejects = record_batch([])
    assert (len(records), records.schema, rejects) == (0, RECORD_SCHEMA, ())


def test_compressed_bodies_are_unpacked() -> None:
    packed = zlib.compress(b"hello" * 100)
    records, _ = record_batch([stored(0, b"plain"), stored(1, packed, sys_flag=0x1)])
    assert records.column("value").to_pylist() == [b"plain", b"hello" * 100]


@pytest.mark.parametrize(
    ("damaged", "kind"),
    [
        (stored(1, b"body", crc=1), "WireFormatError"),
        (stored(1, b"not packed", sys_flag=0x1), "WireFormatError"),
        (stored(1, b"body", b"KEYS\x01\xff\x02"), "UnicodeDecodeError"),
    ],
    ids=["checksum", "compression", "properties"],
)
def test_damaged_messages_are_rejected_and_the_others_kept(damaged: StoredMessage, kind: str) -> None:
    records, rejects = record_batch([stored(0, b"a"), damaged, stored(2, b"c")])
    assert records.column("offset").to_pylist() == [0, 2]
    (reject,) = rejects
    assert (reject.offset, reject.stage, reject.kind, reject.topic) == (1, "read", kind, "orders")
    assert reject.original == damaged.body


def test_a_message_for_which_decoding_raises_what_nobody_expects_is_rejected() -> None:
    def rows(columns: Columns) -> pa.RecordBatch:
        if b"secret" in columns.bodies.to_pylist():
            raise KeyError("secret")
        return batch_of_columns(columns, "orders")[0]

    columns = columns_of_messages([stored(n, body) for n, body in enumerate((b"one", b"secret", b"three"))])
    records, (reject,) = sound(columns, "orders", rows)
    assert records.column("value").to_pylist() == [b"one", b"three"]
    assert (reject.offset, reject.stage, reject.kind, reject.original) == (1, "read", "KeyError", b"secret")
    assert "an unexpected error in reading it, at " in reject.message
    assert "secret" not in reject.message
