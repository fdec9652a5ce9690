"""RocketMQ's own client for C++, by way of the package `rocketmq-client-python`: one message after the other.

The package is Python over ctypes and brings no library: `librocketmq.so` is looked for beside the package, then where
the system's linker looks. Of the library (2.0 and 2.1) this uses the one send to a queue of one's choice: a callback
chooses it by its place among the topic's queues, which the library sorts by broker and number as we do. It has no such
send for batches. Whatever goes wrong behind that callback is told as one and the same error, so a send that failed may
be stored.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from ctypes.util import find_library
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from connect_core.errors import ConfigError, Unreachable
from connect_core.rocketmq import ClientOptions
from connect_core.rocketmq.sending import PRODUCER_GROUP

PACKAGE, LIBRARY = "rocketmq-client-python", "librocketmq.so"
_MODULE = "rocketmq"
_UNBOUNDED = 1 << 30
_FATAL = 1
_NO_RETRY = 0
_WITH_PORTS = (socket.AF_INET, socket.AF_INET6)
"""Workers of Spark have sockets without them as well."""
_AT_ONCE = struct.pack("ii", 1, 0)
_NOBODY_S_TOPIC = b""
_instances = count()


class QueuePlace(NamedTuple):
    """A queue, as the library is told: the `number`-th of a topic that must have `queues` of them."""

    topic: str
    number: int
    queues: int


def missing() -> ConfigError | None:
    """What this host lacks, seen without loading anything."""
    spec = find_spec(_MODULE)
    if spec is None:
        return ConfigError(
            f"The native client needs the package {PACKAGE}, which is not installed here",
            where="sink.rocketmq.client",
            next_step="Install it where the lanes run: pip install 'waybill[native]'; or leave client out",
        )
    places = [Path(place) / LIBRARY for place in spec.submodule_search_locations or []]
    if any(place.exists() for place in places) or find_library(_MODULE):
        return None
    return _no_library("is not there")


def _no_library(why: str) -> ConfigError:
    spec = find_spec(_MODULE)
    beside = next(iter(spec.submodule_search_locations or []), "") if spec else ""
    return ConfigError(
        f"The native client needs the shared library {LIBRARY} (RocketMQ's client for C++, 2.0 or 2.1), which {why}",
        where="sink.rocketmq.client",
        next_step=f"Put it into {beside}, or into a folder of the system's linker, where the lanes run; or leave "
        "client out",
    )


def _loaded() -> Any:
    """The package's module of foreign functions, with those that it does not declare. Raises ConfigError."""
    if (lacking := missing()) is not None:
        raise lacking
    try:
        from rocketmq import ffi

        send = ffi.dll.SendMessageOrderly
        result = ctypes.POINTER(ffi._CSendResult)
        handle = ctypes.c_void_p
        send.argtypes = [handle, handle, ffi.QUEUE_SELECTOR_CALLBACK, handle, ctypes.c_int, result]
        ffi.dll.SetMessageTopic.argtypes = [handle, ctypes.c_char_p]
        ffi.dll.SetProducerCompressMsgBodyOverHowmuch.argtypes = [handle, ctypes.c_int]
    except (ImportError, OSError, AttributeError) as error:
        raise _no_library(f"cannot be used: {error}") from None
    return ffi


class NativeProducer:
    """One of the library's producers, used by one thread. Threads of the library run until `close`."""

    def __init__(self, options: ClientOptions) -> None:
        """Raises ConfigError without the library, `Unreachable` when it does not start."""
        self._options = options
        self._ffi = _loaded()
        self._dll = self._ffi.dll
        self._place = QueuePlace("", 0, 0)
        self._choose = self._ffi.QUEUE_SELECTOR_CALLBACK(self._chosen)
        self._argument = ctypes.c_int(0)  # the library wants one
        self._producer = self._dll.CreateProducer(PRODUCER_GROUP.encode())
        self._set_up()
        if self._dll.StartProducer(self._producer):
            raise Unreachable(
                f"The native client did not start: {self._last_error()}", where=", ".join(options.name_servers)
            )

    def _set_up(self) -> None:
        dll, options = self._dll, self._options
        dll.SetProducerLogLevel(self._producer, _FATAL)
        dll.SetProducerNameServerAddress(self._producer, ";".join(options.name_servers).encode())
        dll.SetProducerInstanceName(self._producer, f"waybill-{os.getpid()}-{next(_instances)}".encode())
        dll.SetProducerSendMsgTimeout(self._producer, int(options.send_timeout_s * 1000))
        dll.SetProducerMaxMessageSize(self._producer, _UNBOUNDED)
        dll.SetProducerCompressMsgBodyOverHowmuch(self._producer, _UNBOUNDED)
        if (known := options.credentials) is not None:
            access, secret = known.access_key.encode(), known.secret_key.encode()
            dll.SetProducerSessionCredentials(self._producer, access, secret, b"")

    def send(self, place: QueuePlace, body: bytes, properties: Iterable[tuple[str, str]]) -> int | None:
        """The offset at which the message is stored; None when nobody knows whether it is. Never tried again here."""
        self._place = place
        message = self._dll.CreateMessage(place.topic.encode())
        try:
            self._dll.SetByteMessageBody(message, body, len(body))
            for name, value in properties:
                self._dll.SetMessageProperty(message, name.encode(), value.encode())
            result = self._ffi._CSendResult()
            failed = self._dll.SendMessageOrderly(
                self._producer,
                message,
                self._choose,
                ctypes.byref(self._argument),
                _NO_RETRY,
                ctypes.byref(result),
            )
        finally:
            self._dll.DestroyMessage(message)
        return None if failed or result.sendStatus else int(result.offset)

    def _chosen(self, queues: int, message: int, argument: int) -> int:
        """Called by the library. It takes any answer for the place of a queue: where the topic has another number of
        them than the caller knows, the message is made one that no broker stores."""
        if queues == self._place.queues:
            return self._place.number
        self._dll.SetMessageTopic(message, _NOBODY_S_TOPIC)
        return 0

    def close(self) -> None:
        self._dll.ShutdownProducer(self._producer)
        self._dll.DestroyProducer(self._producer)

    def _last_error(self) -> str:
        """In the library's words, without the place in its source."""
        told = (self._dll.GetLatestErrorMessage() or b"").decode(errors="replace")
        return str(told).partition(",in file")[0].removeprefix("msg: ")


def drop_unsent(port: int, send_timeout_s: float) -> None:
    """What this process has handed to the kernel for servers at that port, and the kernel has not sent, goes when the
    process ends (delivery rule 4). For the connections there are now: the library opens its own."""
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError), _copied(descriptor) as one:  # closed meanwhile, or not a socket
            if one.family in _WITH_PORTS and one.getpeername()[1] == port:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(send_timeout_s * 1000))


def _copied(descriptor: int) -> socket.socket:
    copy = os.dup(descriptor)
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise
