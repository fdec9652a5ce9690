"""Finds its way: name servers asked in turn, routes kept for a while, brokers by name. The one object that the parts of
the client (topics, offsets, groups, readers, senders) share to reach servers. Thread-safe.

A broker that cannot be reached is looked up once more at the name server, since its address may have changed; and one
that says it is busy is asked again for a while. No other request is repeated here (`channel` makes good a lost
connection).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import TypeVar

from connect_core.errors import Unreachable
from connect_core.rocketmq.backoff import Backoff
from connect_core.rocketmq.channel import Asked, Channel
from connect_core.rocketmq.connection import Pending, Purpose
from connect_core.rocketmq.errors import NoMaster, refusal
from connect_core.rocketmq.options import ClientOptions
from connect_core.rocketmq.wire.commands import RequestCode, ResponseCode, RouteRequest
from connect_core.rocketmq.wire.fields import from_fields, to_fields
from connect_core.rocketmq.wire.header import Command
from connect_core.rocketmq.wire.route import BrokerGroup, Cluster, Route, decode_cluster, decode_route

T = TypeVar("T")
_BUSY = (ResponseCode.SYSTEM_BUSY, ResponseCode.FLOW_CONTROL)
"""Nothing was done, and the same request may be answered a moment later."""


class Network:
    def __init__(self, options: ClientOptions) -> None:
        self.options = options
        self._lock = threading.Lock()
        self._channels: dict[tuple[str, Purpose], Channel] = {}
        self._routes: dict[str, tuple[float, Route]] = {}
        self._masters: dict[str, str] = {}
        self._spells: dict[str, Backoff] = {}
        """By broker, since when it has said nothing but that it is busy."""
        self._first_name_server = 0

    def deadline(self) -> float:
        """When a request that begins now has to be answered."""
        return time.monotonic() + self.options.request_timeout_s

    def ask_name_server(self, command: Command) -> Command:
        """The answer, with any code, of the first name server that gives one."""
        servers = self.options.name_servers
        first = self._first_name_server
        failures = []
        for number in (*range(first, len(servers)), *range(first)):
            try:
                reply = self._channel(servers[number], Purpose.ASK, signs=False).ask(command, self.deadline()).result()
            except Unreachable as error:
                failures.append(error)
            else:
                self._first_name_server = number
                return reply
        if len(failures) == 1:
            raise failures[0]
        raise Unreachable(
            "No name server answers",
            where=", ".join(servers),
            next_step="Check that one of them runs and that it can be reached from here",
        )

    def ask_every_name_server(self, command: Command) -> list[Command]:
        """The answers of all of them: they share nothing. Raises `Unreachable` when one is away."""
        channels = [self._channel(server, Purpose.ASK, signs=False) for server in self.options.name_servers]
        return [channel.ask(command, self.deadline()).result() for channel in channels]

    def ask_broker(self, broker: str, command: Command) -> Command:
        """The answer, with any code, of the master of that name. While it is busy it is asked again, for as long as a
        request may take: one spell counts for all requests, so that many of them do not wait one after the other."""
        while (reply := self._ask_master(broker, command)).code in _BUSY:
            if not self._spells.setdefault(broker, Backoff(self.deadline())).pause():
                return reply
        self._spells.pop(broker, None)
        return reply

    def _ask_master(self, broker: str, command: Command) -> Command:
        try:
            return self.start_asking(broker, command, self.deadline()).result()
        except Unreachable:
            known = self._masters.get(broker)
            if self.master(broker, look_up=True) == known:
                raise
        return self.start_asking(broker, command, self.deadline()).result()

    def start_asking(self, broker: str, command: Command, deadline: float) -> Asked:
        """A repeatable request to a master, under way when this returns."""
        return self._channel(self.master(broker), Purpose.ASK, signs=True).ask(command, deadline)

    def start_sending(self, broker: str, command: Command, deadline: float) -> Pending:
        """A request that is never repeated, over the connection that sends."""
        return self._channel(self.master(broker), Purpose.SEND, signs=True).send_once(command, deadline)

    def route(self, topic: str, *, look_up: bool = False) -> Route:
        """Where the topic lives, at most `route_lifetime_s` old. Raises `TopicMissing`."""
        kept = None if look_up else self._routes.get(topic)
        if kept is not None and time.monotonic() - kept[0] < self.options.route_lifetime_s:
            return kept[1]
        reply = self.ask_name_server(command(RequestCode.GET_ROUTEINFO_BY_TOPIC, RouteRequest(topic)))
        with self._lock:
            self._routes.pop(topic, None)
        route = decode_route(accepted(reply, topic).body)
        with self._lock:
            self._routes[topic] = (time.monotonic(), route)
            self._remember(route.brokers.values())
        return route

    def forget_route(self, topic: str) -> None:
        with self._lock:
            self._routes.pop(topic, None)

    def cluster(self) -> Cluster:
        """Every broker that the name server knows, as of now."""
        reply = self.ask_name_server(Command(RequestCode.GET_BROKER_CLUSTER_INFO))
        cluster = decode_cluster(accepted(reply, "cluster").body)
        with self._lock:
            self._remember(cluster.brokers.values())
        return cluster

    def master(self, broker: str, *, look_up: bool = False) -> str:
        """Address of the master of that name. Raises `NoMaster`."""
        address = None if look_up else self._masters.get(broker)
        if address is None:
            group = self.cluster().brokers.get(broker)
            address = group.master if group else None
        if address is None:
            raise NoMaster(
                "No master of that name is registered",
                where=broker,
                next_step="Check that the broker runs and that it registers with these name servers",
            )
        return address

    def close(self) -> None:
        """Closes all connections. What is under way fails."""
        with self._lock:
            channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            channel.close()

    def _remember(self, groups: Iterable[BrokerGroup]) -> None:
        for group in groups:
            if group.master is not None:
                self._masters[group.name] = group.master

    def _channel(self, address: str, purpose: Purpose, *, signs: bool) -> Channel:
        with self._lock:
            channel = self._channels.get((address, purpose))
            if channel is None:
                channel = Channel(address, self.options, purpose, signs=signs)
                self._channels[address, purpose] = channel
            return channel


def command(code: RequestCode, request: object, body: bytes = b"") -> Command:
    """The request as a command."""
    return Command(code=code, fields=to_fields(request), body=body)


def accepted(reply: Command, where: str) -> Command:
    """The reply, when it says success; raises the error of its code otherwise."""
    if reply.code != ResponseCode.SUCCESS:
        raise refusal(reply.code, reply.remark, where=where)
    return reply


def answered(kind: type[T], reply: Command, where: str) -> T:
    """The header of a successful reply as a value."""
    return from_fields(kind, accepted(reply, where).fields)
