"""Fields that runs have added to a document, or widened."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_core.config import ConnectorDocument
from connect_core.config.evolved_fields import differ_by_runs, evolved, kept_fields, single, told
from connect_core.config.ruling import pipeline_of
from connect_core.pipeline.digest import pipeline_digest
from connect_core.rows.widening import MOST_EVOLVED

FIELDS = {"id": "int32", "o": {"a": "text"}}


def document(fields: Any = FIELDS, unknown: str = "evolve", **more: Any) -> dict[str, Any]:
    return {"name": "a", "parse": {"format": "json", "fields": fields, "unknown": unknown, **more}}


def test_a_document_gets_what_a_record_needs_and_marks_it() -> None:
    first = evolved(document(), {"late": "bool", "o": {"b": "int64"}})
    assert first == document(
        {"id": "int32", "o": {"a": "text", "b": "int64"}, "late": "bool"}, evolved={"late": "bool", "o": {"b": "int64"}}
    )
    second = evolved(first, {"id": "int64"})
    assert second is not None
    assert second["parse"]["evolved"] == {"late": "bool", "o": {"b": "int64"}, "id": "int64"}
    assert evolved(second, {"id": "int64"}) is second, "another task was as wise"


@pytest.mark.parametrize(
    ("given", "needs"),
    [
        (document(unknown="reject"), {"late": "bool"}),
        (document(fields="infer"), {"late": "bool"}),
        ({"name": "a"}, {"late": "bool"}),
        (document(), {"id": "text"}),
        (document(), {f"user-{n}": "text" for n in range(MOST_EVOLVED + 1)}),
    ],
)
def test_what_it_cannot_have(given: dict[str, Any], needs: dict[str, Any]) -> None:
    assert evolved(given, needs) is None


NEEDS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["int8", "int64", "uint64"]), min_size=1)


@given(NEEDS, NEEDS)
def test_two_tasks_agree_in_any_order(one: dict[str, str], other: dict[str, str]) -> None:
    ways = [evolved(evolved(document(), a) or {}, b) for a, b in ((one, other), (other, one))]
    assert ways[0] is not None
    assert ways[0] == ways[1]


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (
            FIELDS,
            {"fields": {"id": "int64", "o": {"a": "text"}, "late": "bool"}, "evolved": {"id": "int64", "late": "bool"}},
        ),
        ({"id": "int64", "late": "bool"}, {}),
        ({"late": "text", "id": "int64"}, {}),
        (
            {"x": "text"},
            {"fields": {"x": "text", "id": "int64", "late": "bool"}, "evolved": {"id": "int64", "late": "bool"}},
        ),
        ({"id": "text"}, {"fields": {"id": "text", "late": "bool"}, "evolved": {"late": "bool"}}),
    ],
)
def test_a_file_that_is_applied_again_keeps_them(written: Any, kept: Any) -> None:
    stored = document({"id": "int64", "o": {"a": "text"}, "late": "bool"}, evolved={"id": "int64", "late": "bool"})
    assert kept_fields(document(written), stored) == kept
    assert kept_fields(document(written, unknown="drop"), stored) == {}
    assert kept_fields(document(written), document()) == {}
    assert kept_fields(document(written), {}) == {}


def test_revisions_of_runs_differ_by_nothing_else() -> None:
    runs = evolved(document(), {"late": "bool"})
    assert runs is not None
    assert differ_by_runs(document(), runs)
    assert not differ_by_runs(document(), runs | {"tasks": 2})
    assert not differ_by_runs(document(), document(unknown="reject"))


def test_needs_are_told_and_taken_apart() -> None:
    needs = {"id": "int64", "o": {"b": ["text"], "c": "bool"}}
    assert told(needs) == "id: int64, o.b[]: text, o.c: bool"
    assert list(single(needs)) == [
        ("id", "int64", {"id": "int64"}),
        ("o.b[]", "text", {"o": {"b": ["text"]}}),
        ("o.c", "bool", {"o": {"c": "bool"}}),
    ]


def test_open_ranges_are_pinned_to_the_fields_and_not_to_who_has_added_them() -> None:
    parse = {"format": "json", "fields": {"id": "int64"}, "unknown": "evolve"}
    one, other = (
        pipeline_of(
            ConnectorDocument.model_validate(
                {
                    "version": 1,
                    "name": "a",
                    "source": {"file": {"path": "/in"}},
                    "sink": {"file": {"path": "/out"}},
                    "parse": parse | more,
                }
            )
        )
        for more in ({}, {"evolved": {"id": "int64"}})
    )
    assert pipeline_digest(one) == pipeline_digest(other)
