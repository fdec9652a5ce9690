"""The way to one address: connects when needed, and makes good one lost connection for requests that may be repeated.

This is the only place of the client where a request is sent twice, and only `ask` does it: a connection that breaks,
or a server that says it is shutting down, is followed by one new connection and one repetition. `send_once` never
repeats.
"""

from __future__ import annotations

import dataclasses
import threading

from connect_core.rocketmq.connection import BrokerConnection, Pending, Purpose
from connect_core.rocketmq.errors import ConnectionLost
from connect_core.rocketmq.options import ClientOptions
from connect_core.rocketmq.wire.commands import ResponseCode
from connect_core.rocketmq.wire.header import Command
from connect_core.rocketmq.wire.signing import signed


class Channel:
    """Thread-safe. `signs` is on for brokers; name servers check nothing."""

    def __init__(self, address: str, options: ClientOptions, purpose: Purpose, *, signs: bool) -> None:
        self.address = address
        self._options = options
        self._purpose = purpose
        self._credentials = options.credentials if signs else None
        self._connection: BrokerConnection | None = None
        self._lock = threading.Lock()

    def ask(self, command: Command, deadline: float) -> Asked:
        """Hands over a request that may be repeated; returns while it is under way. Raises `Unreachable`."""
        command = self._sign(command)
        try:
            return Asked(self, command, deadline, self._connected().submit(command, deadline))
        except ConnectionLost:
            return Asked(self, command, deadline, self._connected().submit(command, deadline), repeated=True)

    def send_once(self, command: Command, deadline: float) -> Pending:
        """Hands over a request that must not be repeated. `ConnectionLost` from here means that it has not left."""
        return self._connected().submit(self._sign(command), deadline)

    def repeat(self, command: Command, deadline: float, *, leave: bool) -> Pending:
        """Once more, over a new connection when the server wants us to `leave` the old one. For `Asked`."""
        if leave:
            self.close()
        return self._connected().submit(command, deadline)

    def close(self) -> None:
        """Drops the connection; the next request makes a new one."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def _connected(self) -> BrokerConnection:
        with self._lock:
            if self._connection is None or not self._connection.usable:
                self._connection = BrokerConnection(self.address, self._options, self._purpose)
            return self._connection

    def _sign(self, command: Command) -> Command:
        if self._credentials is None:
            return command
        fields = signed(command.fields, bytes(command.body), self._credentials)
        return dataclasses.replace(command, fields=fields)


class Asked:
    """A repeatable request that is under way."""

    def __init__(
        self, channel: Channel, command: Command, deadline: float, pending: Pending, *, repeated: bool = False
    ) -> None:
        self._channel = channel
        self._command = command
        self._deadline = deadline
        self._pending = pending
        self._repeated = repeated

    def wait(self, until: float) -> bool:
        """Whether `result` would return or raise at once by that moment. Raises `Unreachable` when the request had to
        be repeated and that failed."""
        decided = self._pending.wait(until)
        if decided and not self._repeated and self._worth_repeating():
            self._repeated = True
            self._pending = self._channel.repeat(self._command, self._deadline, leave=not self._lost())
            decided = self._pending.wait(until)
        return decided

    @property
    def pending(self) -> Pending:
        """The request as it is under way now."""
        return self._pending

    def postpone(self, deadline: float) -> None:
        """Moves the deadline: for who had other things to do while the answer came."""
        self._deadline = deadline
        self._pending.postpone(deadline)

    def give_up(self) -> None:
        """Nobody wants the answer any more."""
        self._pending.give_up()

    def result(self) -> Command:
        """The answer, whatever its code. Raises `NoAnswer`, or `Unreachable` when the repetition failed too."""
        self.wait(self._deadline)
        return self._pending.result()

    def _worth_repeating(self) -> bool:
        outcome = self._pending.outcome
        return self._lost() or (isinstance(outcome, Command) and outcome.code == ResponseCode.GO_AWAY)

    def _lost(self) -> bool:
        return isinstance(self._pending.outcome, ConnectionLost)
