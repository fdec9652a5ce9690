"""Whether the two ends of a connector go together: one that reads what it writes feeds itself and never ends.

Looks at nothing but which files there are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from typing import Any

from connect_core.config.endpoints import End
from connect_core.config.units import parse_seconds, show_seconds
from connect_core.config.written import Place
from connect_core.systems.file.expanding import expanded
from connect_core.systems.file.options import path_of_task
from connect_core.systems.file.patterns import matches, without_links
from connect_core.systems.mqtt.filters import overlap
from connect_core.systems.mqtt.options import MqttSourceOptions
from connect_core.systems.mqtt.sink_options import MqttSinkOptions
from connect_core.systems.mqtt.templates import Named, Template
from connect_core.systems.rocketmq.options import TOPIC, RocketMQSinkOptions, RocketMQSourceOptions, is_pattern

_SHARED = re.compile(r"^\$share/[^/]+/")
"""What stands before the filter of a shared subscription."""


def misfit(source: End, sink: End) -> tuple[Place, str] | None:
    """Place and words of what is wrong between two ends that are sound by themselves; None for ends that fit."""
    if source.system == "mqtt" and (told := _needs_acknowledging(source, sink)):
        return told
    if sink.system == "rocketmq" and source.system != "rocketmq":
        return _needs_topics(source, sink)
    if source.system != sink.system:
        return None
    if source.system == "mqtt":
        return _own_messages(source, sink)
    if source.system == "file" and reads_one_of(str(source.options.get("path")), files_read(source), files_of(sink)):
        return ("sink", "file", "path"), f"is one of the files that the source reads ({source.options['path']})"
    return _unfit_target(source, sink) if source.system == "rocketmq" else None


def unfit_schedule(source: End, schedule: Any) -> tuple[Place, str] | None:
    """Place and words of what is wrong with when a connector runs; None where nothing is."""
    if source.system != "mqtt" or not isinstance(schedule, dict):
        return None
    if schedule.get("on_change"):
        words = "nobody can see whether an MQTT broker has something: use every, with a window"
        return ("schedule", "on_change"), words
    kept_s = source.options.get("session_expiry_s") or MqttSourceOptions.model_fields["session_expiry_s"].default
    if isinstance(kept_s, int) and (every_s := _seconds(schedule.get("every"))) >= kept_s:
        words = f"the broker drops a session after session_expiry_s ({show_seconds(kept_s)}), before the next run"
        return ("schedule", "every"), f"{words}, {show_seconds(every_s)} later"
    return None


def _seconds(written: Any) -> float:
    """0 for what is no span of time: that is told by who judges the schedule by itself."""
    try:
        return parse_seconds(written)
    except ValueError:
        return 0.0


def _needs_acknowledging(source: End, sink: End) -> tuple[Place, str] | None:
    """What a member has not acknowledged goes to another one, again and again where that waits for a settle."""
    filters = source.options.get("filters")
    named = [filters] if isinstance(filters, str) else filters or ()
    if sink.system == "rocketmq" or not any(str(one).startswith("$share/") for one in named):
        return None
    return (
        ("source", "mqtt", "filters"),
        f"shared subscriptions need a sink that tells which records it holds, as rocketmq does, and {sink.system} does"
        " not: give plain filters, and sessions: N to work side by side",
    )


def _needs_topics(source: End, sink: End) -> tuple[Place, str] | None:
    if TOPIC in str(sink.options.get("topic")):
        return ("sink", "rocketmq", "topic"), f"{TOPIC} needs a source of topics, and {source.system} is none"
    if sink.options.get("order") == "queue":
        return ("sink", "rocketmq", "order"), f"queue needs a source of queues, and {source.system} is none"
    if sink.options.get("groups"):
        return ("sink", "rocketmq", "groups"), f"are those of a RocketMQ source, and {source.system} is none"
    return None


def _own_messages(source: End, sink: End) -> tuple[Place, str] | None:
    """By a topic for each filter; what the sink keeps for itself is one too."""
    if not same_broker(source, sink):
        return None
    given = {name: str(sink.options[name]) for name in ("topic", "progress_topic") if name in sink.options}
    options, filters = MqttSinkOptions.model_construct(None, **given), filters_of(source)
    for one in filters:
        name = one.replace("+", "x").replace("#", "x")
        target = Template.parse(options.topic).fill(Named(name, "x", name, {"MQTT_TOPIC": name}))
        if any(isinstance(target, str) and overlap(another, target) for another in filters):
            return ("sink", "mqtt", "topic"), "is a topic that the source reads, at the same broker"
        if overlap(one, f"{options.progress_topic}/x/x"):
            return ("sink", "mqtt", "progress_topic"), "begins a topic that the source reads, at the same broker"
    return None


def _unfit_target(source: End, sink: End) -> tuple[Place, str] | None:
    """By the topics that are named, and one topic for each pattern."""
    place = ("sink", "rocketmq", "topic")
    read = read_by(source)
    written = RocketMQSinkOptions.model_construct(
        topic=str(sink.options.get("topic")), rename=dict(sink.options.get("rename") or {})
    )
    for topic in read.topics:
        sample = topic.replace("*", "x").replace("?", "x")
        try:
            target = written.target_for(sample)
        except ValueError as error:
            if is_pattern(topic):  # told when there is such a topic
                continue
            return place, f"makes a name of {topic} that {error}; give that one a name with `rename`"
        if same_cluster(source, sink) and read.reads(sample) and read.reads(target):
            return place, "is a topic that the source reads, in the same cluster"
    return None


def same_broker(source: End, sink: End) -> bool:
    """Of two ends of MQTT."""
    return all(source.options.get(name) == sink.options.get(name) for name in ("host", "port"))


def filters_of(source: End) -> list[str]:
    """What an MQTT source subscribes to."""
    read = source.options.get("filters") or ()
    return [_SHARED.sub("", str(one)) for one in ([read] if isinstance(read, str) else read)]


def same_cluster(source: End, sink: End) -> bool:
    """Of two ends of RocketMQ."""
    return bool(source.options.get("name_servers") == sink.options.get("name_servers"))


def read_by(source: End) -> RocketMQSourceOptions:
    """What it says of topics, unchecked: other options may hold references."""
    return RocketMQSourceOptions.model_construct(
        topics=_names(source.options.get("topics")), exclude=_names(source.options.get("exclude"))
    )


def _names(written: Any) -> tuple[str, ...]:
    return tuple(re.split("[;, ]+", written) if isinstance(written, str) else written or ())


def files_of(sink: End) -> list[str]:
    """Every file that the tasks of a file sink write, symbolic links resolved."""
    path, tasks = str(sink.options.get("path")), sink.options.get("tasks") or 1
    return [os.path.realpath(path_of_task(path, task, tasks)) for task in range(tasks)]


def files_read(source: End) -> frozenset[str]:
    """The files that a file source finds now, symbolic links resolved."""
    return frozenset(map(os.path.realpath, expanded(str(source.options.get("path")))))


def reads_one_of(pattern: str, found: Collection[str], written: Sequence[str]) -> bool:
    """Whether one of the real paths `written` is read: it is `found` now, or will be by its name. The pattern may hold
    symbolic links."""
    forms = (pattern, without_links(pattern))
    return any(path in found or any(matches(path, form) for form in forms) for path in written)
