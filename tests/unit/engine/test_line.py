"""Messages over a line come whole or not at all."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from connect_core.engine.line import Line, LineEnded


@pytest.fixture
def ends() -> Iterator[tuple[Line, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Line(ours), theirs


def test_messages_of_any_size_come_whole_and_in_order() -> None:
    ours, theirs = socket.socketpair()
    here, there = Line(ours), Line(theirs)
    messages = [b"", b"a", os.urandom(70_000), b"", b"z" * 3]
    for message in messages:
        here.send(message)
    assert [there.receive() for _ in messages] == messages
    assert there.arrived() is None
    here.close()
    with pytest.raises(LineEnded):
        there.arrived()
    there.close()


def test_what_arrives_in_pieces_is_waited_for(ends: tuple[Line, socket.socket]) -> None:
    line, there = ends
    framed = (5).to_bytes(8, "big") + b"whole"
    for piece in framed[:-1]:
        there.sendall(bytes([piece]))
        assert line.arrived() is None
    there.sendall(framed[-1:] + framed)
    assert line.arrived() == b"whole"
    assert line.receive(1) == b"whole"
    with pytest.raises(TimeoutError):
        line.receive(0.01)


def test_an_end_in_the_middle_of_a_message_is_an_end(ends: tuple[Line, socket.socket]) -> None:
    line, there = ends
    there.sendall((5).to_bytes(8, "big") + b"who")
    there.close()
    with pytest.raises(LineEnded):
        line.receive(1)


def test_what_nobody_takes_is_given_up(ends: tuple[Line, socket.socket]) -> None:
    line, there = ends
    with pytest.raises(TimeoutError):
        line.send(bytes(10_000_000), 0.05)
    there.close()
    with pytest.raises(LineEnded):
        line.send(b"more")
