from __future__ import annotations

import dataclasses
import socket
import time

import pytest

from connect_core.errors import Unreachable
from connect_core.rocketmq.errors import NoAnswer, NoMaster, TopicMissing
from connect_core.rocketmq.network import Network
from connect_core.rocketmq.options import ClientOptions
from connect_core.rocketmq.testing import BROKER_NAME, ScriptedServer, reply, silence
from connect_core.rocketmq.wire.commands import RequestCode
from connect_core.rocketmq.wire.header import Command
from tests.unit.rocketmq.conftest import TOPIC

ROUTE = RequestCode.GET_ROUTEINFO_BY_TOPIC
CLUSTER = RequestCode.GET_BROKER_CLUSTER_INFO


def _closed_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


def test_name_servers_are_asked_in_turn_and_the_one_that_answers_is_kept(
    server: ScriptedServer, options: ClientOptions
) -> None:
    with ScriptedServer() as mute:
        mute.on(ROUTE, silence)
        servers = (_closed_address(), mute.address, server.address)
        network = Network(dataclasses.replace(options, name_servers=servers, request_timeout_s=0.5))
        assert network.route(TOPIC).queues
        assert network.route(TOPIC, look_up=True).queues
        assert len(mute.requests(ROUTE)) == 1
        assert len(server.requests(ROUTE)) == 2
        network.close()


def test_a_name_server_that_dies_is_left_for_another(server: ScriptedServer, options: ClientOptions) -> None:
    with ScriptedServer() as other:
        other.serve_route(TOPIC, queues=2)
        network = Network(dataclasses.replace(options, name_servers=(server.address, other.address)))
        assert network.route(TOPIC).queues
        server.close()
        assert network.route(TOPIC, look_up=True).queues
        assert len(other.requests(ROUTE)) == 1
        network.close()


def test_no_name_server_answers(options: ClientOptions) -> None:
    servers = (_closed_address(), _closed_address())
    network = Network(dataclasses.replace(options, name_servers=servers))
    with pytest.raises(Unreachable, match="No name server answers") as error:
        network.route(TOPIC)
    assert all(server in error.value.where for server in servers)


def test_a_refusal_of_a_name_server_is_an_answer(server: ScriptedServer, options: ClientOptions) -> None:
    with ScriptedServer() as other:
        network = Network(dataclasses.replace(options, name_servers=(server.address, other.address)))
        with pytest.raises(TopicMissing, match="code 17"):
            network.route("absent")
        assert other.received == []
        network.close()


def test_every_name_server_is_told(server: ScriptedServer, options: ClientOptions) -> None:
    with ScriptedServer() as other:
        network = Network(dataclasses.replace(options, name_servers=(server.address, other.address)))
        replies = network.ask_every_name_server(Command(RequestCode.DELETE_TOPIC_IN_NAMESRV))
        assert [answer.code for answer in replies] == [3, 3]
        network.close()


def test_routes_are_kept_for_a_while(server: ScriptedServer, options: ClientOptions) -> None:
    network = Network(dataclasses.replace(options, route_lifetime_s=0.05))
    network.route(TOPIC)
    network.route(TOPIC)
    assert len(server.requests(ROUTE)) == 1
    time.sleep(0.06)
    network.route(TOPIC)
    assert len(server.requests(ROUTE)) == 2
    network.close()


def test_a_forgotten_route_is_asked_for_again(server: ScriptedServer, network: Network) -> None:
    network.route(TOPIC)
    network.forget_route(TOPIC)
    network.route(TOPIC)
    assert len(server.requests(ROUTE)) == 2


def test_a_broker_is_found_by_name(server: ScriptedServer, network: Network) -> None:
    server.on(30, reply())
    assert network.ask_broker("broker-a", Command(30)).code == 0
    assert network.master("broker-a") == server.address
    assert len(server.requests(CLUSTER)) == 1


def test_a_route_tells_brokers_too(server: ScriptedServer, network: Network) -> None:
    network.route(TOPIC)
    assert network.master("broker-a") == server.address
    assert server.requests(CLUSTER) == []


def test_unknown_broker(network: Network) -> None:
    with pytest.raises(NoMaster, match=r"No master .*broker-b"):
        network.ask_broker("broker-b", Command(30))


def test_a_broker_that_moved_is_found_at_its_new_address(server: ScriptedServer, network: Network) -> None:
    with ScriptedServer() as old, ScriptedServer() as new:
        server.serve_route(TOPIC, queues=1, broker_address=old.address)
        old.on(30, reply())
        network.ask_broker("broker-a", Command(30))
        server.serve_route(TOPIC, queues=1, broker_address=new.address)
        new.on(30, reply(remark="new"))
        old.close()
        assert network.ask_broker("broker-a", Command(30)).remark == "new"


def test_a_broker_that_is_silent_is_not_asked_twice(server: ScriptedServer, hasty_options: ClientOptions) -> None:
    server.on(30, silence)
    network = Network(hasty_options)
    with pytest.raises(NoAnswer):
        network.ask_broker("broker-a", Command(30))
    assert len(server.requests(30)) == 1
    network.close()


def test_closing_closes_the_connections(server: ScriptedServer, network: Network) -> None:
    server.on(30, reply())
    network.ask_broker("broker-a", Command(30))
    network.close()
    network.ask_broker("broker-a", Command(30))
    assert server.connections == 2


@pytest.mark.parametrize("code", [2, 215])
def test_a_busy_broker_is_asked_again(server: ScriptedServer, network: Network, code: int) -> None:
    server.on(30, reply(code, remark="[TIMEOUT_CLEAN_QUEUE]"), reply(code), reply(remark="served"))
    assert network.ask_broker(BROKER_NAME, Command(30)).remark == "served"


def test_requests_to_a_broker_that_stays_busy_do_not_wait_one_after_the_other(
    server: ScriptedServer, hasty_options: ClientOptions
) -> None:
    server.on(30, reply(2))
    network, started = Network(hasty_options), time.monotonic()
    assert [network.ask_broker(BROKER_NAME, Command(30)).code for _ in range(10)] == [2] * 10
    assert time.monotonic() - started < 3 * hasty_options.request_timeout_s
    server.on(30, reply(), reply(2), reply(remark="served"))
    assert network.ask_broker(BROKER_NAME, Command(30)).code == 0
    assert network.ask_broker(BROKER_NAME, Command(30)).remark == "served", "a new spell"
    network.close()
