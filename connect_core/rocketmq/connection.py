"""One TCP connection: requests from any thread go out whole, replies find their request by opaque.

There is no reader thread. Whoever waits for a reply reads, for everybody; one thread at a time. So a reply that is
under way waits in the kernel while its caller still works on the one before, and no thread has to get hold of the
interpreter for each piece of a large answer. The price: a server's push lies unread until somebody waits.

Every request has a deadline. When the connection breaks, each outstanding request fails with `ConnectionLost`, which
says whether the request had left. Nothing is sent again here.
"""

from __future__ import annotations

import contextlib
import enum
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from connect_core.errors import Unreachable, WireFormatError
from connect_core.rocketmq.errors import ConnectionLost, NoAnswer, forbids
from connect_core.rocketmq.options import ClientOptions, split_address
from connect_core.rocketmq.wire.commands import ResponseCode
from connect_core.rocketmq.wire.header import Command
from connect_core.rocketmq.wire.session import Event, Reply, WireSession, answer

_CHUNK_BYTES = 128 * 1024
_LINGER_OFF = struct.pack("ii", 1, 0)
_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Purpose(enum.Enum):
    """What a connection is for. One that sends drops unsent bytes when it, or its process, ends: nothing may arrive
    at the broker later than that."""

    ASK = "ask"
    SEND = "send"


class Pending:
    """A request that is under way. Made by `BrokerConnection.submit`; any one thread may wait for it."""

    def __init__(self, connection: BrokerConnection, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline
        self.outcome: Command | ConnectionLost | None = None

    def wait(self, until: float) -> bool:
        """Whether `result` would return or raise at once by that moment; it stays under way when not."""
        decided = self._connection.read_for(self, min(until, self._deadline))
        return decided or time.monotonic() >= self._deadline

    def result(self) -> Command:
        """The answer, whatever its code. Raises `NoAnswer` after the deadline, `ConnectionLost`."""
        if self.outcome is None:
            self.wait(self._deadline)
        if isinstance(self.outcome, ConnectionLost):
            raise self.outcome
        if self.outcome is None:
            self.give_up()
            raise NoAnswer("No answer in time", where=self._connection.address, next_step="Check load and network")
        return self.outcome

    @property
    def connection(self) -> BrokerConnection:
        return self._connection

    def postpone(self, deadline: float) -> None:
        """Moves the deadline: for who had other things to do while the answer came."""
        self._deadline = deadline

    def give_up(self) -> None:
        """Nobody waits any more: the answer will be dropped."""
        self._connection.forget(self)


class BrokerConnection:
    """Open from the start. Thread-safe."""

    def __init__(self, address: str, options: ClientOptions, purpose: Purpose) -> None:
        """Connects, at most `connect_timeout_s`. Raises `Unreachable`."""
        self.address = address
        self._socket = _open(address, options, purpose)
        self._who = f"as user {options.credentials.access_key}" if options.credentials else "without a user"
        self._session = WireSession(max_frame_bytes=options.max_frame_bytes)
        self._pending: dict[int, Pending] = {}
        self._state = threading.Condition()
        self._reading = False
        self._broken = False
        self._writing = threading.Lock()
        self._socket_use = threading.Lock()

    @property
    def usable(self) -> bool:
        """False once it is broken. Looks first whether the server has closed it while nobody was reading."""
        if not self._broken and not self._pending:
            idle = Pending(self, 0.0)
            self.read_for(idle, 0.0)
        return not self._broken

    def submit(self, command: Command, deadline: float) -> Pending:
        """Hands the request to the kernel. Raises `ConnectionLost` when that did not work."""
        pending = Pending(self, deadline)
        with self._writing:
            with self._state:
                if self._broken:
                    raise self._lost("Connection is closed", request_left=False)
                opaque, frame = self._session.request(command)
                self._pending[opaque] = pending
            if not self._write(frame, deadline):
                raise self._lost("Connection broke while a request was written", request_left=False)
        return pending

    def read_for(self, pending: Pending, until: float) -> bool:
        """Reads, or lets another thread read, until this request is decided or the moment has come."""
        return self.read_for_any([pending], until)

    def read_for_any(self, pending: Sequence[Pending], until: float) -> bool:
        """The same until one of these requests, all of this connection, is decided."""
        if self._take_turn(pending, until):
            try:
                while not (self._broken or _decided(pending)) and self._readable(until - time.monotonic()):
                    self._receive()
            finally:
                self._stop_reading()
        return _decided(pending)

    def forget(self, pending: Pending) -> None:
        with self._state:
            for opaque in [key for key, value in self._pending.items() if value is pending]:
                del self._pending[opaque]
                self._session.forget(opaque)

    def close(self) -> None:
        self._fail("Connection was closed here")

    def _readable(self, timeout_s: float) -> bool:
        """Whether a read would give something (or tell that the connection is over) within that time."""
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return True
        return self._poll(select.POLLIN, timeout_s)

    def _poll(self, event: int, timeout_s: float) -> bool:
        poller = select.poll()
        try:
            poller.register(self._socket, event)
        except ValueError:  # closed by another thread in between
            return True
        return bool(poller.poll(max(0.0, timeout_s) * 1000))

    def _receive(self) -> None:
        """Takes in what the socket has, once. Only by the thread that set `_reading`. Breaks rather than raises."""
        events: list[Event] = []
        try:
            events = self._take_bytes()
        except _NOT_NOW:
            pass
        except OSError as error:
            self._fail(f"Connection broke: {error.strerror or error}")
        except WireFormatError as error:
            self._fail(f"Connection closed, the peer does not keep to the protocol: {error}")
        for event in events:
            self._settle(event)

    def _take_bytes(self) -> list[Event]:
        room = self._session.room()
        if room:
            with self._socket_use:
                count = self._socket.recv_into(room)
            if count:
                with self._state:
                    return self._session.filled(count)
        else:
            with self._socket_use:
                data = self._socket.recv(_CHUNK_BYTES)
            if data:
                with self._state:
                    return self._session.receive(data)
        raise ConnectionResetError(0, "the server closed it")

    def _settle(self, event: Event) -> None:
        if isinstance(event, Reply):
            with self._state:
                pending = self._pending.pop(event.opaque, None)
                if pending is not None:
                    pending.outcome = self._telling_who(event.command)
                    self._state.notify_all()
        elif not event.command.is_one_way:
            with self._writing:
                refusal = answer(event.command, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "this client only asks")
                self._write(refusal, time.monotonic() + 1.0)

    def _take_turn(self, pending: Sequence[Pending], until: float) -> bool:
        """True when this thread is the one that reads now; False when a request is decided or the moment has come."""
        with self._state:
            while self._reading and not _decided(pending):
                if not self._state.wait(max(0.0, until - time.monotonic())):
                    return False
            if _decided(pending):
                return False
            self._reading = True
            return True

    def _stop_reading(self) -> None:
        with self._state:
            self._reading = False
            self._state.notify_all()

    def _write(self, frame: bytes, deadline: float) -> bool:
        """Whether all of it went to the kernel. A frame that is cut off ends the connection."""
        rest = memoryview(frame)
        while rest:
            try:
                with self._socket_use:
                    rest = rest[self._socket.send(rest) :]
            except _NOT_NOW:
                if not self._poll(select.POLLOUT, deadline - time.monotonic()):
                    self._fail("Connection does not take more bytes")
                    return False
            except OSError as error:
                self._fail(f"Connection broke: {error.strerror or error}")
                return False
        return True

    def _fail(self, reason: str) -> None:
        with self._state:
            self._broken = True
            lost, self._pending = list(self._pending.values()), {}
            for pending in lost:
                pending.outcome = self._lost(reason, request_left=True)
            self._state.notify_all()
        with self._socket_use:
            # A thread that waits in poll for this socket would not notice that it is closed.
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RD)
            self._socket.close()

    def _telling_who(self, reply: Command) -> Command:
        """A broker that refuses a request does not always say to whom."""
        if not forbids(reply.code, reply.remark):
            return reply
        return replace(reply, remark=f"{reply.remark.partition(chr(10))[0].strip()} (asked {self._who})")

    def _lost(self, reason: str, *, request_left: bool) -> ConnectionLost:
        return ConnectionLost(
            reason, where=self.address, next_step="Check that the server is well", request_left=request_left
        )


def _decided(pending: Sequence[Pending]) -> bool:
    return any(one.outcome is not None for one in pending)


def _open(address: str, options: ClientOptions, purpose: Purpose) -> socket.socket:
    host, port = split_address(address)
    try:
        raw = socket.create_connection((host, port), options.connect_timeout_s)
    except OSError as error:
        raise _unreachable(address, error) from None
    try:
        _tune(raw, options, purpose)
        if options.tls is not None:
            raw = options.tls().wrap_socket(raw, server_hostname=options.tls_server_name or host)
        raw.setblocking(False)
    except OSError as error:
        raw.close()
        raise _unreachable(address, error) from None
    return raw


def _tune(raw: socket.socket, options: ClientOptions, purpose: Purpose) -> None:
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if purpose is Purpose.SEND:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_OFF)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(options.send_timeout_s * 1000))


def _unreachable(address: str, error: OSError) -> Unreachable:
    advice = "Check that the server runs and that this address can be reached from here"
    if isinstance(error, ssl.SSLError):
        advice = "Check that the server takes TLS, and which certificates both sides trust"
    return Unreachable(f"Cannot connect: {error.strerror or error}", where=address, next_step=advice)
