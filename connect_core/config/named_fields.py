"""What filters, rules and the sink's templates name, beside what records of the source have: a name that no record can
have is a fault. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from connect_core.config import option_models
from connect_core.config.document import ConnectorDocument, Filter, Rule
from connect_core.config.endpoints import End
from connect_core.config.payloads import Encode, Parse
from connect_core.config.row_types import last_rows
from connect_core.config.ruling import are_all_elsewhere
from connect_core.config.written import Place
from connect_core.pipeline.formats.key_format import PLAIN_KEY
from connect_core.pipeline.formats.known import read_format
from connect_core.pipeline.references import names_in, properties_in, read_condition
from connect_core.pipeline.transforms.steps import step_of
from connect_core.rows.types import Type
from connect_core.sdk.templates import Kind, Reference, template
from connect_core.sdk.values import Json

Named = tuple[Place, str]
"""A place of the document, and the words about it."""

_ANY_TOPIC = "#"
"""Matches what has no topic, too."""
_WHAT: Mapping[Kind, str] = {
    "payload": "a place in the payload",
    "text": "the payload",
    "topic": "the topic",
    "header": "a header",
    "tags": "the tags",
    "key": "the key",
    "file": "a file",
    "change": "a change of a row",
}
_HOW: Mapping[Kind, str] = {
    "payload": "$.NAME for a place in the payload, which is JSON",
    "text": "payload:text for all of it",
    "topic": "topic",
    "header": "header:NAME",
    "tags": "TAGS",
    "key": "KEYS",
    "file": "file:path, file:name, file:offset",
    "change": "change:operation, change:table",
}
"""How the fields are written that there may be."""


def impossible_names(document: ConnectorDocument, source: End, sink: End) -> Iterator[Named]:
    """Of ends that are sound. A name with several alternatives is a fault of a rule when one of them cannot be, and of
    an option of the sink, which may have it by default, when none of them can."""
    plugin = source.configured().plugin
    given = plugin.source_fields | made_by(document.parse)
    fields = _Fields(source.system, given, document.parse.rows())
    yield from _of_filter(document.filter, fields)
    yield from _of_transforms(document, fields)
    kinds = given.union(*map(set_by, document.transforms), written_by(document.encode))
    fields = _Fields(source.system, kinds, last_rows(document))
    for place, rule in enumerate(document.rules):
        if rule.enabled:
            yield from ((("rules", place, key), f"rule {rule.name}: {words}") for key, words in _of_rule(rule, fields))
    if not are_all_elsewhere(document.rules):
        yield from _of_sink(sink, fields.with_those_of(document.rules))


def impossible_in(condition: str, document: ConnectorDocument) -> list[str]:
    """What a condition names that no record of the document's source can have, in words. Payloads are JSON, which may
    have any fields, or of a format that names them, as keys may be."""
    plugin, parse = option_models.plugin(document.source.system), document.parse
    rows = None if parse.format in ("none", "json") and parse.key_format == PLAIN_KEY else parse.rows()
    return list(_of_condition(condition, _Fields(document.source.system, plugin.source_fields, rows))) if plugin else []


class _Fields:
    """Those that records of a source may have; `rows` are the fields of their payloads, None where any may be."""

    def __init__(self, system: str, kinds: frozenset[Kind], rows: Type | None) -> None:
        self.system, self.kinds, self.rows = system, kinds, rows
        self._names = [name for name, _ in rows.fields] if rows else []

    def with_those_of(self, rules: list[Rule]) -> _Fields:
        """What rules set is there for the sink."""
        set_by: Mapping[Kind, bool] = {
            "tags": any(rule.tags for rule in rules),
            "key": any(rule.keys for rule in rules),
        }
        kinds = self.kinds - {"change"}  # no sink fills its templates with it
        return _Fields(self.system, kinds | {kind for kind, is_set in set_by.items() if is_set}, self.rows)

    def wrong(self, text: str, name: Reference) -> str:
        """What is wrong with a name, in words; empty for nothing."""
        if name.kind in self.kinds:
            return "" if name.kind != "payload" or self._is_parsed(name) else self._not_parsed(text, name)
        words = f"{text!r} names {_WHAT[name.kind]}, which records of {self.system} do not have"
        if name.kind == "header" and "payload" in self.kinds and (meant := self._nearest(name.name)):
            words += f"; did you mean {_in_payload(meant)}?"
        return f"{words} (they have: {'; '.join(self._known())})"

    def _is_parsed(self, name: Reference) -> bool:
        rows = self.rows
        for step in name.steps if rows else ():
            rows = rows and (rows.field(step) if isinstance(step, str) else rows.item)
        return self.rows is None or rows is not None

    def _not_parsed(self, text: str, name: Reference) -> str:
        words = f"{text!r} names no field of the payload"
        if meant := self._nearest(str(name.steps[0])):
            words += f"; did you mean {_in_payload(meant)}?"
        return f"{words} (they have: {'; '.join(self._known())})"

    def _nearest(self, name: str) -> str:
        """The field of the payload that was probably meant."""
        if self.rows is None:
            return name
        return next(iter(get_close_matches(name, self._names, n=1)), "")

    def _known(self) -> Iterator[str]:
        for kind, how in _HOW.items():
            if kind == "payload" and self.rows is not None:
                yield ", ".join(map(_in_payload, self._names))
            elif kind in self.kinds:
                yield how


def _in_payload(name: str) -> str:
    return f"$.{name}" if name.isidentifier() else f"$['{name}']"


def _of_filter(wanted: Filter, fields: _Fields) -> Iterator[Named]:
    if wanted.tags and (words := fields.wrong("tags", Reference("tags"))):
        yield ("filter", "tags"), words
    for header in wanted.headers:
        if words := fields.wrong(header, Reference("header", name=header)):
            yield ("filter", "headers", header), words
    for text, name in (properties_in(wanted.sql) if wanted.sql else {}).items():
        if words := fields.wrong(text, name):
            yield ("filter", "sql"), f"{words}; sql names headers, TAGS and KEYS alone: use filter.when"
    yield from ((("filter", "when"), words) for words in _of_condition(wanted.when, fields))


def _of_transforms(document: ConnectorDocument, fields: _Fields) -> Iterator[Named]:
    """Fields are looked up in `row_types`: behind a step they are others."""
    for number, written in enumerate(document.transforms):
        for text, name in step_of(written).references().items():
            if name.kind != "payload" and (words := fields.wrong(text, name)):
                yield ("transforms", number), f"{next(iter(written))}: {words}"
        fields = _Fields(fields.system, fields.kinds | set_by(written), fields.rows)


def made_by(parse: Parse) -> frozenset[Kind]:
    """What records have where payloads are of this format, whatever their source."""
    changes: frozenset[Kind] = frozenset({"change"})
    return changes if read_format({"format": parse.format}).reads_changes else frozenset()


def written_by(encode: Encode) -> frozenset[Kind]:
    """What records have for rules, whatever their source and the steps."""
    keys: frozenset[Kind] = frozenset({"key"})
    return keys if encode.writes_keys else frozenset()


def set_by(step: Json) -> frozenset[Kind]:
    """What records have behind a step, whatever their source."""
    kinds: Mapping[str, Kind] = {"key": "key", "tags": "tags", "headers": "header"}
    return frozenset(kinds[name] for name in step.get("record", ()) if name in kinds)


def _of_condition(when: str, fields: _Fields) -> Iterator[str]:
    for text, name in (names_in(read_condition(when)) if when else {}).items():
        if words := fields.wrong(text, name):
            yield words


def _of_rule(rule: Rule, fields: _Fields) -> Iterator[tuple[str, str]]:
    if rule.filter not in ("", _ANY_TOPIC) and "topic" not in fields.kinds:
        yield "filter", f"matches topics, which records of {fields.system} do not have: leave it out"
    yield from (("when", words) for words in _of_condition(rule.when, fields))
    for key in ("to", "tags", "keys"):
        for place in template(getattr(rule, key) or "").places():
            yield from ((key, words) for one in place.names if (words := fields.wrong(f"{{{place.text}}}", one)))


def _of_sink(sink: End, fields: _Fields) -> Iterator[Named]:
    model = option_models.find("sink", sink.system)
    for option in option_models.template_fields(model) if model else ():
        for place in template(str(sink.options.get(option) or "")).places():
            wrong = [fields.wrong(f"{{{place.text}}}", one) for one in place.names]
            if all(wrong):
                yield ("sink", sink.system, option), wrong[0]
