"""The bare loop that the MQTT source is measured against: paho as its documentation shows it, each message acknowledged
by itself in the callback, and thrown away, or sent on to a topic before.

`python -m tests.bench.bare_mqtt PORT CLIENT_ID FILTER subscribe|take`: `subscribe` leaves a session behind; `take`
empties it, and prints how many messages came, and when the first and the last one did (monotonic seconds). `... FILTER
send NAME_SERVERS TOPIC` sends each message on, until it is killed.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from connect_core.rocketmq import Client as RocketMQClient
from connect_core.rocketmq import ClientOptions, encode_batch

_SILENCE_S = 1.0
_FIRST_S = 30.0


class Taker:
    """`took` messages, the first and the last at `first` and `last`."""

    def __init__(self, port: int, client_id: str) -> None:
        self.took, self.first, self.last = 0, 0.0, 0.0
        self.subscribed = False
        self.client = Client(
            CallbackAPIVersion.VERSION2, client_id, protocol=MQTTProtocolVersion.MQTTv5, manual_ack=True
        )
        self.client.on_message = self._on_message
        self.client.on_subscribe = self._on_subscribe
        asked = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        asked.SessionExpiryInterval, asked.ReceiveMaximum = 3600, 65_535
        self.client.connect("127.0.0.1", port, clean_start=False, properties=asked)

    def _on_message(self, client: Client, data: Any, message: Any) -> None:
        client.ack(message.mid, message.qos)
        self.last = time.monotonic()
        self.first = self.first or self.last
        self.took += 1

    def _on_subscribe(self, *_: Any) -> None:
        self.subscribed = True

    def subscribe(self, topic_filter: str) -> None:
        self.client.subscribe(topic_filter, 1)
        until = time.monotonic() + _FIRST_S
        while not self.subscribed and time.monotonic() < until:
            self.client.loop(0.1)

    def send(self, name_servers: str, topic: str) -> None:
        """Without end. The topic has one queue."""
        with RocketMQClient(ClientOptions(name_servers=tuple(name_servers.split(";")))) as rocketmq:
            sender = rocketmq.sender(rocketmq.topics.write_queues(topic)[0])

            def on_message(client: Client, data: Any, message: Any) -> None:
                deadline = time.monotonic() + _FIRST_S
                sender.submit(encode_batch([message.payload], [b""]), deadline=deadline)
                sender.finish(deadline=deadline)
                client.ack(message.mid, message.qos)

            self.client.on_message = on_message
            self.client.loop_forever()

    def take(self) -> None:
        until = time.monotonic() + _FIRST_S
        while time.monotonic() < (self.last + _SILENCE_S if self.took else until):
            self.client.loop(0.1)


def main(port: str, client_id: str, topic_filter: str, what: str, *target: str) -> None:
    taker = Taker(int(port), client_id)
    if what == "subscribe":
        taker.subscribe(topic_filter)
    elif what == "send":
        taker.send(*target)
    else:
        taker.take()
    taker.client.disconnect()
    print(taker.took, taker.first, taker.last)


if __name__ == "__main__":
    main(*sys.argv[1:])
