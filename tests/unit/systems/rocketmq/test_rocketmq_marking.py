"""What makes a message ours: coordinates and id, written and found again."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from connect_core.rocketmq import StoredMessage
from connect_core.rocketmq.wire import properties
from connect_core.sdk.kits.log_marks import Elsewhere, Mark
from connect_core.sdk.records import Coordinates, Lineage, encode_headers
from connect_core.sdk.testing.driving import records
from connect_core.systems.rocketmq.marking import MARK_BYTES, USUAL_ID_BYTES, MessageMarker, MessageRecogniser, ours
from connect_core.systems.rocketmq.own_columns import MESSAGE_ID, WHOLE_SCHEMA
from tests.unit.systems.rocketmq.test_rocketmq_decoding import stored
from tests.unit.systems.rocketmq.whole import whole

LINEAGE = Lineage("0123abcd", "live", "89abcdef01234567", 2)


def marks(lineage: Lineage, rows: pa.RecordBatch) -> list[bytes]:
    texts: list[bytes] = MessageMarker(lineage).by_column(rows).to_pylist()
    return texts


def marked(position: int, lineage: Lineage, offset: int, *, ordinal: int = 0, outputs: int = 1) -> StoredMessage:
    text = Coordinates(lineage, offset, ordinal).text() + (f":{0:016x}:{outputs}" if outputs > 1 else "")
    return stored(position, b"", f"color\x01red\x02WAYBILL\x01{text}\x02CLUSTER\x01c\x02".encode())


def test_a_message_carries_its_coordinates_and_an_id_made_from_them() -> None:
    first, second = marks(LINEAGE, records([b"a", b"b"], first_offset=5_000_000_000))
    decoded = properties.decode(first)
    assert Coordinates.parse(decoded["WAYBILL"]) == Coordinates(LINEAGE, 5_000_000_000, 0)
    assert len(decoded["UNIQ_KEY"]) == 32
    assert int(decoded["UNIQ_KEY"], 16)
    assert decoded["UNIQ_KEY"] == decoded["UNIQ_KEY"].upper() != properties.decode(second)["UNIQ_KEY"]
    assert marks(LINEAGE, records([b"x"], first_offset=5_000_000_000)) == [first]


TEXTS = st.none() | st.text(max_size=8)
BYTES = st.none() | st.binary(max_size=8)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "offset": st.integers(0, 2**62),
            "ordinal": st.none() | st.integers(0, 70_000),
            "outputs": st.none() | st.integers(1, 70_000),
            "trace": st.none() | st.integers(1, 2**63 - 1),
            MESSAGE_ID: BYTES,
            "headers": BYTES,
            "key": TEXTS,
            "tags": TEXTS,
            "timestamp": st.none() | st.integers(-(10**15), 10**15),
        }
    ),
    min_size=1,
    max_size=20,
)


@given(ROWS, st.sets(st.sampled_from(["ordinal", "outputs", "trace", MESSAGE_ID, "timestamp"])), st.integers(0, 2))
def test_a_few_rows_are_marked_as_many_are(rows: list[dict[str, object]], absent: set[str], first: int) -> None:
    whole = [{"operation": 0, "value": b""} | row | dict.fromkeys(absent) for row in rows]
    batch = pa.RecordBatch.from_pylist(whole, schema=WHOLE_SCHEMA).slice(min(first, len(rows) - 1))
    marker = MessageMarker(LINEAGE)
    assert list(marker.by_row(batch)) == marker.by_column(batch).to_pylist()


def test_other_lineages_have_other_ids() -> None:
    rows = records([b"a"])
    ids = {properties.decode(marks(LINEAGE._replace(incarnation=n), rows)[0])["UNIQ_KEY"] for n in range(9)}
    assert len(ids) == 9


def test_what_the_user_set_is_kept_and_cannot_replace_ours() -> None:
    headers = encode_headers([("color", "red"), ("WAYBILL", "forged"), ("UNIQ_KEY", "forged"), ("KEYS", "forged")])
    rows = records([b"a", b"b"], key=["k", None], tags=[None, "ü"], headers=[headers, None])
    first, second = map(properties.decode, marks(LINEAGE, rows))
    assert (first["color"], first["KEYS"], "TAGS" in first) == ("red", "k", False)
    assert Coordinates.parse(first["WAYBILL"]).lineage == LINEAGE
    assert (second["TAGS"], "KEYS" in second) == ("ü", False)


OUTPUTS = st.lists(
    st.tuples(st.integers(0, 2**40), st.integers(0, 999), st.integers(1, 1000), st.one_of(st.none(), st.integers(1))),
    min_size=1,
)


@given(OUTPUTS)
def test_each_output_says_which_it_is_and_how_many_there_are(rows: list[tuple[int, int, int, int | None]]) -> None:
    """Whatever part of them is written: of a record whose first output is there, a retry writes the others only."""
    rows = [(offset, ordinal, outputs, trace and trace % 2**63) for offset, ordinal, outputs, trace in rows]
    offset, ordinal, outputs, trace = map(list, zip(*rows, strict=True))
    batch = records([b""] * len(rows), offset=offset, ordinal=ordinal, outputs=outputs, trace=trace)
    texts = marks(LINEAGE, batch)
    read = list(ours([stored(n, b"", text) for n, text in enumerate(texts)], [LINEAGE]))
    assert read == [Mark(LINEAGE, o, i, n, trace or 0, many) for n, (o, i, many, trace) in enumerate(rows)]
    ids = {properties.decode(text)["UNIQ_KEY"] for text in texts}
    assert len(ids) == len({row[:2] for row in rows})


def test_a_record_with_one_output_says_no_more_than_before_there_were_several() -> None:
    (text,) = marks(LINEAGE, records([b"a"], 7, ordinal=[0], outputs=[1]))
    assert coordinates(text) == f"{LINEAGE.prefix()}7:0"


def test_marks_need_less_than_is_reckoned() -> None:
    longest = Lineage("f" * 32, "backfill-" + "9" * 60, "f" * 16, 10**9, "o" * 16)
    born = [253_402_300_799_999]  # the end of the year 9999
    rows = records(
        [b"a"],
        first_offset=2**62,
        timestamp=born,
        trace=[2**63 - 1],
        ordinal=[0],
        outputs=[1000],
    )
    (text,) = marks(longest, whole(rows, message_id=[b"F" * USUAL_ID_BYTES]))
    assert len(text) + 22 + 120 < MARK_BYTES


def test_a_stream_with_a_percent_sign_is_no_pattern() -> None:
    (text,) = marks(LINEAGE._replace(stream="100%d"), records([b"a"]))
    assert Coordinates.parse(properties.decode(text)["WAYBILL"]).lineage.stream == "100%d"


def test_ours_are_found_among_others() -> None:
    other = LINEAGE._replace(partition_id="0" * 16)
    messages = [
        marked(0, LINEAGE, 10),
        stored(1, b"foreign", b"color\x01red\x02"),
        marked(2, LINEAGE._replace(uid="ffffffff"), 11),
        marked(3, other, 12),
        marked(4, LINEAGE, 11, ordinal=3),
        stored(5, b"", b"note\x01WAYBILL\x01" + LINEAGE.prefix().encode() + b"9:0\x02"),
        marked(6, LINEAGE._replace(incarnation=3), 13),
    ]
    assert list(ours(messages, [LINEAGE])) == [Mark(LINEAGE, 10, 0, 0), Mark(LINEAGE, 11, 3, 4)]
    assert [mark.position for mark in ours(messages, [LINEAGE, other])] == [0, 3, 4]
    assert list(ours(messages, [])) == []


def test_a_name_tells_what_a_number_does_not() -> None:
    """A ledger that was restored may count otherwise: another file under the same number is not what is looked for."""
    log = LINEAGE._replace(incarnation=2, origin="uIRDT3zr")
    messages = [
        marked(0, log, 10),
        marked(1, log._replace(origin="kmgdJxoj"), 11),
        marked(2, log._replace(origin=""), 12),  # from before there were names
        marked(3, log._replace(incarnation=1), 13),
    ]
    assert [mark.offset for mark in ours(messages, [log])] == [10, 12]
    assert Coordinates.parse(f"{log.prefix()}10:0") == Coordinates(log, 10, 0)


def test_other_incarnations_of_a_partition_are_seen() -> None:
    """Later ones, and what has the same name under another number."""
    log = LINEAGE._replace(incarnation=2, origin="uIRDT3zr")
    later = log._replace(incarnation=3, origin="kmgdJxoj")
    others = [log._replace(incarnation=1, origin="0_eRAcJZ"), later._replace(partition_id="0" * 16)]
    seen = [*others, later, later._replace(origin=""), log._replace(incarnation=1)]
    messages = [marked(n, one, 5) for n, one in enumerate(seen)]
    assert list(MessageRecogniser([log]).read(messages)) == [
        Elsewhere(log, 5, 2, same=False),
        Elsewhere(log, 5, 3, same=False),
        Elsewhere(log, 5, 4, same=True),
    ]


@given(st.lists(st.integers(0, 2**53), unique=True, min_size=1))
def test_what_is_written_is_found(offsets: list[int]) -> None:
    rows = records([b""] * len(offsets), offset=sorted(offsets))
    messages = [stored(i, b"", text) for i, text in enumerate(marks(LINEAGE, rows))]
    assert [mark.offset for mark in ours(messages, [LINEAGE])] == sorted(offsets)


@given(st.lists(st.one_of(st.none(), st.integers(1, 2**63 - 1)), min_size=1, max_size=20))
def test_traces_come_back_with_their_coordinates(traces: list[int | None]) -> None:
    lineage = Lineage("0123abcd", "live", "feed", 0)
    written = marks(lineage, records([b""] * len(traces), 7, trace=traces))
    read = list(ours([stored(n, b"", text) for n, text in enumerate(written)], [lineage]))
    assert read == [Mark(lineage, 7 + n, 0, n, trace or 0) for n, trace in enumerate(traces)]
    assert all(Coordinates.parse(coordinates(text)).offset == 7 + n for n, text in enumerate(written))


def coordinates(properties: bytes) -> str:
    return next(p for p in properties.split(b"\x02") if p.startswith(b"WAYBILL\x01")).partition(b"\x01")[2].decode()
