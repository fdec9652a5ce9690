"""The rules of a document beside its two ends: whether they go together, and what runs are told of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from connect_core.config import option_models
from connect_core.config.document import Rule
from connect_core.config.endpoints import End
from connect_core.config.pairing import filters_of, read_by, same_broker, same_cluster
from connect_core.config.written import Place
from connect_core.pipeline.references import Reference
from connect_core.pipeline.templates import template
from connect_core.sdk.values import Json
from connect_core.systems.mqtt.filters import overlap
from connect_core.systems.mqtt.templates import Named, Unfit
from connect_core.systems.mqtt.templates import Template as MqttTopic
from connect_core.systems.rocketmq.options import check_target

_NOTHING_NAMED = Named(None, None, None, {})


def enabled(rules: Sequence[Rule]) -> list[Json]:
    """As pipelines have them: what a rule leaves out is left out here."""
    return [rule.model_dump(exclude_defaults=True, exclude={"enabled"}) for rule in rules if rule.enabled]


def rule_topics(rules: Sequence[Rule]) -> list[str] | None:
    """The topics that enabled rules name, for a sink that has to know them; None where there are no rules."""
    return sorted({rule.to for rule in rules if rule.enabled and rule.to}) if rules else None


def are_all_elsewhere(rules: Sequence[Rule]) -> bool:
    """Whether every output has its topic from a rule, so that none goes where the sink says."""
    names = [rule.to for rule in rules if rule.enabled]
    return bool(names) and all(names)


def unfit_rules(rules: Sequence[Rule], source: End, sink: End) -> Iterator[tuple[Place, str]]:
    """Place and words of what is wrong with rules that are sound by themselves, between ends that fit."""
    if rules and sink.options.get("groups"):
        yield (
            ("sink", sink.system, "groups"),
            "cannot be kept in step through rules, which give messages other places; leave one of them out",
        )
    allowed = option_models.rule_targets(sink.system)
    for place, rule in enumerate(rules):
        if rule.to is None:
            continue
        if allowed == "none":
            yield ("rules", place, "to"), f"names a topic, and {sink.system} has none: leave it out"
        elif allowed == "named" and template(rule.to).fixed is None:
            yield (
                ("rules", place, "to"),
                "must be the name of one topic: where a record can be is known before it is read",
            )
        elif words := _NO_TARGET.get(sink.system, _any_target)(rule.to, source, sink):
            yield ("rules", place, "to"), words


def _any_target(to: str, source: End, sink: End) -> str:
    return ""


def _no_mqtt_target(to: str, source: End, sink: End) -> str:
    """By a topic for each filter of a source at the same broker."""
    feeds_itself = source.system == sink.system and same_broker(source, sink)
    filters = filters_of(source) if feeds_itself else []
    for one in filters or ["x"]:
        made = _sample(to, one.replace("+", "x").replace("#", "x"))
        target = MqttTopic("", (made,)).fill(_NOTHING_NAMED)
        if isinstance(target, Unfit):
            return target.message.replace("The topic made of the record", "makes a topic that")
        if any(overlap(another, made) for another in filters):
            return "is a topic that the source reads, at the same broker"
    return ""


def _sample(to: str, topic: str) -> str:
    """What a template makes of a record of that topic; `x` stands for whatever else a record has."""
    return "".join(piece if isinstance(piece, str) else _known(piece, topic) for piece in template(to).pieces)


def _known(piece: Reference, topic: str) -> str:
    if piece.kind == "topic":
        return topic
    levels = topic.split("/") if piece.kind == "level" else []
    return levels[piece.level - 1] if 0 < piece.level <= len(levels) else "x"


def _no_rocketmq_target(to: str, source: End, sink: End) -> str:
    """What is wrong with the name of a topic; empty for one that may be written."""
    try:
        check_target(to)
    except ValueError as error:
        return str(error)
    read_too = source.system == sink.system and same_cluster(source, sink) and read_by(source).reads(to)
    return "is a topic that the source reads, in the same cluster" if read_too else ""


_NO_TARGET: Mapping[str, Callable[[str, End, End], str]] = {
    "rocketmq": _no_rocketmq_target,
    "mqtt": _no_mqtt_target,
}


def advice(rules: Sequence[Rule]) -> Iterator[str]:
    """What a person should know of rules that are sound."""
    if rules and not any(rule.enabled for rule in rules):
        yield "rules: all are disabled, so that every record is filtered"
