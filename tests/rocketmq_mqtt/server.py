"""The stand-in as a process: `python -m tests.rocketmq_mqtt.server FOLDER PORT SETTINGS`, where the settings are JSON:
`first_levels`, `wildcards`, `user` and `secret`. What it stores is on disk at once, places each five seconds."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.rocketmq_mqtt import wire
from tests.rocketmq_mqtt.session import RETRY_S, Session
from tests.rocketmq_mqtt.store import Message, Store, first_level

MOST_BYTES = 64 * 1024
SAVE_S, PULL_S, FIRST_LOOK_S = 5.0, 0.01, 10.0
SCATTER_S = 0.002
"""Publishes that come one behind the other are stored in any order within this."""


class Deaf(Exception):
    """The rest of the connection is not answered."""


class Broker:
    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self._settings, self.store = settings, Store(folder, settings["wildcards"])
        self.sessions: set[Session] = set()
        self._last_ids: Counter[str] = Counter()

    def next_id(self, client_id: str) -> int:
        self._last_ids[client_id] = self._last_ids[client_id] % 65_535 + 1
        return self._last_ids[client_id]

    def knows(self, topic: str) -> bool:
        return first_level(topic) in self._settings["first_levels"]

    def lets_in(self, client_id: str, user: str, password: bytes) -> bool:
        signed = hmac.new(self._settings["secret"].encode(), client_id.encode(), hashlib.sha1).digest()
        return user == self._settings["user"] and password == base64.b64encode(signed)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(self, reader, writer)
        watch = asyncio.create_task(connection.watch())
        try:
            await connection.run()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            watch.cancel()
            connection.end()
            writer.close()

    async def every(self, seconds: float, call: str) -> None:
        while True:
            await asyncio.sleep(seconds)
            for session in [*self.sessions]:
                getattr(session, call)()


class Connection:
    def __init__(self, broker: Broker, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._broker, self._reader, self._writer = broker, reader, writer
        self._session: Session | None = None
        self._keep_alive_s, self._heard_at = 0, time.monotonic()
        self._exchanges: set[int] = set()
        """Ids of QoS 2 that were stored."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        try:
            while True:
                raw = await wire.read(self._reader)
                self._heard_at = time.monotonic()
                if len(raw.body) > MOST_BYTES:
                    raise Deaf
                if raw.kind == wire.DISCONNECT or not self._take(raw):
                    return
        except Deaf:
            while await self._reader.read(MOST_BYTES):
                pass

    async def watch(self) -> None:
        await asyncio.sleep(FIRST_LOOK_S)
        while self._session and time.monotonic() - self._heard_at <= self._keep_alive_s * 1.5:
            await asyncio.sleep(self._keep_alive_s * 1.5 + 1)
        self._writer.close()

    def end(self) -> None:
        if self._session:
            self._broker.sessions.discard(self._session)
            self._session.end()
            self._session = None

    def _take(self, raw: wire.Raw) -> bool:
        """False where the connection ends."""
        if raw.kind == wire.CONNECT:
            return self._connect(wire.Reader(raw.body))
        if self._session is None:
            return False
        body = wire.Reader(raw.body)
        if raw.kind == wire.PUBLISH:
            self._scattered(raw.flags, body)
        elif raw.kind == wire.PUBACK:
            self._session.acknowledged(body.number())
        elif raw.kind == wire.PUBREL:
            packet_id = body.number()
            self._exchanges.discard(packet_id)
            self._send(wire.numbered(wire.PUBCOMP, packet_id))
        elif raw.kind == wire.SUBSCRIBE:
            self._subscribe(body)
        elif raw.kind == wire.UNSUBSCRIBE:
            self._unsubscribe(body)
        elif raw.kind == wire.PINGREQ:
            self._send(wire.packet(wire.PINGRESP))
        return True

    def _connect(self, body: wire.Reader) -> bool:
        name, level, flags = body.text(), body.byte(), body.byte()
        if (name, level) != ("MQTT", 4):
            raise Deaf
        self._keep_alive_s = body.number()
        client_id, user, password = body.text(), "", b""
        if flags & 0x80:
            user = body.text()
        if flags & 0x40:
            password = body.data()
        if not self._broker.lets_in(client_id, user, password):
            self._send(wire.packet(wire.CONNACK, b"\0\4"))
            return False
        self._session = Session(
            client_id,
            self._broker.store,
            lambda: self._broker.next_id(client_id),
            self._send,
            clean=bool(flags & 2),
        )
        self._send(wire.packet(wire.CONNACK, b"\0\0"))
        self._broker.sessions.add(self._session)
        return True

    def _scattered(self, flags: int, body: wire.Reader) -> None:
        task = asyncio.create_task(self._publish(flags, body))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _publish(self, flags: int, body: wire.Reader) -> None:
        await asyncio.sleep(random.uniform(0, SCATTER_S))
        qos, topic = flags >> 1 & 3, body.text()
        packet_id = body.number() if qos else 0
        if not self._broker.knows(topic) or flags & 1:
            return
        if qos < 2 or packet_id not in self._exchanges:
            self._broker.store.put(self._broker.store.queues_of(topic), Message(topic, body.rest(), qos))
        if qos == 2:
            self._exchanges.add(packet_id)
        if qos:
            self._send(wire.numbered(wire.PUBACK if qos == 1 else wire.PUBREC, packet_id))

    def _subscribe(self, body: wire.Reader) -> None:
        packet_id, wanted = body.number(), []
        while body.more():
            wanted.append((body.text(), body.byte()))
        if self._session is None or not all(self._broker.knows(one) for one, _ in wanted):
            return
        for topic_filter, qos in wanted:
            self._session.subscribe(topic_filter, qos)
        self._send(wire.numbered(wire.SUBACK, packet_id, bytes(qos for _, qos in wanted)))

    def _unsubscribe(self, body: wire.Reader) -> None:
        packet_id = body.number()
        while body.more() and self._session is not None:
            self._session.unsubscribe(body.text())
        self._send(wire.numbered(wire.UNSUBACK, packet_id))

    def _send(self, data: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(data)


async def main(folder: Path, port: int, settings: dict[str, Any]) -> None:
    broker = Broker(folder, settings)
    loops = [broker.every(PULL_S, "pull"), broker.every(RETRY_S, "send_again"), broker.every(SAVE_S, "save")]
    tasks = [asyncio.create_task(loop) for loop in loops]
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    server = await asyncio.start_server(broker.serve, "127.0.0.1", port, limit=1 << 20)
    await over.wait()
    server.close()
    for session in [*broker.sessions]:
        session.end()
    for task in tasks:
        task.cancel()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])))
