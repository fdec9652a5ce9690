"""What a new revision changes, as a person reads it."""

from __future__ import annotations

from connect_core.config import difference


def test_added_removed_and_changed_by_path() -> None:
    old = {"a": 1, "b": {"c": "x", "d": [1]}, "e": {}}
    new = {"b": {"c": "y", "d": [1, 2]}, "e": {}, "f": True}
    assert difference(old, new) == ["- a: 1", "~ b.c: x -> y", "~ b.d: [1] -> [1, 2]", "+ f: true"]


def test_nothing_changed() -> None:
    assert difference({"a": {"b": 1}}, {"a": {"b": 1}}) == []


def test_a_new_document_is_all_additions() -> None:
    assert difference(None, {"a": {"b": 1}}) == ["+ a.b: 1"]


def test_secrets_are_masked_but_their_change_is_told() -> None:
    lines = difference({"x": {"password": "old"}}, {"x": {"password": "new"}, "token": "t"})
    assert lines == ["+ token: ********", "~ x.password: ******** -> ******** (changed)"]


def test_examples_are_told_one_by_one() -> None:
    first = {"record": {"payload": {"v": 1}}, "filtered": True}
    second = {"name": "b", "record": {"payload": "a"}, "becomes": {"tags": "t"}}
    assert difference({"examples": [first]}, {"examples": [first, second]}) == [
        "+ examples[1].becomes.tags: t",
        "+ examples[1].name: b",
        "+ examples[1].record.payload: a",
    ]
    other = {**first, "record": {"payload": {"v": 2}}}
    assert difference({"examples": [first]}, {"examples": [other]}) == ["~ examples[0].record.payload.v: 1 -> 2"]
    twins = [{"name": "b", "v": 1}, {"name": "b", "v": 2}]
    assert difference({"examples": twins}, {"examples": [*twins[:1], {"name": "b", "v": 3}]}) == [
        "~ examples[1].v: 2 -> 3"
    ]


def test_what_nobody_reads_is_shown_by_its_checksum() -> None:
    before, after = ({"parse": {"format": "protobuf", "descriptors": one * 1000}} for one in ("CpYB", "CpYC"))
    [line] = difference(before, after)
    assert line == "~ parse.descriptors: 4,000 characters 5ba3baf5 -> 4,000 characters 91d2a359"
