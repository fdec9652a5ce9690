"""A line in front of an MQTT broker that a test can break: it keeps the broker's answers back, or cuts them off in the
middle of a packet."""

from __future__ import annotations

import contextlib
import socket
import threading

from tests.mqtt_brokers import MqttBroker

_CHUNK_BYTES = 1 << 16


class MqttLine:
    """`port` is what clients are given. While `holding`, nothing that the broker says gets through, and `held` tells
    that it has said something. `cut_after` counts the bytes until a connection is cut; below 0: never."""

    def __init__(self, broker: MqttBroker) -> None:
        self._broker = broker
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()
        self.holding, self.held = threading.Event(), threading.Event()
        self.cut_after = -1
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def __enter__(self) -> MqttLine:
        return self

    def __exit__(self, *_: object) -> None:
        hang_up(self._listener)
        self._threads[0].join()
        for one in self._open:
            hang_up(one)
        for thread in self._threads:
            thread.join()
        for one in (*self._open, self._listener):
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection((self._broker.host, self._broker.port))
            except OSError:  # the broker is down, and so is its line
                client.close()
                continue
            self._open += [client, server]
            for take in (self._to_server, self._to_client):
                self._threads.append(threading.Thread(target=take, args=(client, server)))
                self._threads[-1].start()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(_CHUNK_BYTES):
                server.sendall(data)
        hang_up(server)

    def _to_client(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(_CHUNK_BYTES):
                if self.holding.is_set():
                    self.held.set()
                    continue
                if 0 <= self.cut_after < len(data):
                    client.sendall(data[: self.cut_after])
                    self.cut_after = -1
                    break
                self.cut_after -= len(data) if self.cut_after >= 0 else 0
                client.sendall(data)
        hang_up(client)
        hang_up(server)


def hang_up(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
