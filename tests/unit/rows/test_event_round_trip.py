"""Any event that is written is read as the same; and any bytes, with any headers, are a row or have a reason."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from connect_core.rows.event_attributes import INTEGERS, STANDARD, event_rows
from connect_core.rows.event_headers import BINDINGS
from connect_core.rows.event_reading import CloudEventReader
from connect_core.rows.event_writing import CloudEventWriter
from connect_core.rows.schema import arrow_type
from connect_core.rows.types import Type
from connect_core.sdk.records import encode_headers
from tests.unit.rows.strategies import ROW_TYPES, values
from tests.unit.rows.test_event_reading import as_json

WRITTEN = [name for name in BINDINGS if name != "http"]

_LEGAL = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), min_size=1, max_size=6)
_EXTENSION = st.sampled_from(["text", "bool", *INTEGERS, "bytes", "timestamp(s)", "timestamp(us)"])
_STANDARD = {
    **dict.fromkeys(("id", "type"), _LEGAL),
    "source": st.sampled_from(["/a", "urn:x:%20", "a"]),
    "subject": st.none() | _LEGAL,
    "time": st.none() | st.integers(-9_223_372_036 * 10**9, 2**63 - 1),
    "dataschema": st.sampled_from([None, "https://example.com/a?b#c"]),
}
_IN_HEADERS = {"text": st.none() | _LEGAL, "bytes": st.none() | st.binary(min_size=1, max_size=6)}
"""What is empty is no header."""
_TYPES = {"text": ["text/plain", "a/b;charset=utf-8", "a/json"], "bytes": ["a/b", "application/json", None]}


@st.composite
def events(draw: st.DrawFn) -> tuple[Type, list[dict[str, Any]]]:
    """Rows of any type that an event may have, with a content type that says what their data is."""
    names = draw(st.lists(st.from_regex(r"[a-z0-9]{1,5}", fullmatch=True), max_size=3, unique=True))
    extensions = {name: draw(_EXTENSION) for name in names if name not in (*STANDARD, "data", "specversion")}
    rows = event_rows({"data": "text", **extensions})
    data = draw(
        st.sampled_from([Type("text"), Type("bytes")]) | ROW_TYPES | ROW_TYPES.map(lambda one: one.fields[0][1])
    )
    rows = Type("struct", fields=(*rows.fields[:-1], ("data", data)))
    content_type = st.sampled_from(_TYPES.get(data.kind, ["application/json", "a/b+json; charset=UTF-8"]))
    others = {
        name: _IN_HEADERS[one.kind] if one.kind in _IN_HEADERS else values(one)
        for name, one in rows.fields
        if name not in (*STANDARD, "data")
    }
    row = _STANDARD | others | {"datacontenttype": content_type, "data": values(data)}
    return rows, draw(st.lists(st.fixed_dictionaries(row), max_size=5))


@given(events(), st.sampled_from(["structured", "binary"]), st.sampled_from(WRITTEN), st.integers(0, 2))
def test_an_event_that_is_written_is_read_as_the_same(
    some: tuple[Type, list[dict[str, Any]]], mode: str, binding: str, skipped: int
) -> None:
    types, given_rows = some
    rows = pa.array(given_rows, arrow_type(types)).slice(skipped)
    headers = pa.array([b"site\x01north\x02"] * len(rows), pa.binary())
    made = CloudEventWriter(types, mode, binding).written(rows, headers)
    back = CloudEventReader(types).read(made.values, made.headers)
    assert (made.unfit, back.unfit) == ([], [])
    if mode == "binary":  # where empty data is no data
        there = [one if one["data"] not in (b"", "") else one | {"data": None} for one in given_rows]
        rows = pa.array(there, arrow_type(types)).slice(skipped)
    assert back.rows.equals(rows)


_HEADERS = st.lists(
    st.tuples(
        st.sampled_from(["ce_", "CE_", "ce-", "MQTT_USER_", ""]),
        st.sampled_from(["specversion", "id", "source", "type", "seq", "content-type", "PROPERTIES", "contenttype"]),
        st.sampled_from(["1.0", "1", "/a", "application/cloudevents+json", "a/json", '[["id","1"]]', "%zz", ""]),
    ).map(lambda one: (one[0] + one[1], one[2])),
    max_size=9,
)  # fmt: skip


@given(
    st.lists(
        st.tuples(
            st.binary(max_size=40) | st.sampled_from([as_json(), as_json(data=1)[:-1], b"1", b'{"a":1}', b"\0"]),
            st.none() | st.binary(max_size=20) | _HEADERS.map(encode_headers),
        ),
        max_size=5,
    ),
    st.sampled_from(["bytes", "text", "int8", "{a: int8}"]),
    st.sampled_from(["reject", "drop"]),
)
def test_any_bytes_are_a_row_or_have_a_reason(
    records: list[tuple[bytes, bytes | None]], data: str, unknown: Any
) -> None:
    rows = event_rows({"seq": "int8", "data": {"a": "int8"} if data.startswith("{") else data})
    some = [pa.array([record[at] for record in records], pa.binary()) for at in (0, 1)]
    made = CloudEventReader(rows, unknown=unknown).read(*some)
    assert len(made.rows) + len(made.unfit) == len(records)
    assert made.rows.type == arrow_type(rows)
    assert [at for at, _ in made.unfit] == sorted({at for at, _ in made.unfit})


_GOOD = '{ "specversion" : "1.0","i\\u0064":"a\\"b" ,\n"source":"/a", "type":"t","seq":5,"data":{"a":[1,{"b":null}]}}\t'


@given(st.integers(0, len(_GOOD)), st.integers(0, 3), st.text('{}[]":,\\ \n0e-a', max_size=3))
def test_what_is_cut_out_of_an_event_is_what_its_json_says(place: int, gone: int, instead: str) -> None:
    """Python's own reader is the judge, of an event in which something has changed."""
    text = _GOOD[:place] + instead + _GOOD[place + gone :]
    some = pa.array([text.encode()], pa.binary()), pa.nulls(1, pa.binary())
    made = CloudEventReader(event_rows({"seq": "int32"}), unknown="drop").read(*some)
    try:
        expected = json.loads(text)
    except ValueError:
        assert len(made.rows) == 0
        return
    for row in made.rows.to_pylist():
        names = ("id", "source", "type", "seq")
        assert [row[name] for name in names] == [expected.get(name) for name in names]
        assert row["data"] is None or json.loads(row["data"]) == expected["data"]
    assert len(made.rows) == 1 or text != _GOOD
