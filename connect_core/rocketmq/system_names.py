"""Which topics and groups belong to RocketMQ itself (or to us) and are left out when people's own are listed."""

from __future__ import annotations

from connect_core.rocketmq.wire.route import Cluster

RETRY_PREFIX = "%RETRY%"
DEAD_LETTER_PREFIX = "%DLQ%"
BARRIER_TOPIC = "WAYBILL_BARRIER"

# fmt: off
_TOPICS = frozenset({
    "TBW102", "SCHEDULE_TOPIC_XXXX", "BenchmarkTest", "TRANS_CHECK_MAX_TIME_TOPIC", "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT", "CHECKPOINT_TOPIC",
    BARRIER_TOPIC,
})
_GROUPS = frozenset({
    "DEFAULT_CONSUMER", "DEFAULT_PRODUCER", "TOOLS_CONSUMER", "SCHEDULE_CONSUMER", "FILTERSRV_CONSUMER",
    "__MONITOR_CONSUMER", "CLIENT_INNER_PRODUCER", "SELF_TEST_P_GROUP", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER", "CID_ONSAPI_PULL",
})
# fmt: on
_TOPIC_PREFIXES = ("rmq_sys_", "RMQ_SYS_", RETRY_PREFIX, DEAD_LETTER_PREFIX, "%LMQ%")
_REPLY_SUFFIX = "_REPLY_TOPIC"
_GROUP_PREFIX = "CID_RMQ_SYS_"


def is_system_topic(topic: str, cluster: Cluster) -> bool:
    """Clusters and brokers have topics of their own name. Retry and dead-letter topics count as system topics."""
    own = {*cluster.clusters, *cluster.brokers}
    return (
        topic in _TOPICS
        or topic in own
        or topic.startswith(_TOPIC_PREFIXES)
        or (topic.endswith(_REPLY_SUFFIX) and topic.removesuffix(_REPLY_SUFFIX) in cluster.clusters)
    )


def is_system_group(group: str) -> bool:
    return group in _GROUPS or group.startswith(_GROUP_PREFIX)
