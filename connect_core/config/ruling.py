"""The rules of a document beside its two ends: whether they go together, what runs are told of them, and which part of
a document is its pipeline. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from connect_core.config import option_models
from connect_core.config.document import ConnectorDocument, Rule
from connect_core.config.endpoints import End
from connect_core.config.written import Place
from connect_core.sdk.plugin import RuleTarget
from connect_core.sdk.templates import Placeholder, template
from connect_core.sdk.values import Json


def pipeline_of(document: ConnectorDocument) -> Json:
    """What open ranges are pinned to: without a filter and rules the same as before there were any."""
    wanted = document.filter.model_dump(exclude_defaults=True)
    rules = {"rules": _enabled(document.rules)} if document.rules else {}
    parse = document.parse.model_dump(exclude_defaults=True, exclude={"inferred", "evolved"})
    encode = document.encode.model_dump(exclude_defaults=True)
    if document.encode.format == "cloudevents" and (binding := event_headers(document.sink.system)):
        encode["binding"] = binding
    parts = {"filter": wanted, "parse": parse, "encode": encode}
    steps = {name: part for name, part in parts.items() if part} | rules
    return {"transforms": document.transforms} | steps


def event_headers(sink: str) -> str:
    """In which headers a system takes the attributes of events (`Plugin.event_headers`)."""
    plugin = option_models.plugin(sink)
    return plugin.event_headers if plugin else ""


def unfit_events(document: ConnectorDocument, sink: End) -> Iterator[tuple[Place, str]]:
    """Why the attributes of events have no place in the headers of a target, for a document that puts them there."""
    if document.encode.format != "cloudevents" or document.encode.mode != "binary":
        return
    plugin = sink.configured().plugin
    if not plugin.event_headers:
        yield ("encode", "mode"), f"binary needs headers, and {sink.system} has none for events: use structured"
    elif wrong := plugin.binary_events_conflict(sink.options):
        yield wrong


def _enabled(rules: Sequence[Rule]) -> list[Json]:
    """As pipelines have them: what a rule leaves out is left out here."""
    return [rule.model_dump(exclude_defaults=True, exclude={"enabled"}) for rule in rules if rule.enabled]


def has_several_outputs(document: ConnectorDocument) -> bool:
    """Whether a record may have more than one."""
    return bool(document.rules) or any("explode" in step for step in document.transforms)


def rule_topics(document: ConnectorDocument) -> list[str] | None:
    """The topics that enabled rules name, for a sink that has to know them; None where a record has one output at
    most."""
    if not has_several_outputs(document):
        return None
    return _fixed(_named(document.rules))


def rule_patterns(rules: Sequence[Rule]) -> list[str]:
    """What enabled rules name with templates, `*` for each of their places."""
    return sorted({pattern for to in _named(rules) if (pattern := _pattern(to)) is not None})


def _fixed(names: Iterable[str]) -> list[str]:
    """Those that are no templates, as records have them."""
    return sorted({fixed for to in names if (fixed := template(to).fixed) is not None})


def _named(rules: Sequence[Rule]) -> Iterator[str]:
    return (rule.to for rule in rules if rule.enabled and rule.to)


def _pattern(to: str) -> str | None:
    wanted = template(to)
    if wanted.fixed is not None:
        return None
    return "".join(piece if isinstance(piece, str) else "*" for piece in wanted.pieces)


def are_all_elsewhere(rules: Sequence[Rule]) -> bool:
    """Whether every output has its topic from a rule, so that none goes where the sink says."""
    names = [rule.to for rule in rules if rule.enabled]
    return bool(names) and all(names)


def unfit_rules(rules: Sequence[Rule], source: End, sink: End) -> Iterator[tuple[Place, str]]:
    """Place and words of what is wrong with rules that are sound by themselves, between ends that fit."""
    ends = source.configured(), sink.configured()
    plugin = ends[1].plugin
    named = {"rule_topics": _fixed(rule.to for rule in rules if rule.to)}
    if rules and (wrong := plugin.rules_conflict(sink.options | named)):
        yield wrong
    for place, rule in enumerate(rules):
        if rule.to is None:
            continue
        if plugin.rule_targets == "none":
            yield ("rules", place, "to"), f"names a topic, but {sink.system} has no topics: leave it out"
        elif words := plugin.rule_target(_target(rule.to), *ends):
            yield ("rules", place, "to"), words


def _target(to: str) -> RuleTarget:
    pieces = template(to).pieces

    def for_topic(topic: str) -> str:
        return "".join(one if isinstance(one, str) else _known(one, topic) for one in pieces)

    return RuleTarget(to, for_topic, _pattern(to))


def _known(place: Placeholder, topic: str) -> str:
    """What it stands for in a record of that topic."""
    of_topic = next((one for one in place.names if one.kind == "topic"), None)
    return (of_topic and of_topic.level_of(topic)) or "x"


def advice(document: ConnectorDocument) -> Iterator[str]:
    """What a person should know of rules that are sound."""
    rules = document.rules
    if rules and not any(rule.enabled for rule in rules):
        yield "rules: all are disabled, so every record is filtered"
    sink = option_models.plugin(document.sink.system)
    makes = document.reshapes or document.encode.writes_keys
    is_named = rules or document.filter.when or makes or (sink is not None and sink.takes_rows)
    if document.parse.format != "none" and not is_named:
        yield "parse: no rule names what it makes; records that are not of the format are rejected all the same"
