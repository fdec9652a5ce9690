"""Rules: all together they make of a batch what each rule by itself, row by row, makes of it."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.client import topic_matches_sub

from connect_core.pipeline import rules
from connect_core.pipeline.digest import pipeline_digest
from connect_core.pipeline.fields import Fields
from connect_core.pipeline.rules import Rules
from connect_core.pipeline.shaping import Pipeline
from connect_core.sdk.batches import RECORD_SCHEMA
from connect_core.sdk.records import encode_headers
from connect_core.sdk.testing.driving import records

LEVELS = st.sampled_from(["a", "b", "", "$SYS", "1"])
TOPICS = st.lists(LEVELS, min_size=1, max_size=4).map("/".join)
FILTERS = st.lists(st.sampled_from(["a", "b", "", "$SYS", "+"]), min_size=1, max_size=4).map("/".join).filter(len)
FILTERS = st.one_of(FILTERS, st.just("#"), FILTERS.map(lambda one: f"{one}/#"))
OPTIONAL = st.none() | st.sampled_from(["fixed", "{topic[2]}", "{$.n}-{TAGS}", ""])
RULES = st.lists(
    st.fixed_dictionaries(
        {"name": st.just("one")},
        optional={
            "filter": FILTERS,
            "when": st.sampled_from(["$.n > 2", "topic[1] = 'a'", "TAGS = 'x' OR $.n <= 1", "NOT ($.n = 3)"]),
            "to": st.sampled_from(["here", "there"]),
            "tags": OPTIONAL.filter(lambda one: one is not None),
            "keys": OPTIONAL.filter(lambda one: one is not None),
        },
    ),
    max_size=6,
)
ROWS = st.lists(
    st.tuples(TOPICS, st.integers(0, 4) | st.none(), st.sampled_from(["x", "y", None])), min_size=1, max_size=12
)


def batch(rows: list[tuple[str, int | None, str | None]]) -> pa.RecordBatch:
    bodies = [b"no json" if n is None else json.dumps({"n": n}).encode() for _, n, _ in rows]
    topics, _, tags = map(list, zip(*rows, strict=True))
    return records(bodies, 7, topic=topics, tags=tags, key=["k"] * len(rows))


def one_by_one(written: list[dict[str, str]], rows: list[tuple[str, int | None, str | None]]) -> list[tuple[Any, ...]]:
    """Offset, ordinal, outputs, to, tags and key of every output, in plain Python."""
    found = []
    for offset, row in enumerate(rows, 7):
        matching = [rule for rule in written if _matches(rule, *row)]
        for ordinal, rule in enumerate(matching):
            topic, n, tags = row
            own_tags = _filled(rule["tags"], topic, n, tags) if "tags" in rule else tags
            key = _filled(rule["keys"], topic, n, tags) if "keys" in rule else "k"
            found.append((offset, ordinal, len(matching), rule.get("to"), own_tags, key))
    return found


def _matches(rule: dict[str, str], topic: str, n: int | None, tags: str | None) -> bool:
    if "filter" in rule and not topic_matches_sub(rule["filter"], topic):
        return False
    return {
        "": True,
        "$.n > 2": n is not None and n > 2,
        "topic[1] = 'a'": topic.split("/")[0] == "a",
        "TAGS = 'x' OR $.n <= 1": tags == "x" or (n is not None and n <= 1),
        "NOT ($.n = 3)": n is not None and n != 3,
    }[rule.get("when", "")]


def _filled(text: str, topic: str, n: int | None, tags: str | None) -> str:
    second = topic.split("/")[1] if "/" in topic else ""
    return {"{topic[2]}": second, "{$.n}-{TAGS}": f"{'' if n is None else n}-{tags or ''}"}.get(text, text)


@given(RULES, ROWS)
def test_all_at_once_is_the_same_as_one_by_one(
    written: list[dict[str, str]], rows: list[tuple[str, int | None, str | None]]
) -> None:
    shaped = Pipeline({"rules": written}).shape(batch(rows))
    expected = one_by_one(written, rows)
    assert shaped.kept.schema == RECORD_SCHEMA
    columns = [shaped.kept.column(name).to_pylist() for name in ("offset", "ordinal", "outputs", "to", "tags", "key")]
    found = [(one[0], one[1] or 0, one[2] or 1, *one[3:]) for one in zip(*columns, strict=True)]
    assert found == expected
    assert shaped.filtered == tuple(n for n in range(7, 7 + len(rows)) if n not in {one[0] for one in expected})
    assert shaped.rows == len(rows)
    source = dict(zip(range(7, 7 + len(rows)), batch(rows).column("value").to_pylist(), strict=True))
    assert shaped.kept.column("value").to_pylist() == [source[one[0]] for one in expected]


@given(FILTERS, st.lists(TOPICS, min_size=1, max_size=10))
def test_filters_match_as_mqtt_has_it(one: str, topics: list[str]) -> None:
    matches = Rules([{"name": "one", "filter": one}]).matches(Fields(records([b""] * len(topics), topic=topics)))
    assert matches.rows.tolist() == [row for row, topic in enumerate(topics) if topic_matches_sub(one, topic)]


def test_the_topic_is_the_one_that_a_record_has_from_mqtt() -> None:
    """Wherever it has been since: RocketMQ's topics are other ones."""
    headers = [encode_headers([("MQTT_QOS", "1"), ("MQTT_TOPIC", "site/1")]), encode_headers([("x", "y")]), None]
    rows = records([b""] * 3, topic=["orders", "site/1", None], headers=headers)
    (outputs, passed, _) = Rules([{"name": "one", "filter": "site/+", "tags": "{topic[2]}"}]).shaped(Fields(rows))
    assert (passed.tolist(), outputs.column("tags").to_pylist()) == ([True, True, False], ["1", "1"])
    assert outputs.column("topic").to_pylist() == ["orders", "site/1"], "dead letters tell of the record as it was read"


def test_without_rules_everything_passes_and_with_none_enabled_nothing_does() -> None:
    rows = records([b"a", b"b"])
    assert Pipeline({}).shape(rows).kept is rows
    nothing = Pipeline({"rules": []}).shape(rows)
    assert (len(nothing.kept), nothing.filtered, nothing.rows) == (0, (0, 1), 2)
    assert pipeline_digest({"rules": []}) != pipeline_digest({})


def test_a_filter_comes_before_the_rules() -> None:
    rows = records([b"a", b"b", b"c"], tags=["x", "y", "x"])
    shaped = Pipeline({"filter": {"tags": ["x"]}, "rules": [{"name": "one", "when": "TAGS IN ('y', 'x')"}]}).shape(rows)
    assert (shaped.kept.column("value").to_pylist(), shaped.filtered) == ([b"a", b"c"], (1,))


@pytest.mark.parametrize(("wanted", "last"), [({}, [[3, 3], [4, 4]]), ({"tags": ["x"]}, [[3, 3, 4]])])
def test_more_outputs_than_a_batch_may_hold_come_in_parts(
    wanted: dict[str, list[str]], last: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "MAX_OUTPUT_BYTES", 100)
    pipeline = Pipeline({"filter": wanted, "rules": [{"name": "one"}, {"name": "two"}]})
    bodies = [b"-" * size for size in (20, 20, 20, 70, 10)]
    rows, parts = records(bodies, tags=["x", "x", "x", "x", "y"]), []
    while len(rows):
        shaped = pipeline.shape(rows)
        parts.append([*shaped.kept.column("offset").to_pylist(), *shaped.filtered])
        rows = rows.slice(shaped.rows)
    assert parts == [[0, 0, 1, 1], [2, 2], *last]
