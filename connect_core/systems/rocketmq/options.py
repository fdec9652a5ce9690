"""Options of the RocketMQ system's source and sink, as a document gives them once its references are resolved."""

from __future__ import annotations

import re
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ByteSize, Field, ValidationInfo, field_validator, model_validator

from connect_core.systems.rocketmq.clusters import ClusterOptions, as_list

# Names that brokers and clients use for themselves: docs of RocketMQ 5, `TopicValidator`.
_SYSTEM_TOPICS = frozenset(
    {
        "TBW102",
        "SCHEDULE_TOPIC_XXXX",
        "BenchmarkTest",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "RMQ_SYS_TRACE_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
        "CHECKPOINT_TOPIC",
        "WAYBILL_BARRIER",
    }
)
_SYSTEM_PREFIXES = ("rmq_sys_", "%RETRY%")
_NAME = re.compile(r"[A-Za-z0-9_%|-]+")
_PATTERN = re.compile(r"[A-Za-z0-9_%|*?-]+")
_QUEUE = re.compile(r"[^/]+/[0-9]+")
_MAX_TOPIC_CHARACTERS = 127
_MAX_GROUP_CHARACTERS = 120
SYSTEM = "rocketmq"
"""What documents call this one."""
NATIVE = "native"
TOPIC = "{topic}"
"""What stands for the source's topic in the name of a target."""
DEFAULT = "default"
"""Where queues begin that `start` gives no offset for."""
GROUP = "group:"
"""What stands before the name of a consumer group in `start`."""
OTHERWISE = " or "
"""What stands behind it, before where queues begin of which the group has no offset."""
AS_NEW_GROUP = "as-new-group"
"""Where brokers begin with a group that has no offset."""


def _topic(name: str) -> str:
    if not _NAME.fullmatch(name) or len(name) > _MAX_TOPIC_CHARACTERS:
        raise ValueError(f"must be 1 to {_MAX_TOPIC_CHARACTERS} of the characters A-Z a-z 0-9 _ - % |")
    return name


def _topics(name: str) -> str:
    if not _PATTERN.fullmatch(name) or len(name) > _MAX_TOPIC_CHARACTERS:
        raise ValueError(
            f"must be 1 to {_MAX_TOPIC_CHARACTERS} of the characters A-Z a-z 0-9 _ - % |, or a pattern with * and ?"
        )
    return name


def is_pattern(topic: str) -> bool:
    """Whether this names every topic that matches, rather than one."""
    return "*" in topic or "?" in topic


def check_target(name: str) -> str:
    """The name itself when it is that of one topic that may be written. Raises ValueError."""
    if TOPIC in name:
        raise ValueError(f"must be the name of a topic, without {TOPIC}")
    return _target_topic(name)


def _target_topic(name: str) -> str:
    if TOPIC in name:
        _topic(name.replace(TOPIC, "x"))
        return name
    if name in _SYSTEM_TOPICS or name.startswith(_SYSTEM_PREFIXES):
        raise ValueError("is a topic that RocketMQ or Waybill uses for itself")
    return _topic(name)


def check_group(name: str) -> str:
    """The name itself when a consumer group can have it, or when it is empty. Raises ValueError."""
    if name and (not _NAME.fullmatch(name) or len(name) > _MAX_GROUP_CHARACTERS):
        raise ValueError(f"must be 1 to {_MAX_GROUP_CHARACTERS} of the characters A-Z a-z 0-9 _ - % |")
    return name


def _groups(name: str) -> str:
    if not _PATTERN.fullmatch(name) or len(name) > _MAX_GROUP_CHARACTERS:
        raise ValueError(
            f"must be 1 to {_MAX_GROUP_CHARACTERS} of the characters A-Z a-z 0-9 _ - % |, or a pattern with * and ?"
        )
    return name


def _as_text(value: object) -> object:
    """YAML makes a datetime of a time that is not quoted."""
    if isinstance(value, dict):
        return {name: _as_text(one) for name, one in value.items()}
    return value.isoformat() if isinstance(value, datetime) else value


def _start(given: str | dict[str, Any]) -> str | dict[str, Any]:
    """Offsets by topic and queue are kept as they are written."""
    if isinstance(given, str):
        return _start_of_all(given)
    for topic, offsets in given.items():
        if topic == DEFAULT and isinstance(offsets, str):
            _start_of_all(offsets)
        else:
            _check_offsets(_topic(topic), offsets)
    return given


def _check_offsets(topic: str, offsets: object) -> None:
    if not isinstance(offsets, dict) or not offsets:
        raise ValueError(f'{topic} must have an offset for each of some queues: {{"broker-a/0": 1200}}')
    for name, offset in offsets.items():
        if not isinstance(name, str) or not _QUEUE.fullmatch(name):
            raise ValueError(f'{topic}: {name} is no queue: write "broker-a/0"')
        if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
            raise ValueError(f"{topic}: {name} must begin at an offset, 0 or more, not at {offset}")


def start_of_group(text: str) -> tuple[str, str]:
    """The group that a `start` with one names, and where queues begin of which it has no offset."""
    group, either, otherwise = text.removeprefix(GROUP).partition(OTHERWISE)
    return group, otherwise if either else "earliest"


def _start_of_all(text: str) -> str:
    if text in ("earliest", "latest"):
        return text
    if text.startswith(GROUP):
        group, otherwise = start_of_group(text)
        if not group:
            raise ValueError("names no consumer group")
        check_group(group)
        if otherwise != AS_NEW_GROUP:
            _start_of_all(otherwise)
        return text
    try:
        aware = datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        raise ValueError(
            f'must be "earliest", "latest", "{GROUP}NAME", or a time such as 2026-11-01T00:00:00Z'
        ) from None
    if not aware:
        raise ValueError("is a time without its zone: add Z for UTC")
    return text


Topic = Annotated[str, AfterValidator(_topic)]
TargetTopic = Annotated[str, AfterValidator(_target_topic)]
Pattern = Annotated[str, AfterValidator(_topics)]
Patterns = Annotated[tuple[Pattern, ...], BeforeValidator(as_list)]
GroupPattern = Annotated[str, AfterValidator(_groups)]
GroupPatterns = Annotated[tuple[GroupPattern, ...], BeforeValidator(as_list)]
Topics = Annotated[tuple[Pattern, ...], BeforeValidator(as_list), Field(min_length=1)]


class RocketMQSourceOptions(ClusterOptions):
    """Reads every queue of one or more topics."""

    topics: Topics = Field(
        description="Topics to read: names, and patterns with `*` and `?`. A pattern never means a topic that RocketMQ "
        "or Waybill use for themselves; topics that come to match it are read from then on",
        examples=[["orders", "pay-*"]],
    )
    exclude: Patterns = Field(
        default=(), description="Topics that a pattern shall not mean: names and patterns", examples=[["pay-test-*"]]
    )
    start: Annotated[str | dict[str, Any], BeforeValidator(_as_text), AfterValidator(_start)] = Field(
        default="earliest",
        description="Where a queue that was never read begins: `earliest`, its oldest message; `latest`, behind the "
        "newest; a time with its zone, the first message stored since; `group:NAME`, the offset of that consumer group "
        "(earliest in queues of which it has no offset; `group:NAME or latest`, or a time, says otherwise; with "
        "`group:NAME or as-new-group` they begin where RocketMQ lets a new group begin: at the first message of a "
        "queue that has lost none, as long as that is in its broker's memory, else behind the newest). What has "
        "expired behind that offset is a gap, and so is an offset beyond the queue's end, which is of a former topic: "
        "all that there is is read then. What the first look has seen counts: the ledger keeps it when that is a run, "
        "our own group when it is `plan` or `lag`. With `earliest` it is what is left when the first range is "
        "planned: what expires before that is not reported. A queue that its topic gets later begins at its first "
        "message where the same task has looked at others of the topic. A topic that a pattern means later begins "
        "like all others: take `earliest` where none of its messages may be left out. "
        "Or offsets by topic and queue; `default` says where the queues begin that have none there, `earliest` when it "
        "is left out",
        examples=[
            "latest",
            "2026-11-01T00:00:00Z",
            "group:billing",
            "group:billing or latest",
            '{orders: {"broker-a/0": 1200}, default: latest}',
        ],
    )
    copies: Literal["keep", "leave_out"] = Field(
        default="keep",
        description="Messages that Waybill has brought into these topics: copied on like all others, or left out (and "
        "counted as filtered), so that two clusters can be replicated both ways",
        examples=["leave_out"],
    )
    group: Annotated[str, AfterValidator(check_group)] = Field(
        default="",
        description="Consumer group that gets the settled offsets, so that lag tools show them; never one that real "
        "consumers use. Empty: `WAYBILL-` and the connector's uid",
        examples=["WAYBILL-orders"],
    )
    uid: str = Field(
        default="",
        description="The connector's uid",
        examples=["5f2c9a1b"],
        json_schema_extra={"injected": True},
    )
    sink_system: str = Field(
        default="",
        description="The system of the connector's sink: RocketMQ takes more of a message than others do",
        examples=[SYSTEM],
        json_schema_extra={"injected": True},
    )

    @field_validator("start")
    @classmethod
    def _starts_in_its_topics(cls, start: str | dict[str, Any], known: ValidationInfo) -> str | dict[str, Any]:
        read = cls.model_construct(topics=known.data.get("topics", ("*",)), exclude=known.data.get("exclude", ()))
        for topic in read.model_copy(update={"start": start}).start_offsets():
            if not read.reads(topic):
                raise ValueError(f"{topic} is none of the topics that are read")
        return start

    def start_offsets(self) -> dict[str, dict[str, int]]:
        """By topic and `broker/queueId`, where queues begin that were never read."""
        given = self.start if isinstance(self.start, dict) else {}
        return {topic: offsets for topic, offsets in given.items() if isinstance(offsets, dict)}

    def start_of_others(self) -> str:
        """Where the others do."""
        if isinstance(self.start, str):
            return self.start
        default = self.start.get(DEFAULT)
        return default if isinstance(default, str) else "earliest"

    def names(self, topic: str) -> bool:
        """Whether it is named itself: then it has to be there."""
        return topic in self.topics and not is_pattern(topic)

    def reads(self, topic: str) -> bool:
        """Whether the topic is named, or meant by a pattern."""
        if topic in self.topics:
            return True
        meant = any(fnmatchcase(topic, one) for one in self.topics if is_pattern(one))
        return meant and not any(fnmatchcase(topic, one) for one in self.exclude)

    def consumer_group(self) -> str:
        """Empty when there is neither a group nor a uid: then nobody is told."""
        return self.group or (f"WAYBILL-{self.uid}" if self.uid else "")


class RocketMQSinkOptions(ClusterOptions):
    """Writes to a topic, or to one for each topic of the source, in the order of each source partition or of each key
    in it."""

    topic: TargetTopic = Field(
        description="Topic to write; `{topic}` in it stands for the topic that the records come from",
        examples=["orders", "{topic}", "east-{topic}"],
    )
    rename: dict[str, TargetTopic] = Field(
        default={},
        description="Topics of the source that go to another one than `topic` says",
        examples=[{"orders": "sales"}],
    )
    queues: int = Field(
        default=4,
        ge=0,
        le=1024,
        description="Queues on each broker when a topic is created; 0: in all as many as the source's topic has",
        examples=[8],
    )
    order: Literal["partition", "queue", "key", "sharding_key"] = Field(
        default="partition",
        description="What keeps its order, and so which queue a record goes to. Whole source partitions, each in one "
        "queue for good: `partition` deals them out evenly; `queue`, for a source of RocketMQ, takes the queue of the "
        "same number, modulo what the target has (queues of one broker of the source go to the target's broker of that "
        "name, else all to one). Or the records of a partition with the same key, each key in one queue, chosen by a "
        "hash: `key` is the message key, `sharding_key` the property or header `__SHARDINGKEY`; those without one go "
        "as with `partition`",
        examples=["queue", "key"],
    )
    groups: GroupPatterns = Field(
        default=(),
        description="Consumer groups of a RocketMQ source, names and patterns, that are kept in step: after each run "
        "their offsets are translated and written to the target, where that moves a group forward and none of its "
        "consumers is connected there",
        examples=[["billing", "*-team"]],
    )
    client: Literal["own", "native"] = Field(
        default="own",
        description="What sends: our own client, in batches; or `native`, RocketMQ's client for C++, which sends one "
        "message after the other and needs the extra `native` and a shared library (docs/native-client.md)",
        examples=["own"],
    )
    create: bool = Field(default=True, description="Create the topic when it is missing", examples=[False])
    dynamic_topics: Literal["refuse", "existing", "create"] = Field(
        default="refuse",
        description="Whether a rule may have a template in its `to` (`telemetry-{topic[1]}`), so that records say where"
        " they go: `refuse`, it may not; `existing`, and a record is rejected whose topic does not exist or may not be"
        " written; `create`, and what is missing is created, with `queues` on each broker",
        examples=["create"],
    )
    max_topics: int = Field(
        default=100,
        ge=1,
        le=1000,
        description="So many topics templates may name in all, as each task knows them: a record that would go to one "
        "more is rejected. Each range pins them, and looks into them after a crash",
        examples=[500],
    )
    on_replaced: Literal["fail", "continue"] = Field(
        default="fail",
        description="When a queue does not hold what was delivered to it, because its topic was created again or its "
        "broker lost messages: stop, or continue in the queue as it is now (what it lost is not delivered again). When "
        "the topic no longer has the queue of a partition: stop this partition, or give it another queue",
        examples=["continue"],
        json_schema_extra={"policy": True},
    )
    on_unknown: Literal["fail", "redeliver"] = Field(
        default="fail",
        description="When retention has deleted, before the next attempt looked, what a stopped attempt may have "
        "delivered: stop, or deliver the open range again (its receipt counts in `possible_duplicates` how many of its "
        "records may be in the target twice)",
        examples=["redeliver"],
        json_schema_extra={"policy": True},
    )
    max_message_bytes: ByteSize = Field(
        default=ByteSize(4 * 1024 * 1024),
        ge=1024,
        le=8 * 1024 * 1024,
        description="A message with a larger body is rejected; at most the brokers' maxMessageSize",
        examples=["1MiB"],
    )
    rule_topics: tuple[str, ...] | None = Field(
        default=None,
        description="The topics that rules name; none at all where a record has one output at most",
        examples=[["alarms"]],
        json_schema_extra={"injected": True},
    )
    rule_patterns: tuple[str, ...] = Field(
        default=(),
        description="What rules name by templates, `*` for each of their places",
        examples=[["telemetry-*"]],
        json_schema_extra={"injected": True},
    )
    only_rule_topics: bool = Field(
        default=False,
        description="Whether every record goes to a topic that a rule names, and none to `topic`",
        examples=[False],
        json_schema_extra={"injected": True},
    )
    send_timeout_s: float = Field(
        default=3.0,
        gt=0,
        description="Seconds within which a broker must answer a send; a share of the lease's margin",
        examples=[3.0],
        json_schema_extra={"injected": True},
    )

    @model_validator(mode="after")
    def _renamed(self) -> Self:
        for name in self.rename.values():
            if TOPIC in name:
                raise ValueError(f'rename: "{name}" must be the name of a topic')
        return self

    @model_validator(mode="after")
    def _native_in_plain_text(self) -> Self:
        if self.tls and self.client == NATIVE:
            raise ValueError("client: native has no TLS; leave client out")
        return self

    def target_for(self, topic: str) -> str:
        """Where the records of a source's topic go. Raises ValueError when that is no topic that may be written."""
        return _target_topic(self.rename.get(topic) or self.topic.replace(TOPIC, topic))
