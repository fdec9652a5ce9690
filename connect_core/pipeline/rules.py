"""Rules: what each record becomes, by topic and condition. Pure.

    Rules([{"name": "hot", "filter": "site/+/temp", "when": "$.value > 30", "to": "alarms", "tags": "{topic[2]}"}])

A record gives one output for each rule that it matches, in the order of the rules; one that matches none is filtered.
All rules are worked out together: topics are looked up once for each different one, each value that rules name is taken
out once, and what is done for a rule is done for all of its records at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from paho.mqtt.matcher import MQTTMatcher

from connect_core.pipeline.conditions import holding
from connect_core.pipeline.fields import Fields
from connect_core.pipeline.numbering import numbered, whole_records
from connect_core.sdk.batches import value_lengths
from connect_core.sdk.templates import Placeholder, Template, template

MAX_OUTPUT_BYTES = 64 * 1024 * 1024
"""What the outputs made at once may hold, about: a record may have as many as there are rules."""
_KNOWN_TOPICS = 100_000
_SET = {"to": "to", "tags": "tags", "keys": "key"}
"""What a rule may set, and the column it is in."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class CompiledRule:
    """`filter` and `when` hold for any record when they are empty; what is None stays as the record has it."""

    name: str
    filter: str = ""
    when: str = ""
    to: str | None = None
    tags: str | None = None
    keys: str | None = None


class Matches(NamedTuple):
    """Pairs of a row and a rule that it matches, by row, then by rule."""

    rows: Numbers
    rules: Numbers

    def first(self, count: int) -> Matches:
        return Matches(self.rows[:count], self.rules[:count])


class Rules:
    """Those that are enabled, in order."""

    def __init__(self, written: Sequence[Mapping[str, str]]) -> None:
        self.rules = [CompiledRule(**one) for one in written]
        self._by_topic = _TopicTable([rule.filter for rule in self.rules])
        self._unfiltered = [place for place, rule in enumerate(self.rules) if not rule.filter]
        self._conditions = sorted({rule.when for rule in self.rules if rule.when})
        places = {text: place for place, text in enumerate(self._conditions)}
        texts = {name: [getattr(rule, option) for rule in self.rules] for option, name in _SET.items()}
        self._settings = {
            name: _Setting(given) for name, given in texts.items() if any(one is not None for one in given)
        }
        self._condition_of = np.array([places.get(rule.when, len(places)) for rule in self.rules], dtype=np.int64)

    def shaped(self, fields: Fields) -> tuple[pa.RecordBatch, NDArray[np.bool_], int]:
        """Outputs, for each row whether it has any, and how many of the rows this covers: fewer than all when their
        outputs would be too large for one batch. At least one."""
        records = fields.records
        matches = self.matches(fields)
        rows = whole_records(records.column("offset").to_numpy(), _bearable(records, matches))
        matches = matches.first(int(np.searchsorted(matches.rows, rows)))
        passed = np.zeros(rows, dtype=np.bool_)
        passed[matches.rows] = True
        return self._outputs(records, fields, matches), passed, rows

    def names(self, fields: Fields) -> list[str]:
        """The rule of each output of these rows, in order."""
        return [self.rules[place].name for place in self.matches(fields).rules]

    def matches(self, fields: Fields) -> Matches:
        found = [self._matched_by_topic(fields)]
        for place in self._unfiltered:
            when = self.rules[place].when
            rows = np.flatnonzero(holding(when, fields)) if when else np.arange(len(fields))
            found.append(Matches(rows, np.full(len(rows), place)))
        if len(found) == 1:
            return found[0]
        rows, rules = (np.concatenate(columns) for columns in zip(*found, strict=True))
        order = np.argsort(rows * len(self.rules) + rules, kind="stable")
        return Matches(rows[order], rules[order])

    def _matched_by_topic(self, fields: Fields) -> Matches:
        """Of the rules with a filter."""
        if len(self._unfiltered) == len(self.rules):
            return Matches(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        rows, rules = self._by_topic.pairs(*fields.distinct_topics)
        asked = self._condition_of[rules]
        wanted = np.unique(asked)
        if not len(wanted) or wanted[0] == len(self._conditions):
            return Matches(rows, rules)
        holds = np.ones((len(wanted), len(fields)), dtype=np.bool_)
        for line, place in enumerate(wanted):
            if place < len(self._conditions):
                holds[line] = holding(self._conditions[place], fields)
        kept = holds[np.searchsorted(wanted, asked), rows]
        return Matches(rows[kept], rules[kept])

    def _outputs(self, records: pa.RecordBatch, fields: Fields, matches: Matches) -> pa.RecordBatch:
        numbers = numbered(records.column("offset").to_numpy()[matches.rows])
        whole = len(matches.rows) == len(records) and bool((matches.rows == np.arange(len(records))).all())
        outputs = records if whole else records.take(pa.array(matches.rows))
        columns = {name: outputs.column(name) for name in outputs.schema.names}
        for name, setting in self._settings.items():
            columns[name] = setting.column(columns[name], fields, matches)
        if numbers is not None:
            columns["ordinal"], columns["outputs"] = numbers
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=records.schema)


class _Setting:
    """What rules write into one column: a template each, or None to leave what is there."""

    def __init__(self, texts: Sequence[str | None]) -> None:
        templates = [None if text is None else template(text) for text in texts]
        self._kept = np.array([one is None for one in templates])
        self._fixed = pa.array([one and one.fixed for one in templates], pa.string())
        self._by_template: dict[Template, NDArray[np.bool_]] = {}
        for place, one in enumerate(templates):
            if one is not None and one.fixed is None:
                self._by_template.setdefault(one, np.zeros(len(texts), dtype=np.bool_))[place] = True

    def column(self, given: pa.Array, fields: Fields, matches: Matches) -> pa.Array:
        """The column of the outputs; `given` is what they had."""
        kept = pa.array(self._kept[matches.rules])
        column = pc.if_else(kept, given, self._fixed.take(pa.array(matches.rules)))
        for one, has_it in self._by_template.items():
            chosen = has_it[matches.rules]
            if chosen.any():
                texts = filled(one, fields, pa.array(matches.rows[chosen]))
                column = pc.replace_with_mask(column, pa.array(chosen), texts)
        return column


def filled(wanted: Template, fields: Fields, rows: pa.Array) -> pa.Array:
    """The text of each of these rows; `rows` are their numbers. What a record does not have is empty."""
    parts = [
        _first(piece, fields).take(rows) if isinstance(piece, Placeholder) else pa.scalar(piece)
        for piece in wanted.pieces
    ]
    return pc.binary_join_element_wise(*parts, "")


def _first(place: Placeholder, fields: Fields) -> pa.Array:
    """Of what it names the first that is there."""
    first, *others = (fields.column(one).written for one in place.names)
    for other in others:
        first = pc.if_else(pc.equal(first, ""), other, first)
    return first


class _TopicTable:
    """Which rules a topic matches: a trie of their filters, asked once for each topic."""

    def __init__(self, filters: Sequence[str]) -> None:
        self._trie: Any = MQTTMatcher()  # type: ignore[no-untyped-call]
        by_filter: dict[str, list[int]] = {}
        for place, one in enumerate(filters):
            if one:
                by_filter.setdefault(one, []).append(place)
        for one, places in by_filter.items():
            self._trie[one] = places
        self._known: dict[str, Numbers] = {}

    def pairs(self, topics: Sequence[str], indices: Numbers) -> tuple[Numbers, Numbers]:
        """`indices` say for each row which of the topics it has. Rows and rules, by row."""
        lists = [self.of(topic) for topic in topics]
        lengths = np.array([len(one) for one in lists], dtype=np.int64)
        flat = np.concatenate([*lists, np.empty(0, dtype=np.int64)])
        counts = lengths[indices]
        rows = np.repeat(np.arange(len(indices)), counts)
        starts = (np.cumsum(lengths) - lengths)[indices]
        within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return rows, flat[np.repeat(starts, counts) + within]

    def of(self, topic: str) -> Numbers:
        if topic not in self._known:
            if len(self._known) >= _KNOWN_TOPICS:
                self._known.clear()
            places = sorted(place for found in self._trie.iter_match(topic) for place in found)
            self._known[topic] = np.array(places, dtype=np.int64)
        return self._known[topic]


def _bearable(records: pa.RecordBatch, matches: Matches) -> int:
    """How many of the rows have outputs that fit into one batch; at least one row."""
    lengths = value_lengths(records.column("value"))
    ends = np.cumsum(lengths[matches.rows], dtype=np.int64)
    fit = int(np.searchsorted(ends, MAX_OUTPUT_BYTES, side="right"))
    return len(records) if fit == len(ends) else max(int(matches.rows[fit]), 1)
