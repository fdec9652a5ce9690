"""What makes a message ours: coordinates and id, written and found again."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from connect_core.records import Coordinates, Lineage, encode_headers
from connect_core.rocketmq import StoredMessage
from connect_core.rocketmq.wire import properties
from connect_core.systems.rocketmq.marking import MARK_BYTES, USUAL_ID_BYTES, Mark, Marker, ours
from tests.unit.systems.driving import records
from tests.unit.systems.rocketmq.test_rocketmq_decoding import stored

LINEAGE = Lineage("0123abcd", "live", "89abcdef01234567", 2)


def marks(lineage: Lineage, rows: pa.RecordBatch) -> list[bytes]:
    texts: list[bytes] = Marker(lineage).properties(rows).to_pylist()
    return texts


def marked(position: int, lineage: Lineage, offset: int, *, ordinal: int = 0) -> StoredMessage:
    text = Coordinates(lineage, offset, ordinal).text()
    return stored(position, b"", f"color\x01red\x02WAYBILL\x01{text}\x02CLUSTER\x01c\x02".encode())


def test_a_message_carries_its_coordinates_and_an_id_made_from_them() -> None:
    first, second = marks(LINEAGE, records([b"a", b"b"], first_offset=5_000_000_000))
    decoded = properties.decode(first)
    assert Coordinates.parse(decoded["WAYBILL"]) == Coordinates(LINEAGE, 5_000_000_000, 0)
    assert len(decoded["UNIQ_KEY"]) == 32
    assert int(decoded["UNIQ_KEY"], 16)
    assert decoded["UNIQ_KEY"] == decoded["UNIQ_KEY"].upper() != properties.decode(second)["UNIQ_KEY"]
    assert marks(LINEAGE, records([b"x"], first_offset=5_000_000_000)) == [first]


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


def test_outputs_of_one_record_are_counted_over_all_batches() -> None:
    marker = Marker(LINEAGE)
    found: list[tuple[int, int]] = []
    for offsets in ([1, 1, 2], [2, 2, 3], [4], [4, 5, 5]):
        rows = records([b""] * len(offsets), offset=offsets)
        for text in marker.properties(rows).to_pylist():
            coordinates = Coordinates.parse(properties.decode(text)["WAYBILL"])
            found.append((coordinates.offset, coordinates.ordinal))
    assert found == [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 0), (4, 0), (4, 1), (5, 0), (5, 1)]


def test_marks_need_less_than_is_reckoned() -> None:
    longest = Lineage("f" * 32, "backfill-" + "9" * 60, "f" * 16, 10**9)
    born = [253_402_300_799_999]  # the end of the year 9999
    (text,) = marks(longest, records([b"a"], first_offset=2**62, message_id=[b"F" * USUAL_ID_BYTES], timestamp=born))
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
