from __future__ import annotations

from connect_core.rocketmq import Client
from connect_core.rocketmq.testing import ScriptedServer, reply
from connect_core.rocketmq.wire.commands import RequestCode


def test_masters(client: Client, server: ScriptedServer) -> None:
    assert client.brokers.masters() == {"broker-a": server.address}
    assert client.brokers.cluster().clusters == {"DefaultCluster": ("broker-a",)}


def test_settings(client: Client, server: ScriptedServer) -> None:
    server.on(RequestCode.GET_BROKER_CONFIG, reply(body=b"maxMessageSize=4194304\nbrokerName=broker-a\n"))
    assert client.brokers.settings("broker-a") == {"maxMessageSize": "4194304", "brokerName": "broker-a"}


def test_changing_settings(client: Client, server: ScriptedServer) -> None:
    server.on(RequestCode.UPDATE_BROKER_CONFIG, reply())
    client.brokers.change_settings("broker-a", {"maxTransferCountOnMessageInMemory": "1024"})
    (request,) = server.requests(RequestCode.UPDATE_BROKER_CONFIG)
    assert bytes(request.body) == b"maxTransferCountOnMessageInMemory=1024\n"
