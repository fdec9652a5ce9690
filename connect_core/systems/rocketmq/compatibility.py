"""What the two ends of a connector may be when one of them, or each, is RocketMQ; two connectors; and rules. Pure."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from connect_core.sdk.plugin import ConfiguredEnd, Conflict, RuleTarget
from connect_core.sdk.values import Json
from connect_core.systems.addresses import plain_address
from connect_core.systems.rocketmq.options import (
    SYSTEM,
    TOPIC,
    RocketMQSinkOptions,
    RocketMQSourceOptions,
    check_target,
    is_pattern,
)

_OWN_TOPIC = "is a topic that the source reads, in the same cluster"


def conflict(source: ConfiguredEnd, sink: ConfiguredEnd) -> Conflict | None:
    if sink.name != SYSTEM:
        return None
    if source.name != SYSTEM:
        return _needs_more(source, sink.options)
    return _unfit_target(source.options, sink.options)


def _needs_more(source: ConfiguredEnd, sink: Json) -> Conflict | None:
    """Options that mean something only with what not every source has."""
    able = source.plugin.abilities
    if "topics" not in able and TOPIC in str(sink.get("topic")):
        return Conflict(("sink", SYSTEM, "topic"), f"{TOPIC} needs a source of topics, and {source.name} is none")
    if "queues" not in able and sink.get("order") == "queue":
        return Conflict(("sink", SYSTEM, "order"), f"queue needs a source of queues, and {source.name} is none")
    if sink.get("groups"):
        return Conflict(("sink", SYSTEM, "groups"), f"are those of a RocketMQ source, and {source.name} is none")
    return None


def _unfit_target(source: Json, sink: Json) -> Conflict | None:
    """By the topics that are named, and one topic for each pattern."""
    place = ("sink", SYSTEM, "topic")
    read = _read_by(source)
    written = RocketMQSinkOptions.model_construct(topic=str(sink.get("topic")), rename=dict(sink.get("rename") or {}))
    for topic in read.topics:
        sample = topic.replace("*", "x").replace("?", "x")
        try:
            target = written.target_for(sample)
        except ValueError as error:
            if is_pattern(topic):  # told when there is such a topic
                continue
            return Conflict(place, f"makes a name of {topic} that {error}; give that one a name with `rename`")
        if _same_cluster(source, sink) and read.reads(sample) and read.reads(target):
            return Conflict(place, _OWN_TOPIC)
    return None


def feeds(sink: Json, source: Json) -> bool:
    """Not where the source leaves out copies."""
    topic = str(sink.get("topic"))
    if "{" in topic or source.get("copies") == "leave_out":
        return False
    return _same_cluster(source, sink) and _read_by(source).reads(topic)


def rules_conflict(sink: Json) -> Conflict | None:
    if not sink.get("groups"):
        return None
    words = "cannot be kept in step through rules, which give messages other places; leave one of them out"
    return Conflict(("sink", SYSTEM, "groups"), words)


def rule_target(target: RuleTarget, source: ConfiguredEnd, sink: ConfiguredEnd) -> str:
    """What is wrong with the name of a topic, or a template of names; empty for what may be written."""
    if target.pattern is not None:
        return _unfit_template(target.pattern, source, sink)
    try:
        check_target(target.text)
    except ValueError as error:
        return str(error)
    same = source.name == sink.name and _same_cluster(source.options, sink.options)
    return _OWN_TOPIC if same and _read_by(source.options).reads(target.text) else ""


def _unfit_template(pattern: str, source: ConfiguredEnd, sink: ConfiguredEnd) -> str:
    if sink.options.get("dynamic_topics", "refuse") == "refuse":
        return "must be the name of one topic; a template needs dynamic_topics: existing, or create, in the sink"
    try:
        check_target(pattern.replace("*", "x"))
    except ValueError as error:
        return f"makes names of which each {error}"
    same = source.name == sink.name and _same_cluster(source.options, sink.options)
    return f"may name what {_OWN_TOPIC}" if same and _may_read(_read_by(source.options), pattern) else ""


def _may_read(read: RocketMQSourceOptions, pattern: str) -> bool:
    """Whether a topic that matches the pattern may be one that a source reads."""
    if any(fnmatchcase(pattern, one) for one in read.exclude if "?" not in one):
        return any(fnmatchcase(topic, pattern) for topic in read.topics if not is_pattern(topic))
    return any(_may_meet(topic, pattern) for topic in read.topics)


@cache
def _may_meet(one: str, other: str) -> bool:
    """Whether some name matches both patterns."""
    if one[:1] == "*":
        return _may_meet(one[1:], other) or (bool(other) and _may_meet(one, other[1:]))
    if other[:1] == "*":
        return _may_meet(other, one)
    if not one or not other:
        return one == other
    return (one[0] == other[0] or "?" in (one[0], other[0])) and _may_meet(one[1:], other[1:])


def _same_cluster(source: Json, sink: Json) -> bool:
    """By one name server that both name: it knows one cluster."""
    return bool(_name_servers(source) & _name_servers(sink))


def _name_servers(options: Json) -> set[str]:
    return {plain_address(str(one)) for one in _names(options.get("name_servers"))}


def _read_by(source: Json) -> RocketMQSourceOptions:
    """What it says of topics, unchecked: other options may hold references."""
    return RocketMQSourceOptions.model_construct(
        topics=_names(source.get("topics")), exclude=_names(source.get("exclude"))
    )


def _names(written: Any) -> tuple[str, ...]:
    return tuple(re.split("[;, ]+", written) if isinstance(written, str) else written or ())
