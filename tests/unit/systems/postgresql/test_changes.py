"""What the log says -> events: values, messages of pgoutput, rows of a snapshot."""

from __future__ import annotations

import json
import struct
from base64 import b64decode
from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from connect_core.systems.postgresql.changes.chunk_tables import ChunkTable
from connect_core.systems.postgresql.changes.events import ChangeEventWriter
from connect_core.systems.postgresql.changes.holders import shown
from connect_core.systems.postgresql.changes.messages import (
    UNCHANGED,
    Change,
    LoggedColumn,
    Relation,
    Said,
    TransactionBegin,
    TransactionEnd,
    Truncate,
    decoded,
)
from connect_core.systems.postgresql.changes.options import PostgresChangesOptions
from connect_core.systems.postgresql.changes.slots import lsn_of, lsn_text
from connect_core.systems.postgresql.changes.snapshots import Chunk, Snapshotting, parse_chunk, values_of
from connect_core.systems.postgresql.changes.values import UnfitForEvent, column_type, to_json
from connect_core.systems.tables.snapshots import DueTable, SnapshotProgress, SnapshotRequest

NUMERIC, DATE, TIMESTAMP, TIMESTAMPTZ, TIMETZ = 1700, 1082, 1114, 1184, 1266
ORDERS = Relation(
    7, "public", "orders", ord("d"), (LoggedColumn("id", True, 23, -1), LoggedColumn("note", False, 25, -1))
)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**20), max_value=10**20))
def test_a_decimal_is_its_digits(number: Decimal) -> None:
    modifier = ((38 << 16) | 4) + 4
    digits = b64decode(json.loads(to_json(column_type(NUMERIC, modifier))(f"{number:.4f}")))
    assert Decimal(int.from_bytes(digits, "big", signed=True)).scaleb(-4) == number
    shorter = digits[1:]
    assert not shorter or int.from_bytes(shorter, "big", signed=True) != int.from_bytes(digits, "big", signed=True)


@given(st.dates())
def test_a_date_is_its_days(day: date) -> None:
    assert to_json(column_type(DATE, -1))(day.isoformat()) == str((day - date(1970, 1, 1)).days)


@pytest.mark.parametrize(
    ("text", "after"), [("0001-12-31 BC", date(1, 1, 1)), ("10000-01-01", date(9999, 12, 31) + timedelta(0))]
)
def test_a_date_that_python_does_not_have(text: str, after: date) -> None:
    days = int(to_json(column_type(DATE, -1))(text))
    assert abs(days - (after - date(1970, 1, 1)).days) == 1


def test_a_moment_before_there_were_years() -> None:
    at_midnight = int(to_json(column_type(DATE, -1))("0044-03-15 BC")) * 86_400_000_000
    assert to_json(column_type(TIMESTAMP, -1))("0044-03-15 12:00:00.5 BC") == str(at_midnight + 43_200_500_000)


@pytest.mark.parametrize(
    ("kind", "modifier", "text"),
    [
        (NUMERIC, ((5 << 16) | 2) + 4, "NaN"),
        (DATE, -1, "infinity"),
        (TIMESTAMP, -1, "-infinity"),
        (TIMESTAMPTZ, -1, "infinity"),
        (TIMESTAMPTZ, -1, "0044-03-15 12:00:00+00 BC"),
        (TIMETZ, -1, "nonsense"),
    ],
)
def test_what_an_event_cannot_have_is_said_without_the_value(kind: int, modifier: int, text: str) -> None:
    with pytest.raises(UnfitForEvent) as caught:
        to_json(column_type(kind, modifier))(text)
    assert text not in str(caught.value)


def test_a_time_with_a_zone_is_in_utc() -> None:
    assert [to_json(column_type(TIMETZ, -1))(one) for one in ("01:00:00.5+02", "23:00:00-03:30", "10:00:00+00")] == [
        '"23:00:00.5Z"',
        '"02:30:00Z"',
        '"10:00:00Z"',
    ]


def test_a_scale_below_zero_is_a_text() -> None:
    assert to_json(column_type(NUMERIC, ((3 << 16) | (-2 & 0x7FF)) + 4))("12300") == '"12300"'


@given(st.lists(st.one_of(st.none(), st.text(st.characters(exclude_characters="\0", codec="utf-8"))), min_size=1))
def test_a_row_as_a_text(values: list[str | None]) -> None:
    assert values_of(f"({','.join(map(as_the_server_writes, values))})") == values


def as_the_server_writes(value: str | None) -> str:
    """As `record_out` of the server."""
    if value is None:
        return ""
    if value and not any(one in '"\\(),' or one in " \t\n\r\v\f" for one in value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '""') + '"'


@given(st.recursive(st.one_of(st.none(), st.text(st.characters(exclude_characters="\0", codec="utf-8"))), st.lists))
def test_an_array_as_a_text(items: object) -> None:
    array = items if isinstance(items, list) else [items]
    assert json.loads(to_json(column_type(1009, -1))(array_as_the_server_writes(array))) == array


def array_as_the_server_writes(items: list[object]) -> str:
    """As `array_out`, which quotes what it must; here all."""
    written = []
    for one in items:
        if isinstance(one, list):
            written.append(array_as_the_server_writes(one))
        elif one is None:
            written.append("NULL")
        else:
            written.append('"' + str(one).replace("\\", "\\\\").replace('"', '\\"') + '"')
    return "{" + ",".join(written) + "}"


def values(*texts: str | object | None) -> bytes:
    told = struct.pack(">H", len(texts))
    for one in texts:
        if one is None or one is UNCHANGED:
            told += b"n" if one is None else b"u"
        else:
            told += b"t" + struct.pack(">I", len(str(one).encode())) + str(one).encode()
    return told


def test_messages_say_what_the_protocol_has() -> None:
    assert decoded(b"B" + struct.pack(">QqI", 500, 1_000_000, 42)) == TransactionBegin(500, 946_684_801_000, 42)
    assert decoded(b"C" + b"\0" + struct.pack(">QQq", 500, 560, 1_000_000)) == TransactionEnd(560)
    assert decoded(b"O" + struct.pack(">Q", 1) + b"origin\0") is None
    columns = b"\1id\0" + struct.pack(">Ii", 23, -1) + b"\0note\0" + struct.pack(">Ii", 25, -1)
    assert decoded(b"R" + struct.pack(">I", 7) + b"public\0orders\0d" + struct.pack(">H", 2) + columns) == ORDERS
    oid = struct.pack(">I", 7)
    assert decoded(b"I" + oid + b"N" + values("1", "é")) == Change("c", 7, ["1", "é"], None, False)
    key_moved = Change("u", 7, ["2", UNCHANGED], ["1", None], True)
    assert decoded(b"U" + oid + b"K" + values("1", None) + b"N" + values("2", UNCHANGED)) == key_moved
    assert decoded(b"D" + oid + b"O" + values("1", "a")) == Change("d", 7, None, ["1", "a"], False)
    assert decoded(b"T" + struct.pack(">IBII", 2, 0, 7, 8)) == Truncate((7, 8))
    said = b"M\1" + struct.pack(">Q", 9) + b"waybill.s.watermark\0" + struct.pack(">I", 3) + b"one"
    assert decoded(said) == Said("waybill.s.watermark", "one")


def test_the_key_of_a_record_is_that_of_the_row() -> None:
    writer = ChangeEventWriter("shop", lambda of: ["note"])
    writer.knows(ORDERS)
    writer.begins(TransactionBegin(500, 1_000, 42))
    assert writer.change(Change("d", 7, None, ["1", None], True), 9).key == "1"
    whole = ORDERS._replace(
        oid=8, identity=ord("f"), columns=tuple(one._replace(of_key=True) for one in ORDERS.columns)
    )
    writer.knows(whole)
    assert writer.change(Change("c", 8, ["1", "a"], None, False), 9).key == "a", "of its primary key alone"


def test_places_in_the_log() -> None:
    assert lsn_of("16/B374D848") == 0x16B374D848
    assert lsn_text(lsn_of("16/B374D848")) == "16/B374D848"


def test_a_chunk_is_the_same_after_it_was_written() -> None:
    chunk = Chunk("one", ORDERS._replace(oid=0, identity=0), ("1",))
    for one in (chunk, chunk._replace(where="id > 3")):
        assert parse_chunk(one.text({})) == (one, {})
    assert "where" not in json.loads(chunk.text({})), "as earlier versions wrote it"


def test_a_chunk_of_another_condition_is_not_due() -> None:
    orders = ("public", "orders")
    reading = Snapshotting(SnapshotProgress((DueTable(orders, "id > 3"), DueTable(orders, ""))))
    chunk = Chunk("one", ORDERS, None)
    for where, due in (("", False), ("id > 4", False), ("id > 3", True)):
        reading.watermark_came("one")
        assert reading.begins(chunk._replace(where=where)) == due
        reading.ends(None)
    reading.watermark_came("one")
    reading.requested(SnapshotRequest((DueTable(orders, "id > 4"),), (orders,)))
    assert not reading.begins(chunk), "it was cancelled between its watermark and the chunk"
    assert reading.progress == SnapshotProgress((DueTable(orders, "id > 4"),))


def test_a_request_while_rows_come_is_behind_them() -> None:
    reading = Snapshotting(SnapshotProgress.of((("public", "orders"),), None))
    reading.requested(SnapshotRequest(SnapshotProgress.of((("public", "orders"), ("public", "others"))).tables))
    reading.watermark_came("one")
    assert reading.begins(Chunk("one", ORDERS, None))
    reading.ends(None)
    assert reading.progress == SnapshotProgress.of((("public", "orders"), ("public", "others")), None)
    assert not reading.begins(Chunk("one", ORDERS, None)), "its watermark was used"


ITEMS = ORDERS._replace(oid=8, table="items", identity=0)
BOTH = SnapshotProgress.of((("public", "orders"), ("public", "items")), ("5",))


def test_a_chunk_of_a_table_behind_one_that_cannot_be_read_puts_that_one_behind_it() -> None:
    """Once, and only where it is due then: another driver may say the same, or have seen it mended."""
    reading, turned = Snapshotting(BOTH), Chunk("one", ITEMS, None, later=1)
    assert parse_chunk(turned.text({})) == (turned, {})
    reading.watermark_came("one")
    assert reading.begins(turned)
    reading.ends(("7",))
    assert reading.progress == SnapshotProgress.of((("public", "items"), ("public", "orders")), ("7",))
    for chunk in (turned, Chunk("one", ORDERS, ("5",))):
        reading.watermark_came("one")
        assert not reading.begins(chunk)
        reading.ends(("9",))
    assert reading.progress == SnapshotProgress.of((("public", "items"), ("public", "orders")), ("7",))
    for chunk in (Chunk("one", ITEMS, ("7",)), Chunk("one", ORDERS, None)):
        reading.watermark_came("one")
        assert reading.begins(chunk)
        reading.ends(None)
    assert reading.progress.tables == ()


def test_a_chunk_whose_rows_do_not_come_turns_nothing() -> None:
    reading = Snapshotting(BOTH)
    reading.watermark_came("one")
    reading.changed(ITEMS.oid, None)
    assert not reading.begins(Chunk("one", ITEMS, None, later=1))
    reading.ends(("7",))
    assert reading.progress == BOTH


def test_a_chunk_that_an_earlier_version_wrote() -> None:
    said = json.loads(Chunk("one", ORDERS, ("5",)).text({}))
    del said["later"]
    assert parse_chunk(json.dumps(said)) == (Chunk("one", ORDERS._replace(identity=0), ("5",)), {})


def test_a_table_goes_on_behind_a_key_of_its_own_alone() -> None:
    """Another table that has the name by now, and another key, has rows before it, too."""
    table = ChunkTable(ORDERS, {}, {}, "orders", "key of 7: id 23 0")
    assert table.behind(None) is None
    assert table.behind(table.up_to(("5",))) == ("5",)
    assert table.behind(("key of 8: id 23 0", "5")) is None
    assert table.behind(("key of 7: id 23 0, note 25 100", "5", "x")) is None
    assert table.behind(("5",)) == ("5",), "of an earlier version"
    assert table.behind(("5", "x")) is None


@pytest.mark.parametrize(
    ("seconds", "told"), [(0.4, "0 s"), (119, "119 s"), (120, "2 min"), (7_300, "2 h"), (86_400 * 9, "9 d")]
)
def test_how_long_somebody_holds_rows_up(seconds: float, told: str) -> None:
    assert shown(seconds) == told


def test_a_pattern_needs_a_publication() -> None:
    place = {"host": "h", "database": "d", "user": "u", "uid": "A1"}
    with pytest.raises(ValidationError, match="name a publication"):
        PostgresChangesOptions(**place, tables=["sales.*"])  # type: ignore[arg-type]
    options = PostgresChangesOptions(**place, tables=["sales.*", "orders", "public.orders"], publication="all")  # type: ignore[arg-type]
    assert options.named() == [("public", "orders")]
    assert options.wants("sales", "a")
    assert not options.wants("public", "a")
    assert options.slot_name == "waybill_a1"
