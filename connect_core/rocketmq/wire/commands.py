"""The part of RocketMQ's command set that a replication tool needs: codes, and the header fields of each request and
response. Values only; `fields.to_fields` and `fields.from_fields` turn them into header text and back.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from connect_core.rocketmq.wire.fields import wire


class RequestCode(enum.IntEnum):
    PULL_MESSAGE = 11
    QUERY_MESSAGE = 12
    QUERY_CONSUMER_OFFSET = 14
    UPDATE_CONSUMER_OFFSET = 15
    UPDATE_AND_CREATE_TOPIC = 17
    UPDATE_BROKER_CONFIG = 25
    GET_BROKER_CONFIG = 26
    SEARCH_OFFSET_BY_TIMESTAMP = 29
    GET_MAX_OFFSET = 30
    GET_MIN_OFFSET = 31
    VIEW_MESSAGE_BY_ID = 33
    GET_ROUTEINFO_BY_TOPIC = 105
    GET_BROKER_CLUSTER_INFO = 106
    UPDATE_AND_CREATE_SUBSCRIPTIONGROUP = 200
    GET_TOPIC_STATS_INFO = 202
    GET_CONSUMER_CONNECTION_LIST = 203
    GET_ALL_TOPIC_LIST_FROM_NAMESERVER = 206
    DELETE_SUBSCRIPTIONGROUP = 207
    GET_CONSUME_STATS = 208
    DELETE_TOPIC_IN_BROKER = 215
    DELETE_TOPIC_IN_NAMESRV = 216
    GET_SYSTEM_TOPIC_LIST_FROM_BROKER = 305
    SEND_MESSAGE_V2 = 310
    SEND_BATCH_MESSAGE = 320
    GET_TOPIC_CONFIG = 351
    GET_SUBSCRIPTIONGROUP_CONFIG = 352


class ResponseCode(enum.IntEnum):
    SUCCESS = 0
    SYSTEM_ERROR = 1
    SYSTEM_BUSY = 2
    REQUEST_CODE_NOT_SUPPORTED = 3
    FLUSH_DISK_TIMEOUT = 10
    SLAVE_NOT_AVAILABLE = 11
    FLUSH_SLAVE_TIMEOUT = 12
    MESSAGE_ILLEGAL = 13
    SERVICE_NOT_AVAILABLE = 14
    VERSION_NOT_SUPPORTED = 15
    NO_PERMISSION = 16
    TOPIC_NOT_EXIST = 17
    PULL_NOT_FOUND = 19
    PULL_RETRY_IMMEDIATELY = 20
    PULL_OFFSET_MOVED = 21
    QUERY_NOT_FOUND = 22
    SUBSCRIPTION_PARSE_FAILED = 23
    SUBSCRIPTION_NOT_EXIST = 24
    SUBSCRIPTION_NOT_LATEST = 25
    SUBSCRIPTION_GROUP_NOT_EXIST = 26
    INVALID_PARAMETER = 29
    CONSUMER_NOT_ONLINE = 206
    FLOW_CONTROL = 215
    NOT_LEADER_FOR_QUEUE = 501
    ILLEGAL_OPERATION = 604
    GO_AWAY = 1500


PERM_READ = 4
PERM_WRITE = 2

PULL_COMMITS = 1
PULL_SUSPENDS = 2
PULL_CARRIES_SUBSCRIPTION = 4
"""Without it the broker wants a heartbeat of the group first."""

TEMPLATE_TOPIC = "TBW102"
NO_TEMPLATE_TOPIC = "WAYBILL_NO_AUTO_CREATE"
"""A topic that does not exist, given as template for auto-creation: an unknown topic is then refused (code 17)."""


@dataclass(frozen=True)
class RouteRequest:
    topic: str = wire("topic")
    standard_json: bool = wire("acceptStandardJsonOnly", True)


@dataclass(frozen=True)
class TopicRequest:
    """351 (configuration), 202 (statistics), 215 and 216 (delete) need only the topic."""

    topic: str = wire("topic")


@dataclass(frozen=True)
class GroupRequest:
    """352: the group's configuration."""

    group: str = wire("group")


@dataclass(frozen=True)
class ConsumerGroupRequest:
    """208 (progress of a topic) and 203 (connections, without topic)."""

    group: str = wire("consumerGroup")
    topic: str | None = wire("topic", None)


@dataclass(frozen=True)
class DeleteGroupRequest:
    group: str = wire("groupName")
    clean_offset: bool = wire("cleanOffset", True)


@dataclass(frozen=True)
class QueueRequest:
    """30 (end) and 31 (begin). The broker answers 0 for a queue that does not exist: look at the route first."""

    topic: str = wire("topic")
    queue_id: int = wire("queueId")


@dataclass(frozen=True)
class OffsetByTimeRequest:
    """`boundary` "lower": first offset stored at or after; "upper": last stored at or before (from 5.1.1 on)."""

    topic: str = wire("topic")
    queue_id: int = wire("queueId")
    timestamp_ms: int = wire("timestamp")
    boundary: str = wire("boundaryType", "lower")


@dataclass(frozen=True)
class OffsetResponse:
    """Answer to 14, 29, 30 and 31."""

    offset: int = wire("offset")


@dataclass(frozen=True)
class GroupOffsetRequest:
    """14. With `zero_if_missing` off the answer is 22 when nothing is stored."""

    group: str = wire("consumerGroup")
    topic: str = wire("topic")
    queue_id: int = wire("queueId")
    zero_if_missing: bool = wire("setZeroIfNotFound", False)


@dataclass(frozen=True)
class CommitOffsetRequest:
    """15. `offset` is the next one to consume."""

    group: str = wire("consumerGroup")
    topic: str = wire("topic")
    queue_id: int = wire("queueId")
    offset: int = wire("commitOffset")


@dataclass(frozen=True)
class CreateTopicRequest:
    topic: str = wire("topic")
    read_queues: int = wire("readQueueNums")
    write_queues: int = wire("writeQueueNums")
    perm: int = wire("perm")
    order: bool = wire("order", False)
    attributes: str | None = wire("attributes", None)
    template: str = wire("defaultTopic", TEMPLATE_TOPIC)
    filter_type: str = wire("topicFilterType", "SINGLE_TAG")
    system_flag: int = wire("topicSysFlag", 0)


@dataclass(frozen=True)
class PullRequest:
    group: str = wire("consumerGroup")
    topic: str = wire("topic")
    queue_id: int = wire("queueId")
    offset: int = wire("queueOffset")
    max_messages: int = wire("maxMsgNums")
    system_flag: int = wire("sysFlag", PULL_CARRIES_SUBSCRIPTION)
    commit_offset: int = wire("commitOffset", 0)
    suspend_ms: int = wire("suspendTimeoutMillis", 0)
    subscription: str = wire("subscription", "*")
    sub_version: int = wire("subVersion", 0)


@dataclass(frozen=True)
class ViewRequest:
    """By the place in the broker's log (bytes)."""

    place: int = wire("offset")


@dataclass(frozen=True)
class QueryRequest:
    """By a word of KEYS, or, where `by_unique_key` says so, by UNIQ_KEY. Times are those of storing, in milliseconds
    since 1970."""

    topic: str = wire("topic")
    key: str = wire("key")
    max_messages: int = wire("maxNum")
    begin_ms: int = wire("beginTimestamp", 0)
    end_ms: int = wire("endTimestamp", (1 << 63) - 1)
    by_unique_key: bool = wire("_UNIQUE_KEY_QUERY", False)


@dataclass(frozen=True)
class PullResponse:
    """`offset_delta` is added to the queue offsets of messages in static topics."""

    next_offset: int = wire("nextBeginOffset")
    begin: int = wire("minOffset")
    end: int = wire("maxOffset")
    suggested_broker_id: int | None = wire("suggestWhichBrokerId", None)
    offset_delta: int | None = wire("offsetDelta", None)


@dataclass(frozen=True)
class SendRequest:
    """320 and, with `batch` off, 310, in the short field names. In a batch `properties` stay empty: brokers up to 5.3.3
    append them to every message."""

    group: str = wire("a")
    topic: str = wire("b")
    queue_id: int = wire("e")
    born_timestamp_ms: int = wire("g")
    system_flag: int = wire("f", 0)
    template: str = wire("c", NO_TEMPLATE_TOPIC)
    template_queues: int = wire("d", 4)
    flag: int = wire("h", 0)
    properties: str = wire("i", "")
    reconsume_times: int = wire("j", 0)
    unit_mode: bool = wire("k", False)
    batch: bool = wire("m", True)


@dataclass(frozen=True)
class SendResponse:
    """`first_offset` is the queue offset of the first message; `message_ids` are joined by commas."""

    queue_id: int = wire("queueId")
    first_offset: int = wire("queueOffset")
    message_ids: str = wire("msgId", "")
