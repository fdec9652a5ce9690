"""What a copy from RocketMQ to RocketMQ keeps of a message, from stored bytes to the requests that are sent."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import lz4.frame
import numpy as np
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from connect_core.rocketmq import BatchEntry, StoredMessage
from connect_core.rocketmq.wire import properties
from connect_core.rocketmq.wire.batch_entries import decode_entries, encode_batch
from connect_core.rocketmq.wire.stored_message import INNER_BATCH, MAGIC_V2, NEED_UNWRAP, encode_message
from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.digest import RecordDigest
from connect_core.sdk.records import Lineage
from connect_core.sdk.testing.driving import records
from connect_core.systems.rocketmq.attributes import attribute_columns
from connect_core.systems.rocketmq.columns import FEW, columns_of
from connect_core.systems.rocketmq.decoding import record_batch, whole_messages
from connect_core.systems.rocketmq.invalid import invalid_rows
from connect_core.systems.rocketmq.marking import MessageMarker
from connect_core.systems.rocketmq.options import RocketMQSinkOptions
from connect_core.systems.rocketmq.own_columns import FLAG, MESSAGE_ID
from connect_core.systems.rocketmq.parcels import BATCH_BYTES, Load, Parcel
from connect_core.systems.rocketmq.sink import RocketMQSink
from tests.unit.systems.rocketmq.test_rocketmq_decoding import stored
from tests.unit.systems.rocketmq.whole import whole

LINEAGE = Lineage("0123abcd", "live", "89abcdef01234567", 2)
FOUR_MIB = 4 * 1024 * 1024
PLAIN = b"compress me " * 50
PACKED = {
    0x001: zlib.compress(PLAIN),
    0x301: zlib.compress(PLAIN, 1),
    0x101: lz4.frame.compress(PLAIN),
    0x201: zstandard.ZstdCompressor().compress(PLAIN),
}


def read(messages: Sequence[StoredMessage]) -> pa.RecordBatch:
    """As a source reads them that copies to RocketMQ, from the bytes of a pull's answer."""
    rows, rejects = whole_messages(columns_of(b"".join(map(encode_message, messages))), "orders")
    assert rejects == ()
    return rows


def parcels(rows: pa.RecordBatch, most_bytes: int = FOUR_MIB) -> list[Parcel]:
    assert invalid_rows(rows, most_bytes) == []
    return list(Load.of(rows, MessageMarker(LINEAGE), most_bytes).parcels())


def copies(messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    """As a broker stores what is sent of these messages."""
    made: list[StoredMessage] = []
    for parcel in parcels(read(messages)):
        entries = [parcel.message] if isinstance(parcel.message, BatchEntry) else decode_entries(parcel.message.body)
        for entry in entries:
            copy = stored(len(made), entry.body, entry.properties, sys_flag=parcel.packing)
            made.append(copy._replace(flag=entry.flag, born_timestamp_ms=9_000_000_000_000))
    return made


few_and_many = pytest.mark.parametrize("count", [3, FEW + 1], ids=["few", "many"])
"""They are decoded in two ways."""


@few_and_many
def test_a_copy_keeps_its_id_and_its_flag(count: int) -> None:
    messages = [stored(n, b"x", b"UNIQ_KEY\x01ID%04d\x02" % n)._replace(flag=n - 2) for n in range(count)]
    found = copies(messages)
    assert [properties.decode(one.properties)["UNIQ_KEY"] for one in found] == [f"ID{n:04d}" for n in range(count)]
    assert [one.flag for one in found] == [n - 2 for n in range(count)]


def test_ids_of_any_length_are_kept_and_missing_ones_are_made() -> None:
    texts = [b"UNIQ_KEY\x01short\x02", b"a\x01b\x02", b"KEYS\x01k\x02UNIQ_KEY\x01" + b"L" * 56]
    ids = [
        properties.decode(one.properties)["UNIQ_KEY"]
        for one in copies([stored(n, b"", t) for n, t in enumerate(texts)])
    ]
    assert (ids[0], ids[2]) == ("short", "L" * 56)
    assert re.fullmatch("[0-9A-F]{32}", ids[1])


@few_and_many
def test_of_two_ids_the_first_is_kept(count: int) -> None:
    """Brokers up to 5.3.3 append the id of a Java producer's batch to each of its messages."""
    messages = [stored(n, b"", b"UNIQ_KEY\x01OWN%d\x02UNIQ_KEY\x01BATCH\x02" % n) for n in range(count)]
    found = [one.properties for one in copies(messages)]
    assert [properties.decode(text)["UNIQ_KEY"] for text in found] == [f"OWN{n}" for n in range(count)]
    assert all(text.count(b"UNIQ_KEY") == 1 for text in found)


_IDS = st.sampled_from([b"", b"UNIQ_KEY\x01A1\x02", b"UNIQ_KEY\x01A2\x02", b"UNIQ_KEY\x01\x02", b"xUNIQ_KEY\x01A3\x02"])
_OTHERS = st.sampled_from([b"", b"a\x01b\x02", b"c\x01UNIQ_KEY\x01d\x02", b"e\x01f", b"\x02"])


@given(st.lists(st.tuples(_OTHERS, _IDS, _IDS, _OTHERS), min_size=1, max_size=5))
def test_ids_are_those_that_are_found_one_by_one(parts: list[tuple[bytes, ...]]) -> None:
    texts = [b"".join(part) for part in parts]
    expected = []
    for text in texts:
        pairs = (pair.split(b"\x01", 1) for pair in text.split(b"\x02"))
        expected.append(next((pair[1] for pair in pairs if pair[0] == b"UNIQ_KEY" and pair[1:] > [b""]), None))
    assert attribute_columns(pa.array(texts, pa.binary())).message_id.to_pylist() == expected


def test_the_first_output_of_a_record_has_its_id() -> None:
    outputs = {"offset": [7, 7, 8], "ordinal": [0, 1, None], "outputs": [2, 2, None]}
    rows = whole(records([b"a", b"b", b"c"], **outputs), message_id=[b"ONE", b"ONE", b"TWO"])
    ids = [properties.decode(text)["UNIQ_KEY"] for text in MessageMarker(LINEAGE).by_column(rows).to_pylist()]
    assert (ids[0], ids[2]) == ("ONE", "TWO")
    assert re.fullmatch("[0-9A-F]{32}", ids[1])


def test_when_a_message_was_born_stands_in_a_property() -> None:
    (copy,) = copies([stored(0, b"")._replace(born_timestamp_ms=1234)])
    assert properties.decode(copy.properties)["BORN_TIMESTAMP"] == "1234"


def test_a_time_that_a_message_brings_is_the_one_that_is_kept() -> None:
    texts = [b"", b"BORN_TIMESTAMP\x0177\x02", b"BORN_TIMESTAMP\x01soon\x02color\x01red\x02"]
    messages = [stored(n, b"", text)._replace(born_timestamp_ms=1000 + n) for n, text in enumerate(texts)]
    rows = read(messages)
    assert [one.timestamp() * 1000 for one in rows.column("timestamp").to_pylist()] == [1000, 77, 1002]
    assert rows.column("headers").to_pylist() == [None, None, texts[2]]
    told = [properties.decode(copy.properties)["BORN_TIMESTAMP"] for copy in copies(messages)]
    assert told == ["1000", "77", "1002"]


def test_a_time_before_1970_is_not_told() -> None:
    (copy, other) = copies([stored(n, b"")._replace(born_timestamp_ms=-5 + 10 * n) for n in range(2)])
    assert "BORN_TIMESTAMP" not in properties.decode(copy.properties)
    assert properties.decode(other.properties)["BORN_TIMESTAMP"] == "5"


@pytest.mark.parametrize("bits", PACKED, ids=["zlib", "zlib-3", "lz4", "zstd"])
def test_a_compressed_body_is_sent_as_it_was_stored(bits: int) -> None:
    rows = read([stored(0, PACKED[bits], sys_flag=bits)])
    assert rows.column("value").to_pylist() == [PLAIN]
    (parcel,) = parcels(rows)
    (entry,) = decode_entries(parcel.message.body)
    assert (entry.body, parcel.packing) == (PACKED[bits], bits)


def test_a_request_holds_bodies_that_are_packed_alike() -> None:
    forms = [0, 0, 0x1, 0x1, 0, 0x201, 0x101, 0x101]
    messages = [stored(n, PACKED.get(bits, b"%d" % n), sys_flag=bits) for n, bits in enumerate(forms)]
    made = parcels(read(messages))
    assert [(parcel.rows, parcel.packing) for parcel in made] == [(2, 0), (2, 1), (1, 0), (1, 0x201), (2, 0x101)]
    bodies = [entry.body for parcel in made for entry in decode_entries(parcel.message.body)]
    assert bodies == [message.body for message in messages]


def alternating(count: int, each: int, packed: bytes = PACKED[0x1]) -> list[StoredMessage]:
    forms = [0x1 if n // each % 2 else 0 for n in range(count)]
    return [stored(n, packed if bits else b"%d" % n, sys_flag=bits) for n, bits in enumerate(forms)]


def test_forms_that_alternate_all_the_time_are_sent_plain() -> None:
    """In requests of one message the copy would be several times slower."""
    (parcel,) = parcels(read(alternating(100, each=1)))
    bodies = [entry.body for entry in decode_entries(parcel.message.body)]
    assert bodies == [PLAIN if n % 2 else b"%d" % n for n in range(100)]
    assert (parcel.rows, parcel.packing) == (100, 0)


def test_forms_that_alternate_now_and_then_are_kept() -> None:
    assert [parcel.packing for parcel in parcels(read(alternating(80, each=10)))] == [0, 1] * 4
    assert len(parcels(read(alternating(8, each=1)))) == 8, "a few small requests cost little"


def test_a_body_that_is_too_large_when_it_is_plain_stays_packed() -> None:
    large = zlib.compress(bytes(2000))
    rows = read([*alternating(20, each=1), stored(20, large, sys_flag=1), stored(21, b"last")])
    made = parcels(rows, 1024)
    assert [parcel.packing for parcel in made if parcel.packing] == [1]
    (packed,) = [decode_entries(parcel.message.body) for parcel in made if parcel.packing]
    assert [entry.body for entry in packed] == [large]
    assert sum(parcel.rows for parcel in made) == 22


def test_rows_taken_by_queue_keep_their_form() -> None:
    forms = [0, 0x1, 0, 0x1]
    rows = read([stored(n, PACKED.get(bits, b"%d" % n), sys_flag=bits) for n, bits in enumerate(forms)])
    load = Load.of(rows, MessageMarker(LINEAGE), FOUR_MIB)
    made = [list(load.take(np.array(chosen)).parcels()) for chosen in ([0, 2], [1, 3])]
    assert [[(parcel.rows, parcel.packing) for parcel in each] for each in made] == [[(2, 0)], [(2, 1)]]


def test_transaction_bits_do_not_travel() -> None:
    (parcel,) = parcels(read([stored(0, PACKED[0x101], b"TRAN_MSG\x01true\x02", sys_flag=0x101 | 0x8)]))
    assert parcel.packing == 0x101


@pytest.mark.parametrize("body", [b"", bytes(range(256)) * 3, b"\x01\x02"], ids=["empty", "every byte", "separators"])
def test_a_body_is_the_same_bytes(body: bytes) -> None:
    assert copies([stored(0, body)])[0].body == body


def test_the_largest_body_goes_alone_and_one_byte_more_is_refused() -> None:
    rows = records([b"a", b"x" * FOUR_MIB, b"b"], headers=[None, b"k\x01v\x02", None])
    rows = whole(rows, flag=[1, 2, 3])
    small, large, last = parcels(rows)
    assert isinstance(large.message, BatchEntry)
    assert (large.message.flag, len(large.message.body)) == (2, FOUR_MIB)
    assert properties.decode(large.message.properties)["k"] == "v"
    assert (small.rows, large.rows, last.rows) == (1, 1, 1)
    ((row, kind, told),) = invalid_rows(records([b"a", b"x" * (FOUR_MIB + 1)]), FOUR_MIB)
    assert (row, kind) == (1, "MessageTooLarge")
    assert "4194305 bytes, allowed are 4194304" in told
    assert "max_message_bytes" in told
    assert "maxMessageSize" in told


def test_no_batch_is_longer_than_a_body_may_be() -> None:
    rows = records([b"x" * 700] * 50)
    made = parcels(rows, most_bytes=4096)
    assert all(len(parcel.message.body) <= 4096 < BATCH_BYTES for parcel in made)
    assert sum(parcel.rows for parcel in made) == 50


def test_what_goes_alone_needs_properties_that_a_broker_can_read() -> None:
    large = b"x" * FOUR_MIB
    rows = records([large, b"", large], headers=[b"k\x01\xff\x02"] * 2 + [None])
    rows = whole(rows, message_id=[None, None, b"\xff"])
    assert [(row, kind) for row, kind, _ in invalid_rows(rows, FOUR_MIB)] == [
        (0, "IllegalProperty"),
        (2, "IllegalProperty"),
    ]


def test_a_body_is_measured_in_the_form_in_which_it_is_sent() -> None:
    rows = read([stored(0, zlib.compress(bytes(10_000)), sys_flag=1)])
    assert invalid_rows(rows, 1024) == []
    assert parcels(rows, 1024)[0].packing == 1


MOST_PROPERTIES = 31_488


def test_the_longest_properties() -> None:
    text = b"a\x01" + b"x" * (MOST_PROPERTIES - 3) + b"\x02"
    (copy,) = copies([stored(0, b"", text)])
    assert len(properties.decode(copy.properties)["a"]) == MOST_PROPERTIES - 3
    assert len(copy.properties) <= 32_000
    assert invalid_rows(whole(records([b""], headers=[text]), message_id=[b"F" * 56]), FOUR_MIB) == []
    ((row, kind, told),) = invalid_rows(read([stored(0, b"", text[:-1] + b"y\x02")]), FOUR_MIB)
    assert (row, kind) == (0, "PropertiesTooLarge")
    assert f"allowed are {MOST_PROPERTIES}" in told
    ((_, kind, _),) = invalid_rows(whole(records([b""]), message_id=[b"i" * MOST_PROPERTIES * 2]), FOUR_MIB)
    assert kind == "PropertiesTooLarge"


def test_a_row_is_refused_once() -> None:
    rows = records([b"x" * 5000], headers=[b"a\x01" + b"\xff" * 32_000], key=["\x02"])
    assert len(invalid_rows(rows, 4096)) == 1
    assert len(invalid_rows(rows, 5000)) == 1


USER = {
    "KEYS": "k1 k2",
    "TAGS": "ü",
    "größe": "süß £",
    "sep": "a\x01b",
    "__SHARDINGKEY": "s",
    "TRACE_CONTEXT": "00-ab-cd-01",
}


def test_what_the_user_and_their_tools_have_set_is_kept() -> None:
    text = properties.encode({**USER, "DLQ_ORIGIN_TOPIC": "t", "__BORNHOST": "10.0.0.1"})
    (copy,) = copies([stored(0, b"", text)])
    assert properties.decode(copy.properties).items() >= properties.decode(text).items()


# fmt: off
MUST_NOT_TRAVEL = [
    "DELAY", "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS", "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS",
    "TIMER_ROLL_TIMES", "TIMER_OUT_MS", "TIMER_DEL_UNIQKEY", "TIMER_DELAY_LEVEL", "TRAN_MSG", "PGROUP",
    "__transactionId__", "TRAN_PREPARED_QUEUE_OFFSET", "TRANSACTION_CHECK_TIMES", "CHECK_IMMUNITY_TIME_IN_SECONDS",
    "REAL_TOPIC", "REAL_QID", "RETRY_TOPIC", "INNER_NUM", "INNER_BASE", "INNER_MULTI_DISPATCH",
    "INNER_MULTI_QUEUE_OFFSET", "POP_CK", "POP_CK_OFFSET", "1ST_POP_TIME", "PROPERTY_FORWARD_QUEUE_ID", "REDIRECT",
    "MSG_TYPE", "WAIT", "__CRC32#", "__RMQ.TRANSIENT.TOPIC_SYS_FLAG",
    "MSG_REGION", "TRACE_ON", "CLUSTER", "MIN_OFFSET", "MAX_OFFSET", "RECONSUME_TIME", "MAX_RECONSUME_TIMES",
    "CONSUME_START_TIME", "ORIGIN_MESSAGE_ID", "DUP_INFO", "EXTEND_UNIQ_INFO", "TRANSFER_FLAG", "CORRECTION_FLAG",
    "MQ2_FLAG", "BUYER_ID", "ARRIVE_TIME", "PUSH_REPLY_TIME", "REPLY_TO_CLIENT", "TTL", "CORRELATION_ID", "INSTANCE_ID",
]
# fmt: on


@pytest.mark.parametrize("name", MUST_NOT_TRAVEL)
def test_what_means_something_only_where_it_comes_from_does_not_travel(name: str) -> None:
    (copy,) = copies([stored(0, b"", properties.encode({"a": "1", name: "3", "b": "2"}))])
    assert properties.decode(copy.properties).keys() == {"a", "b", "UNIQ_KEY", "WAYBILL", "BORN_TIMESTAMP"}


def test_inner_batches_are_expanded() -> None:
    """Each message with its own flag, id, body and offset."""
    texts = [b"UNIQ_KEY\x01A\x02", b"UNIQ_KEY\x01BB\x02k\x01v\x02"]
    outer = stored(5, encode_batch([b"one", b""], texts, [7, 8]).body, b"INNER_NUM\x012\x02INNER_BASE\x015\x02")
    rows = read([stored(4, b"before"), outer._replace(sys_flag=INNER_BATCH | NEED_UNWRAP), stored(7, b"behind")])
    assert rows.column("offset").to_pylist() == [4, 5, 6, 7]
    assert rows.column(MESSAGE_ID).to_pylist() == [None, b"A", b"BB", None]
    assert rows.column(FLAG).to_pylist() == [0, 7, 8, 0]
    assert rows.column("value").to_pylist() == [b"before", b"one", b"", b"behind"]


def test_a_compressed_inner_batch_is_sent_message_by_message_and_plain() -> None:
    body = zlib.compress(encode_batch([b"one", b"two"], [b"", b""]).body)
    rows = read([stored(0, body)._replace(sys_flag=INNER_BATCH | NEED_UNWRAP | 0x1)])
    (parcel,) = parcels(rows)
    assert ([entry.body for entry in decode_entries(parcel.message.body)], parcel.packing) == ([b"one", b"two"], 0)


@pytest.mark.parametrize(
    ("born", "at"), [(16, 4), (4, 16), (16, 16)], ids=["born on IPv6", "stored on IPv6", "both on IPv6"]
)
def test_hosts_of_any_length(born: int, at: int) -> None:
    flags = (0x10 if born == 16 else 0) | (0x20 if at == 16 else 0)
    odd = stored(1, PACKED[0x201], b"UNIQ_KEY\x01A\x02", sys_flag=flags | 0x201)
    odd = odd._replace(flag=3, born_host=b"\x01" * born + b"\0\0\1\1", store_host=b"\x02" * at + b"\0\0\1\1")
    first, second = copies([stored(0, b"usual"), odd])
    assert (first.body, second.body, second.sys_flag, second.flag) == (b"usual", PACKED[0x201], 0x201, 3)
    assert properties.decode(second.properties)["UNIQ_KEY"] == "A"


def test_a_stored_topic_of_more_than_127_characters() -> None:
    """The second of the two layouts."""
    long = stored(1, b"body", b"UNIQ_KEY\x01A\x02")._replace(topic="%RETRY%" + "g" * 200, magic=MAGIC_V2, flag=5)
    first, second = copies([stored(0, b"usual"), long])
    assert (first.body, second.body, second.flag) == (b"usual", b"body", 5)


def test_copies_of_copies_are_as_the_first() -> None:
    text = properties.encode({**USER, "UNIQ_KEY": "0123456789ABCDEF"})
    messages = [stored(n, PACKED[0x201], text, sys_flag=0x201)._replace(flag=n) for n in range(4)]
    once, twice = copies(messages), copies(copies(messages))
    for first, second in zip(once, twice, strict=True):
        told, again = properties.decode(first.properties), properties.decode(second.properties)
        assert told.pop("WAYBILL") == again.pop("WAYBILL"), "of equal offsets"
        assert told == again
        assert (first.body, first.flag, first.sys_flag) == (second.body, second.flag, second.sys_flag)
        assert first.properties.count(b"WAYBILL") == second.properties.count(b"WAYBILL") == 1


@few_and_many
@pytest.mark.parametrize(
    "text", [b"", properties.encode(USER), b"BORN_TIMESTAMP\x01soon\x02", b"BORN_TIMESTAMP\x019\x02"]
)
def test_what_is_read_back_has_the_digest_of_what_was_sent(text: bytes, count: int) -> None:
    messages = [stored(n, PACKED[0x1], b"UNIQ_KEY\x01A%d\x02" % n + text, sys_flag=0x1) for n in range(count)]
    sums = []
    for rows in (read(messages), read(copies(messages)), record_batch(columns_of(encoded(copies(messages))), "t")[0]):
        digest = RecordDigest(LINEAGE)
        digest.add(rows)
        sums.append(digest.text())
    assert sums[0] == sums[1] == sums[2]


def encoded(messages: Sequence[StoredMessage]) -> bytes:
    return b"".join(map(encode_message, messages))


def test_a_sink_of_another_system_is_given_no_more_than_it_takes() -> None:
    rows, _ = record_batch(columns_of(encoded([stored(0, PACKED[0x1], b"UNIQ_KEY\x01A\x02", sys_flag=1)])), "orders")
    assert rows.schema == RECORD_SCHEMA


def test_the_sink_counts_bodies_not_messages() -> None:
    options = RocketMQSinkOptions.model_validate({"name_servers": "a:1", "topic": "t", "max_message_bytes": 1024})
    assert RocketMQSink(options).invalid_rows(records([b"x" * 1024])) == []
