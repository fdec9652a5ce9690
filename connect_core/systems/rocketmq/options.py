"""Options of the RocketMQ system's source and sink, as a document gives them once its references are resolved."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ByteSize, ConfigDict, Field

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
_MAX_TOPIC_CHARACTERS = 127
_MAX_GROUP_CHARACTERS = 120


def _topic(name: str) -> str:
    if not _NAME.fullmatch(name) or len(name) > _MAX_TOPIC_CHARACTERS:
        raise ValueError(f"must be 1 to {_MAX_TOPIC_CHARACTERS} of the characters A-Z a-z 0-9 _ - % |")
    return name


def _target_topic(name: str) -> str:
    if name in _SYSTEM_TOPICS or name.startswith(_SYSTEM_PREFIXES):
        raise ValueError("is a topic that RocketMQ or Waybill uses for itself")
    return _topic(name)


def _group(name: str) -> str:
    if name and (not _NAME.fullmatch(name) or len(name) > _MAX_GROUP_CHARACTERS):
        raise ValueError(f"must be 1 to {_MAX_GROUP_CHARACTERS} of the characters A-Z a-z 0-9 _ - % |")
    return name


def _as_list(value: object) -> object:
    """Several names may also stand in one text, as RocketMQ's own settings have them."""
    return [part.strip() for part in re.split(r"[;,]", value) if part.strip()] if isinstance(value, str) else value


def _address(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError('must be written as "host:port"')
    return text


Topic = Annotated[str, AfterValidator(_topic)]
Address = Annotated[str, AfterValidator(_address)]
NameServers = Annotated[tuple[Address, ...], BeforeValidator(_as_list), Field(min_length=1)]
TargetTopic = Annotated[str, AfterValidator(_target_topic)]
Topics = Annotated[tuple[Topic, ...], BeforeValidator(_as_list), Field(min_length=1)]


class RocketMQSourceOptions(BaseModel):
    """Reads every queue of one or more topics."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name_servers: NameServers = Field(
        description='Name servers of the cluster, each "host:port"', examples=[["127.0.0.1:9876"]]
    )
    topics: Topics = Field(description="Topics to read", examples=[["orders", "payments"]])
    start: Literal["earliest", "latest"] = Field(
        default="earliest",
        description="Where a queue that was never read begins: at its oldest message, or behind the newest there was "
        "when it was first looked at (which the consumer group keeps)",
        examples=["latest"],
    )
    group: Annotated[str, AfterValidator(_group)] = Field(
        default="",
        description="Consumer group that is told what is settled, so that lag tools show it; never one that real "
        "consumers use. Empty: `WAYBILL-` and the connector's uid",
        examples=["WAYBILL-orders"],
    )
    uid: str = Field(
        default="",
        description="The connector's uid",
        examples=["5f2c9a1b"],
        json_schema_extra={"injected": True},
    )

    def consumer_group(self) -> str:
        """Empty when there is neither a group nor a uid: then nobody is told."""
        return self.group or (f"WAYBILL-{self.uid}" if self.uid else "")


class RocketMQSinkOptions(BaseModel):
    """Writes to one topic; each source partition goes to one queue of it, in order."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name_servers: NameServers = Field(
        description='Name servers of the cluster, each "host:port"', examples=[["127.0.0.1:9876"]]
    )
    topic: TargetTopic = Field(description="Topic to write", examples=["orders"])
    queues: int = Field(
        default=4, ge=1, le=1024, description="Queues on each broker when the topic is created", examples=[8]
    )
    create: bool = Field(default=True, description="Create the topic when it is missing", examples=[False])
    max_message_bytes: ByteSize = Field(
        default=ByteSize(4 * 1024 * 1024),
        ge=1024,
        le=8 * 1024 * 1024,
        description="A larger message is rejected; at most the brokers' maxMessageSize",
        examples=["1MiB"],
    )
    send_timeout_s: float = Field(
        default=3.0,
        gt=0,
        description="Seconds within which a broker must answer a send; a share of the lease's margin",
        examples=[3.0],
        json_schema_extra={"injected": True},
    )
