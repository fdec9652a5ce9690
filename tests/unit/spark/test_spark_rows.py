"""Stored messages become the columns that were asked for, and no others are decoded."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from connect_core.errors import ConfigError
from connect_core.rocketmq import Queue, StoredMessage
from connect_core.spark.options import ReadOptions, checked
from connect_core.spark.ranges import ReadPiece
from connect_core.spark.rows import Rows, check_schema, ddl
from connect_core.systems.rocketmq.columns import columns_of_messages
from tests.unit.systems.rocketmq.test_rocketmq_decoding import stored

QUEUE = Queue("orders", "broker-a", 0)
ALL = "topic,queue,offset,key,tags,value,headers,timestamp,stored_at"


def options(columns: str = ALL, on_data_loss: str = "fail", **more: str) -> ReadOptions:
    given = {"name_servers": "h:1", "topics": "orders", "columns": columns, "on_data_loss": on_data_loss}
    return checked(ReadOptions, given | more)


def decoded(messages: list[StoredMessage], columns: str = ALL, on_data_loss: str = "fail") -> pa.RecordBatch:
    batch, rejects = Rows(QUEUE, options(columns, on_data_loss)).decoded(columns_of_messages(messages), "orders")
    assert rejects == ()
    return batch


def test_headers_are_given_as_they_are_stored_where_that_is_wanted() -> None:
    properties = "KEYS\x01k\x02größe\x01ß \x01\x02WAYBILL\x01u:s:p:0:1:0\x02a\x01b\x02".encode()
    wanted = options("headers", headers="binary")
    batch, _ = Rows(QUEUE, wanted).decoded(columns_of_messages([stored(7, b"", properties), stored(8, b"")]), "orders")
    assert ddl(wanted) == "`headers` binary"
    assert batch.column("headers").to_pylist() == ["größe\x01ß \x01\x02a\x01b\x02".encode(), None]


def test_a_message_has_all_columns_in_sparks_types() -> None:
    properties = "KEYS\x01k\x02größe\x01ß \x01\x02WAYBILL\x01u:s:p:0:1:0\x02a\x01b\x02".encode()
    batch = decoded([stored(7, b"body", properties), stored(8, b"")])
    assert batch.schema == pa.schema(
        {
            **dict.fromkeys(("topic", "queue"), pa.string()),
            "offset": pa.int64(),
            **dict.fromkeys(("key", "tags"), pa.string()),
            "value": pa.binary(),
            "headers": pa.map_(pa.string(), pa.string()),
            **dict.fromkeys(("timestamp", "stored_at"), pa.timestamp("us", tz="UTC")),
        }
    )
    born, stored_at = 1_700_000_000_007, 1_700_000_000_507
    assert batch.to_pylist()[0] == {
        "topic": "orders",
        "queue": "orders/broker-a/0",
        "offset": 7,
        "key": "k",
        "tags": None,
        "value": b"body",
        "headers": [("größe", "ß \x01"), ("a", "b")],
        "timestamp": datetime.fromtimestamp(born / 1000, UTC),
        "stored_at": datetime.fromtimestamp(stored_at / 1000, UTC),
    }
    assert [batch.column(name)[1].as_py() for name in ("key", "value", "headers")] == [None, b"", None]


@pytest.mark.parametrize("name", ALL.split(","))
def test_each_column_can_stand_alone(name: str) -> None:
    message = stored(7, b"body", b"KEYS\x01k\x02TAGS\x01t\x02a\x01b\x02")
    alone = decoded([message], name)
    assert alone.schema.names == [name]
    assert alone.column(name).to_pylist() == decoded([message]).column(name).to_pylist()
    assert len(decoded([], name)) == 0


def test_columns_come_in_the_order_that_was_asked_for() -> None:
    assert decoded([stored(7, b"body")], "value,offset").to_pylist() == [{"value": b"body", "offset": 7}]
    assert ddl(options("value,offset")) == "`value` binary, `offset` bigint"


def test_what_was_not_asked_for_is_not_looked_at() -> None:
    damaged = stored(7, b"body", b"KEYS\x01\xff\x02", crc=1)
    assert decoded([damaged], "offset,stored_at").column("offset").to_pylist() == [7]
    for name in ("value", "key"):
        batch, rejects = Rows(QUEUE, options(name)).decoded(columns_of_messages([stored(6, b""), damaged]), "orders")
        assert [reject.offset for reject in rejects] == [7]
        assert len(batch) == 1


def test_a_header_that_is_no_text_is_a_damaged_message() -> None:
    damaged = stored(7, b"body", b"a\x01\xff\x02")
    assert Rows(QUEUE, options("headers")).decoded(columns_of_messages([damaged]), "orders")[1][0].offset == 7


def test_a_gap_is_a_row_that_says_so() -> None:
    rows = Rows(QUEUE, options("offset,value,queue", on_data_loss="skip"))
    (told,) = rows.gap(ReadPiece(QUEUE, 3, 9, "deleted")).to_pylist()
    gap = {"begin": 3, "end": 9, "cause": "deleted"}
    assert told == {"offset": 3, "value": None, "queue": "orders/broker-a/0", "gap": gap}
    message = decoded([stored(7, b"body")], "offset,value,queue", on_data_loss="skip")
    assert message.schema == rows.gap(ReadPiece(QUEUE, 3, 9, "deleted")).schema
    assert message.column("gap").to_pylist() == [None]
    assert ddl(options("offset", on_data_loss="skip")).endswith("`gap` struct<begin:bigint,end:bigint,cause:string>")


def test_a_schema_of_ones_own_is_refused_when_it_differs() -> None:
    check_schema(options("value,offset"), ["value", "offset"])
    with pytest.raises(ConfigError, match="makes value, offset"):
        check_schema(options("value,offset"), ["offset", "value"])
