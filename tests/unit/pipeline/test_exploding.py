"""Records with a list become one record for each of its items: which is which, and what counts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.pipeline import shaping
from connect_core.pipeline.numbering import whole_records
from connect_core.pipeline.shaping import Pipeline, Shaped
from connect_core.pipeline.transforms.exploding import MAX_PIECES
from connect_core.pipeline.transforms.steps import step_of
from connect_core.pipeline.transforms.working import Work
from connect_core.rows.types import struct_of
from connect_core.sdk.testing.driving import records

FIELDS = {"id": "int64", "items": [{"sku": "text", "n": "int64"}]}
PARSE = {"format": "json", "fields": FIELDS}
EXPLODE: list[Any] = [{"explode": "items"}, {"flatten": "_"}]


def order(number: int, *pieces: int | str | None) -> bytes:
    items = [None if one is None else {"sku": f"s{one}", "n": one} for one in pieces]
    return json.dumps({"id": number, "items": items}).encode()


def shaped(bodies: Sequence[bytes], steps: list[Any] = EXPLODE, **more: Any) -> Shaped:
    return Pipeline({"parse": PARSE, "transforms": steps, **more}).shape(records(bodies, key=["k"] * len(bodies)))


def rows(made: Shaped) -> list[tuple[Any, ...]]:
    names = ("offset", "ordinal", "outputs")
    numbers = zip(*(made.kept.column(name).to_pylist() for name in names), strict=True)
    values = map(json.loads, made.kept.column("value").to_pylist())
    return [(*number, value["id"], value["items_n"]) for number, value in zip(numbers, values, strict=True)]


def test_each_item_becomes_a_record_with_what_its_record_had() -> None:
    made = shaped([order(1, 10, 11), order(2), order(3, 30), b'{"id": 4, "items": null}', order(5, 50, None, 52)])
    assert rows(made) == [
        (0, 0, 2, 1, 10),
        (0, 1, 2, 1, 11),
        (2, 0, 1, 3, 30),
        (4, 0, 3, 5, 50),
        (4, 1, 3, 5, None),
        (4, 2, 3, 5, 52),
    ]
    assert made.kept.column("key").to_pylist() == ["k"] * 6
    assert (made.filtered, made.rejected, made.rows) == ((1, 3), (), 5)


def test_pieces_that_are_left_out_have_no_number() -> None:
    steps = [*EXPLODE, {"filter": "$.items_n > 10"}]
    made = shaped([order(1, 10, 11, 12), order(2, 1, 2), order(3, 99, 1)], steps)
    assert rows(made) == [(0, 0, 2, 1, 11), (0, 1, 2, 1, 12), (2, 0, 1, 3, 99)]
    assert made.filtered == (1,)


def test_numbers_count_through_the_outputs_of_rules() -> None:
    rules = [{"name": "all", "keys": "{$.items_sku}"}, {"name": "large", "when": "$.items_n > 10", "to": "large"}]
    made = shaped([order(1, 10, 11), order(2, 20)], rules=rules)
    assert rows(made) == [(0, 0, 3, 1, 10), (0, 1, 3, 1, 11), (0, 2, 3, 1, 11), (1, 0, 2, 2, 20), (1, 1, 2, 2, 20)]
    assert made.kept.column("to").to_pylist() == [None, None, "large", None, "large"]
    assert made.kept.column("key").to_pylist() == ["s10", "s11", "k", "s20", "k"]


def test_a_record_with_an_unfit_piece_is_rejected_as_a_whole_and_once() -> None:
    steps = [*EXPLODE, {"cast": {"items_n": "int8"}}]
    made = shaped([order(1, 1, 2), order(2, 3, 300, 400, 4), order(3, 5)], steps)
    assert rows(made) == [(0, 0, 2, 1, 1), (0, 1, 2, 1, 2), (2, 0, 1, 3, 5)]
    assert [(one.offset, one.stage, one.original) for one in made.rejected] == [
        (1, "transform", order(2, 3, 300, 400, 4))
    ]
    assert made.filtered == ()


def test_a_record_of_which_one_piece_cannot_be_written_is_rejected_as_a_whole() -> None:
    document = {"format": "json", "fields": {"items": ["text"]}}
    pipeline = Pipeline({"parse": document, "transforms": [{"explode": "items"}], "encode": {"format": "text"}})
    made = pipeline.shape(records([b'{"items":["a","b"]}', b'{"items":["c",null,null]}', b'{"items":["d"]}']))
    assert made.kept.column("value").to_pylist() == [b"a", b"b", b"d"]
    assert made.kept.column("outputs").to_pylist() == [2, 2, 1]
    assert [(one.offset, one.stage) for one in made.rejected] == [(1, "encode")]


def test_a_record_with_too_many_items_is_rejected() -> None:
    body = json.dumps({"items": ["x"] * (MAX_PIECES + 1)}).encode()
    pipeline = Pipeline(
        {"parse": {"format": "json", "fields": {"items": ["text"]}}, "transforms": [{"explode": "items"}]}
    )
    made = pipeline.shape(records([body, b'{"items":["a"]}']))
    assert made.kept.column("value").to_pylist() == [b'{"items":"a"}']
    assert [one.message for one in made.rejected] == [f"explode of items: more than {MAX_PIECES} pieces of one record"]


def exploded(body: bytes, fields: dict[str, Any], steps: list[Any]) -> Shaped:
    document = {"parse": {"format": "json", "fields": fields}, "transforms": steps}
    return Pipeline(document).shape(records([body, b"{}"]))


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the pieces hold, each time that some are made."""
    sizes: list[int] = []
    take = Work.take

    def measured(work: Work, rows: Any) -> None:
        take(work, rows)
        sizes.append(work.rows.nbytes + work.records.nbytes)

    monkeypatch.setattr(Work, "take", measured)
    return sizes


@pytest.mark.parametrize("dropped", [[{"drop": ["s"]}], [{"set": {"s": "x"}}]])
def test_pieces_carry_neither_the_payload_nor_the_list(dropped: list[Any], taken: list[int]) -> None:
    """A payload of 1 MB with 2,500 items would be 2.5 GB."""
    body = json.dumps({"id": 1, "s": "x" * 1_000_000, "l": [{"k": n, "t": "y" * 100} for n in range(2_500)]}).encode()
    fields = {"id": "int64", "s": "text", "l": [{"k": "int64", "t": "text"}]}
    made = exploded(body, fields, [*dropped, {"explode": "l"}])
    assert (len(made.kept), made.rejected) == (2_500, ())
    assert max(taken) < 1 << 20


@pytest.mark.parametrize(
    "step",
    [{"set": {"t": "{payload:text}"}}, {"filter": "payload:text CONTAINS 'x'"}, {"record": {"key": "{payload:text}"}}],
)
def test_a_later_step_that_names_the_payload_has_it(step: dict[str, Any]) -> None:
    made = exploded(b'{"l":["x","y"]}', {"l": ["text"]}, [{"explode": "l"}, step])
    assert len(made.kept) == 2
    if "set" in step:
        assert [json.loads(one)["t"] for one in made.kept.column("value").to_pylist()] == ['{"l":["x","y"]}'] * 2


@pytest.mark.parametrize(
    ("fields", "steps"),
    [
        ({"id": "int64", "s": "text", "l": ["int64"]}, [{"explode": "l"}]),
        (
            {"id": "int64", "s": "text", "l": ["int64"]},
            [{"drop": ["s"]}, {"explode": "l"}, {"set": {"t": "{payload:text}"}}],
        ),
    ],
)
def test_pieces_that_would_hold_too_much_in_all_are_rejected_before_they_are_made(
    fields: dict[str, Any], steps: list[Any], taken: list[int]
) -> None:
    body = json.dumps({"id": 1, "s": "x" * 1_000_000, "l": list(range(2_500))}).encode()
    made = exploded(body, fields, steps)
    [reject] = made.rejected
    assert (reject.offset, reject.stage, reject.original) == (0, "transform", body)
    assert "would hold more than 64 MiB in all" in reject.message
    assert max(taken) < 1 << 20


def test_pieces_of_pieces_are_counted_and_bounded_with_their_record(taken: list[int]) -> None:
    items = [[{"k": number, "n": [1, 2, 3]} for number in range(200)] for _ in range(200)]
    fields = {"id": "int64", "ll": [[{"k": "int64", "n": ["int64"]}]]}
    steps = [{"explode": "ll"}, {"explode": "ll"}]
    made = exploded(json.dumps({"id": 1, "ll": items}).encode(), fields, steps)
    assert [one.message for one in made.rejected] == ["explode of ll: more than 10000 pieces of one record"]
    assert made.filtered == (1,)
    assert max(taken) < 1 << 20
    made = exploded(json.dumps({"id": 1, "ll": items[:50]}).encode(), fields, steps)
    assert (len(made.kept), made.rejected) == (10_000, ())


def test_lists_in_lists_and_in_objects_explode_one_after_the_other() -> None:
    fields = {"a": {"b": [["int64"]]}}
    steps = [{"explode": "a.b"}, {"explode": "a.b"}]
    made = Pipeline({"parse": {"format": "json", "fields": fields}, "transforms": steps}).shape(
        records([b'{"a":{"b":[[1,2],[],[3]]}}', b'{"a":null}', b'{"a":{"b":[[4]]}}'])
    )
    assert [json.loads(one)["a"]["b"] for one in made.kept.column("value").to_pylist()] == [1, 2, 3, 4]
    assert made.kept.column("ordinal").to_pylist() == [0, 1, 2, 0]


@pytest.mark.parametrize("rules", [None, [{"name": "a"}, {"name": "b", "to": "b"}]])
@pytest.mark.parametrize("most", [1, 600, 2_000, 1 << 20])
def test_what_would_be_too_large_is_shaped_in_parts_and_never_within_a_record(
    most: int, rules: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shaping, "MAX_OUTPUT_BYTES", most)
    monkeypatch.setattr("connect_core.pipeline.rules.MAX_OUTPUT_BYTES", most)
    bodies = [order(number, *range(number % 4)) for number in range(12)]
    more = {} if rules is None else {"rules": rules}
    at_once = Pipeline({"parse": PARSE, "transforms": EXPLODE, **more})
    given, found = records(bodies), []
    while len(given):
        made = at_once.shape(given)
        assert made.rows >= 1
        ordinals = made.kept.column("ordinal").fill_null(0).to_pylist()
        found += list(zip(made.kept.column("offset").to_pylist(), ordinals, strict=True))
        given = given.slice(made.rows)
    times = 1 if rules is None else 2
    assert found == [(number, place) for number in range(12) for place in range(number % 4 * times)]


def told(made: Shaped) -> list[dict[str, Any]]:
    """A batch in which each record has one output says nothing of numbers."""
    usual = {"ordinal": 0, "outputs": 1}
    return [row | {name: row[name] or other for name, other in usual.items()} for row in made.kept.to_pylist()]


@given(st.lists(st.lists(st.integers(0, 300), max_size=4), max_size=6), st.integers(0, 6))
def test_batches_of_any_size_make_the_same(lists: list[list[int]], cut: int) -> None:
    """What a retry makes of the same records in other batches."""
    steps = [*EXPLODE, {"filter": "$.items_n <> 7"}, {"cast": {"items_n": "uint8"}}]
    bodies = records([order(number, *one) for number, one in enumerate(lists)])
    pipeline = Pipeline({"parse": PARSE, "transforms": steps})
    whole = pipeline.shape(bodies)
    parts = [pipeline.shape(one) for one in (bodies.slice(0, cut), bodies.slice(cut)) if len(one)]
    assert [row for part in parts for row in told(part)] == told(whole)
    assert [one.offset for part in parts for one in part.rejected] == [one.offset for one in whole.rejected]
    assert [one for part in parts for one in part.filtered] == list(whole.filtered)


def test_where_a_record_ends() -> None:
    offsets = records([b""] * 6, offset=[0, 0, 0, 1, 2, 2]).column("offset").to_numpy()
    assert [whole_records(offsets, rows) for rows in range(7)] == [3, 3, 3, 3, 4, 4, 6]


@pytest.mark.parametrize(
    ("fields", "path", "words"),
    [
        ({"a": "text"}, "a", "a is text, and no list"),
        ({"a": ["text"]}, "b", "no field b"),
        ({"a": ["text"]}, 1, "1 is no"),
    ],
)
def test_a_fault_says_what_is_wrong(fields: Any, path: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        step_of({"explode": path}).after(struct_of(fields))
