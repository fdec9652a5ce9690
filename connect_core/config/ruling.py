"""The rules of a document beside its two ends: whether they go together, and what runs are told of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from connect_core.config import option_models
from connect_core.config.document import Rule
from connect_core.config.endpoints import End
from connect_core.config.pairing import read_by, same_cluster
from connect_core.config.written import Place
from connect_core.contracts import Json
from connect_core.pipeline.templates import template
from connect_core.systems.rocketmq.options import check_target


def enabled(rules: Sequence[Rule]) -> list[Json]:
    """As pipelines have them: what a rule leaves out is left out here."""
    return [rule.model_dump(exclude_defaults=True, exclude={"enabled"}) for rule in rules if rule.enabled]


def rule_topics(rules: Sequence[Rule]) -> list[str] | None:
    """The topics that enabled rules name, for a sink that has to know them; None where there are no rules."""
    return sorted({rule.to for rule in rules if rule.enabled and rule.to}) if rules else None


def unfit_rules(rules: Sequence[Rule], source: End, sink: End) -> Iterator[tuple[Place, str]]:
    """Place and words of what is wrong with rules that are sound by themselves, between ends that fit."""
    if rules and sink.options.get("groups"):
        yield (
            ("sink", sink.system, "groups"),
            "cannot be kept in step through rules, which give messages other places; leave one of them out",
        )
    allowed = option_models.rule_targets(sink.system)
    for place, rule in enumerate(rules):
        if rule.to is None or allowed == "any":
            continue
        if allowed == "none":
            yield ("rules", place, "to"), f"names a topic, and {sink.system} has none: leave it out"
        elif words := _no_target(rule.to, source, sink):
            yield ("rules", place, "to"), words


def _no_target(to: str, source: End, sink: End) -> str:
    """What is wrong with the name of a topic; empty for one that may be written."""
    if template(to).fixed is None:
        return "must be the name of one topic: which queues a record can be in is known before it is read"
    try:
        check_target(to)
    except ValueError as error:
        return str(error)
    read_too = source.system == sink.system and same_cluster(source, sink) and read_by(source).reads(to)
    return "is a topic that the source reads, in the same cluster" if read_too else ""


def advice(rules: Sequence[Rule]) -> Iterator[str]:
    """What a person should know of rules that are sound."""
    if rules and not any(rule.enabled for rule in rules):
        yield "rules: all are disabled, so that every record is filtered"
