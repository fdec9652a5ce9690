"""Brokers and their settings."""

from __future__ import annotations

from connect_core.rocketmq.network import Network, accepted
from connect_core.rocketmq.wire import java_properties
from connect_core.rocketmq.wire.commands import RequestCode
from connect_core.rocketmq.wire.header import Command
from connect_core.rocketmq.wire.route import Cluster


class Brokers:
    """Part of `Client`."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def cluster(self) -> Cluster:
        """Every broker group that the name server knows."""
        return self._network.cluster()

    def masters(self) -> dict[str, str]:
        """Broker name to address of its master, over all clusters the name server knows."""
        groups = self._network.cluster().brokers.values()
        return {group.name: group.master for group in groups if group.master is not None}

    def settings(self, broker: str) -> dict[str, str]:
        """All settings in effect, such as `maxTransferCountOnMessageInMemory` and `maxMessageSize`."""
        reply = self._network.ask_broker(broker, Command(RequestCode.GET_BROKER_CONFIG))
        return java_properties.decode(accepted(reply, broker).body)

    def change_settings(self, broker: str, settings: dict[str, str]) -> None:
        """At run time; the broker also writes them to its file. Which ones take effect at once is up to the broker."""
        body = java_properties.encode(settings)
        reply = self._network.ask_broker(broker, Command(RequestCode.UPDATE_BROKER_CONFIG, body=body))
        accepted(reply, broker)
