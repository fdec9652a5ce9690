"""Who dials in: those who are invited, each once; strangers get nothing and hold nothing up."""

from __future__ import annotations

import contextlib
import json
import socket
import threading

import pytest

from connect_core.engine.dialling import DialIn, dialled
from connect_core.engine.line import LineEnded


def serving(invitation: bytes) -> threading.Thread:
    def serve() -> None:
        with dialled(invitation) as line:
            line.send(line.receive() + b"!")

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def test_each_worker_gets_its_line_whatever_the_order_in_which_they_dial() -> None:
    with DialIn(3) as dial_in:
        workers = [serving(invitation) for invitation in reversed(dial_in.invitations())]
        lines = dial_in.lines(10, lambda: True)
    for number, line in enumerate(lines):
        line.send(str(number).encode())
        assert line.receive(10) == f"{number}!".encode()
        line.close()
    for worker in workers:
        worker.join()


def test_strangers_hold_nothing_up_and_are_sent_away() -> None:
    with DialIn(1) as dial_in:
        [invitation] = dial_in.invitations()
        told = json.loads(invitation)
        place = told["host"], told["port"]
        silent, wrong, short = (socket.create_connection(place) for _ in range(3))
        wrong.sendall(b"x" * len(told["token"]))
        short.sendall(told["token"][:-1].encode())
        worker = serving(invitation)
        [line] = dial_in.lines(10, lambda: True)
    line.send(b"you")
    assert line.receive(10) == b"you!"
    line.close()
    worker.join()
    for stranger in (silent, wrong, short):
        stranger.settimeout(10)
        with contextlib.suppress(ConnectionResetError):  # what it had said was not read to its end
            assert stranger.recv(1) == b""
        stranger.close()


def test_an_invitation_is_good_once() -> None:
    with DialIn(2) as dial_in:
        [first, second] = dial_in.invitations()
        with dialled(first) as line, dialled(first) as again:
            worker = serving(second)
            lines = dial_in.lines(10, lambda: True)
            with pytest.raises(LineEnded):
                again.receive(10)
            lines[0].send(b"here")
            assert line.receive(10) == b"here"
            lines[1].send(b"")
            worker.join()
    for one in lines:
        one.close()


@pytest.mark.parametrize("expected", [True, False])
def test_when_not_all_come_there_is_no_line(expected: bool) -> None:
    with DialIn(2) as dial_in, dialled(dial_in.invitations()[0]) as line:
        assert dial_in.lines(0.3, lambda: expected) == []
        dial_in.__exit__()
        with pytest.raises(LineEnded):
            line.receive(10)


def test_nobody_dials_when_the_driver_has_gone() -> None:
    with DialIn(1) as dial_in:
        [invitation] = dial_in.invitations()
    with pytest.raises(ConnectionRefusedError), dialled(invitation):
        pytest.fail("there is no line")
