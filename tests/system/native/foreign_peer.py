"""RocketMQ's client for C++ as a program: it produces what it is told, or prints what a push consumer of it gets.

    python foreign_peer.py produce NAME_SERVERS TOPIC            a message a line of its input
    python foreign_peer.py consume NAME_SERVERS TOPIC GROUP N    a line a message, ends behind the N-th
    python foreign_peer.py misled NAME_SERVERS TOPIC             sends to the first of one queue too many

Bodies are base64. The package shows a body up to its first zero byte: here it is read to the length that a property of
the message says, and one byte further, where a body that ends there has a zero byte.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import sys
import threading
from typing import Any

SIZE = "BODY-BYTES"
"""The property that says how long the body is."""
_LARGEST = 4 * 1024 * 1024


def produce(name_servers: str, topic: str) -> None:
    from rocketmq.client import Message, Producer
    from rocketmq.ffi import dll

    producer = Producer("foreign-producer", max_message_size=_LARGEST)
    producer.set_name_server_address(name_servers)
    producer.start()
    for line in sys.stdin:
        told = json.loads(line)
        message, body = Message(topic), base64.b64decode(told["body"])
        dll.SetByteMessageBody(message, body, len(body))
        message.set_keys(told["key"])
        message.set_tags(told["tags"])
        for name, value in told["properties"].items():
            message.set_property(name, value)
        producer.send_sync(message)
    producer.shutdown()


def consume(name_servers: str, topic: str, group: str, count: str) -> None:
    from rocketmq.client import ConsumeStatus, PushConsumer
    from rocketmq.ffi import dll

    dll.GetMessageBody.restype = ctypes.c_void_p
    left, told, done = int(count), threading.Lock(), threading.Event()

    def got(message: Any) -> Any:
        nonlocal left
        size = int(message.get_property(SIZE))
        held = ctypes.string_at(dll.GetMessageBody(message._handle), size + 1)
        with told:
            print(json.dumps(_shown(message, held)), flush=True)
            left -= 1
            if not left:
                done.set()
        return ConsumeStatus.CONSUME_SUCCESS

    consumer = PushConsumer(group)
    consumer.set_name_server_address(name_servers)
    consumer.subscribe(topic, got)
    consumer.start()
    done.wait(60)
    os._exit(0 if done.is_set() else 1)  # its own end takes seconds


def _shown(message: Any, held: bytes) -> dict[str, Any]:
    names = ("größe", "emoji", "WAYBILL")
    return {
        "body": base64.b64encode(held[:-1]).decode(),
        "ends": held[-1:] == b"\0",
        "key": message.keys.decode(),
        "tags": message.tags.decode(),
        "properties": {name: message.get_property(name).decode() for name in names},
    }


def misled(name_servers: str, topic: str) -> None:
    from connect_core.rocketmq import ClientOptions
    from connect_core.systems.rocketmq.native_library import NativeProducer, QueuePlace

    producer = NativeProducer(ClientOptions((name_servers,)))
    print(producer.send(QueuePlace(topic, 0, 3), b"nowhere", ()), producer.send(QueuePlace(topic, 1, 2), b"there", ()))
    producer.close()


if __name__ == "__main__":
    {"produce": produce, "consume": consume, "misled": misled}[sys.argv[1]](*sys.argv[2:])
