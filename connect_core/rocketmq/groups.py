"""Consumer groups: what lag tools look at. Waybill's own progress is in its ledger; a group's offset is only told."""

from __future__ import annotations

import json
from collections.abc import Collection

from connect_core.errors import Refused
from connect_core.rocketmq.errors import InvalidRequest, PermissionRefused
from connect_core.rocketmq.network import Network, accepted, answered, command
from connect_core.rocketmq.pulling import start_pull
from connect_core.rocketmq.queues import GroupProgress, Queue
from connect_core.rocketmq.system_names import RETRY_PREFIX, is_system_group
from connect_core.rocketmq.topics import TopicConfig, Topics
from connect_core.rocketmq.wire.commands import (
    CommitOffsetRequest,
    ConsumerGroupRequest,
    DeleteGroupRequest,
    GroupOffsetRequest,
    OffsetResponse,
    RequestCode,
    ResponseCode,
)
from connect_core.rocketmq.wire.header import Command
from connect_core.rocketmq.wire.route import decode_queue_table

MAX_GROUP_NAME = 120
"""So that the name of its retry topic stays within the limit for topics."""

_FIGURES = ("brokerOffset", "consumerOffset", "lastTimestamp")
_DROPPED = "Offset has been previously reset"


class Groups:
    """Part of `Client`."""

    def __init__(self, network: Network, topics: Topics) -> None:
        self._network = network
        self._topics = topics

    def names(self) -> list[str]:
        """Groups that lag tools can see (those with a retry topic), without RocketMQ's own; sorted."""
        retry_topics = (name for name in self._topics.all_names() if name.startswith(RETRY_PREFIX))
        groups = (name.removeprefix(RETRY_PREFIX) for name in retry_topics)
        return [group for group in groups if not is_system_group(group)]

    def create(self, group: str, brokers: Collection[str] | None = None) -> None:
        """On these masters (default: every one), with the retry topic that lag tools look for. Harmless when it exists,
        also for a user who may not create it."""
        for broker in sorted(self._network.cluster().brokers if brokers is None else brokers):
            try:
                self.create_on(group, broker)
            except PermissionRefused:
                if not self.exists(group):
                    raise

    def create_on(self, group: str, broker: str) -> None:
        """On one master."""
        if not 0 < len(group) <= MAX_GROUP_NAME:
            raise InvalidRequest("Not a group name", where=group, next_step=f"Use 1 to {MAX_GROUP_NAME} characters")
        body = json.dumps({"groupName": group, "consumeEnable": True, "retryQueueNums": 1}).encode()
        reply = self._network.ask_broker(broker, Command(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body))
        accepted(reply, f"{group} on {broker}")
        self._topics.ensure(TopicConfig(RETRY_PREFIX + group, 1, 1), broker)

    def exists(self, group: str) -> bool:
        """Whether lag tools can see it."""
        return self._topics.exists(RETRY_PREFIX + group)

    def delete(self, group: str) -> None:
        """With its offsets and its retry topic, on every master. Harmless when it is not there."""
        for broker in sorted(self._network.cluster().brokers):
            reply = self._network.ask_broker(
                broker, command(RequestCode.DELETE_SUBSCRIPTIONGROUP, DeleteGroupRequest(group))
            )
            accepted(reply, f"{group} on {broker}")
        self._topics.delete(RETRY_PREFIX + group)

    def online(self, group: str, broker: str) -> bool:
        """Whether consumers of this group are connected to that master."""
        reply = self._network.ask_broker(
            broker, command(RequestCode.GET_CONSUMER_CONNECTION_LIST, ConsumerGroupRequest(group))
        )
        if reply.code == ResponseCode.CONSUMER_NOT_ONLINE:
            return False
        accepted(reply, f"{group} on {broker}")
        return True

    def committed(self, group: str, queue: Queue) -> int | None:
        """The group's next offset to consume; None when nothing is stored."""
        return self._asked(GroupOffsetRequest(group, queue.topic, queue.queue_id), queue)

    def begin_of_new(self, group: str, queue: Queue) -> int | None:
        """What a broker tells consumers where nothing is stored for their group: 0 while the queue has lost no message
        and the first ones are in the broker's memory; else None, and a consumer begins at the newest."""
        return self._asked(GroupOffsetRequest(group, queue.topic, queue.queue_id, zero_if_missing=True), queue)

    def _asked(self, request: GroupOffsetRequest, queue: Queue) -> int | None:
        reply = self._network.ask_broker(queue.broker, command(RequestCode.QUERY_CONSUMER_OFFSET, request))
        if reply.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        return answered(OffsetResponse, reply, f"{request.group} on {queue}").offset

    def commit(self, group: str, queue: Queue, offset: int) -> bool:
        """Stores the next offset to consume. The group has to exist. Values may go backwards: the caller sees to that.

        After an operator has reset the group its broker drops what is committed until somebody has pulled with it: we
        do, and commit again. False when we are not allowed to, or it is dropped all the same.
        """
        if self._stored(group, queue, offset):
            return True
        try:
            start_pull(self._network, queue, offset, group=group, max_messages=1).answer()
        except Refused:
            return False
        return self._stored(group, queue, offset)

    def _stored(self, group: str, queue: Queue, offset: int) -> bool:
        request = CommitOffsetRequest(group, queue.topic, queue.queue_id, offset)
        reply = self._network.ask_broker(queue.broker, command(RequestCode.UPDATE_CONSUMER_OFFSET, request))
        return accepted(reply, f"{group} on {queue}").remark != _DROPPED

    def progress(self, group: str, topic: str) -> dict[Queue, GroupProgress]:
        """What lag tools show of this topic, for the queues that they show."""
        found: dict[Queue, GroupProgress] = {}
        for broker in sorted({queue.broker for queue in self._topics.read_queues(topic)}):
            reply = self._network.ask_broker(
                broker, command(RequestCode.GET_CONSUME_STATS, ConsumerGroupRequest(group, topic))
            )
            for row in decode_queue_table(accepted(reply, f"{group} on {broker}").body, _FIGURES):
                if row.topic == topic:
                    figures = GroupProgress(*(row.numbers[name] for name in _FIGURES))
                    found[Queue(topic, broker, row.queue_id)] = figures
        return found
