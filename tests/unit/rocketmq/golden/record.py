"""Records exchanges with a real name server and broker into this folder, one JSON file each.

    python tests/unit/rocketmq/golden/record.py 127.0.0.1:9876 5.5.0 [binary]

The broker must allow topic and group creation. With "binary" requests have binary headers; start the servers with
ROCKETMQ_SERIALIZE_TYPE=ROCKETMQ in their environment to get such answers too. Each file says where its bytes come
from (server version, command, date) and holds the frames that went out and came in, in hex, as they were on the wire.
"""

from __future__ import annotations

import datetime
import json
import socket
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import zstandard

from connect_core.rocketmq import Client, ClientOptions, Queue, TopicConfig
from connect_core.rocketmq.options import split_address
from connect_core.rocketmq.wire import properties
from connect_core.rocketmq.wire.batch_entries import encode_batch
from connect_core.rocketmq.wire.commands import (
    ConsumerGroupRequest,
    PullRequest,
    QueueRequest,
    RequestCode,
    RouteRequest,
    SendRequest,
    TopicRequest,
)
from connect_core.rocketmq.wire.fields import to_fields
from connect_core.rocketmq.wire.header import BINARY, JSON, Command, encode

HERE = Path(__file__).parent
SEND_MESSAGE_V2 = 310
BORN_MS = 1_700_000_000_000


class Recorder:
    def __init__(self, name_server: str, version: str, encoding: int) -> None:
        self.encoding = encoding
        self.name_server = name_server
        self.version = version
        self.client = Client(ClientOptions((name_server,)))
        ((self.broker_name, self.broker),) = self.client.brokers.masters().items()

    def exchange(self, address: str, command: Command) -> tuple[bytes, bytes]:
        """Request frame and reply frame, on a connection of their own."""
        request = encode(command, self.encoding)
        with socket.create_connection(split_address(address), 5) as link:
            link.sendall(request)
            reply = self._exactly(link, 4)
            return request, reply + self._exactly(link, int.from_bytes(reply, "big"))

    def record(self, name: str, what: str, address: str, command: Command) -> None:
        request, reply = self.exchange(address, command)
        document = {
            "server": f"Apache RocketMQ {self.version}",
            "command": what,
            "recorded": datetime.date.today().isoformat(),
            "request": request.hex(),
            "reply": reply.hex(),
        }
        path = HERE / f"{name}-{self.version}{'-binary' if self.encoding == BINARY else ''}.json"
        path.write_text(json.dumps(document, indent=1) + "\n")
        print(path.name, len(reply))

    @staticmethod
    def _exactly(link: socket.socket, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = link.recv(count - len(data))
            if not part:
                raise ConnectionError("closed by the server")
            data += part
        return data

    def single(self, topic: str, body: bytes, text: bytes, *, sys_flag: int = 0, flag: int = 0) -> Command:
        request = SendRequest("golden", topic, 0, BORN_MS, sys_flag, flag=flag, batch=False)
        fields = to_fields(request) | {"i": text.decode()}
        return Command(SEND_MESSAGE_V2, opaque=7, fields=fields, body=body)

    def batch(self, topic: str, *, header_properties: str = "") -> Command:
        bodies = [b"first", b"", "dritte £".encode()]
        texts = [properties.encode({"TAGS": "even", "KEYS": "k1"}), b"", properties.encode({"ümlaut": "wert"})]
        request = SendRequest("golden", topic, 0, BORN_MS, properties=header_properties)
        return Command(
            RequestCode.SEND_BATCH_MESSAGE, 8, 0, "", to_fields(request), encode_batch(bodies, texts, [1, 2, 3]).body
        )

    def pull(self, topic: str, offset: int, *, queue: int = 0) -> Command:
        request = PullRequest("golden", topic, queue, offset, 32)
        return Command(RequestCode.PULL_MESSAGE, opaque=9, fields=to_fields(request))

    def visible(self, topic: str, count: int) -> None:
        deadline = time.monotonic() + 5
        while self.client.offsets.end(Queue(topic, self.broker_name, 0)) < count and time.monotonic() < deadline:
            time.sleep(0.01)


def record_sends_and_pulls(recorder: Recorder) -> None:
    topic, broker = "golden", recorder.broker
    recorder.client.topics.create(topic, 1)
    recorder.client.groups.create("golden")
    text = properties.encode({"TAGS": "even", "KEYS": "k1 k2", "UNIQ_KEY": "7F000001000051AF0000000000000102"})
    recorder.record("send_single", "SEND_MESSAGE_V2", broker, recorder.single(topic, b"single body", text, flag=5))
    recorder.record("send_batch", "SEND_BATCH_MESSAGE of 3", broker, recorder.batch(topic))
    plain = b"compress me " * 20
    kinds: list[tuple[int, Callable[[bytes], bytes]]] = [
        (0x001, zlib.compress),
        (0x101, lz4.frame.compress),
        (0x201, zstandard.ZstdCompressor().compress),
        (0x301, zlib.compress),
    ]
    for bits, compress in kinds:
        recorder.exchange(broker, recorder.single(topic, compress(plain), b"", sys_flag=bits))
    recorder.visible(topic, 8)
    recorder.record(
        "pull_mixed", "PULL_MESSAGE: a single, a batch of 3, zlib, LZ4, zstd, zlib", broker, recorder.pull(topic, 0)
    )
    recorder.record("pull_caught_up", "PULL_MESSAGE at the end", broker, recorder.pull(topic, 8))
    recorder.record("pull_too_large", "PULL_MESSAGE behind the end", broker, recorder.pull(topic, 1000))
    recorder.record("pull_too_small", "PULL_MESSAGE at -1", broker, recorder.pull(topic, -1))
    recorder.record("pull_wrong_queue", "PULL_MESSAGE of queue 9", broker, recorder.pull(topic, 0, queue=9))
    recorder.record("pull_unknown_topic", "PULL_MESSAGE", broker, recorder.pull("golden_missing", 0))
    recorder.record("send_unknown_topic", "SEND_BATCH_MESSAGE", broker, recorder.batch("golden_missing"))
    stats = Command(RequestCode.GET_TOPIC_STATS_INFO, 3, fields=to_fields(TopicRequest(topic)))
    recorder.record("topic_stats", "GET_TOPIC_STATS_INFO", broker, stats)
    queue = Queue(topic, recorder.broker_name, 0)
    recorder.client.groups.commit("golden", queue, 5)
    progress = Command(RequestCode.GET_CONSUME_STATS, 4, fields=to_fields(ConsumerGroupRequest("golden", topic)))
    recorder.record("consume_stats", "GET_CONSUME_STATS", broker, progress)
    end = Command(RequestCode.GET_MAX_OFFSET, 5, fields=to_fields(QueueRequest(topic, 0)))
    recorder.record("max_offset", "GET_MAX_OFFSET", broker, end)
    config = Command(RequestCode.GET_TOPIC_CONFIG, 6, fields=to_fields(TopicRequest(topic)))
    recorder.record("topic_config", "GET_TOPIC_CONFIG", broker, config)


def record_inner_batch(recorder: Recorder) -> None:
    topic = "golden_batch_queue"
    config = TopicConfig(topic, 1, 1, attributes=(("queue.type", "BatchCQ"),))
    recorder.client.topics.ensure(config, recorder.broker_name)
    command = recorder.batch(topic, header_properties="UNIQ_KEY\x01BATCH\x02")
    recorder.exchange(recorder.broker, command)
    recorder.exchange(recorder.broker, command)
    recorder.visible(topic, 6)
    recorder.record("pull_inner_batch", "PULL_MESSAGE inside an inner batch", recorder.broker, recorder.pull(topic, 4))


def record_name_server(recorder: Recorder) -> None:
    route = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, 1, fields=to_fields(RouteRequest("golden")))
    recorder.record("route", "GET_ROUTEINFO_BY_TOPIC", recorder.name_server, route)
    loose = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, 1, fields={"topic": "golden_missing"})
    recorder.record("route_missing", "GET_ROUTEINFO_BY_TOPIC", recorder.name_server, loose)
    cluster = Command(RequestCode.GET_BROKER_CLUSTER_INFO, 2)
    recorder.record("cluster", "GET_BROKER_CLUSTER_INFO", recorder.name_server, cluster)
    names = Command(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, 3)
    recorder.record("topic_list", "GET_ALL_TOPIC_LIST_FROM_NAMESERVER", recorder.name_server, names)


if __name__ == "__main__":
    address, server_version, *form = sys.argv[1:]
    made = Recorder(address, server_version, BINARY if form == ["binary"] else JSON)
    record_sends_and_pulls(made)
    record_inner_batch(made)
    record_name_server(made)
    for used in ("golden", "golden_batch_queue"):
        made.client.topics.delete(used)
    made.client.close()
