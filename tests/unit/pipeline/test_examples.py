"""Single records through a pipeline."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from connect_core.pipeline.examples import Made, SinglePipeline
from connect_core.sdk.plugin import TypedRecord

RECORD = TypedRecord(b'{"v": 1}', "a/b", "t", "k", (("h", "x"), ("h", "y"), ("i", "")))


def test_without_a_step_a_record_passes_as_it_is() -> None:
    made = SinglePipeline({"transforms": []}).made_of(RECORD)
    headers = {"h": "y", "i": ""}
    assert made == Made([{"payload": RECORD.value, "headers": headers, "to": None, "tags": "t", "key": "k"}], None)


def test_the_outputs_of_rules_come_in_their_order() -> None:
    rules = [{"name": "a", "tags": "{topic[1]}"}, {"name": "b", "when": "$.v > 1"}, {"name": "c", "to": "x{$.v}"}]
    made = SinglePipeline({"rules": rules}).made_of(RECORD)
    assert [(one["to"], one["tags"], one["key"]) for one in made.outputs] == [(None, "a", "k"), ("x1", "t", "k")]


def test_what_is_filtered_has_neither_outputs_nor_a_reason() -> None:
    for pipeline in ({"filter": {"tags": ["u"]}}, {"filter": {"when": "$.v > 1"}}, {"rules": []}):
        assert SinglePipeline(pipeline).made_of(RECORD) == Made([], None)


def test_what_is_not_of_the_format_is_rejected() -> None:
    pipeline = SinglePipeline({"parse": {"format": "csv", "columns": ["a"]}, "rules": [{"name": "a"}]})
    assert pipeline.made_of(RECORD).rejected is None
    rejected = pipeline.made_of(RECORD._replace(value=b"a,b")).rejected
    assert rejected is not None
    assert (rejected.stage, rejected.message) == ("parse", "Not of format csv: It has 2 columns and not 1")


def test_each_record_is_the_first_line_of_its_own_file() -> None:
    pipeline = SinglePipeline({"rules": [{"name": "a", "tags": "{file:name}@{file:offset}"}]})
    made = [pipeline.made_of(RECORD, path) for path in ("/d/a.log", "/d/b.log", "/d/a.log", None)]
    assert [one.outputs[0]["tags"] for one in made] == ["a.log@0", "b.log@0", "a.log@0", "@"]


NESTED = b"[" * 5000
PIPELINE = SinglePipeline(
    {
        "filter": {"when": "$.a IS NULL OR payload:text CONTAINS 'x'", "sql": "h IS NULL OR h = 'x'"},
        "parse": {"format": "logfmt"},
        "rules": [
            {"name": "a", "filter": "a/#", "keys": "{$.a|$.b}{topic[2:]}{header:h}"},
            {"name": "b", "tags": "{KEYS}"},
        ],
    }
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x01\x02"))


@given(st.binary() | st.just(NESTED), st.none() | TEXTS, st.none() | TEXTS, st.dictionaries(TEXTS, TEXTS))
def test_any_record_has_one_fate(value: bytes, topic: str | None, tags: str | None, headers: dict[str, str]) -> None:
    made = PIPELINE.made_of(TypedRecord(value, topic, tags, topic, tuple(headers.items())))
    assert not (made.outputs and made.rejected)
    assert all(one["payload"] == value for one in made.outputs)
