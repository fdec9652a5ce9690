"""A scripted server for tests: real sockets and real bytes (through `wire`), answers by script. It plays the name
server, the broker, or both, and misbehaves when told to.

    with ScriptedServer() as server:
        server.on(RequestCode.GET_MAX_OFFSET, silence, reply(fields={"offset": "8"}))
        server.serve_route("orders", queues=2)
        client = Client(ClientOptions((server.address,)))

A handler gets the request and the `Link` that it came over. Several handlers for one code answer one request each, in
order; the last one stays. A code without handler is answered with code 3, as real servers do.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from connect_core.errors import WireFormatError
from connect_core.rocketmq.wire.commands import RequestCode, ResponseCode
from connect_core.rocketmq.wire.frame import Framer
from connect_core.rocketmq.wire.header import JSON, ONE_WAY_FLAG, RESPONSE_FLAG, Command, decode, encode

BROKER_NAME = "broker-a"
CLUSTER_NAME = "DefaultCluster"


class Link:
    """One connection as the server sees it."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._sending = threading.Lock()
        self.open = True

    def send(self, data: bytes) -> None:
        """Any bytes. A client that is gone is no fault of the server."""
        with self._sending:
            try:
                self._socket.sendall(data)
            except OSError:
                self.cut()

    def push(self, code: int, *, one_way: bool = True, opaque: int = 1) -> None:
        """A request of the server's own."""
        self.send(encode(Command(code, opaque, ONE_WAY_FLAG if one_way else 0)))

    def cut(self) -> None:
        """Closes the connection without a word."""
        self.open = False
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def receive(self) -> bytes:
        try:
            return self._socket.recv(65536)
        except OSError:
            return b""


Handler = Callable[[Command, Link], None]


def reply(
    code: int = 0,
    *,
    fields: Mapping[str, str] | None = None,
    body: bytes = b"",
    remark: str = "",
    encoding: int = JSON,
) -> Handler:
    """Answers with this."""

    def handle(request: Command, link: Link) -> None:
        link.send(encode(Command(code, request.opaque, RESPONSE_FLAG, remark, fields or {}, body), encoding))

    return handle


def silence(request: Command, link: Link) -> None:
    """Never answers."""


def cut(request: Command, link: Link) -> None:
    """Closes the connection instead of an answer."""
    link.cut()


def late(seconds: float, handler: Handler) -> Handler:
    """Answers later, while other requests on the connection are served."""

    def handle(request: Command, link: Link) -> None:
        threading.Timer(seconds, handler, (request, link)).start()

    return handle


@dataclass(frozen=True, slots=True)
class Received:
    """A request, and when it came."""

    command: Command
    at: float


class ScriptedServer:
    """Listens on a free port of the loopback from the start until `close`."""

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._handlers: dict[int, list[Handler]] = {}
        self._lock = threading.Lock()
        self._links: list[Link] = []
        self._threads: list[threading.Thread] = []
        self.received: list[Received] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._start(self._accept)

    def on(self, code: int, *handlers: Handler) -> None:
        """Replaces what is scripted for this code."""
        with self._lock:
            self._handlers[code] = list(handlers)

    def requests(self, code: int) -> list[Command]:
        """What came with this code, in order."""
        with self._lock:
            return [received.command for received in self.received if received.command.code == code]

    @property
    def connections(self) -> int:
        """How many were made in all."""
        with self._lock:
            return len(self._links)

    def serve_route(self, topic: str, *, queues: int, broker_address: str | None = None, perm: int = 6) -> None:
        """Answers route and cluster requests: one master, this server itself unless told otherwise."""
        group = {
            "brokerAddrs": {"0": broker_address or self.address},
            "brokerName": BROKER_NAME,
            "cluster": CLUSTER_NAME,
        }
        queue_data = {"brokerName": BROKER_NAME, "perm": perm, "readQueueNums": queues, "writeQueueNums": queues}
        route = {"brokerDatas": [group], "queueDatas": [queue_data], "filterServerTable": {}}
        cluster = {"brokerAddrTable": {BROKER_NAME: group}, "clusterAddrTable": {CLUSTER_NAME: [BROKER_NAME]}}

        def answer_route(request: Command, link: Link) -> None:
            known = request.fields.get("topic") == topic
            body = json.dumps(route).encode() if known else b""
            reply(ResponseCode.SUCCESS if known else ResponseCode.TOPIC_NOT_EXIST, body=body)(request, link)

        self.on(RequestCode.GET_ROUTEINFO_BY_TOPIC, answer_route)
        self.on(RequestCode.GET_BROKER_CLUSTER_INFO, reply(body=json.dumps(cluster).encode()))

    def cut_all(self) -> None:
        """Closes every connection."""
        with self._lock:
            links = list(self._links)
        for link in links:
            link.cut()

    def close(self) -> None:
        """Also waits until its threads are gone. Harmless when it is closed."""
        if self._listener.fileno() < 0:
            return
        self._listener.shutdown(socket.SHUT_RDWR)  # a blocked accept would not notice that it is closed
        self._threads[0].join()
        self._listener.close()
        self.cut_all()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> ScriptedServer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            if self._tls is not None:
                # The handshake comes with the first read, in the connection's own thread.
                connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            link = Link(connection)
            with self._lock:
                self._links.append(link)
            self._start(self._serve, link, connection)

    def _serve(self, link: Link, connection: socket.socket) -> None:
        framer = Framer()
        # Like a real server it closes the connection when it is sent nonsense.
        with connection, contextlib.suppress(WireFormatError):
            while data := link.receive():
                for command in map(decode, framer.feed(data)):
                    self._handle(command, link)
        link.open = False

    def _handle(self, command: Command, link: Link) -> None:
        with self._lock:
            self.received.append(Received(command, time.monotonic()))
            handlers = self._handlers.get(command.code, [reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED)])
            handler = handlers.pop(0) if len(handlers) > 1 else handlers[0]
        handler(command, link)
