"""Topic administration: create, change, look up, delete, list."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from connect_core.rocketmq.errors import InvalidRequest, NoAnswer, NotSupported, TopicMissing
from connect_core.rocketmq.network import Network, accepted, command
from connect_core.rocketmq.queues import Queue
from connect_core.rocketmq.system_names import is_system_topic
from connect_core.rocketmq.wire.commands import (
    PERM_READ,
    PERM_WRITE,
    CreateTopicRequest,
    RequestCode,
    ResponseCode,
    TopicRequest,
)
from connect_core.rocketmq.wire.document import as_object, number_of
from connect_core.rocketmq.wire.header import Command
from connect_core.rocketmq.wire.json_reader import read
from connect_core.rocketmq.wire.route import Route, decode_names

_NAME = re.compile(r"[A-Za-z0-9_%|-]{1,127}")
_POLL_S = 0.005


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """A topic on one broker. `attributes` are pairs such as ("queue.type", "BatchCQ")."""

    topic: str
    read_queues: int
    write_queues: int
    perm: int = PERM_READ | PERM_WRITE
    order: bool = False
    attributes: tuple[tuple[str, str], ...] = ()

    @property
    def writable(self) -> range:
        """The numbers of its queues that may be written."""
        return range(self.write_queues if self.perm & PERM_WRITE else 0)


class Topics:
    """Part of `Client`."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def names(self) -> list[str]:
        """Topics that people made, sorted: system, retry, dead-letter and other inner topics are left out."""
        cluster = self._network.cluster()
        return [name for name in self.all_names() if not is_system_topic(name, cluster)]

    def all_names(self) -> list[str]:
        """Every topic, sorted."""
        reply = self._network.ask_name_server(Command(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER))
        return sorted(decode_names(accepted(reply, "topic list").body, "topicList"))

    def exists(self, topic: str) -> bool:
        """Whether the name server knows it now."""
        try:
            self._network.route(topic, look_up=True)
        except TopicMissing:
            return False
        return True

    def create(self, topic: str, queues: int, *, brokers: Sequence[str] | None = None) -> list[Queue]:
        """Creates it on the named brokers (default: every master of the cluster), `queues` on each, waits until the
        route shows it, and returns its write queues. Repeating it is harmless; a lower count never shrinks a topic.
        """
        names = list(brokers) if brokers is not None else sorted(self._network.cluster().brokers)
        for broker in names:
            self.ensure(TopicConfig(topic, queues, queues), broker)
        return self._wait_for_route(topic, queues, names)

    def ensure(self, wanted: TopicConfig, broker: str) -> None:
        """Creates it on one broker, or adds the queues that it lacks; leaves everything else of it as it is."""
        present = self.config_on(wanted.topic, broker)
        if present is None:
            self.put(wanted, broker)
        elif present.read_queues < wanted.read_queues or present.write_queues < wanted.write_queues:
            larger = replace(
                present,
                read_queues=max(present.read_queues, wanted.read_queues),
                write_queues=max(present.write_queues, wanted.write_queues),
                # Some attributes are fixed: to repeat them is refused. Left out, they stay.
                attributes=(),
            )
            self.put(larger, broker)

    def put(self, config: TopicConfig, broker: str) -> None:
        """Creates or changes it on one broker exactly as given (which may shrink it). Attributes not named stay."""
        if not _NAME.fullmatch(config.topic):
            raise InvalidRequest(
                "Not a topic name", where=config.topic, next_step="Use 1 to 127 of the characters A-Z a-z 0-9 _ - % |"
            )
        if config.read_queues < 1 or config.write_queues < 1:
            raise InvalidRequest("A topic needs queues", where=config.topic, next_step="Ask for 1 or more")
        request = CreateTopicRequest(
            topic=config.topic,
            read_queues=config.read_queues,
            write_queues=config.write_queues,
            perm=config.perm,
            order=config.order,
            attributes=",".join(f"+{name}={value}" for name, value in config.attributes) or None,
        )
        reply = self._network.ask_broker(broker, command(RequestCode.UPDATE_AND_CREATE_TOPIC, request))
        accepted(reply, f"{config.topic} on {broker}")
        self._network.forget_route(config.topic)

    def config(self, topic: str) -> dict[str, TopicConfig]:
        """Broker name to configuration, for every broker of the route. Raises `TopicMissing`."""
        route = self._network.route(topic, look_up=True)
        found = ((part.broker, self.config_on(topic, part.broker)) for part in route.queues)
        return {broker: config for broker, config in found if config is not None}

    def config_on(self, topic: str, broker: str) -> TopicConfig | None:
        """Its configuration on one broker; None when it is not there."""
        reply = self._network.ask_broker(broker, command(RequestCode.GET_TOPIC_CONFIG, TopicRequest(topic)))
        if reply.code == ResponseCode.TOPIC_NOT_EXIST:
            return None
        return _decode_config(topic, accepted(reply, f"{topic} on {broker}"))

    def delete(self, topic: str) -> None:
        """From every master that has it, then from every name server. Harmless when it is not there."""
        try:
            route = self._network.route(topic, look_up=True)
        except TopicMissing:
            return
        for part in route.queues:
            reply = self._network.ask_broker(
                part.broker, command(RequestCode.DELETE_TOPIC_IN_BROKER, TopicRequest(topic))
            )
            accepted(reply, f"{topic} on {part.broker}")
        for reply in self._network.ask_every_name_server(
            command(RequestCode.DELETE_TOPIC_IN_NAMESRV, TopicRequest(topic))
        ):
            accepted(reply, topic)
        self._network.forget_route(topic)

    def read_queues(self, topic: str) -> list[Queue]:
        """Queues that can be read, sorted. Raises `TopicMissing`."""
        return _read_queues(topic, self._ordinary_route(topic))

    def listed_queues(self, topic: str) -> list[Queue]:
        """As `read_queues`, also of a topic that cannot be read since it is static. Raises `TopicMissing`."""
        return _read_queues(topic, self._network.route(topic))

    def write_queues(self, topic: str) -> list[Queue]:
        """Queues that may be written, sorted: on masters, where the topic's permission allows it (brokers do not
        check that themselves). Raises `TopicMissing`."""
        return _write_queues(topic, self._ordinary_route(topic))

    def _ordinary_route(self, topic: str) -> Route:
        route = self._network.route(topic)
        if route.static:
            raise NotSupported(
                "Static topics (logic queues) cannot be read or written", where=topic, next_step="Use an ordinary topic"
            )
        return route

    def _wait_for_route(self, topic: str, queues: int, brokers: Sequence[str]) -> list[Queue]:
        deadline = self._network.deadline()
        wanted = {Queue(topic, broker, number) for broker in brokers for number in range(queues)}
        while time.monotonic() < deadline:
            if self.exists(topic) and wanted <= set(found := _write_queues(topic, self._network.route(topic))):
                return found
            time.sleep(_POLL_S)
        raise NoAnswer(
            "The topic was created, but the name server does not show it",
            where=topic,
            next_step="Check that the brokers register with this name server, and that the topic is writable",
        )


def _read_queues(topic: str, route: Route) -> list[Queue]:
    return sorted(Queue(topic, part.broker, number) for part in route.queues for number in part.readable)


def _write_queues(topic: str, route: Route) -> list[Queue]:
    return sorted(
        Queue(topic, part.broker, number)
        for part in route.queues
        if part.broker in route.brokers and route.brokers[part.broker].master is not None
        for number in part.writable
    )


def _decode_config(topic: str, reply: Command) -> TopicConfig:
    document = as_object(read(reply.body), "topic configuration")
    attributes = as_object(document.get("attributes") or {}, "attributes")
    return TopicConfig(
        topic=topic,
        read_queues=number_of(document, "readQueueNums"),
        write_queues=number_of(document, "writeQueueNums"),
        perm=number_of(document, "perm"),
        order=bool(document.get("order")),
        attributes=tuple(sorted((name, str(value)) for name, value in attributes.items())),
    )
